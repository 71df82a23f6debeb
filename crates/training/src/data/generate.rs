//! Made-up examples, the same on every machine, so that something can be learned before any data is at hand. Nobody is
//! behind them. Only additions, products, quotients and square roots are used, which every machine rounds alike.

use rayon::prelude::*;

use super::random::Seeded;
use super::{Examples, Shape};

const SIDE: usize = 14;

/// The ends of the seven strokes of a pocket calculator's digit, in a box one wide and two high:
/// top, upper left, upper right, middle, lower left, lower right, bottom.
const STROKES: [[(f32, f32); 2]; 7] = [
    [(0.0, 0.0), (1.0, 0.0)],
    [(0.0, 0.0), (0.0, 1.0)],
    [(1.0, 0.0), (1.0, 1.0)],
    [(0.0, 1.0), (1.0, 1.0)],
    [(0.0, 1.0), (0.0, 2.0)],
    [(1.0, 1.0), (1.0, 2.0)],
    [(0.0, 2.0), (1.0, 2.0)],
];

/// Which strokes each digit has.
const DIGITS: [&[usize]; 10] = [
    &[0, 1, 2, 4, 5, 6],
    &[2, 5],
    &[0, 2, 3, 4, 6],
    &[0, 2, 3, 5, 6],
    &[1, 2, 3, 5],
    &[0, 1, 3, 5, 6],
    &[0, 1, 3, 4, 5, 6],
    &[0, 2, 5],
    &[0, 1, 2, 3, 4, 5, 6],
    &[0, 1, 2, 3, 5, 6],
];

/// Images of digits, 14x14x1 with ten classes: strokes whose place, size, slant, thickness and ends vary, under noise.
/// Softmax regression reads about nine in ten, a small network more. The first examples of a longer set are those of a
/// shorter one with the same seed.
#[must_use]
pub fn digits(count: usize, seed: u64) -> Examples {
    let shape = Shape { height: SIDE, width: SIDE, channels: 1 };
    make(count, shape, DIGITS.len(), |index, input| draw(&mut Seeded::new(seed, index), input))
}

/// The groups of `census`: in each, one feature is 1 and the others 0. How many features, and how much they matter.
const GROUPS: [(usize, f32); 6] = [(7, 0.9), (6, 0.7), (4, 0.6), (4, 0.3), (2, 0.4), (2, 0.2)];
/// The numbers of `census`, each with its weight.
const NUMBERS: [f32; 6] = [1.6, 1.2, -1.0, 0.8, 0.0, 0.0];

/// A table with two classes and 31 features between 0 and 1: six numbers, then six groups of which one feature is 1. Three
/// in ten are of class 1. Part of it is chance: logistic regression is right about five times in six, a small network a
/// little more often. The first examples of a longer set are those of a shorter one with the same seed.
#[must_use]
pub fn census(count: usize, seed: u64) -> Examples {
    let features = NUMBERS.len() + GROUPS.iter().map(|group| group.0).sum::<usize>();
    make(count, Shape::vector(features), 2, |index, input| person(&mut Seeded::new(seed, index), input))
}

/// Makes every example by its position alone.
fn make(count: usize, shape: Shape, classes: usize, example: impl Fn(u64, &mut [f32]) -> u32 + Sync) -> Examples {
    let mut inputs = vec![0.0; count * shape.len()];
    let labels =
        inputs.par_chunks_exact_mut(shape.len()).enumerate().map(|(at, input)| example(at as u64, input)).collect();
    Examples::new(shape, classes, inputs, labels).expect("made of finite numbers and labels below their number")
}

