//! Four public data sets, as their authors publish them, in a folder of folders:
//!
//! | set | files | train, test | shape, classes |
//! |---|---|---|---|
//! | MNIST | `mnist/train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz`, `t10k-…` | 60,000, 10,000 | 28x28x1, 10 |
//! | Adult | `adult/adult.data`, `adult.test` | 32,561, 16,281 | 104, 2 |
//! | Cancer | `breast-cancer-wisconsin/breast-cancer-wisconsin.data` | 560, 123 | 9, 2 |
//! | CIFAR-10 | `cifar10/data_batch_1.bin.xz` … `data_batch_5.bin.xz`, `test_batch.bin.xz` | 50,000, 10,000 | 32x32x3, 10 |
//!
//! A file whose name ends in `.gz` or `.xz` is also found without that ending.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::random::Seeded;
use super::schema::Schema;
use super::{Examples, LoadError, cifar, csv, idx};

/// The schema of Adult, an example for tables of one's own.
pub const ADULT_SCHEMA: &str = include_str!("../../schemas/adult.toml");
/// The schema of Breast Cancer Wisconsin.
pub const CANCER_SCHEMA: &str = include_str!("../../schemas/cancer.toml");

/// Examples to train on and others to test with.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// To train on.
    pub train: Examples,
    /// To test with.
    pub test: Examples,
}

/// A data set that paygo knows how to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// Handwritten digits: LeCun, Bottou, Bengio and Haffner, 1998.
    Mnist,
    /// Who earns more than 50,000 dollars, from the census of 1994: Becker and Kohavi, 1996. Features by [`ADULT_SCHEMA`].
    Adult,
    /// Breast Cancer Wisconsin (Original): Wolberg, 1992. Features by [`CANCER_SCHEMA`]. The authors give no split: the 683
    /// complete rows are put in a fixed order by a seeded shuffle; the first 560 are to train on and the other 123 to test
    /// with. Some sample numbers occur more than once, so the unit of privacy here is a row and not a patient.
    Cancer,
    /// Small photographs of ten kinds of things: Krizhevsky, 2009.
    Cifar10,
}

/// A name that no data set has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no data set is named {given:?}; expected mnist, adult, cancer or cifar10")]
pub struct UnknownSet {
    /// What was given.
    pub given: String,
}

/// The shuffle that splits [`Set::Cancer`].
const CANCER_SEED: u64 = 1992;
const CANCER_TRAIN: usize = 560;

impl Set {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mnist, Self::Adult, Self::Cancer, Self::Cifar10];

    /// The name in configurations and commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::Adult => "adult",
            Self::Cancer => "cancer",
            Self::Cifar10 => "cifar10",
        }
    }

    /// Reads the set from a folder that holds the folders above.
    ///
    /// # Errors
    /// [`LoadError::Missing`] names the first file that is not there; other errors are those of the file's format.
    pub fn load(self, folder: &Path) -> Result<Split, LoadError> {
        match self {
            Self::Mnist => mnist(&folder.join("mnist")),
            Self::Adult => adult(&folder.join("adult")),
            Self::Cancer => cancer(&folder.join("breast-cancer-wisconsin")),
            Self::Cifar10 => cifar10(&folder.join("cifar10")),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Set {
    type Err = UnknownSet;

    fn from_str(text: &str) -> Result<Self, UnknownSet> {
        Self::ALL.into_iter().find(|set| set.name() == text).ok_or_else(|| UnknownSet { given: text.to_owned() })
    }
}

/// The file, or the one without the ending of its compression.
fn find(folder: &Path, name: &str) -> Result<PathBuf, LoadError> {
    let path = folder.join(name);
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".xz")).map(|plain| folder.join(plain));
    if path.exists() {
        return Ok(path);
    }
    plain.filter(|plain| plain.exists()).ok_or(LoadError::Missing(path))
}

fn split(train: Result<Examples, LoadError>, test: Result<Examples, LoadError>) -> Result<Split, LoadError> {
    Ok(Split { train: train?, test: test? })
}

