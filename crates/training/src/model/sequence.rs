//! Layers one after another, and around them a shortcut.

use super::layer::{InPlace, Layer, Pass, Tensor};
use crate::data::Shape;
use crate::vector::{make_finite, vectorized};
use paygo_matrix::Existing;
use std::ops::Range;

/// Layers one after another.
#[derive(Debug)]
pub struct Sequence {
    input: Shape,
    layers: Vec<Box<dyn Layer>>,
    /// How many parameters and groups each layer has.
    counts: Vec<(usize, usize)>,
}

/// Where a layer's numbers lie, all counted from the start of their own kind.
struct Place<'a> {
    layer: &'a dyn Layer,
    /// Whether it works where its input lies.
    in_place: Option<&'a dyn InPlace>,
    parameters: Range<usize>,
    memory: Range<usize>,
    groups: Range<usize>,
    /// Its output among the activations; so its error among the errors. Not that of the last layer, which is the caller's.
    output: Range<usize>,
}

impl Sequence {
    /// # Panics
    /// When there is no layer.
    #[must_use]
    pub fn new(input: Shape, layers: Vec<Box<dyn Layer>>) -> Self {
        assert!(!layers.is_empty(), "a sequence has layers");
        let parameters = |layer: &dyn Layer| layer.parameters().iter().map(Tensor::len).sum();
        let counts = layers.iter().map(|layer| (parameters(&**layer), layer.groups())).collect();
        Self { input, layers, counts }
    }

    /// The shape of an example's input.
    #[must_use]
    pub const fn input(&self) -> Shape {
        self.input
    }

