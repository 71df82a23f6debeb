use paygo_accounting::cost::Cost;
use paygo_accounting::filter::Permit;
use std::sync::Arc;

fn make(cost: Arc<Cost>) -> Permit {
    Permit { cost }
}

fn main() {}
