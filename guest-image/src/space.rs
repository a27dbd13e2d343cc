//! Checks the host's free disk space while Everett unpacks untrusted data.

use std::fs::File;
use std::io::{self, Write};

/// Free space that Everett leaves on a disk when it unpacks data, in bytes.
pub const RESERVE_BYTES: u64 = 256 << 20;

/// Number of bytes that are written between two checks of the free space.
const LOOK_BYTES: u64 = 64 << 20;

/// Counter of the bytes written to a disk. It fails before the disk is full.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Bytes written since the last check of the free space.
    unseen: u64,
}

impl Meter {
    /// Counts `bytes` bytes that were written to `file`, and checks the free space every [`LOOK_BYTES`] bytes.
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

/// File for writing. A write fails before the disk is full.
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
        /// Free space in bytes that a test sets for its thread. It replaces the disk's free space.
        pub(crate) static FREE_BYTES: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// Runs `work` as if the disk had `bytes` bytes of free space.
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
