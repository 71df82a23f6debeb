//! From noisy gradients to parameters. All of it is post-processing.

use paygo_accounting::params::OutOfDomain;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How parameters move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Method {
    /// Against the gradient, with a memory of past ones if `momentum` is above 0.
    Sgd {
        /// How much of the last movement stays, in [0, 1).
        #[serde(default)]
        momentum: f64,
    },
    /// Adam: Kingma and Ba, arXiv:1412.6980.
    Adam {
        /// Of the mean, in [0, 1).
        #[serde(default = "first_decay")]
        first_decay: f64,
        /// Of the mean square, in [0, 1).
        #[serde(default = "second_decay")]
        second_decay: f64,
    },
}

const fn first_decay() -> f64 {
    0.9
}

const fn second_decay() -> f64 {
    0.999
}

/// How the learning rate changes with the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// The same throughout.
    Constant(f64),
    /// From `first` to `last` in a straight line over `epochs`, then `last`.
    Linear {
        /// Of epoch 0.
        first: f64,
        /// From epoch `epochs` on.
        last: f64,
        /// How many.
        epochs: u64,
    },
    /// Multiplied by `factor` every `period` epochs.
    Step {
        /// Of epoch 0.
        first: f64,
        /// In (0, 1].
        factor: f64,
        /// Epochs between two steps.
        period: u64,
    },
    /// Half a cosine from `first` to `last` over `epochs`, then `last`.
    Cosine {
        /// Of epoch 0.
        first: f64,
        /// From epoch `epochs` on.
        last: f64,
        /// How many.
        epochs: u64,
    },
}

impl Rate {
    /// Checks that every rate is above 0 (the last may be 0) and finite.
    ///
    /// # Errors
    /// [`OutOfDomain`].
    pub fn checked(self) -> Result<Self, OutOfDomain> {
        let (first, last, period) = match self {
            Self::Constant(rate) => (rate, rate, 1),
            Self::Linear { first, last, epochs } | Self::Cosine { first, last, epochs } => (first, last, epochs),
            Self::Step { first, factor, period } => {
                if !(factor > 0.0 && factor <= 1.0) {
                    return Err(OutOfDomain::new("factor", factor, "0 < factor <= 1"));
                }
                (first, first, period)
            }
        };
        if !(first > 0.0 && first <= 1e30) {
            return Err(OutOfDomain::new("learning_rate", first, "above 0 and at most 1e30"));
        }
        if !(0.0..=1e30).contains(&last) {
            return Err(OutOfDomain::new("last learning_rate", last, "0 to 1e30"));
        }
        if period == 0 {
            return Err(OutOfDomain::new("epochs", period, "at least 1"));
        }
        Ok(self)
    }

    /// The learning rate of an epoch.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "epochs are far below 2^53")]
    pub fn at(&self, epoch: u64) -> f64 {
        let passed = |epochs: u64| epoch.min(epochs) as f64 / epochs as f64;
        match *self {
            Self::Constant(rate) => rate,
            Self::Linear { first, last, epochs } => first + (last - first) * passed(epochs),
            Self::Step { first, factor, period } => {
                first * factor.powi(i32::try_from(epoch / period).unwrap_or(i32::MAX))
            }
            Self::Cosine { first, last, epochs } => {
                last + (first - last) * (1.0 + (std::f64::consts::PI * passed(epochs)).cos()) / 2.0
            }
        }
    }
}

/// Numbers that a thread moves at a time.
const BLOCK: usize = 1 << 14;

/// A method, its rate and what it remembers.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    method: Method,
    rate: Rate,
    /// How many steps were taken.
    steps: u64,
    /// One number for each parameter, or none.
    first: Vec<f32>,
    /// One number for each parameter, or none.
    second: Vec<f32>,
}