    fn places(&self, rows: usize) -> Vec<Place<'_>> {
        fn take(end: &mut usize, count: usize) -> Range<usize> {
            *end += count;
            *end - count..*end
        }
        let (mut parameters, mut memory, mut groups, mut end) = (0, 0, 0, 0);
        let mut places: Vec<Place<'_>> = Vec::with_capacity(self.layers.len());
        for (index, (layer, count)) in self.layers.iter().zip(&self.counts).enumerate() {
            let is_last = index + 1 == self.layers.len();
            let over = places.last().filter(|before| !is_last && !before.layer.looks_at_its_output());
            let in_place = over.and_then(|_| layer.in_place());
            let output = match (over, in_place) {
                (Some(before), Some(_)) => before.output.clone(),
                (_, _) if is_last => end..end,
                (_, _) => take(&mut end, rows * layer.output().len()),
            };
            places.push(Place {
                layer: &**layer,
                in_place,
                parameters: take(&mut parameters, count.0),
                memory: take(&mut memory, layer.memory(rows)),
                groups: take(&mut groups, count.1),
                output,
            });
        }
        places
    }

    /// Activations, errors, and what the layers keep.
    fn split<'a>(places: &[Place<'_>], memory: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32], &'a mut [f32]) {
        let inner = places.last().map_or(0, |last| last.output.end);
        let (activations, rest) = memory.split_at_mut(inner);
        let (errors, rest) = rest.split_at_mut(inner);
        (activations, errors, rest)
    }

    /// Visits every layer that has a place of its own with what it has, last to first, and the error of its input. Layers that work in
    /// place are visited by `over` with their output and its error.
    fn each_backward(
        &self,
        rows: usize,
        pass: Pass<'_>,
        mut first: Option<&mut [f32]>,
        mut visit: impl FnMut(&Place<'_>, Pass<'_>, Option<&mut [f32]>),
        over: impl Fn(&dyn InPlace, &[f32], &mut [f32]),
    ) {
        let places = self.places(rows);
        let (activations, errors, memory) = Self::split(&places, pass.memory);
        for (index, place) in places.iter().enumerate().rev() {
            if let Some(layer) = place.in_place {
                over(layer, &activations[place.output.clone()], &mut errors[place.output.clone()]);
                continue;
            }
            let is_last = index + 1 == places.len();
            let before = if index == 0 { 0..0 } else { places[index - 1].output.clone() };
            let (errors_before, errors_after) = errors.split_at_mut(place.output.start);
            let this = Pass {
                input: if index == 0 { pass.input } else { &activations[before.clone()] },
                squared_norms_of_input: pass.squared_norms_of_input.filter(|_| index == 0),
                output: if is_last { pass.output } else { &activations[place.output.clone()] },
                error: if is_last { &mut *pass.error } else { &mut errors_after[..place.output.len()] },
                memory: &mut memory[place.memory.clone()],
            };
            let error_of_input = if index == 0 { first.take() } else { Some(&mut errors_before[before]) };
            visit(place, this, error_of_input);
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
        self.counts.iter().map(|count| count.1).sum()
    }

    fn looks_at_its_output(&self) -> bool {
        self.layers[self.layers.len() - 1].looks_at_its_output()
    }

    fn memory(&self, rows: usize) -> usize {
        let places = self.places(rows);
        places.last().map_or(0, |last| 2 * last.output.end + last.memory.end)
    }

    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]) {
        let places = self.places(rows);
        let (activations, _, memory) = Self::split(&places, memory);
        for (index, place) in places.iter().enumerate() {
            if let Some(layer) = place.in_place {
                layer.forward(&mut activations[place.output.clone()]);
                continue;
            }
            let (before, after) = activations.split_at_mut(place.output.start);
            let from = if index == 0 { input } else { &before[places[index - 1].output.clone()] };
            let is_last = index + 1 == places.len();
            let to = if is_last { &mut *output } else { &mut after[..place.output.len()] };
            let (parameters, memory) = (&parameters[place.parameters.clone()], &mut memory[place.memory.clone()]);
            place.layer.forward(rows, parameters, from, to, memory);
        }
    }

    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        let visit = |place: &Place<'_>, pass: Pass<'_>, error_of_input: Option<&mut [f32]>| {
            place.layer.backward(rows, &parameters[place.parameters.clone()], pass, error_of_input);
        };
        self.each_backward(rows, pass, error_of_input, visit, |layer, output, error| layer.backward(output, error));
    }

    fn squared_norms(&self, rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        let visit = |place: &Place<'_>, pass: Pass<'_>, _: Option<&mut [f32]>| {
            place.layer.squared_norms(rows, pass, &mut norms[place.groups.start * rows..place.groups.end * rows]);
        };
        self.each_backward(rows, pass, None, visit, |_, _, _| {});
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Existing) {
        if factors.is_some() {
            // The inputs of layers are multiplied by errors that are 0 where a gradient is no number.
            make_finite(Self::split(&self.places(rows), pass.memory).0);
        }
        let visit = |place: &Place<'_>, pass: Pass<'_>, _: Option<&mut [f32]>| {
            let factors = factors.map(|factors| &factors[place.groups.start * rows..place.groups.end * rows]);
            place.layer.add_gradients(rows, pass, factors, &mut sum[place.parameters.clone()], mode);
        };
        self.each_backward(rows, pass, None, visit, |_, _, _| {});
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
            Branch::Inside => self.inside.backward(rows, parameters, pass, error_of_input.as_deref_mut()),
            Branch::Shortcut(layer) => {
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
            Branch::Inside => self.inside.squared_norms(rows, pass, inside),
            Branch::Shortcut(layer) => layer.squared_norms(rows, pass, beside),
        });
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Existing) {
        let factors = factors.map(|factors| factors.split_at(self.inside.groups() * rows));
        let (inside, beside) = sum.split_at_mut(self.parameters_inside());
        self.both(rows, pass, |part, pass, _| match part {
            Branch::Inside => self.inside.add_gradients(rows, pass, factors.map(|both| both.0), inside, mode),
            Branch::Shortcut(layer) => layer.add_gradients(rows, pass, factors.map(|both| both.1), beside, mode),
        });
    }
}

enum Branch<'a> {
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
    fn both(&self, rows: usize, pass: Pass<'_>, mut visit: impl FnMut(Branch<'_>, Pass<'_>, &mut [f32])) {
        let [of_inside, of_shortcut, scratch, inside, beside] = self.split(rows, pass.memory);
        let mut error = pass.error.to_vec();
        let (input, squared_norms_of_input) = (pass.input, pass.squared_norms_of_input);
        let one = Pass { input, squared_norms_of_input, output: of_inside, error: &mut error, memory: inside };
        visit(Branch::Inside, one, scratch);
        if let Some(layer) = &self.shortcut {
            error.copy_from_slice(pass.error);
            let one = Pass { input, squared_norms_of_input, output: of_shortcut, error: &mut error, memory: beside };
            visit(Branch::Shortcut(&**layer), one, scratch);
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
