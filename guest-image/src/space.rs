//! Free space that is left on the host's disk while something untrusted is unpacked.

use std::fs::File;
use std::io::{self, Write};

/// Free space that unpacking leaves on a disk, in bytes.
pub const RESERVE_BYTES: u64 = 256 << 20;

/// Number of bytes that are written between two looks at the free space.
const LOOK_BYTES: u64 = 64 << 20;

/// Counts what is written to a disk, and stops before the disk is full.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Bytes written since the last look.
    unseen: u64,
}

impl Meter {
    /// Counts bytes that were written to `file`.
    ///
    /// # Errors
    /// Returns an error of the kind [`io::ErrorKind::StorageFull`] if less than [`RESERVE_BYTES`] are free.
    pub(crate) fn wrote(&mut self, file: &File, bytes: u64) -> io::Result<()> {
        self.unseen = self.unseen.saturating_add(bytes);
        if self.unseen < LOOK_BYTES {
            return Ok(());
        }
        self.unseen = 0;
        if free_bytes(file)? >= RESERVE_BYTES {
            return Ok(());
        }
        let mib = RESERVE_BYTES >> 20;
        Err(io::Error::new(io::ErrorKind::StorageFull, format!("less than {mib} MiB of the disk are free")))
    }
}

/// A file whose writer stops before the disk is full.
#[derive(Debug)]
pub(crate) struct Metered {
    file: File,
    meter: Meter,
}

impl Metered {
    pub(crate) fn new(file: File) -> Metered {
        Metered { file, meter: Meter::default() }
    }

    pub(crate) fn into_inner(self) -> File {
        self.file
    }
}

impl Write for Metered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.meter.wrote(&self.file, written as u64)?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the space that this process may still take on the file's disk, in bytes.
fn free_bytes(file: &File) -> io::Result<u64> {
    #[cfg(test)]
    if let Some(bytes) = tests::FREE_BYTES.get() {
        return Ok(bytes);
    }
    let disk = rustix::fs::fstatvfs(file)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::io::{self, Read as _, Write as _};

    use super::{LOOK_BYTES, Metered, RESERVE_BYTES, free_bytes};

    thread_local! {
        /// Free space that this thread sees instead of the disk's.
        pub(crate) static FREE_BYTES: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// Runs `work` on a disk with this much free space.
    pub(crate) fn on_disk_with<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
        FREE_BYTES.set(Some(bytes));
        let result = work();
        FREE_BYTES.set(None);
        result
    }

    #[test]
    fn the_space_is_that_of_the_disk() {
        let file = tempfile::tempfile().unwrap();
        assert!((1..1 << 60).contains(&free_bytes(&file).unwrap()));
    }

    #[test]
    fn a_full_disk_is_noticed_before_it_is_full() {
        let write = |bytes| {
            let mut file = Metered::new(tempfile::tempfile().unwrap());
            io::copy(&mut io::repeat(1).take(bytes), &mut file).and_then(|_| file.flush())
        };
        let error = on_disk_with(RESERVE_BYTES - 1, || write(LOOK_BYTES)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), "less than 256 MiB of the disk are free");
        on_disk_with(RESERVE_BYTES, || write(LOOK_BYTES)).unwrap();
        on_disk_with(0, || write(LOOK_BYTES - 1)).unwrap();
    }
}
