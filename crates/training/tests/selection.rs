//! Choosing among whole training runs, each with a budget of its own.

use paygo_accounting::filter::{Filter, Zcdp};
use paygo_accounting::mechanism::{self, Mechanism};
use paygo_accounting::params::{Neighbors, NoiseMultiplier, Rho};
use paygo_accounting::schedule::Schedule;
use paygo_noise::Source;
use paygo_numeric::Amount;
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::{Examples, Shape, generate};
use paygo_training::gate::FilterGate;
use paygo_training::gradient::Clip;
use paygo_training::model::{Layer, Linear, Model, Network, Sequence};
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::policy::Policy;
use paygo_training::run::{Privacy, Run, Setup, Stop, TrainError, evaluate};
use paygo_training::selection::Selection;
use std::ops::ControlFlow;

const RHO: f64 = 4.0;
const NEIGHBORS: Neighbors = Neighbors::AddRemove;

fn gate() -> FilterGate<Zcdp> {
    let limit = Amount::from_f64_down(RHO).expect("an amount");
    FilterGate::new(Filter::new(Zcdp::with_limit(limit, Amount::ZERO).expect("a rule"), NEIGHBORS))
}

/// Parameters after the budget is spent, with a learning rate.
fn train(model: &Network, part: &Examples, public_size: u64, rate: f64) -> Result<Vec<f32>, TrainError> {
    let plan = Setup {
        model,
        examples: part,
        public: None,
        sampler: Sampler::new(Batching::Poisson { sampling_probability: 0.1 }, NEIGHBORS, public_size, part.len())?,
        privacy: Privacy::Clipped(Clip::whole(1.0)?),
        policy: Policy::Schedule(Schedule::Uniform { initial: NoiseMultiplier::new(4.0)? }),
        optimizer: Optimizer::new(Method::Sgd { momentum: 0.0 }, Rate::Constant(rate), model.parameters())?,
        stop: Stop::default(),
    };
    let source = Source::insecure_from_seed(2);
    let mut run = Run::new(plan, public_size, Some(Box::new(gate())), None, Box::new(()), source)?;
    while run.advance(&mut |_| ControlFlow::Continue(()))?.is_none() {}
    Ok(run.parameters().to_vec())
}

/// One rate learns and two hardly move: the first is picked, and all three cost what one does.
#[test]
fn the_learning_rate_that_learns_is_picked() {
    let layers: Vec<Box<dyn Layer>> = vec![Box::new(Linear::new(31, 2))];
    let model = Network::new(Sequence::new(Shape::vector(31), layers));
    let examples = generate::census(8000, 1);
    let budget = Mechanism::from(mechanism::Zcdp { rho: Rho::new(RHO).expect("a rho") });
    let rates = [1e-7, 1.0, 1e-6];
    let selection = Selection::new(vec![budget; rates.len()], 1.0).expect("a selection");
    let mut whole = gate();
    let mut source = Source::insecure_from_seed(3);
    let selected = selection
        .run(
            &examples,
            &mut whole,
            &mut source,
            |candidate, part| train(&model, part, 2000, rates[candidate]),
            |parameters, last| evaluate(&model, parameters, last).map(|found| (found.count - found.correct) as u64),
        )
        .expect("admitted");
    assert_eq!(selected.candidate, 1);
    assert_eq!(whole.filter().sums().lanes(), [Amount::from_f64_up(RHO)]);
    let fresh = generate::census(4000, 5);
    let found = evaluate(&model, &selected.winner, &fresh).expose();
    assert!(found.correct > 3000, "{} of 4000", found.correct);
}
