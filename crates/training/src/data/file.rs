//! Files of examples: how they are opened, and what can be wrong with them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::BadExamples;
use super::csv::Mismatch;

/// Examples that could not be read. Says which file and where in it, never what stands there: the values are somebody's.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file of a known data set is not where it should be.
    #[error("looked for {} and did not find it; PAYGO_DATA or --data names the folder of the data sets", .0.display())]
    Missing(PathBuf),
    /// The file cannot be opened, read or decompressed.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the decompressor says.
        source: io::Error,
    },
    /// The file is of another kind.
    #[error("{} does not start like a file of {kind}; expected the number {expected:#010x}", .path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        kind: &'static str,
        /// The number that such a file starts with.
        expected: u32,
    },
    /// The file ends too early.
    #[error("{} is too short: {given} bytes after decompression; expected {expected}", .path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// How many bytes there are.
        given: u64,
        /// How many its header promises.
        expected: u64,
    },
    /// The file goes on after its end.
    #[error("{} is too long: expected {expected} bytes after decompression", .path.display())]
    Long {
        /// The file.
        path: PathBuf,
        /// How many bytes its header promises.
        expected: u64,
    },
    /// Two files that do not belong together.
    #[error("{} holds {images} images and {} holds {labels} labels; expected as many", .images_path.display(), .labels_path.display())]
    Counts {
        /// The file of images.
        images_path: PathBuf,
        /// How many images it holds.
        images: u64,
        /// The file of labels.
        labels_path: PathBuf,
        /// How many labels it holds.
        labels: u64,
    },
    /// A file of records of one size that ends inside a record.
    #[error("{} holds {given} bytes after decompression; expected one or more records of {record} bytes", .path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// How many bytes there are.
        given: u64,
        /// How many bytes a record has.
        record: u64,
    },
    /// A table that is not what its schema declares.
    #[error("{}, line {line}: {mismatch}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line where the record starts, from 1.
        line: u64,
        /// What does not match.
        mismatch: Mismatch,
    },
    /// The file was read, and its examples cannot be learned from.
    #[error("{}: {source}", .path.display())]
    Examples {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: BadExamples,
    },
}

impl LoadError {
    /// For `map_err`: the file cannot be read.
    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read { path: path.to_owned(), source }
    }

    /// For `map_err`: the examples of the file cannot be learned from.
    pub(super) fn examples(path: &Path) -> impl FnOnce(BadExamples) -> Self {
        move |source| Self::Examples { path: path.to_owned(), source }
    }
}

/// What an xz file may ask for while it is decompressed, in KiB: a gibibyte, well above the 65 MiB of `xz -9`.
const XZ_MEMORY: u32 = 1 << 20;

/// Opens a file that is plain, gzip or xz, which its first bytes tell; no format read here starts like the last two. Both
/// decompressors check the checksums, so whoever reads to the end has read what was written.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>, LoadError> {
    let file = File::open(path).map_err(LoadError::read(path))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let start = file.fill_buf().map_err(LoadError::read(path))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        Ok(Box::new(MultiGzDecoder::new(file)))
    } else if start.starts_with(b"\xfd7zXZ\0") {
        // Several streams are allowed because only then is rubbish after the last one an error.
        Ok(Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY)))
    } else {
        Ok(Box::new(file))
    }
}

/// All bytes of a file, decompressed.
pub(super) fn read_all(path: &Path) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(LoadError::read(path))?;
    Ok(bytes)
}