/// Draws a digit and gives its label.
fn draw(random: &mut Seeded, image: &mut [f32]) -> u32 {
    let digit = random.below(DIGITS.len());
    let (width, height) = (random.between(3.6, 6.0), random.between(4.0, 5.6));
    let (left, top) = (7.0 - width / 2.0 + random.between(-1.5, 1.5), 7.0 - height + random.between(-1.3, 1.3));
    let slant = random.between(-0.2, 0.2);
    let thickness = random.between(0.2, 0.9);
    let ink = random.between(0.6, 1.0);
    let ends = DIGITS[digit].iter().map(|&stroke| {
        STROKES[stroke].map(|(across, down)| {
            let x = left + across * width + slant * (1.0 - down) * height + random.between(-0.4, 0.4);
            (x, top + down * height + random.between(-0.4, 0.4))
        })
    });
    let ends: Vec<[(f32, f32); 2]> = ends.collect();
    for (at, pixel) in image.iter_mut().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "below 14")]
        let center = ((at % SIDE) as f32 + 0.5, (at / SIDE) as f32 + 0.5);
        let nearest = ends.iter().map(|&[a, b]| distance(center, a, b)).fold(f32::INFINITY, f32::min);
        let covered = (thickness + 0.5 - nearest).clamp(0.0, 1.0);
        *pixel = (ink * covered + 0.1 * random.bell()).clamp(0.0, 1.0);
    }
    u32::try_from(digit).expect("below ten")
}

/// From a point to a stroke.
fn distance(point: (f32, f32), a: (f32, f32), b: (f32, f32)) -> f32 {
    let (along, toward) = ((b.0 - a.0, b.1 - a.1), (point.0 - a.0, point.1 - a.1));
    let square = along.0 * along.0 + along.1 * along.1;
    let part = ((along.0 * toward.0 + along.1 * toward.1) / square.max(1e-6)).clamp(0.0, 1.0);
    let (x, y) = (toward.0 - part * along.0, toward.1 - part * along.1);
    (x * x + y * y).sqrt()
}

