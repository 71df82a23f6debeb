//! The binary version of CIFAR-10: records of a label and a red, a green and a blue plane of 32 × 32 bytes, no header, plain
//! or compressed.

use std::path::Path;

use rayon::prelude::*;

use super::file::read_all;
use super::{BadExamples, Examples, LoadError, Shape};

const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };
const CLASSES: usize = 10;
const PLANE: usize = 32 * 32;
const RECORD: usize = 1 + 3 * PLANE;

/// Reads one or more files into one set of examples, in the order of the files. Pixels are divided by 255; the three colors
/// of a pixel stand side by side. Files are decompressed in parallel.
///
/// # Errors
/// [`LoadError`] when a file cannot be read, is empty or ends inside a record, or when a label is not below 10.
pub fn read<P: AsRef<Path> + Sync>(files: &[P]) -> Result<Examples, LoadError> {
    let files: Vec<Vec<u8>> = files.par_iter().map(|path| read_one(path.as_ref())).collect::<Result<_, _>>()?;
    let records: Vec<&[u8; RECORD]> = files.iter().flat_map(|bytes| bytes.as_chunks().0).collect();
    let labels = records.iter().map(|record| record[0].into()).collect();
    let mut inputs = vec![0.0; records.len() * SHAPE.len()];
    inputs.par_chunks_exact_mut(SHAPE.len()).zip(&records).for_each(|(input, record)| {
        let (red, rest) = record[1..].split_at(PLANE);
        let (green, blue) = rest.split_at(PLANE);
        for (((pixel, &r), &g), &b) in input.as_chunks_mut().0.iter_mut().zip(red).zip(green).zip(blue) {
            *pixel = [r, g, b].map(|byte| f32::from(byte) / 255.0);
        }
    });
    Ok(Examples::new(SHAPE, CLASSES, inputs, labels).expect("bytes are finite, and each file's labels are checked"))
}

/// One file: whole records with labels below ten.
fn read_one(path: &Path) -> Result<Vec<u8>, LoadError> {
    let bytes = read_all(path)?;
    if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD) {
        let (given, record) = (bytes.len() as u64, RECORD as u64);
        return Err(LoadError::Records { path: path.to_owned(), given, record });
    }
    if let Some(index) = bytes.chunks_exact(RECORD).position(|record| usize::from(record[0]) >= CLASSES) {
        return Err(LoadError::examples(path)(BadExamples::Label { index, classes: CLASSES }));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A record with label 7 and every pixel 51, 102, 255, from `xz` with its usual CRC64.
    #[rustfmt::skip]
    const XZ: [u8; 92] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
        0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x0c, 0x00, 0x00, 0x1b, 0x5d, 0x00, 0x03,
        0x8d, 0xe0, 0x85, 0xdf, 0x07, 0x4c, 0x8b, 0x07, 0x6e, 0x81, 0xd6, 0x00, 0x7d, 0x4d, 0x7e, 0xa5,
        0x88, 0xf4, 0xe1, 0x54, 0xd9, 0xc3, 0x8e, 0x0c, 0xf8, 0x00, 0x00, 0x00, 0xa8, 0xfd, 0xb3, 0x91,
        0x96, 0x00, 0xf1, 0xcf, 0x00, 0x01, 0x37, 0x81, 0x18, 0x00, 0x00, 0x00, 0x9a, 0x05, 0x01, 0xc3,
        0xb1, 0xc4, 0x67, 0xfb, 0x02, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];

    /// A record whose red, green and blue bytes follow from the pixel's position.
    fn record(label: u8) -> Vec<u8> {
        let plane = |step: usize| (0..PLANE).map(move |at| u8::try_from(at * step % 256).unwrap());
        std::iter::once(label).chain(plane(1)).chain(plane(3)).chain(plane(7)).collect()
    }

    fn read_bytes(files: &[&[u8]]) -> Result<Examples, LoadError> {
        let folder = TempDir::new().unwrap();
        let paths: Vec<_> = (0..files.len()).map(|at| folder.path().join(at.to_string())).collect();
        paths.iter().zip(files).for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
        read(&paths)
    }

    #[test]
    fn colors_stand_side_by_side() {
        let examples = read_bytes(&[&[record(4), record(0)].concat(), &record(9)]).unwrap();
        assert_eq!((examples.shape(), examples.classes()), (SHAPE, CLASSES));
        assert_eq!(examples.labels(), [4, 0, 9]);
        for index in 0..3 {
            let input = examples.input(index);
            for at in 0..PLANE {
                for (channel, step) in [1, 3, 7].into_iter().enumerate() {
                    let byte = u8::try_from(at * step % 256).unwrap();
                    assert_eq!(input[3 * at + channel], f32::from(byte) / 255.0);
                }
            }
        }
    }

    #[test]
    fn xz_is_decompressed_and_checked() {
        let examples = read_bytes(&[&XZ]).unwrap();
        assert_eq!(examples.labels(), [7]);
        assert!(examples.input(0).as_chunks().0.iter().all(|pixel| *pixel == [0.2, 0.4, 1.0]));
        // No bit of the file can turn without an error, or else the same bytes come out.
        let mut unnoticed = 0;
        for bit in 8 * 6..8 * XZ.len() {
            let mut damaged = XZ;
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read_bytes(&[&damaged]) {
                Ok(read) => {
                    assert_eq!(read, examples, "bit {bit}");
                    unnoticed += 1;
                }
                Err(error) => assert!(matches!(error, LoadError::Read { .. }), "bit {bit}: {error}"),
            }
        }
        assert!(unnoticed < 8, "{unnoticed}");
        for end in 6..XZ.len() {
            assert!(matches!(read_bytes(&[&XZ[..end]]), Err(LoadError::Read { .. })), "{end}");
        }
        let rubbish = [&XZ[..], b"rubbish"].concat();
        assert!(matches!(read_bytes(&[&rubbish]), Err(LoadError::Read { .. })));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let whole = record(1);
        for bytes in [&whole[..RECORD - 1], &[&whole[..], &[0]].concat(), &[]] {
            let error = read_bytes(&[&whole, bytes]).unwrap_err();
            let found = matches!(&error, LoadError::Records { path, given, record: 3073 }
                if path.ends_with("1") && *given == bytes.len() as u64);
            assert!(found, "{error}");
        }
        let error = read_bytes(&[&whole, &[record(1), record(10)].concat()]).unwrap_err();
        let expected = BadExamples::Label { index: 1, classes: 10 };
        assert!(matches!(error, LoadError::Examples { path, source } if source == expected && path.ends_with("1")));
        assert!(matches!(read(&["no-such-file.bin"]), Err(LoadError::Read { .. })));
    }
}
