use paygo_accounting::filter::Permit;

fn copy(permit: &Permit) -> Permit {
    permit.clone()
}

fn main() {}
