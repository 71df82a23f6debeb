//! Every layer's gradient against finite differences, and clipped sums against a slow reference that writes every gradient down.

use paygo_accounting::params::Neighbors;
use paygo_noise::Source;
use paygo_training::data::{Examples, Shape};
use paygo_training::gradient::{Clip, NORM_MARGIN, Personal, Scaling, Summer};
use paygo_training::model::{
    Activation, Chunk, Convolution, Existing, Findings, Function, Gradient, Kind, Layer, Linear, MissingGradient,
    Model, Network, Normalization, OneByOne, Pass, Pool, Reference, Residual, Sequence, Start, Tensor,
};
use std::sync::atomic::{AtomicUsize, Ordering};

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        #[expect(clippy::cast_precision_loss, reason = "24 bits")]
        let x = (state >> 8) as f32 / (1 << 23) as f32 - 1.0;
        x
    };
    (0..count).map(|_| next()).collect()
}

fn examples(shape: Shape, classes: usize, count: usize, seed: u32) -> Examples {
    let labels =
        (0..u32::try_from(count).expect("few")).map(|i| i * 7 % u32::try_from(classes).expect("few")).collect();
    Examples::new(shape, classes, numbers(count * shape.len(), seed), labels).expect("examples")
}

fn shape(height: usize, width: usize, channels: usize) -> Shape {
    Shape { height, width, channels }
}

/// Networks that have every layer somewhere, small enough to check every parameter.
fn networks() -> Vec<(&'static str, Network)> {
    let mut all = Vec::new();
    let mut add =
        |name, input, layers: Vec<Box<dyn Layer>>| all.push((name, Network::new(Sequence::new(input, layers))));
    add("softmax", Shape::vector(7), vec![Box::new(Linear::new(7, 3))]);
    add("logistic", Shape::vector(7), vec![Box::new(Linear::new(7, 1)), Box::new(Reference)]);
    for function in [Function::Relu, Function::Tanh] {
        add(
            "perceptron",
            Shape::vector(5),
            vec![
                Box::new(Linear::new(5, 9)),
                Box::new(Activation::new(function, Shape::vector(9))),
                Box::new(Linear::new(9, 4)),
            ],
        );
    }
    for (kind, stride) in [(Kind::Max, 1), (Kind::Max, 2), (Kind::Mean, 1), (Kind::Mean, 2)] {
        let input = shape(9, 8, 2);
        let first = Convolution::new(input, 3, 3, 2, 1).expect("fits");
        let tanh = Activation::new(Function::Tanh, first.output());
        let pool = Pool::new(kind, first.output(), 2, stride).expect("fits");
        let second = Convolution::new(pool.output(), 4, 2, 1, 1).expect("fits");
        let length = second.output().len();
        let last = Linear::new(length, 3);
        add(
            "convolutions",
            input,
            vec![Box::new(first), Box::new(tanh), Box::new(pool), Box::new(second), Box::new(last)],
        );
    }
    for groups in [1, 2, 4] {
        let input = shape(3, 4, 4);
        let norm = Normalization::new(input, groups).expect("divides");
        add("normalization", input, vec![Box::new(norm), Box::new(Linear::new(48, 3))]);
    }
    let input = shape(5, 5, 3);
    let block = |from: Shape, channels: usize, stride: usize, end: bool| -> Vec<Box<dyn Layer>> {
        let one = Convolution::new(from, channels, 3, stride, 1).expect("fits");
        let norm = Normalization::new(one.output(), 1).expect("divides");
        let tanh = Activation::new(Function::Tanh, one.output());
        let two = Convolution::new(one.output(), channels, 3, 1, 1).expect("fits");
        let last = Activation::new(Function::Tanh, two.output());
        let mut layers: Vec<Box<dyn Layer>> = vec![Box::new(one), Box::new(norm), Box::new(tanh), Box::new(two)];
        if end {
            layers.push(Box::new(last));
        }
        layers
    };
    let plain = Residual::new(Sequence::new(input, block(input, 3, 1, true)), None).expect("same shape");
    let inside = Sequence::new(input, block(input, 4, 2, false));
    let shortcut = Convolution::new(input, 4, 1, 2, 0).expect("fits");
    let strided = Residual::new(inside, Some(Box::new(shortcut))).expect("same shape");
    let length = strided.output().len();
    add("residual", input, vec![Box::new(plain), Box::new(strided), Box::new(Linear::new(length, 3))]);
    all
}

