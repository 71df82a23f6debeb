//! Private principal components of real digits. `PAYGO_DATA` names their folder; without it made-up ones are used.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use paygo_accounting::filter::{Filter, Zcdp};
use paygo_accounting::params::{Neighbors, NoiseMultiplier};
use paygo_noise::Source;
use paygo_numeric::Amount;
use paygo_training::data::sets::Set;
use paygo_training::data::{Examples, Shape, generate};
use paygo_training::gate::FilterGate;
use paygo_training::pca::{Projection, principal_components};

/// What is left of the squared length of inputs, each counted alike.
fn kept(examples: &Examples, projection: &Projection) -> f64 {
    let projected = projection.apply(examples);
    assert_eq!(projected.shape(), Shape::vector(projection.count()));
    let squared = |input: &[f32]| input.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let shares = (0..examples.len()).map(|i| squared(projected.input(i)) / squared(examples.input(i)).max(1e-30));
    #[expect(clippy::cast_precision_loss, reason = "a number of examples")]
    let count = examples.len() as f64;
    shares.sum::<f64>() / count
}

/// \[Y\]: 60 directions with noise of 16. With less noise they keep more.
#[test]
fn sixty_directions_of_digits() {
    // Written to the stream itself, a line at a time: a test that passes shows it too.
    let say = |line: String| std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    let folder = std::env::var_os("PAYGO_DATA").map(PathBuf::from);
    let (examples, least) = match folder.and_then(|folder| Set::Mnist.load(&folder).ok()) {
        Some(split) => (split.train, [0.72, 0.89]),
        None => (generate::digits(20_000, 1), [0.77, 0.9]),
    };
    let rule = Zcdp::with_limit(Amount::ONE, Amount::ZERO).expect("a rule");
    for (noise_multiplier, least) in [16.0, 1.0].into_iter().zip(least) {
        let mut gate = FilterGate::new(Filter::new(rule.clone(), Neighbors::AddRemove));
        let mut source = Source::insecure_from_seed(7);
        let start = Instant::now();
        let noise = NoiseMultiplier::new(noise_multiplier).expect("noise");
        let found = principal_components(&examples, 60, noise, &mut gate, &mut source).expect("admitted");
        let took = start.elapsed();
        let kept = kept(&examples, &found);
        say(format!("noise {noise_multiplier}: {examples:?} in {took:.2?}, {kept:.4} of the squared length kept\n"));
        assert!(kept > least, "{kept}");
        let spent = gate.filter().sums().lanes()[0];
        assert_eq!(spent, Amount::from_f64_up(0.5 / (noise_multiplier * noise_multiplier)));
    }
}