fn mnist(folder: &Path) -> Result<Split, LoadError> {
    let find_pair = |part: &str| {
        let images = find(folder, &format!("{part}-images-idx3-ubyte.gz"))?;
        Ok((images, find(folder, &format!("{part}-labels-idx1-ubyte.gz"))?))
    };
    let (train, test) = (find_pair("train")?, find_pair("t10k")?);
    let (train, test) = rayon::join(|| idx::read(&train.0, &train.1, 10), || idx::read(&test.0, &test.1, 10));
    split(train, test)
}

fn adult(folder: &Path) -> Result<Split, LoadError> {
    let schema = Schema::from_toml(ADULT_SCHEMA).expect("part of this crate, and tested");
    let (train, test) = (find(folder, "adult.data")?, find(folder, "adult.test")?);
    let (train, test) = rayon::join(|| csv::read(&train, &schema), || csv::read(&test, &schema));
    split(train, test)
}

fn cancer(folder: &Path) -> Result<Split, LoadError> {
    let schema = Schema::from_toml(CANCER_SCHEMA).expect("part of this crate, and tested");
    let all = csv::read(&find(folder, "breast-cancer-wisconsin.data")?, &schema)?;
    let mut order: Vec<usize> = (0..all.len()).collect();
    Seeded::new(CANCER_SEED, 0).shuffle(&mut order);
    let (train, test) = order.split_at(CANCER_TRAIN.min(order.len()));
    Ok(Split { train: all.select(train), test: all.select(test) })
}

fn cifar10(folder: &Path) -> Result<Split, LoadError> {
    let train =
        (1..=5).map(|batch| find(folder, &format!("data_batch_{batch}.bin.xz"))).collect::<Result<Vec<_>, _>>()?;
    let test = [find(folder, "test_batch.bin.xz")?];
    let (train, test) = rayon::join(|| cifar::read(&train), || cifar::read(&test));
    split(train, test)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn schemas_are_what_they_say() {
        let adult = Schema::from_toml(ADULT_SCHEMA).unwrap();
        assert_eq!((adult.features(), adult.classes(), adult.layout().columns.len()), (104, 2, 15));
        let cancer = Schema::from_toml(CANCER_SCHEMA).unwrap();
        assert_eq!((cancer.features(), cancer.classes(), cancer.layout().columns.len()), (9, 2, 11));
    }

    #[test]
    fn names_are_read_back() {
        for set in Set::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        let error = "imagenet".parse::<Set>().unwrap_err().to_string();
        assert_eq!(error, "no data set is named \"imagenet\"; expected mnist, adult, cancer or cifar10");
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = TempDir::new().unwrap();
        let first = ["train-images-idx3-ubyte.gz", "adult.data", "breast-cancer-wisconsin.data", "data_batch_1.bin.xz"];
        for (set, name) in Set::ALL.into_iter().zip(first) {
            let error = set.load(folder.path()).unwrap_err();
            assert!(matches!(&error, LoadError::Missing(path) if path.ends_with(name)), "{error}");
            assert!(error.to_string().contains("PAYGO_DATA or --data names the folder"), "{error}");
        }
        fs::create_dir(folder.path().join("adult")).unwrap();
        fs::write(folder.path().join("adult/adult.data"), "").unwrap();
        let error = Set::Adult.load(folder.path()).unwrap_err();
        assert!(matches!(&error, LoadError::Missing(path) if path.ends_with("adult/adult.test")), "{error}");
    }

    #[test]
    fn uncompressed_files_are_found_too() {
        let folder = TempDir::new().unwrap();
        let cifar = folder.path().join("cifar10");
        fs::create_dir(&cifar).unwrap();
        for (label, name) in (0..).zip(["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"])
        {
            fs::write(cifar.join(format!("{name}.bin")), [&[label][..], &[0; 3072]].concat()).unwrap();
        }
        fs::write(cifar.join("test_batch.bin"), [&[9][..], &[0; 3072]].concat()).unwrap();
        let Split { train, test } = Set::Cifar10.load(folder.path()).unwrap();
        assert_eq!((train.labels(), test.labels()), (&[0, 1, 2, 3, 4][..], &[9][..]));
    }
}