fn parameters(model: &impl Model) -> Vec<f32> {
    numbers(model.parameters(), 11).iter().map(|x| x * 0.5).collect()
}

/// The gradient of one example.
fn gradient(model: &impl Model, parameters: &[f32], examples: &Examples, index: usize) -> Vec<f64> {
    let mut summer = Summer::new(model, examples, 1, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
    summer.add_up(parameters, &[u32::try_from(index).expect("few")], Scaling::None).expect("a gradient");
    summer.total().expose().to_vec()
}

fn loss(model: &impl Model, parameters: &[f32], examples: &Examples, index: usize) -> f64 {
    let (mut memory, mut findings) = (vec![f32::NAN; model.memory(1)], Findings::default());
    let label = examples.label(index);
    let chunk = Chunk::new(examples.input(index), std::slice::from_ref(&label));
    model.predict(parameters, chunk, &mut memory, &mut findings);
    f64::from(findings.losses[0])
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (name, model) in networks() {
        let (examples, parameters) = (examples(model.input(), model.classes(), 3, 5), parameters(&model));
        for index in 0..3 {
            let exact = gradient(&model, &parameters, &examples, index);
            let (mut worst, mut off) = (0.0f64, 0);
            for at in 0..parameters.len() {
                let at_step = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[at] += step;
                    loss(&model, &moved, &examples, index)
                };
                let error_with = |step: f32| {
                    let difference = (at_step(step) - at_step(-step)) / (2.0 * f64::from(step));
                    (difference - exact[at]).abs() / (0.05 + exact[at].abs())
                };
                // At a kink of a maximum or a rectifier a difference is no derivative; a shorter step may stay on one side of it.
                let error = [1e-2, 2e-3, 4e-4].map(error_with).into_iter().fold(f64::INFINITY, f64::min);
                worst = worst.max(error);
                off += usize::from(error > 1e-2);
            }
            assert!(off * 100 <= parameters.len(), "{name}: {off} of {} are off, by up to {worst}", parameters.len());
        }
    }
}

/// The clipped sum, slowly.
fn reference(
    model: &impl Model,
    parameters: &[f32],
    examples: &Examples,
    batch: &[u32],
    clip: &Clip,
    groups: &[usize],
) -> Vec<f64> {
    let mut sum = vec![0.0; parameters.len()];
    for &index in batch {
        let gradient = gradient(model, parameters, examples, index as usize);
        let whole = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
        let mut start = 0;
        for &length in groups {
            let part = &gradient[start..start + length];
            #[expect(clippy::cast_precision_loss, reason = "few layers")]
            let limit = if groups.len() == 1 { clip.norm() } else { clip.norm() / (groups.len() as f64).sqrt() };
            let norm = if groups.len() == 1 { whole } else { part.iter().map(|x| x * x).sum::<f64>().sqrt() };
            for (sum, x) in sum[start..].iter_mut().zip(part) {
                *sum += x * (limit / norm).min(1.0);
            }
            start += length;
        }
    }
    sum
}

/// How many parameters each layer of a network has, from the names of its tensors.
fn layers(model: &Network) -> Vec<usize> {
    let mut lengths: Vec<(String, usize)> = Vec::new();
    for tensor in model.tensors() {
        let layer = tensor.name.rsplit_once('.').map_or("", |(layer, _)| layer).to_owned();
        match lengths.last_mut() {
            Some((last, length)) if *last == layer => *length += tensor.len(),
            Some(_) | None => lengths.push((layer, tensor.len())),
        }
    }
    lengths.into_iter().map(|(_, length)| length).collect()
}

