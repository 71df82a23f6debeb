//! Networks that papers and tutorials use.

use super::{Activation, Convolution, Function, Kind, Layer, Linear, Network, Pool, Reference, Sequence};
use crate::data::Shape;

/// Linear layers with these many units between, and an activation after each but the last. Without hidden layers: softmax regression.
///
/// # Panics
/// When a layer has no units.
#[must_use]
pub fn perceptron(input: Shape, hidden: &[usize], activation: Function, classes: usize) -> Network {
    let mut layers: Vec<Box<dyn Layer>> = Vec::new();
    let mut length = input.len();
    for &units in hidden {
        layers.push(Box::new(Linear::new(length, units)));
        layers.push(Box::new(Activation::new(activation, Shape::vector(units))));
        length = units;
    }
    layers.push(Box::new(Linear::new(length, classes)));
    Network::new(Sequence::new(input, layers))
}

/// Logistic regression: two classes, one output.
#[must_use]
pub fn logistic(input: Shape) -> Network {
    Network::new(Sequence::new(input, vec![Box::new(Linear::new(input.len(), 1)), Box::new(Reference)]))
}

/// Convolutions of `(channels, size, stride, padding)`, each with an activation and a maximum over 2×2 positions `pool` apart, then one
/// hidden layer; `None` when they do not fit the input.
#[must_use]
pub fn convolutional(
    input: Shape,
    convolutions: &[(usize, usize, usize, usize)],
    pool: usize,
    hidden: usize,
    activation: Function,
    classes: usize,
) -> Option<Network> {
    let mut layers: Vec<Box<dyn Layer>> = Vec::new();
    let mut shape = input;
    for &(channels, size, stride, padding) in convolutions {
        let convolution = Convolution::new(shape, channels, size, stride, padding)?;
        let function = Activation::new(activation, convolution.output());
        let largest = Pool::new(Kind::Max, convolution.output(), 2, pool)?;
        shape = largest.output();
        layers.extend([Box::new(convolution) as Box<dyn Layer>, Box::new(function), Box::new(largest)]);
    }
    layers.push(Box::new(Linear::new(shape.len(), hidden)));
    layers.push(Box::new(Activation::new(activation, Shape::vector(hidden))));
    layers.push(Box::new(Linear::new(hidden, classes)));
    Some(Network::new(Sequence::new(input, layers)))
}

/// The network of Opacus's MNIST example, which \[FZ\] trains: 26,010 parameters.
#[must_use]
pub fn mnist() -> Option<Network> {
    let input = Shape { height: 28, width: 28, channels: 1 };
    convolutional(input, &[(16, 8, 2, 3), (32, 4, 2, 0)], 1, 32, Function::Relu, 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model as _;

    #[test]
    fn they_have_as_many_parameters_as_they_say() {
        assert_eq!(mnist().expect("it fits").parameters(), 26_010);
        assert_eq!(perceptron(Shape::vector(784), &[1000], Function::Relu, 10).parameters(), 795_010);
        assert_eq!(perceptron(Shape::vector(105), &[], Function::Relu, 2).parameters(), 212);
    }
}
