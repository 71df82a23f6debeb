//! IDX, the format of MNIST and its relatives: a file of grey images and a file of labels, plain or compressed.
//!
//! Big-endian. Images: the number 0x00000803, count, rows, columns, then a byte for each pixel, row by row. Labels: the
//! number 0x00000801, count, then a byte for each label.

use std::io::Read;
use std::path::Path;

use super::file::open;
use super::{Examples, LoadError, Shape};

const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;

/// Reads images and their labels. Pixels are divided by 255; labels are below `classes`.
///
/// # Errors
/// [`LoadError`] when a file cannot be read, is of another kind, is too short or too long, when there are not as many labels
/// as images, or when a label is not below `classes`.
pub fn read(images: &Path, labels: &Path, classes: usize) -> Result<Examples, LoadError> {
    let ([image_count, rows, columns], pixels) = read_one::<3>(images, "IDX images", IMAGES)?;
    let ([label_count], label_bytes) = read_one::<1>(labels, "IDX labels", LABELS)?;
    if image_count != label_count {
        return Err(LoadError::Counts {
            images_path: images.to_owned(),
            images: image_count.into(),
            labels_path: labels.to_owned(),
            labels: label_count.into(),
        });
    }
    let shape = Shape { height: rows as usize, width: columns as usize, channels: 1 };
    let inputs = pixels.iter().map(|&byte| f32::from(byte) / 255.0).collect();
    let label_numbers = label_bytes.iter().map(|&byte| byte.into()).collect();
    Examples::new(shape, classes, inputs, label_numbers).map_err(LoadError::examples(labels))
}