#[test]
fn clipped_sums_agree_with_gradients_written_down() {
    for (name, model) in networks() {
        let (examples, parameters) = (examples(model.input(), model.classes(), 90, 6), parameters(&model));
        let batch: Vec<u32> = (0..90).filter(|i| i % 3 != 1).collect();
        let lengths = layers(&model);
        assert_eq!(lengths.len(), model.groups(), "{name}");
        let whole = Clip::whole(0.7).expect("a norm");
        let by_layer = Clip::by_layer(0.3, model.groups()).expect("a norm");
        for (clip, groups) in [(whole, vec![parameters.len()]), (by_layer, lengths)] {
            let slow = reference(&model, &parameters, &examples, &batch, &clip, &groups);
            for neighbors in [Neighbors::AddRemove, Neighbors::ZeroOut] {
                let mut summer = Summer::new(&model, &examples, 60, neighbors, &mut Source::insecure_from_seed(4));
                summer.add_up(&parameters, &batch, Scaling::Clip(&clip)).expect("a sum");
                let norm = slow.iter().map(|x| x * x).sum::<f64>().sqrt();
                let off = slow.iter().zip(summer.total().expose()).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                // The margin on norms, and single precision.
                assert!(off < 60.0 * clip.norm() * NORM_MARGIN + 1e-4 * norm, "{name}: off by {off} of {norm}");
                assert!(off > 0.0);
            }
        }
    }
}

/// A layer too large to write its gradients down takes norms from products; they must be upper bounds, and close.
#[test]
fn norms_by_products_are_upper_bounds() {
    let input = shape(4, 4, 70);
    let convolution = Convolution::new(input, 60, 3, 1, 1).expect("fits");
    let model = Network::new(Sequence::new(input, vec![Box::new(convolution), Box::new(Linear::new(16 * 60, 3))]));
    let (examples, parameters) = (examples(input, 3, 8, 7), numbers(model.parameters(), 3));
    let parameters: Vec<f32> = parameters.iter().map(|x| x * 0.05).collect();
    let inputs: Vec<f32> = (0..8).flat_map(|i| examples.input(i).to_vec()).collect();
    let chunk = Chunk::new(&inputs, examples.labels());
    let (mut memory, mut norms) = (vec![f32::NAN; model.memory(8)], vec![f64::NAN; 16]);
    model.examine(&parameters, chunk, &mut memory, &mut Findings::default()).expect("gradients");
    model.squared_norms(chunk, &mut memory, &mut norms);
    for (index, &norm) in norms.iter().take(8).enumerate() {
        let gradient = gradient(&model, &parameters, &examples, index);
        let convolution: f64 = gradient[..630 * 60 + 60].iter().map(|x| x * x).sum();
        assert!(norm >= convolution * (1.0 - 1e-6) && norm <= convolution * 1.05, "{norm} {convolution}");
    }
    let clip = Clip::whole(0.1).expect("a norm");
    let batch: Vec<u32> = (0..8).collect();
    let slow = reference(&model, &parameters, &examples, &batch, &clip, &[parameters.len()]);
    let mut summer = Summer::new(&model, &examples, 8, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
    summer.add_up(&parameters, &batch, Scaling::Clip(&clip)).expect("a sum");
    let off = slow.iter().zip(summer.total().expose()).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    assert!(off < 8.0 * 0.1 * 0.02, "{off}");
}

/// Products of windows or of errors that vanish or overflow in single precision say nothing: the norm is then that of the gradient itself.
#[test]
fn norms_by_products_are_upper_bounds_where_squares_leave_single_precision() {
    let convolution = Convolution::new(shape(4, 4, 70), 60, 3, 1, 1).expect("fits");
    let norm = |number: f32, of_error: f32| {
        let (mut input, mut error, mut norms) = (vec![0.0; 16 * 70], vec![0.0; 16 * 60], [0.0]);
        input[0] = number;
        error[..60].fill(of_error);
        // Far from it, an error whose square does not vanish.
        error[15 * 60] = 1e-12;
        let mut memory = vec![0.0; convolution.memory(1)];
        let (output, error) = (vec![0.0; 16 * 60], &mut error);
        let pass = Pass { input: &input, squared_norms_of_input: None, output: &output, error, memory: &mut memory };
        convolution.squared_norms(1, pass, &mut norms);
        norms[0]
    };
    for (number, of_error) in [(1e19, 2e-23), (1.0, 2e-23), (1e-23, 1e19), (3.0, 2.0)] {
        let exact = 60.0 * (f64::from(number) * f64::from(of_error)).powi(2);
        assert!(norm(number, of_error) >= exact * (1.0 - 1e-6), "{number} {of_error}: {}", norm(number, of_error));
    }
    assert!(!norm(1e25, 1e20).is_finite());
}

/// However many more examples there are than was expected: chains that are cut anew behind everyone who leaves would round anew, all of
/// them. Here each piece of 232 ends in numbers that vanish beside what stands before them, and beside one example less do not.
#[test]
fn nobody_changes_the_sum_by_more_than_the_sensitivity_in_chains_that_are_too_long() {
    let layers: Vec<Box<dyn Layer>> = vec![Box::new(Linear::new(3, 1)), Box::new(Reference)];
    let model = Network::new(Sequence::new(Shape::vector(3), layers));
    let count = 100_000;
    let inputs = (0..count).flat_map(|i| [if i % 232 < 128 { 1.0 } else { 4e-6 }; 3]).collect();
    let examples = Examples::new(Shape::vector(3), 2, inputs, vec![0; count]).expect("examples");
    let (parameters, clip) = (vec![0.0; 4], Clip::whole(1.001).expect("a norm"));
    // One thread, one chain: all in order.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    alone.install(|| {
        let mut summer = Summer::new(&model, &examples, 100, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
        let all: Vec<u32> = (0..100_000).collect();
        summer.add_up(&parameters, &all, Scaling::Clip(&clip)).expect("a sum");
        let with = summer.total().expose().to_vec();
        summer.add_up(&parameters, &all[1..], Scaling::Clip(&clip)).expect("a sum");
        let change = with.iter().zip(summer.total().expose()).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        // The gradient that is gone has norm 1.
        assert!((change - 1.0).abs() <= summer.margin() * clip.norm(), "{change}");
    });
}