impl Optimizer {
    /// A method that remembers nothing yet.
    ///
    /// # Errors
    /// [`OutOfDomain`] when a decay is not in [0, 1) or a rate not above 0.
    pub fn new(method: Method, rate: Rate, parameters: usize) -> Result<Self, OutOfDomain> {
        let decay = |name: &'static str, decay: f64| {
            if (0.0..1.0).contains(&decay) {
                Ok(())
            } else {
                Err(OutOfDomain::new(name, decay, "at least 0 and below 1"))
            }
        };
        let (first, second) = match method {
            Method::Sgd { momentum } => {
                decay("momentum", momentum)?;
                (momentum > 0.0, false)
            }
            Method::Adam { first_decay, second_decay } => {
                decay("first_decay", first_decay)?;
                decay("second_decay", second_decay)?;
                (true, true)
            }
        };
        let memory = |there: bool| if there { vec![0.0; parameters] } else { Vec::new() };
        Ok(Self { method, rate: rate.checked()?, steps: 0, first: memory(first), second: memory(second) })
    }

    /// Moves the parameters against a gradient.
    #[expect(clippy::cast_possible_truncation, reason = "single precision is what parameters are in")]
    pub fn step(&mut self, epoch: u64, gradient: &[f32], parameters: &mut [f32]) {
        self.steps += 1;
        let rate = self.rate.at(epoch);
        match self.method {
            Method::Sgd { momentum } if momentum > 0.0 => {
                let (momentum, rate) = (momentum as f32, rate as f32);
                let blocks = parameters.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK));
                blocks.zip(self.first.par_chunks_mut(BLOCK)).for_each(|((parameters, gradient), movements)| {
                    for ((parameter, &gradient), movement) in parameters.iter_mut().zip(gradient).zip(movements) {
                        *movement = momentum * *movement + gradient;
                        *parameter -= rate * *movement;
                    }
                });
            }
            Method::Sgd { .. } => {
                let rate = rate as f32;
                parameters.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK)).for_each(|(parameters, gradient)| {
                    for (parameter, &gradient) in parameters.iter_mut().zip(gradient) {
                        *parameter -= rate * gradient;
                    }
                });
            }
            Method::Adam { first_decay, second_decay } => {
                let power = i32::try_from(self.steps).unwrap_or(i32::MAX);
                // The means start at zero; this makes up for it.
                let (a, b) = (1.0 - first_decay.powi(power), 1.0 - second_decay.powi(power));
                let (rate, spread) = ((rate / a) as f32, (1.0 / b) as f32);
                let (one, two) = (first_decay as f32, second_decay as f32);
                let blocks = parameters.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK));
                let memory = self.first.par_chunks_mut(BLOCK).zip(self.second.par_chunks_mut(BLOCK));
                blocks.zip(memory).for_each(|((parameters, gradient), (means, squares))| {
                    let numbers = parameters.iter_mut().zip(gradient).zip(means.iter_mut().zip(squares));
                    for ((parameter, &gradient), (mean, square)) in numbers {
                        *mean = one * *mean + (1.0 - one) * gradient;
                        *square = two * *square + (1.0 - two) * gradient * gradient;
                        *parameter -= rate * *mean / ((*square * spread).sqrt() + 1e-8);
                    }
                });
            }
        }
    }

    /// What it remembers: steps taken, and one or two vectors.
    #[must_use]
    pub fn memory(&self) -> (u64, &[f32], &[f32]) {
        (self.steps, &self.first, &self.second)
    }

    /// Takes up what it remembered; `false`, and nothing is changed, when the lengths are not its own.
    #[must_use]
    pub fn restore(&mut self, steps: u64, first: Vec<f32>, second: Vec<f32>) -> bool {
        let fits = first.len() == self.first.len() && second.len() == self.second.len();
        if fits {
            (self.steps, self.first, self.second) = (steps, first, second);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Σ (x − target)²/2` is brought to nothing by each method.
    #[test]
    fn every_method_finds_a_minimum() {
        let target: Vec<f32> = (0..50u8).map(|i| f32::from(i) / 10.0 - 2.0).collect();
        let methods = [
            (Method::Sgd { momentum: 0.0 }, 0.1),
            (Method::Sgd { momentum: 0.9 }, 0.02),
            (Method::Adam { first_decay: 0.9, second_decay: 0.999 }, 0.05),
        ];
        for (method, rate) in methods {
            let mut optimizer = Optimizer::new(method, Rate::Constant(rate), 50).expect("an optimizer");
            let mut x = vec![0.0; 50];
            for step in 0..1000 {
                let gradient: Vec<f32> = x.iter().zip(&target).map(|(x, t)| x - t).collect();
                optimizer.step(step, &gradient, &mut x);
            }
            let off = x.iter().zip(&target).map(|(x, t)| (x - t).abs()).fold(0.0, f32::max);
            assert!(off < 1e-2, "{method:?}: {off}");
        }
    }

    /// The first step of Adam moves every number by the rate, whatever the gradient's size; two steps by hand.
    #[test]
    fn adam_is_adam() {
        let method = Method::Adam { first_decay: 0.9, second_decay: 0.999 };
        let mut optimizer = Optimizer::new(method, Rate::Constant(0.1), 2).expect("an optimizer");
        let mut x = vec![0.0, 0.0];
        optimizer.step(0, &[1e-3, -50.0], &mut x);
        assert!((x[0] + 0.1).abs() < 1e-5 && (x[1] - 0.1).abs() < 1e-5, "{x:?}");
        optimizer.step(0, &[0.0, 0.0], &mut x);
        // m = 0.09·g/0.19, v = 0.000999·g²/0.001999.
        let moved = 0.1 * (0.09 / 0.19) / (0.000_999f64 / 0.001_999).sqrt();
        assert!((f64::from(x[1]) - 0.1 - moved).abs() < 1e-4, "{x:?}");
    }

    #[test]
    fn rates_change_as_they_say() {
        let at = |rate: Rate, epoch| rate.checked().expect("a rate").at(epoch);
        let linear = Rate::Linear { first: 1.0, last: 0.0, epochs: 4 };
        assert_eq!([0, 1, 4, 9].map(|epoch| at(linear, epoch)), [1.0, 0.75, 0.0, 0.0]);
        let step = Rate::Step { first: 1.0, factor: 0.5, period: 3 };
        assert_eq!([0, 2, 3, 6].map(|epoch| at(step, epoch)), [1.0, 1.0, 0.5, 0.25]);
        let cosine = Rate::Cosine { first: 2.0, last: 1.0, epochs: 2 };
        assert!((at(cosine, 1) - 1.5).abs() < 1e-12 && (at(cosine, 5) - 1.0).abs() < 1e-12);
        for bad in [Rate::Constant(0.0), Rate::Constant(f64::NAN), Rate::Linear { first: 1.0, last: -1.0, epochs: 1 }] {
            assert!(bad.checked().is_err());
        }
        assert!(Rate::Step { first: 1.0, factor: 1.5, period: 1 }.checked().is_err());
        assert!(Rate::Cosine { first: 1.0, last: 0.0, epochs: 0 }.checked().is_err());
        for decay in [-0.1, 1.0, f64::NAN] {
            assert!(Optimizer::new(Method::Sgd { momentum: decay }, Rate::Constant(1.0), 1).is_err());
        }
    }
}
