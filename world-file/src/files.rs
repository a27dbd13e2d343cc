//! Reads host files that Everett puts into guests.

use std::path::Path;
use std::sync::Arc;

use everett_input::causes::with_causes;
use everett_input::file::{self as input, Reason};

/// Maximum size of one file that Everett puts into a guest, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum total size of the files of all nodes, in bytes. The contents stay in memory as long as the world. A file
/// that several nodes get is counted once for each node.
pub(super) const FILES_BYTES_MAX: u64 = 256 << 20;

/// Reader of a world's files. It reads at most [`FILES_BYTES_MAX`] bytes in total.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: u64,
}

impl Reader {
    /// Returns the content of a host file. Errors name the file.
    pub(super) fn read(&mut self, path: &Path) -> Result<Arc<[u8]>, String> {
        let content = input::read(path, FILE_BYTES_MAX).map_err(|error| match error.reason {
            Reason::TooLong(most) => format!("{} has more than {most} bytes", path.display()),
            _ => with_causes(&error),
        })?;
        self.bytes = self.bytes.saturating_add(content.len() as u64);
        if self.bytes > FILES_BYTES_MAX {
            let file = path.display();
            return Err(format!("with {file} the files of all nodes have more than {FILES_BYTES_MAX} bytes"));
        }
        Ok(content.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::{FILE_BYTES_MAX, FILES_BYTES_MAX, Reader};

    #[test]
    fn the_files_of_a_world_are_bounded_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX).unwrap();
        let mut reader = Reader::default();
        // The test drops each content at once, but the reader counts all of them.
        for _ in 0..FILES_BYTES_MAX / FILE_BYTES_MAX {
            assert_eq!(reader.read(&path).unwrap().len() as u64, FILE_BYTES_MAX);
        }
        let error = reader.read(&path).unwrap_err();
        assert!(error.contains("/file") && error.contains(&FILES_BYTES_MAX.to_string()), "{error}");
    }
}
