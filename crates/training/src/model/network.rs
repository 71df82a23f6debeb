//! A network that classifies: layers, and the cross-entropy of a softmax.

use super::{Chunk, Existing, Findings, Layer, MissingGradient, Model, Pass, Sequence, Tensor};
use crate::data::Shape;

/// Layers whose last output has one number for each class, and the cross-entropy of their softmax as the loss.
#[derive(Debug)]
pub struct Network {
    layers: Sequence,
    tensors: Vec<Tensor>,
}

impl Network {
    /// The network of these layers.
    #[must_use]
    pub fn new(layers: Sequence) -> Self {
        Self { tensors: layers.parameters(), layers }
    }

    /// The probability of each class for each of some inputs that lie side by side, input after input.
    #[must_use]
    pub fn probabilities(&self, parameters: &[f32], inputs: &[f32]) -> Vec<f32> {
        let rows = inputs.len() / self.input().len();
        let mut memory = vec![0.0; self.layers.memory(rows)];
        let mut classes = vec![0.0; rows * self.classes()];
        self.layers.forward(rows, parameters, inputs, &mut classes, &mut memory);
        for logits in classes.chunks_exact_mut(self.classes()) {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            logits.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
            let sum: f32 = logits.iter().sum();
            logits.iter_mut().for_each(|logit| *logit /= sum);
        }
        classes
    }

    /// Logits, their error, what the layers keep.
    fn split<'a>(&self, rows: usize, memory: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32], &'a mut [f32]) {
        let (logits, rest) = memory.split_at_mut(rows * self.classes());
        let (error, rest) = rest.split_at_mut(rows * self.classes());
        (logits, error, rest)
    }
}

impl Model for Network {
    fn input(&self) -> Shape {
        self.layers.input()
    }

    fn classes(&self) -> usize {
        self.layers.output().len()
    }

    fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    fn groups(&self) -> usize {
        self.layers.groups()
    }

    fn memory(&self, rows: usize) -> usize {
        2 * rows * self.classes() + self.layers.memory(rows)
    }

    fn predict(&self, parameters: &[f32], chunk: Chunk<'_>, memory: &mut [f32], findings: &mut Findings) {
        let (rows, classes) = (chunk.labels.len(), self.classes());
        let (logits, error, kept) = self.split(rows, memory);
        self.layers.forward(rows, parameters, chunk.inputs, logits, kept);
        findings.clear();
        for ((logits, error), &label) in
            logits.chunks_exact(classes).zip(error.chunks_exact_mut(classes)).zip(chunk.labels)
        {
            let (loss, predicted) = softmax(logits, label as usize, error);
            findings.losses.push(loss);
            findings.correct.push(predicted == label as usize);
        }
    }

    fn examine(
        &self,
        parameters: &[f32],
        chunk: Chunk<'_>,
        memory: &mut [f32],
        findings: &mut Findings,
    ) -> Result<(), MissingGradient> {
        self.predict(parameters, chunk, memory, findings);
        let rows = chunk.labels.len();
        let (output, error, memory) = self.split(rows, memory);
        self.layers.backward(rows, parameters, pass(chunk, output, error, memory), None);
        Ok(())
    }

    fn squared_norms(&self, chunk: Chunk<'_>, memory: &mut [f32], norms: &mut [f64]) {
        let rows = chunk.labels.len();
        let (output, error, memory) = self.split(rows, memory);
        self.layers.squared_norms(rows, pass(chunk, output, error, memory), norms);
    }

    fn add_gradients(
        &self,
        chunk: Chunk<'_>,
        memory: &mut [f32],
        factors: Option<&[f32]>,
        sum: &mut [f32],
        mode: Existing,
    ) {
        let rows = chunk.labels.len();
        let (output, error, memory) = self.split(rows, memory);
        self.layers.add_gradients(rows, pass(chunk, output, error, memory), factors, sum, mode);
    }
}

const fn pass<'a>(chunk: Chunk<'a>, output: &'a [f32], error: &'a mut [f32], memory: &'a mut [f32]) -> Pass<'a> {
    Pass { input: chunk.inputs, squared_norms_of_input: chunk.squared_norms, output, error, memory }
}

/// The loss `ln Σ e^z − z_label`, the class with the largest logit, and the loss's gradient.
fn softmax(logits: &[f32], label: usize, error: &mut [f32]) -> (f32, usize) {
    let (mut predicted, mut largest) = (0, f32::NEG_INFINITY);
    for (class, &logit) in logits.iter().enumerate() {
        if logit > largest {
            (predicted, largest) = (class, logit);
        }
    }
    let mut sum = 0.0;
    for (error, &logit) in error.iter_mut().zip(logits) {
        *error = (logit - largest).exp();
        sum += *error;
    }
    for error in error.iter_mut() {
        *error /= sum;
    }
    error[label] -= 1.0;
    (largest + sum.ln() - logits[label], predicted)
}
