//! Layers one after another, and around them a shortcut.

use super::layer::{Layer, Pass, Tensor};
use crate::data::Shape;
use crate::vector::vectorized;
use paygo_matrix::Target;

/// Layers one after another.
#[derive(Debug)]
pub struct Sequence {
    input: Shape,
    layers: Vec<Box<dyn Layer>>,
}

/// Where a layer's numbers lie, all counted from the start of their own kind.
struct Place {
    parameters: std::ops::Range<usize>,
    memory: std::ops::Range<usize>,
    groups: std::ops::Range<usize>,
    /// Its output among the activations; so its error among the errors.
    output: std::ops::Range<usize>,
}

impl Sequence {
    /// # Panics
    /// When there is no layer.
    #[must_use]
    pub fn new(input: Shape, layers: Vec<Box<dyn Layer>>) -> Self {
        assert!(!layers.is_empty(), "a sequence has layers");
        Self { input, layers }
    }

    /// The shape of an example's input.
    #[must_use]
    pub const fn input(&self) -> Shape {
        self.input
    }

    /// Layers with their places. The output of the last is not among the activations: it is the caller's.
    fn places(&self, rows: usize) -> impl Iterator<Item = (&dyn Layer, Place)> {
        let (mut parameters, mut memory, mut groups, mut output) = (0, 0, 0, 0);
        self.layers.iter().map(move |layer| {
            fn take(end: &mut usize, count: usize) -> std::ops::Range<usize> {
                *end += count;
                *end - count..*end
            }
            let count = layer.parameters().iter().map(Tensor::len).sum();
            let place = Place {
                parameters: take(&mut parameters, count),
                memory: take(&mut memory, layer.memory(rows)),
                groups: take(&mut groups, layer.groups()),
                output: take(&mut output, rows * layer.output().len()),
            };
            (&**layer, place)
        })
    }

    /// How many numbers the outputs of all layers but the last have.
    fn inner(&self, rows: usize) -> usize {
        rows * self.layers[..self.layers.len() - 1].iter().map(|layer| layer.output().len()).sum::<usize>()
    }

    /// Activations, errors, and what the layers keep.
    fn split<'a>(&self, rows: usize, memory: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32], &'a mut [f32]) {
        let (activations, rest) = memory.split_at_mut(self.inner(rows));
        let (errors, rest) = rest.split_at_mut(self.inner(rows));
        (activations, errors, rest)
    }

    /// Visits every layer with what it has, last to first, and the error of its input.
    fn each_backward(
        &self,
        rows: usize,
        pass: Pass<'_>,
        mut first: Option<&mut [f32]>,
        mut visit: impl FnMut(&dyn Layer, &Place, Pass<'_>, Option<&mut [f32]>),
    ) {
        let places: Vec<_> = self.places(rows).collect();
        let (activations, errors, memory) = self.split(rows, pass.memory);
        for (index, (layer, place)) in places.iter().enumerate().rev() {
            let is_last = index + 1 == places.len();
            let before = if index == 0 { 0..0 } else { places[index - 1].1.output.clone() };
            let (errors_before, errors_after) = errors.split_at_mut(place.output.start.min(errors.len()));
            let this = Pass {
                input: if index == 0 { pass.input } else { &activations[before.clone()] },
                output: if is_last { pass.output } else { &activations[place.output.clone()] },
                error: if is_last { &mut *pass.error } else { &mut errors_after[..place.output.len()] },
                memory: &mut memory[place.memory.clone()],
            };
            let error_of_input = if index == 0 { first.take() } else { Some(&mut errors_before[before]) };
            visit(*layer, place, this, error_of_input);
        }
    }
}

impl Layer for Sequence {
    fn output(&self) -> Shape {
        self.layers[self.layers.len() - 1].output()
    }

    fn parameters(&self) -> Vec<Tensor> {
        let mut tensors = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let named = |tensor: Tensor| Tensor { name: format!("{index}.{}", tensor.name), ..tensor };
            tensors.extend(layer.parameters().into_iter().map(named));
        }
        tensors
    }

    fn groups(&self) -> usize {
        self.layers.iter().map(|layer| layer.groups()).sum()
    }

    fn memory(&self, rows: usize) -> usize {
        2 * self.inner(rows) + self.layers.iter().map(|layer| layer.memory(rows)).sum::<usize>()
    }

    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]) {
        let (activations, _, memory) = self.split(rows, memory);
        let last = self.layers.len() - 1;
        for (index, (layer, place)) in self.places(rows).enumerate() {
            let (before, after) = activations.split_at_mut(place.output.start.min(activations.len()));
            let length = if index == 0 { 0 } else { rows * self.layers[index - 1].output().len() };
            let from = if index == 0 { input } else { &before[before.len() - length..] };
            let to = if index == last { &mut *output } else { &mut after[..place.output.len()] };
            layer.forward(rows, &parameters[place.parameters], from, to, &mut memory[place.memory]);
        }
    }

    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        self.each_backward(rows, pass, error_of_input, |layer, place, pass, error_of_input| {
            layer.backward(rows, &parameters[place.parameters.clone()], pass, error_of_input);
        });
    }

    fn squared_norms(&self, rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        self.each_backward(rows, pass, None, |layer, place, pass, _| {
            layer.squared_norms(rows, pass, &mut norms[place.groups.start * rows..place.groups.end * rows]);
        });
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Target) {
        self.each_backward(rows, pass, None, |layer, place, pass, _| {
            let factors = factors.map(|factors| &factors[place.groups.start * rows..place.groups.end * rows]);
            layer.add_gradients(rows, pass, factors, &mut sum[place.parameters.clone()], mode);
        });
    }
}

