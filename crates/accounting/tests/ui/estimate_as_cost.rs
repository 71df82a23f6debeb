use paygo_accounting::estimate;
use paygo_accounting::mechanism::Zcdp;
use paygo_accounting::params::{NoiseMultiplier, SamplingProbability};

fn main() {
    let q = SamplingProbability::new(0.01).unwrap();
    let rho = estimate::abadi_rho(q, NoiseMultiplier::new(4.0).unwrap());
    let _ = Zcdp { rho };
}
