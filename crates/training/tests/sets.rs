//! The public data sets against what is known about them. `PAYGO_DATA` names their folder; without it nothing is tested
//! here, and a line says so.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use paygo_training::data::sets::{Set, Split};
use paygo_training::data::{Examples, Shape};

/// The set and how long it took, or nothing when there is no folder.
fn load(set: Set) -> Option<Split> {
    // Written to the stream itself, a line at a time: a test that passes shows it too.
    let say = |line: String| std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    let Some(folder) = std::env::var_os("PAYGO_DATA").map(PathBuf::from) else {
        say(format!("skipped: PAYGO_DATA is not set, so {set} is not tested\n"));
        return None;
    };
    let start = Instant::now();
    let split = set.load(&folder).unwrap_or_else(|error| panic!("{error}"));
    say(format!("{set}: read in {:.2?}\n", start.elapsed()));
    Some(split)
}

fn counts(examples: &Examples) -> Vec<usize> {
    (0..examples.classes())
        .map(|class| examples.labels().iter().filter(|&&label| label as usize == class).count())
        .collect()
}

/// Mean of every `channels`-th number from `channel` on.
fn mean(examples: &Examples, channel: usize) -> f64 {
    let step = examples.shape().channels;
    let sum: f64 = (0..examples.len())
        .map(|index| examples.input(index)[channel..].iter().step_by(step).map(|&x| f64::from(x)).sum::<f64>())
        .sum();
    let positions = examples.len() * examples.shape().len() / step;
    #[expect(clippy::cast_precision_loss, reason = "far below 2⁵³")]
    let count = positions as f64;
    sum / count
}

/// How many examples are 0 in all of these features.
fn all_zero(examples: &Examples, features: std::ops::Range<usize>) -> usize {
    (0..examples.len()).filter(|&index| examples.input(index)[features.clone()].iter().all(|&x| x == 0.0)).count()
}

#[test]
fn mnist() {
    let Some(Split { train, test }) = load(Set::Mnist) else { return };
    let shape = Shape { height: 28, width: 28, channels: 1 };
    assert_eq!((train.len(), train.shape(), test.len(), test.shape()), (60_000, shape, 10_000, shape));
    assert_eq!(counts(&train), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    assert_eq!(counts(&test), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    assert_eq!(train.labels()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    assert_eq!(test.labels()[..10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    assert_eq!(format!("{:.6}", mean(&train, 0)), "0.130660");
}

#[test]
fn adult() {
    let Some(Split { train, test }) = load(Set::Adult) else { return };
    assert_eq!(
        (train.len(), train.shape(), test.len(), test.shape()),
        (32_561, Shape::vector(104), 16_281, train.shape())
    );
    assert_eq!((counts(&train), counts(&test)), (vec![24_720, 7_841], vec![12_435, 3_846]));
    // Each `?` is 0 in all features of its column, and nothing else is: every category is declared.
    let categories = [1..9, 9..25, 26..33, 33..47, 47..53, 53..58, 58..60, 63..104];
    let zero = |examples| categories.clone().map(|features| all_zero(examples, features));
    assert_eq!(zero(&train), [1836, 0, 0, 1843, 0, 0, 0, 583]);
    assert_eq!(zero(&test), [963, 0, 0, 966, 0, 0, 0, 274]);
    // 39, State-gov, _, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States
    let mut first = [0.0; 104];
    for feature in [6, 9, 28, 41, 50, 53, 59, 63] {
        first[feature] = 1.0;
    }
    (first[0], first[25], first[60], first[62]) = (22.0 / 73.0, 0.8, 2174.0 / 99_999.0, 39.0 / 98.0);
    assert_eq!(train.input(0), first);
}

#[test]
fn cancer() {
    let Some(Split { train, test }) = load(Set::Cancer) else { return };
    assert_eq!((train.len(), train.shape(), test.len(), test.shape()), (560, Shape::vector(9), 123, train.shape()));
    let both: Vec<usize> = counts(&train).into_iter().zip(counts(&test)).map(|(a, b)| a + b).collect();
    assert_eq!(both, [444, 239]);
    assert_eq!((counts(&train), counts(&test)), (vec![365, 195], vec![79, 44]), "the split has moved");
    assert_eq!(train.labels()[..10], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn cifar10() {
    let Some(Split { train, test }) = load(Set::Cifar10) else { return };
    let shape = Shape { height: 32, width: 32, channels: 3 };
    assert_eq!((train.len(), train.shape(), test.len(), test.shape()), (50_000, shape, 10_000, shape));
    assert_eq!((counts(&train), counts(&test)), (vec![5000; 10], vec![1000; 10]));
    assert_eq!(train.labels()[..10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]);
    let means = [0, 1, 2].map(|channel| format!("{:.5}", mean(&train, channel)));
    assert_eq!(means, ["0.49140", "0.48216", "0.44653"]);
}
