//! A locked file in memory. The one crate of the workspace with an unsafe line, so that it can be read in one sitting.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;

/// A file that this process has locked for itself, as bytes. Reading borrows it; writing borrows it alone.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    /// Holds the lock.
    file: File,
}

impl Mapped {
    /// Locks a file that is open for reading and writing, and maps it at its present length.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] when another process has it locked, else the operating system's.
    #[expect(unsafe_code, reason = "mapping a file is unsafe: another process could change it")]
    pub fn lock(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        // SAFETY: the bytes must not change while they are borrowed, and must stay there. Other processes: they take this lock
        // before they touch the file (a process that ignores the lock and truncates the file ends this one with SIGBUS, as with
        // every map). This process: the file is owned here, `write` needs `&mut self`, and nothing else writes or truncates.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(TryLockError::Error)?;
        Ok(Self { map, file })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Writes within the file. With a `write` call, so that a full disk is an error and not a crash; the map shows what was written.
    ///
    /// # Errors
    /// The operating system's, and [`io::ErrorKind::InvalidInput`] beyond the end.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        if at.checked_add(bytes.len()).is_none_or(|end| end > self.map.len()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.write_all_at(bytes, at as u64)
    }

    /// Waits until everything written is on disk.
    ///
    /// # Errors
    /// The operating system's; what is on disk is then not known.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_seen_and_a_second_lock_is_refused() {
        let path = std::env::temp_dir().join(format!("paygo-mapped-{}", std::process::id()));
        std::fs::write(&path, [0; 10]).expect("written");
        let open = || File::options().read(true).write(true).open(&path).expect("opened");
        let mut mapped = Mapped::lock(open()).expect("locked");
        mapped.write(3, b"abc").expect("written");
        assert_eq!(mapped.bytes(), b"\0\0\0abc\0\0\0\0");
        assert_eq!(mapped.write(8, b"abc").map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput));
        assert!(matches!(Mapped::lock(open()), Err(TryLockError::WouldBlock)));
        drop(mapped);
        assert!(Mapped::lock(open()).is_ok());
        std::fs::remove_file(&path).expect("removed");
    }
}