/// The sizes in the header of one file, and as many bytes as they ask for.
fn read_one<const N: usize>(path: &Path, kind: &'static str, magic: u32) -> Result<([u32; N], Vec<u8>), LoadError> {
    let header_length = 4 * (1 + N as u64);
    let mut file = open(path)?;
    let mut header = Vec::new();
    file.by_ref().take(header_length).read_to_end(&mut header).map_err(LoadError::read(path))?;
    let mut numbers = header.as_chunks::<4>().0.iter().map(|&bytes| u32::from_be_bytes(bytes));
    if numbers.next() != Some(magic) {
        return Err(LoadError::Magic { path: path.to_owned(), kind, expected: magic });
    }
    let given = header.len() as u64;
    if given < header_length {
        return Err(LoadError::Short { path: path.to_owned(), given, expected: header_length });
    }
    let sizes = std::array::from_fn(|_| numbers.next().expect("the header is complete"));

    // A header can promise more than any machine holds: what is there decides how much memory is taken.
    let length = sizes.iter().fold(1_u64, |product, &size| product.saturating_mul(size.into()));
    let expected = length.saturating_add(header_length);
    let mut bytes = Vec::new();
    // One byte more than promised: it shows that the file goes on, and where there is none the checksums are checked.
    file.take(length.saturating_add(1)).read_to_end(&mut bytes).map_err(LoadError::read(path))?;
    match (bytes.len() as u64).cmp(&length) {
        std::cmp::Ordering::Less => {
            Err(LoadError::Short { path: path.to_owned(), given: header_length + bytes.len() as u64, expected })
        }
        std::cmp::Ordering::Equal => Ok((sizes, bytes)),
        std::cmp::Ordering::Greater => Err(LoadError::Long { path: path.to_owned(), expected }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tempfile::TempDir;

    use super::super::BadExamples;
    use super::*;

    fn file(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
        let header = [&[magic], sizes].concat();
        header.iter().flat_map(|number| number.to_be_bytes()).chain(bytes.iter().copied()).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Two images of 2 × 3 pixels.
    fn images() -> Vec<u8> {
        file(IMAGES, &[2, 2, 3], &[0, 51, 102, 153, 204, 255, 255, 0, 0, 0, 0, 0])
    }

    fn labels() -> Vec<u8> {
        file(LABELS, &[2], &[3, 9])
    }

    fn paths(folder: &TempDir) -> (PathBuf, PathBuf) {
        (folder.path().join("images"), folder.path().join("labels"))
    }

    fn read_bytes(images: &[u8], labels: &[u8]) -> Result<Examples, LoadError> {
        let folder = TempDir::new().unwrap();
        let (images_path, labels_path) = paths(&folder);
        std::fs::write(&images_path, images).unwrap();
        std::fs::write(&labels_path, labels).unwrap();
        read(&images_path, &labels_path, 10)
    }

    #[test]
    fn plain_and_compressed_files_give_the_same() {
        let plain = read_bytes(&images(), &labels()).unwrap();
        assert_eq!(plain.shape(), Shape { height: 2, width: 3, channels: 1 });
        assert_eq!(plain.labels(), [3, 9]);
        assert_eq!(plain.input(0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(plain.input(1), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(read_bytes(&gzip(&images()), &gzip(&labels())).unwrap(), plain);
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let error = read_bytes(&labels(), &images()).unwrap_err();
        assert!(matches!(error, LoadError::Magic { kind: "IDX images", expected: IMAGES, .. }), "{error}");
        let error = read_bytes(&images(), &images()).unwrap_err();
        assert!(matches!(error, LoadError::Magic { kind: "IDX labels", expected: LABELS, .. }), "{error}");
        assert!(matches!(read_bytes(b"", &labels()), Err(LoadError::Magic { .. })));
        let text = read_bytes(b"age,income\n39,77516", &labels()).unwrap_err().to_string();
        assert!(text.contains("expected the number 0x00000803") && !text.contains("77516"), "{text}");
    }

    #[test]
    fn a_file_of_another_length_is_refused() {
        let whole = images();
        for length in 4..whole.len() {
            let error = read_bytes(&whole[..length], &labels()).unwrap_err();
            let promised = if length < 16 { 16 } else { 28 };
            let found = matches!(error, LoadError::Short { given, expected, .. }
                if given == length as u64 && expected == promised);
            assert!(found, "{length}: {error}");
        }
        let long = [whole, vec![0]].concat();
        assert!(matches!(read_bytes(&long, &labels()), Err(LoadError::Long { expected: 28, .. })));
        let vast = file(IMAGES, &[u32::MAX; 3], &[1, 2, 3]);
        assert!(matches!(read_bytes(&vast, &labels()), Err(LoadError::Short { given: 19, expected: u64::MAX, .. })));
    }

    #[test]
    fn counts_and_labels_must_match() {
        let three = file(LABELS, &[3], &[1, 2, 3]);
        assert!(matches!(read_bytes(&images(), &three), Err(LoadError::Counts { images: 2, labels: 3, .. })));
        let error = read_bytes(&images(), &file(LABELS, &[2], &[3, 10])).unwrap_err();
        let expected = BadExamples::Label { index: 1, classes: 10 };
        assert!(matches!(error, LoadError::Examples { source, .. } if source == expected));
        let nothing = file(IMAGES, &[2, 0, 3], &[]);
        assert!(matches!(read_bytes(&nothing, &labels()), Err(LoadError::Examples { .. })));
    }

    #[test]
    fn damage_is_noticed() {
        let whole = read_bytes(&images(), &labels()).unwrap();
        let packed = gzip(&images());
        let end = packed.len();
        // No bit after the ten bytes of the header can turn without an error, or else the same bytes come out.
        for bit in 8 * 10..8 * end {
            let mut damaged = packed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read_bytes(&damaged, &labels()).map_or(true, |read| read == whole), "bit {bit}");
        }
        for at in [end - 8, end - 4] {
            let mut damaged = packed.clone();
            damaged[at] ^= 1;
            let error = read_bytes(&damaged, &labels()).unwrap_err();
            assert!(matches!(error, LoadError::Read { .. }), "checksum or length: {error}");
        }
        assert!(matches!(read_bytes(&packed[..end - 3], &labels()), Err(LoadError::Read { .. })));
        let rubbish = [packed, b"rubbish".to_vec()].concat();
        assert!(matches!(read_bytes(&rubbish, &labels()), Err(LoadError::Read { .. })));
        let folder = TempDir::new().unwrap();
        let (images_path, labels_path) = paths(&folder);
        assert!(matches!(read(&images_path, &labels_path, 10), Err(LoadError::Read { .. })));
    }
}