/// What the layers inside make of an input, added to the input: a block of a residual network.
///
/// Where the shapes differ, the shortcut has a layer of its own.
#[derive(Debug)]
pub struct Residual {
    inside: Sequence,
    shortcut: Option<Box<dyn Layer>>,
}

impl Residual {
    /// `None` when inside and shortcut end in different shapes.
    #[must_use]
    pub fn new(inside: Sequence, shortcut: Option<Box<dyn Layer>>) -> Option<Self> {
        let other = shortcut.as_ref().map_or(inside.input(), |layer| layer.output());
        (other == inside.output()).then_some(Self { inside, shortcut })
    }

    fn parameters_inside(&self) -> usize {
        self.inside.parameters().iter().map(Tensor::len).sum()
    }
}

impl Layer for Residual {
    fn output(&self) -> Shape {
        self.inside.output()
    }

    fn parameters(&self) -> Vec<Tensor> {
        let shortcut = self.shortcut.iter().flat_map(|layer| layer.parameters());
        let shortcut = shortcut.map(|tensor| Tensor { name: format!("shortcut.{}", tensor.name), ..tensor });
        self.inside.parameters().into_iter().chain(shortcut).collect()
    }

    fn groups(&self) -> usize {
        self.inside.groups() + self.shortcut.as_ref().map_or(0, |layer| layer.groups())
    }

    fn memory(&self, rows: usize) -> usize {
        self.regions(rows).iter().sum()
    }

    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]) {
        let [of_inside, of_shortcut, _, inside, beside] = self.split(rows, memory);
        self.inside.forward(rows, parameters, input, of_inside, inside);
        output.copy_from_slice(of_inside);
        if let Some(layer) = &self.shortcut {
            layer.forward(rows, &parameters[self.parameters_inside()..], input, of_shortcut, beside);
            add(output, of_shortcut);
        } else {
            add(output, input);
        }
    }

    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, mut error_of_input: Option<&mut [f32]>) {
        if let (None, Some(target)) = (&self.shortcut, error_of_input.as_deref_mut()) {
            let error = pass.error.to_vec();
            self.both(rows, pass, |_, pass, _| self.inside.backward(rows, parameters, pass, Some(&mut *target)));
            add(target, &error);
            return;
        }
        self.both(rows, pass, |part, pass, scratch| match part {
            Part::Inside => self.inside.backward(rows, parameters, pass, error_of_input.as_deref_mut()),
            Part::Shortcut(layer) => {
                let parameters = &parameters[self.parameters_inside()..];
                if let Some(target) = error_of_input.as_deref_mut() {
                    layer.backward(rows, parameters, pass, Some(scratch));
                    add(target, scratch);
                } else {
                    layer.backward(rows, parameters, pass, None);
                }
            }
        });
    }

    fn squared_norms(&self, rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        let (inside, beside) = norms.split_at_mut(self.inside.groups() * rows);
        self.both(rows, pass, |part, pass, _| match part {
            Part::Inside => self.inside.squared_norms(rows, pass, inside),
            Part::Shortcut(layer) => layer.squared_norms(rows, pass, beside),
        });
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Target) {
        let factors = factors.map(|factors| factors.split_at(self.inside.groups() * rows));
        let (inside, beside) = sum.split_at_mut(self.parameters_inside());
        self.both(rows, pass, |part, pass, _| match part {
            Part::Inside => self.inside.add_gradients(rows, pass, factors.map(|both| both.0), inside, mode),
            Part::Shortcut(layer) => layer.add_gradients(rows, pass, factors.map(|both| both.1), beside, mode),
        });
    }
}

enum Part<'a> {
    Inside,
    Shortcut(&'a dyn Layer),
}

impl Residual {
    /// The outputs of both sides, an error of the input, and what both sides keep.
    fn regions(&self, rows: usize) -> [usize; 5] {
        let (inputs, outputs) = (rows * self.inside.input().len(), rows * self.output().len());
        let kept = self.inside.memory(rows);
        self.shortcut
            .as_ref()
            .map_or([outputs, 0, 0, kept, 0], |layer| [outputs, outputs, inputs, kept, layer.memory(rows)])
    }

    fn split<'a>(&self, rows: usize, mut memory: &'a mut [f32]) -> [&'a mut [f32]; 5] {
        self.regions(rows).map(|length| {
            let (region, rest) = std::mem::take(&mut memory).split_at_mut(length);
            memory = rest;
            region
        })
    }

    /// Visits both sides with what they have. Each gets the block's error in a copy: scaling one must not scale the other.
    fn both(&self, rows: usize, pass: Pass<'_>, mut visit: impl FnMut(Part<'_>, Pass<'_>, &mut [f32])) {
        let [of_inside, of_shortcut, scratch, inside, beside] = self.split(rows, pass.memory);
        let mut error = pass.error.to_vec();
        let one = Pass { input: pass.input, output: of_inside, error: &mut error, memory: inside };
        visit(Part::Inside, one, scratch);
        if let Some(layer) = &self.shortcut {
            error.copy_from_slice(pass.error);
            let one = Pass { input: pass.input, output: of_shortcut, error: &mut error, memory: beside };
            visit(Part::Shortcut(&**layer), one, scratch);
        }
    }
}

fn add(target: &mut [f32], addend: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            for (target, number) in target.iter_mut().zip(addend) {
                *target += number;
            }
        },
    );
}