/// Makes up a person and gives the label.
fn person(random: &mut Seeded, input: &mut [f32]) -> u32 {
    let (numbers, mut rest) = input.split_at_mut(NUMBERS.len());
    let mut score = 0.0;
    for (number, weight) in numbers.iter_mut().zip(NUMBERS) {
        *number = (0.5 + 0.22 * random.bell()).clamp(0.0, 1.0);
        score += weight * (*number - 0.5) / 0.22;
    }
    for (size, spread) in GROUPS {
        let (group, after) = rest.split_at_mut(size);
        // The smaller of two: the first members of a group are the common ones.
        let chosen = random.below(size).min(random.below(size));
        group[chosen] = 1.0;
        #[expect(clippy::cast_precision_loss, reason = "below 7")]
        let place = chosen as f32;
        // Neighbors differ, so that the order of a group tells nothing.
        score += spread * if chosen.is_multiple_of(2) { 1.0 + 0.2 * place } else { -1.0 - 0.3 * place };
        rest = after;
    }
    // The fifth number matters only together with the fourth: what a linear model cannot see.
    score += (numbers[3] - 0.5) * (numbers[4] - 0.5) / (0.22 * 0.22);
    u32::from(score + 1.8 * random.bell() > 2.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain gradient descent on single examples for softmax regression, or for a network with one hidden layer.
    struct Learner {
        hidden: Option<Layer>,
        last: Layer,
    }

    struct Layer {
        weights: Vec<Vec<f32>>,
    }

    impl Layer {
        fn new(inputs: usize, outputs: usize, scale: f32) -> Self {
            let mut random = Seeded::new(7, inputs as u64);
            let row = |_| (0..=inputs).map(|_| scale * random.bell()).collect();
            Self { weights: (0..outputs).map(row).collect() }
        }

        fn at(&self, input: &[f32]) -> Vec<f32> {
            let sum = |row: &Vec<f32>| row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>() + row[input.len()];
            self.weights.iter().map(sum).collect()
        }

        /// A step down, and the slope at the input before it.
        fn step(&mut self, input: &[f32], slope: &[f32], rate: f32) -> Vec<f32> {
            let mut back = vec![0.0; input.len()];
            for (row, &slope) in self.weights.iter_mut().zip(slope).filter(|(_, slope)| **slope != 0.0) {
                for ((w, x), b) in row.iter_mut().zip(input).zip(&mut back) {
                    *b += *w * slope;
                    *w -= rate * slope * x;
                }
                row[input.len()] -= rate * slope;
            }
            back
        }
    }

    impl Learner {
        fn features(&self, input: &[f32]) -> Vec<f32> {
            let rectified = |layer: &Layer| layer.at(input).into_iter().map(|x| x.max(0.0)).collect();
            self.hidden.as_ref().map_or_else(|| input.to_vec(), rectified)
        }

        fn train(examples: &Examples, hidden: Option<usize>, epochs: u16, rate: f32) -> Self {
            let inputs = examples.shape().len();
            let last = Layer::new(hidden.unwrap_or(inputs), examples.classes(), 0.05);
            let mut learner = Self { hidden: hidden.map(|width| Layer::new(inputs, width, 0.1)), last };
            for epoch in 0..epochs {
                let rate = rate * f32::from(epochs - epoch) / f32::from(epochs);
                for index in 0..examples.len() {
                    let input = examples.input(index);
                    let features = learner.features(input);
                    let scores = learner.last.at(&features);
                    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    let mut slope: Vec<f32> = scores.iter().map(|score| (score - top).exp()).collect();
                    let total: f32 = slope.iter().sum();
                    slope.iter_mut().for_each(|x| *x /= total);
                    slope[examples.label(index) as usize] -= 1.0;
                    let mut back = learner.last.step(&features, &slope, rate);
                    if let Some(layer) = &mut learner.hidden {
                        back.iter_mut().zip(&features).filter(|(_, x)| **x <= 0.0).for_each(|(b, _)| *b = 0.0);
                        layer.step(input, &back, rate);
                    }
                }
            }
            learner
        }

        /// How many of a thousand are right.
        fn right(&self, examples: &Examples) -> usize {
            let best = |scores: Vec<f32>| (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            let right = (0..examples.len())
                .filter(|&index| {
                    best(self.last.at(&self.features(examples.input(index)))) == Some(examples.label(index) as usize)
                })
                .count();
            right * 1000 / examples.len()
        }
    }

    #[test]
    fn digits_are_neither_easy_nor_hopeless() {
        let (train, test) = (digits(8000, 1), digits(2000, 2));
        let linear = Learner::train(&train, None, 10, 0.02).right(&test);
        let network = Learner::train(&train, Some(64), 10, 0.02).right(&test);
        assert!((850..950).contains(&linear), "{linear}");
        assert!((linear + 20..995).contains(&network), "{network} against {linear}");
    }

    #[test]
    fn the_census_is_learned_as_far_as_chance_allows() {
        let (train, test) = (census(20_000, 1), census(10_000, 2));
        let linear = Learner::train(&train, None, 5, 0.02).right(&test);
        let network = Learner::train(&train, Some(32), 10, 0.02).right(&test);
        let ones = test.labels().iter().filter(|&&label| label == 1).count();
        assert!((2500..3500).contains(&ones), "{ones}");
        assert!((800..850).contains(&linear), "{linear}");
        assert!((linear..870).contains(&network), "{network} against {linear}");
    }

    /// A change here changes every published run on made-up examples.
    #[test]
    fn examples_are_the_same_on_every_machine() {
        let print = |examples: &Examples| {
            let inputs = (0..examples.len()).flat_map(|index| examples.input(index)).map(|x| x.to_bits());
            inputs
                .chain(examples.labels().iter().copied())
                .fold(0_u32, |sum, bits| sum.wrapping_mul(31).wrapping_add(bits))
        };
        assert_eq!((print(&digits(100, 1)), print(&census(100, 1))), (1_672_929_622, 2_557_830_680));
    }

    #[test]
    fn the_same_seed_gives_the_same_examples() {
        for make in [digits, census] {
            let few = make(50, 3);
            assert_eq!(make(80, 3).select(&(0..50).collect::<Vec<_>>()), few);
            assert_ne!(make(50, 4), few);
            assert!((0..50).all(|index| few.input(index).iter().all(|x| (0.0..=1.0).contains(x))));
            assert_eq!(make(0, 3).len(), 0);
        }
    }
}