/// The heart of it: with and without any one example, the computed sums differ by at most the stated sensitivity.
#[test]
fn nobody_changes_the_sum_by_more_than_the_sensitivity() {
    for (name, model) in networks() {
        let count = 600;
        let (examples, parameters) = (examples(model.input(), model.classes(), count, 8), parameters(&model));
        for clip in [Clip::whole(1e-3).expect("a norm"), Clip::by_layer(1e-3, model.groups()).expect("a norm")] {
            let mut summer =
                Summer::new(&model, &examples, count, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
            let all: Vec<u32> = (0..600).collect();
            summer.add_up(&parameters, &all, Scaling::Clip(&clip)).expect("a sum");
            let with = summer.total().expose().to_vec();
            for gone in [0, 1, 130, 255, 256, 599] {
                let rest: Vec<u32> = all.iter().copied().filter(|&i| i != gone).collect();
                summer.add_up(&parameters, &rest, Scaling::Clip(&clip)).expect("a sum");
                let change = with.iter().zip(summer.total().expose()).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!(change <= summer.l2_sensitivity(&clip), "{name}: {change}");
                assert!(change > 0.5 * clip.norm() || name == "convolutions" || clip.norm() > 1e-3, "{name}: {change}");
            }
        }
    }
}

/// The same where somebody's gradient becomes zero and all others keep their places.
#[test]
fn nobody_changes_the_sum_by_more_than_the_sensitivity_where_places_stay() {
    for (name, model) in networks() {
        let count = 600;
        let (examples, parameters) = (examples(model.input(), model.classes(), count, 8), parameters(&model));
        let clip = Clip::whole(1e-3).expect("a norm");
        let mut summer = Summer::new(&model, &examples, count, Neighbors::ZeroOut, &mut Source::insecure_from_seed(4));
        let coins = Summer::new(&model, &examples, count, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
        assert!(summer.margin() < coins.margin() / 2.0, "{} {}", summer.margin(), coins.margin());
        let all: Vec<u32> = (0..600).collect();
        #[expect(clippy::cast_possible_truncation, reason = "single precision is what gradients are in")]
        let charge = |spent: u32, norm: f64| (spent, (1e-3 / norm.sqrt()).min(1.0) as f32);
        let mut sum = |gone: Option<usize>| {
            let sampled: Vec<bool> = (0..count).map(|i| Some(i) != gone).collect();
            let personal = Personal { spent: &mut vec![0; count], charge: &charge, sampled: Some(&sampled) };
            summer.add_up(&parameters, &all, Scaling::Personal(personal)).expect("a sum");
            (summer.total().expose().to_vec(), summer.l2_sensitivity(&clip))
        };
        let (with, sensitivity) = sum(None);
        for gone in [0, 1, 130, 299, 300, 599] {
            let (without, _) = sum(Some(gone));
            let change = with.iter().zip(without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            assert!(change <= sensitivity, "{name}: {change}");
            assert!(change > 0.5 * clip.norm() || name == "convolutions", "{name}: {change}");
        }
    }
}

#[test]
fn an_example_whose_gradient_is_no_number_contributes_nothing_and_pays() {
    let model = Network::new(Sequence::new(Shape::vector(2), vec![Box::new(Linear::new(2, 2))]));
    // Overflows in the logits: its loss and gradient are no numbers.
    let inputs = vec![1.0, 2.0, f32::MAX, f32::MAX, 0.5, -1.0];
    let examples = Examples::new(Shape::vector(2), 2, inputs, vec![0, 1, 1]).expect("examples");
    let parameters = [3.0, -3.0, 3.0, -3.0, 0.0, 0.0];
    let clip = Clip::whole(1.0).expect("a norm");
    let sum = |batch: &[u32]| {
        let mut summer = Summer::new(&model, &examples, 3, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
        summer.add_up(&parameters, batch, Scaling::Clip(&clip)).expect("a sum");
        summer.total().expose().to_vec()
    };
    assert_eq!(sum(&[0, 1, 2]), sum(&[0, 2]));
    assert!(sum(&[0, 2]).iter().all(|x| x.is_finite()));
    assert_eq!(sum(&[1]), [0.0; 6]);
    // With a budget for each, it is charged in full; the factor of the others is theirs.
    let mut spent = [0, 0, 0];
    let charge = |spent: u32, norm: f64| (spent + if norm.is_finite() { 1 } else { 100 }, 0.5);
    let mut summer = Summer::new(&model, &examples, 3, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
    let personal = Personal { spent: &mut spent, charge: &charge, sampled: Some(&[true, true, false]) };
    summer.add_up(&parameters, &[0, 1, 2], Scaling::Personal(personal)).expect("a sum");
    let halves: Vec<f64> = gradient(&model, &parameters, &examples, 0).iter().map(|x| x / 2.0).collect();
    assert_eq!(summer.total().expose(), halves);
    assert_eq!(spent, [1, 100, 1]);
}

/// Counts what is done with chunks.
struct Counting {
    inner: Network,
    examined: AtomicUsize,
}

impl Model for Counting {
    fn input(&self) -> Shape {
        self.inner.input()
    }
    fn classes(&self) -> usize {
        self.inner.classes()
    }
    fn tensors(&self) -> &[Tensor] {
        self.inner.tensors()
    }
    fn groups(&self) -> usize {
        self.inner.groups()
    }
    fn memory(&self, rows: usize) -> usize {
        self.inner.memory(rows)
    }
    fn predict(&self, parameters: &[f32], chunk: Chunk<'_>, memory: &mut [f32], findings: &mut Findings) {
        self.inner.predict(parameters, chunk, memory, findings);
    }
    fn examine(
        &self,
        parameters: &[f32],
        chunk: Chunk<'_>,
        memory: &mut [f32],
        findings: &mut Findings,
    ) -> Result<(), MissingGradient> {
        self.examined.fetch_add(chunk.labels.len(), Ordering::SeqCst);
        self.inner.examine(parameters, chunk, memory, findings)
    }
    fn squared_norms(&self, chunk: Chunk<'_>, memory: &mut [f32], norms: &mut [f64]) {
        self.inner.squared_norms(chunk, memory, norms);
    }
    fn add_gradients(
        &self,
        chunk: Chunk<'_>,
        memory: &mut [f32],
        factors: Option<&[f32]>,
        sum: &mut [f32],
        mode: Existing,
    ) {
        self.inner.add_gradients(chunk, memory, factors, sum, mode);
    }
}

/// Time does not tell whether somebody's gradient is no number; and it does not touch the others, in any layer.
#[test]
fn an_example_whose_gradient_is_no_number_is_no_more_work() {
    let (input, count) = (shape(4, 4, 70), 9);
    let large = Convolution::new(input, 60, 3, 1, 1).expect("fits");
    let large = Network::new(Sequence::new(input, vec![Box::new(large), Box::new(Linear::new(16 * 60, 3))]));
    for (name, inner) in networks().into_iter().chain([("a large convolution", large)]) {
        let model = Counting { inner, examined: AtomicUsize::new(0) };
        let parameters = parameters(&model);
        let usual = examples(model.input(), model.classes(), count, 8);
        let length = model.input().len();
        let inputs: Vec<f32> = (0..count)
            .flat_map(|i| usual.input(i).iter().map(move |&x| if i == 4 { f32::MAX * x.signum() } else { x }))
            .collect();
        assert_eq!(inputs.len(), count * length);
        let odd = usual.with_inputs(model.input(), inputs).expect("finite");
        for clip in [Clip::whole(0.1).expect("a norm"), Clip::by_layer(0.1, model.groups()).expect("a norm")] {
            let sum = |examples: &Examples| {
                model.examined.store(0, Ordering::SeqCst);
                let mut source = Source::insecure_from_seed(4);
                let mut summer = Summer::new(&model, examples, count, Neighbors::ZeroOut, &mut source);
                let batch: Vec<u32> = (0..9).collect();
                let found = summer.add_up(&parameters, &batch, Scaling::Clip(&clip)).expect("a sum").expose();
                assert!(found.loss.is_finite());
                (summer.total().expose().to_vec(), model.examined.load(Ordering::SeqCst))
            };
            let (usual, work) = sum(&usual);
            let (odd, same) = sum(&odd);
            assert_eq!(work, same, "{name}");
            assert!(usual.iter().chain(&odd).all(|x| x.is_finite()), "{name}");
        }
    }
}

struct Forgetful;

impl Gradient for Forgetful {
    fn input(&self) -> Shape {
        Shape::vector(2)
    }
    fn classes(&self) -> usize {
        2
    }
    fn tensors(&self) -> Vec<Tensor> {
        let tensor = |name: &str| Tensor { name: name.into(), shape: vec![2], start: Start::Zeros };
        vec![tensor("first"), tensor("second")]
    }
    fn loss(&self, _: &[f32], _: &[f32], _: u32) -> (f32, u32) {
        (0.0, 0)
    }
    fn gradient(&self, _: &[f32], input: &[f32], _: u32, gradient: &mut [f32]) {
        gradient[..2].copy_from_slice(input);
        gradient[2] = 0.0;
    }
}

#[test]
fn a_missing_gradient_is_an_error() {
    let examples = examples(Shape::vector(2), 2, 4, 9);
    let model = OneByOne::new(Forgetful);
    let mut summer = Summer::new(&model, &examples, 4, Neighbors::AddRemove, &mut Source::insecure_from_seed(4));
    let error = summer.add_up(&[0.0; 4], &[0, 1], Scaling::None).expect_err("missing");
    assert_eq!(
        error.to_string(),
        "the model wrote no gradient for all of second; it must write zeros where it has none"
    );
}

#[test]
fn clipping_layer_by_layer_pays_for_every_layer() {
    let clip = Clip::by_layer(4.0, 9).expect("a norm");
    assert!(clip.norm() >= 12.0 && clip.norm() < 12.0 + 1e-12);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Clip::whole(bad).is_err() && Clip::by_layer(bad, 2).is_err());
    }
    assert!(Clip::by_layer(1.0, 0).is_err());
}

/// Errors whose squares vanish in single precision, inputs near its end, and factors below its normal numbers: all are clipped.
#[test]
fn what_is_tiny_or_huge_is_clipped_too() {
    let length = |model: &Network, parameters: &[f32], input: f32, clip_norm: f64, neighbors| {
        let examples = Examples::new(Shape::vector(1), 3, vec![input], vec![1]).expect("examples");
        let clip = Clip::whole(clip_norm).expect("a norm");
        let mut summer = Summer::new(model, &examples, 1, neighbors, &mut Source::insecure_from_seed(1));
        summer.add_up(parameters, &[0], Scaling::Clip(&clip)).expect("a sum");
        let norm = summer.total().expose().iter().map(|x| x * x).sum::<f64>().sqrt();
        (norm, summer.l2_sensitivity(&clip))
    };
    for neighbors in [Neighbors::AddRemove, Neighbors::ZeroOut] {
        let softmax = Network::new(Sequence::new(Shape::vector(1), vec![Box::new(Linear::new(1, 3))]));
        for clip_norm in [1e-6, 1e-4, 1.0] {
            // The other classes are at e⁻⁵³.
            let (moved, allowed) = length(&softmax, &[0.0, 0.0, 0.0, 0.0, 53.0, 0.0], 1.7e19, clip_norm, neighbors);
            assert!(moved > 0.0 && moved <= allowed, "{clip_norm}: {moved} {allowed}");
        }
        let deep: Vec<Box<dyn Layer>> = vec![
            Box::new(Linear::new(1, 1)),
            Box::new(Activation::new(Function::Relu, Shape::vector(1))),
            Box::new(Linear::new(1, 3)),
        ];
        let deep = Network::new(Sequence::new(Shape::vector(1), deep));
        for weight in [1e19, 1.3e19, 1.6e19] {
            for clip_norm in [1e-7, 1.1e-7, 1.2e-7, 2.5e-7] {
                let parameters = [1e-19, 0.0, weight, 0.0, 0.0, 0.0, 0.0, 0.0];
                let (moved, allowed) = length(&deep, &parameters, 1e19, clip_norm, neighbors);
                assert!(moved <= allowed, "{weight} {clip_norm}: {moved} {allowed}");
            }
        }
    }
}

/// Who contributes nothing leaves no trace, not in one bit, where the others keep their places: whatever their example is.
#[test]
fn whoever_has_spent_everything_leaves_no_trace() {
    let networks = networks();
    let wide = Network::new(Sequence::new(
        Shape::vector(7),
        vec![
            Box::new(Linear::new(7, 4096)),
            Box::new(Activation::new(Function::Relu, Shape::vector(4096))),
            Box::new(Linear::new(4096, 3)),
        ],
    ));
    for (name, model) in networks.into_iter().chain([("wide", wide)]) {
        let count = 700;
        let parameters = parameters(&model);
        let first = examples(model.input(), model.classes(), count, 8);
        // Everybody else's inputs, and another, or a huge one, for the silent.
        let other = |scale: f32| {
            let inputs = (0..count).flat_map(|i| {
                let row: Vec<f32> = first.input(i).to_vec();
                row.into_iter().map(move |x| if i == 123 { (x - 0.7) * scale } else { x })
            });
            first.with_inputs(first.shape(), inputs.collect()).expect("examples")
        };
        let sum = |examples: &Examples, silent: bool| {
            let sampled: Vec<bool> = (0..count).map(|i| i % 3 != 1 && !(silent && i == 123)).collect();
            let charge = |spent: u32, norm: f64| (spent, if norm.is_finite() { 0.5 } else { 0.0 });
            let mut summer = Summer::new(&model, examples, 250, Neighbors::ZeroOut, &mut Source::insecure_from_seed(4));
            let personal = Personal { spent: &mut vec![0; count], charge: &charge, sampled: Some(&sampled) };
            let all: Vec<u32> = (0..700).collect();
            summer.add_up(&parameters, &all, Scaling::Personal(personal)).expect("a sum");
            summer.total().expose().to_vec()
        };
        let silent = sum(&first, true);
        assert!(sum(&first, false) != silent, "{name}");
        for scale in [1.0, 1e38] {
            assert!(sum(&other(scale), true) == silent, "{name} {scale}");
        }
    }
}
