//! A learning rate chosen privately: three are tried on disjoint parts of the examples, and the exponential mechanism picks one.
//!
//! All of it costs no more than the dearest part ([Y] §IV-A3, E17).
//!
//! `cargo run --release --example choose_rate`
#![expect(clippy::print_stdout, reason = "an example prints")]

use paygo::accounting::filter::{Filter, Zcdp};
use paygo::accounting::mechanism::{self, Mechanism};
use paygo::accounting::params::{Neighbors, NoiseMultiplier, Rho};
use paygo::accounting::schedule::Schedule;
use paygo::noise::Source;
use paygo::numeric::Amount;
use paygo::training::batching::{Batching, Sampler};
use paygo::training::data::{Examples, generate};
use paygo::training::gate::FilterGate;
use paygo::training::gradient::Clip;
use paygo::training::model::{Model as _, Network, known};
use paygo::training::optimizer::{Method, Optimizer, Rate};
use paygo::training::policy::Policy;
use paygo::training::run::{Privacy, Run, Setup, Stop, evaluate};
use paygo::training::selection::Selection;
use std::error::Error;
use std::ops::ControlFlow;

const RATES: [f64; 3] = [0.001, 1.0, 1000.0];
/// ρ of zCDP: what each candidate may spend on its part, and so the price of everything.
const RHO: f64 = 0.5;

fn budget() -> Result<FilterGate<Zcdp>, Box<dyn Error>> {
    let limit = Amount::from_f64_down(RHO).ok_or("a finite budget")?;
    Ok(FilterGate::new(Filter::new(Zcdp::with_limit(limit, Amount::ZERO)?, Neighbors::AddRemove)))
}

/// The parameters when a fresh budget has been spent on a part of the examples.
fn train(model: &Network, part: &Examples, rate: f64) -> Result<Vec<f32>, Box<dyn Error>> {
    // Sums are divided by a public number: a part has about 5,000 examples.
    let size = 5000;
    let plan = Setup {
        model,
        examples: part,
        public: None,
        sampler: Sampler::new(Batching::Full, Neighbors::AddRemove, size, part.len())?,
        privacy: Privacy::Clipped(Clip::whole(1.0)?),
        policy: Policy::Schedule(Schedule::Uniform { initial: NoiseMultiplier::new(20.0)? }),
        optimizer: Optimizer::new(Method::Sgd { momentum: 0.0 }, Rate::Constant(rate), model.parameters())?,
        stop: Stop::default(),
    };
    let (gate, source) = (Box::new(budget()?), Source::from_operating_system()?);
    let mut run = Run::new(plan, size, Some(gate), None, Box::new(()), source)?;
    while run.advance(&mut |_| ControlFlow::Continue(()))?.is_none() {}
    Ok(run.parameters().to_vec())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (examples, test) = (generate::census(20_000, 1), generate::census(4_000, 2));
    let model = known::logistic(examples.shape());
    let each = Mechanism::from(mechanism::Zcdp { rho: Rho::new(RHO)? });
    let selection = Selection::new(vec![each; RATES.len()], 1.0)?;
    let mut gate = budget()?;
    let selected = selection
        .run(
            &examples,
            &mut gate,
            &mut Source::from_operating_system()?,
            |candidate, part| train(&model, part, RATES[candidate]),
            |parameters, last| evaluate(&model, parameters, last).map(|found| (found.count - found.correct) as u64),
        )
        .map_err(|error| error.to_string())?;
    // Made-up examples are nobody's.
    let found = evaluate(&model, &selected.winner, &test).expose();
    println!("of the rates {RATES:?} {} was picked", RATES[selected.candidate]);
    println!("{} of {} test examples are right; all of it cost rho {RHO}", found.correct, found.count);
    Ok(())
}
