//! The words for a model, and the network that they mean.

use anyhow::Context;
use paygo_training::data::Shape;
use paygo_training::model::known::{logistic, perceptron};
use paygo_training::model::{
    Activation, Convolution, Function, Kind, Layer, Linear, Model as _, Network, Normalization, Pool, Residual,
    Sequence,
};
use serde::Deserialize;

/// What is learned.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Model {
    /// One linear layer, one output for each class.
    Softmax,
    /// One linear layer with one output, for two classes.
    Logistic,
    /// Hidden layers of so many units.
    Perceptron {
        hidden: Vec<usize>,
        #[serde(default = "relu")]
        activation: Function,
    },
    /// Layer by layer; the last linear layer, to the classes, is added.
    Layers(Vec<LayerWords>),
}

const fn relu() -> Function {
    Function::Relu
}

/// One layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LayerWords {
    Linear(usize),
    Relu,
    Tanh,
    Convolution {
        channels: usize,
        size: usize,
        #[serde(default = "one")]
        stride: usize,
        #[serde(default)]
        padding: usize,
    },
    MaxPool {
        size: usize,
        stride: usize,
    },
    MeanPool {
        size: usize,
        stride: usize,
    },
    Normalization {
        groups: usize,
    },
    Residual {
        inside: Vec<LayerWords>,
        /// Channels and stride of a convolution of size 1 around it, where the shapes differ.
        shortcut: Option<(usize, usize)>,
    },
}

const fn one() -> usize {
    1
}

impl Model {
    /// The network for such examples.
    pub(super) fn network(&self, input: Shape, classes: usize) -> anyhow::Result<Network> {
        let network = self.build(input, classes)?;
        let parameters = network.parameters();
        anyhow::ensure!(parameters <= 1 << 28, "model: {parameters} parameters; expected at most 2^28");
        Ok(network)
    }

    fn build(&self, input: Shape, classes: usize) -> anyhow::Result<Network> {
        match self {
            Self::Logistic => {
                anyhow::ensure!(
                    classes == 2,
                    "model = \"logistic\" tells 2 classes apart; there are {classes}\nhint: softmax"
                );
                Ok(logistic(input))
            }
            Self::Softmax => Ok(perceptron(input, &[], Function::Relu, classes)),
            Self::Perceptron { hidden, activation } => {
                hidden.iter().try_for_each(|&units| check_units(units, "model.perceptron.hidden"))?;
                Ok(perceptron(input, hidden, *activation, classes))
            }
            Self::Layers(words) => {
                let mut layers = build(words, input, "model.layers")?;
                let last = layers.last().map_or(input, |layer| layer.output());
                layers.push(Box::new(Linear::new(last.len(), classes)));
                Ok(Network::new(Sequence::new(input, layers)))
            }
        }
    }
}

fn check_units(units: usize, place: &str) -> anyhow::Result<()> {
    anyhow::ensure!((1..=1 << 20).contains(&units), "{place}: a layer of {units} units; expected 1 to 2^20");
    Ok(())
}

fn build(words: &[LayerWords], mut shape: Shape, place: &str) -> anyhow::Result<Vec<Box<dyn Layer>>> {
    let mut layers: Vec<Box<dyn Layer>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let fits = |what: &str| format!("{place}[{index}]: {what} does not fit an input of shape {shape}");
        let layer: Box<dyn Layer> = match word {
            LayerWords::Linear(units) => {
                check_units(*units, &format!("{place}[{index}]"))?;
                Box::new(Linear::new(shape.len(), *units))
            }
            LayerWords::Relu => Box::new(Activation::new(Function::Relu, shape)),
            LayerWords::Tanh => Box::new(Activation::new(Function::Tanh, shape)),
            LayerWords::Convolution { channels, size, stride, padding } => {
                check_units(*channels, &format!("{place}[{index}]"))?;
                let sizes = [size, stride, padding];
                anyhow::ensure!(sizes.iter().all(|size| **size <= 1 << 16), "{}", fits("the convolution"));
                Box::new(
                    Convolution::new(shape, *channels, *size, *stride, *padding)
                        .with_context(|| fits("the convolution"))?,
                )
            }
            LayerWords::MaxPool { size, stride } => {
                Box::new(Pool::new(Kind::Max, shape, *size, *stride).with_context(|| fits("the pooling"))?)
            }
            LayerWords::MeanPool { size, stride } => {
                Box::new(Pool::new(Kind::Mean, shape, *size, *stride).with_context(|| fits("the pooling"))?)
            }
            LayerWords::Normalization { groups } => {
                Box::new(Normalization::new(shape, *groups).with_context(|| fits("the normalization"))?)
            }
            LayerWords::Residual { inside, shortcut } => {
                let inside = build(inside, shape, &format!("{place}[{index}].inside"))?;
                anyhow::ensure!(!inside.is_empty(), "{place}[{index}]: a residual block with nothing inside");
                let shortcut: Option<Box<dyn Layer>> = match shortcut {
                    Some((channels, stride)) => Some(Box::new(
                        Convolution::new(shape, *channels, 1, *stride, 0).with_context(|| fits("the shortcut"))?,
                    )),
                    None => None,
                };
                let block = Residual::new(Sequence::new(shape, inside), shortcut);
                Box::new(
                    block.with_context(|| format!("{place}[{index}]: inside and shortcut end in different shapes"))?,
                )
            }
        };
        shape = layer.output();
        layers.push(layer);
    }
    Ok(layers)
}
