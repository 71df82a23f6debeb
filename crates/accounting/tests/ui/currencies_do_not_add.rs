use paygo_accounting::params::{Epsilon, Rho};

fn main() {
    let _ = Rho::ZERO + Epsilon::ZERO;
}
