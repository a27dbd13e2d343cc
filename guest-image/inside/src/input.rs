//! The file from which this program takes keys, bytes and window sizes.
//!
//! Everett appends records to a plain file, because its agent, which writes the file, must never wait for this program. A
//! record is a letter, the length of its bytes in four bytes (little-endian), and the bytes. The kernel announces changes
//! of the file (inotify(7)).

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Maximum length of a record, in bytes. Everett sends longer input in several records.
const RECORD_BYTES_MAX: usize = 512 << 10;

/// Number of bytes that one read takes from the file.
const READ_BYTES: usize = 64 << 10;

/// A record of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Bytes for the program's standard input.
    Bytes(Vec<u8>),
    /// New size of the terminal's window: rows and columns.
    Window(u16, u16),
    /// End of the program's standard input.
    End,
}

/// The file, and the announcements of its changes.
pub(crate) struct Input {
    file: File,
    changes: OwnedFd,
    read: Vec<u8>,
}

impl Input {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> Result<Input, String> {
        let what = |error: io::Error| format!("cannot read {}: {error}", path.display());
        let changes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        let changes = changes.map_err(|error| what(error.into()))?;
        inotify::add_watch(&changes, path, WatchFlags::MODIFY).map_err(|error| what(error.into()))?;
        Ok(Input { file: File::open(path).map_err(what)?, changes, read: Vec::new() })
    }

    /// Returns the next complete record. `None` if the file has no more so far.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, String> {
        loop {
            if let Some(record) = take(&mut self.read)? {
                return Ok(Some(record));
            }
            // The changes are forgotten before the read, so a later change is announced again.
            let mut announced = [0; 4096];
            while rustix::io::read(&self.changes, &mut announced).is_ok_and(|length| length > 0) {}
            let mut part = vec![0; READ_BYTES];
            match self.file.read(&mut part) {
                Ok(0) => return Ok(None),
                Ok(length) => self.read.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read the input: {error}")),
            }
        }
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}

/// Takes the first record of `bytes`, if it is complete.
fn take(bytes: &mut Vec<u8>) -> Result<Option<Record>, String> {
    let Some((&[kind, a, b, c, d], rest)) = bytes.split_first_chunk::<5>() else { return Ok(None) };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > RECORD_BYTES_MAX {
        return Err(format!("a record of the input has {length} bytes; at most {RECORD_BYTES_MAX}"));
    }
    let Some(content) = rest.get(..length) else { return Ok(None) };
    let record = match (kind, content) {
        (b'i', content) => Record::Bytes(content.to_vec()),
        (b'w', &[a, b, c, d]) => Record::Window(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])),
        (b'c', []) => Record::End,
        _ => return Err(String::from("a record of the input is invalid")),
    };
    bytes.drain(..5 + length);
    Ok(Some(record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn records_are_read_as_the_file_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        let mut file = File::create(&path).unwrap();
        let mut input = Input::open(&path).unwrap();
        let mut read = Vec::new();
        for byte in b"i\x03\0\0\0abcw\x04\0\0\0\x18\0\x50\0i\0\0\0\0c\0\0\0\0" {
            file.write_all(&[*byte]).unwrap();
            read.extend(input.next().unwrap());
        }
        let expected =
            [Record::Bytes(b"abc".to_vec()), Record::Window(24, 80), Record::Bytes(vec![]), Record::End];
        assert_eq!(read, expected);
    }

    #[test]
    fn invalid_records_are_refused() {
        for bytes in [&b"i\xff\xff\xff\xff"[..], b"w\x01\0\0\0a", b"?\0\0\0\0"] {
            assert!(take(&mut bytes.to_vec()).is_err());
        }
        assert_eq!(take(&mut b"i\x02\0\0\0a".to_vec()), Ok(None));
    }
}
