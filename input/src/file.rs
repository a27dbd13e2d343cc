//! Functions that read files which users name: world files, locks, fault plans, kernels, archives.
//!
//! Everett also uses them for its own files in folders that the operator named, because such a folder may contain a
//! foreign file under the same name.
//!
//! **Invariants.** Only regular files are opened. Opening a file never blocks. At most the caller's bound is read, and
//! every error names the file.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Permission bits of a new file, before the process's umask is applied.
const NEW_FILE_MODE: u32 = 0o666;

/// Error from opening or reading a file.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct Error {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason why the file cannot be used.
    #[source]
    pub reason: Reason,
}

impl Error {
    /// True if the file does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&self.reason, Reason::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Keeps the kind and the words of the reason. Drops the path, for callers whose own error names the file.
impl From<Error> for io::Error {
    fn from(Error { reason, .. }: Error) -> io::Error {
        let kind = match &reason {
            Reason::Io(error) => error.kind(),
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, reason)
    }
}

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The operating system returned an error.
    #[error("{}", in_words(.0))]
    Io(io::Error),
    /// The path leads to something other than a regular file. The text says what it is.
    #[error("this is {0}, and a regular file is needed")]
    Kind(&'static str),
    /// The file is longer than the caller's bound. The value is this bound, in bytes.
    #[error("longer than {0} bytes, the maximum for this file")]
    TooLong(u64),
    /// The file is not UTF-8. The value is the first invalid line, counted from 1.
    #[error("not UTF-8 text in line {0}")]
    NotText(usize),
}

/// Opens a regular file for reading.
///
/// # Errors
/// Returns an error if the file is missing, cannot be read, or is not a regular file.
pub fn open(path: &Path) -> Result<(File, Metadata), Error> {
    let failed = |reason| Error { path: path.to_owned(), reason };
    let io_failed = |error| failed(Reason::Io(error));
    // The check comes before the file is opened, because opening a device can have effects, and opening a FIFO blocks.
    check(&std::fs::metadata(path).map_err(io_failed)?).map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| io_failed(error.into()))?;
    let file = File::from(file);
    // The path may have been replaced after the first check, so the open file is checked, too.
    let metadata = file.metadata().map_err(io_failed)?;
    check(&metadata).map_err(failed)?;
    Ok((file, metadata))
}

/// Opens one of Everett's own files for reading and writing, and keeps its content. Creates the file if `create` is
/// true. Refuses a symbolic link, because a write through it would change a file elsewhere.
///
/// # Errors
/// Returns an error if the file is missing (and `create` is false), cannot be opened, or is not a regular file.
pub fn open_own(path: &Path, create: bool) -> Result<File, Error> {
    let failed = |reason| Error { path: path.to_owned(), reason };
    let io_failed = |error| failed(Reason::Io(error));
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => check(&metadata).map_err(failed)?,
        Err(error) if create && error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_failed(error)),
    }
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    flags.set(OFlags::CREATE, create);
    let mode = Mode::from_raw_mode(NEW_FILE_MODE);
    let file = rustix::fs::open(path, flags, mode).map_err(|error| io_failed(error.into()))?;
    let file = File::from(file);
    // The path may have been replaced after the first check, so the open file is checked, too.
    check(&file.metadata().map_err(io_failed)?).map_err(failed)?;
    Ok(file)
}

/// Returns the content of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// Returns an error if [`open`] fails, the file cannot be read, or it is longer than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let failed = |reason| Error { path: path.to_owned(), reason };
    let (file, metadata) = open(path)?;
    if metadata.len() > bytes_max {
        return Err(failed(Reason::TooLong(bytes_max)));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read, and files in /proc report a length of 0, so reading is bounded, too.
    let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| failed(Reason::Io(error)))?;
    if bytes.len() as u64 > bytes_max {
        return Err(failed(Reason::TooLong(bytes_max)));
    }
    Ok(bytes)
}

/// Returns the content of a regular file of at most `bytes_max` bytes of UTF-8 text.
///
/// # Errors
/// Returns an error if [`read`] fails or the file is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    String::from_utf8(read(path, bytes_max)?).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error { path: path.to_owned(), reason: Reason::NotText(line) }
    })
}

/// Returns the folder that contains a path. For a name without a folder it returns ".", where [`Path::parent`] returns
/// "".
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Describes the most common I/O errors in plain words, and all others in the words of the standard library.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn check(metadata: &Metadata) -> Result<(), Reason> {
    let kind = metadata.file_type();
    if kind.is_file() { Ok(()) } else { Err(Reason::Kind(name(kind))) }
}

fn name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "not a file"
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::causes::with_causes;

    fn said(path: &Path) -> String {
        with_causes(&read(path, 10).unwrap_err())
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        for (path, kind) in [
            (at("fifo"), "a FIFO"),
            (at("socket"), "a socket"),
            (folder.path().to_owned(), "a folder"),
            ("/dev/zero".into(), "a device"),
        ] {
            let expected = format!("{}: this is {kind}, and a regular file is needed", path.display());
            assert_eq!(said(&path), expected);
        }
        assert!(said(&at("missing")).ends_with("/missing: no such file or folder"));
    }

    /// Through a dangling link, [`open_own`] could create a file in another folder. Opening a FIFO could block until
    /// another process opens the FIFO's other end.
    #[test]
    fn own_files_must_be_regular_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        fs::write(at("other"), "other").unwrap();
        std::os::unix::fs::symlink(at("other"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("new"), at("dangling")).unwrap();
        for (name, kind) in [("fifo", "a FIFO"), ("link", "a symbolic link"), ("dangling", "a symbolic link")]
        {
            for create in [false, true] {
                let expected =
                    format!("{}: this is {kind}, and a regular file is needed", at(name).display());
                assert_eq!(with_causes(&open_own(&at(name), create).unwrap_err()), expected);
            }
        }
        assert!(!at("new").exists(), "no file is created at the target of a link");
        assert!(open_own(&at("new"), false).unwrap_err().is_missing());
        open_own(&at("new"), true).unwrap();
        assert_eq!(fs::read(at("new")).unwrap(), b"");
        open_own(&at("other"), true).unwrap();
        assert_eq!(fs::read(at("other")).unwrap(), b"other", "existing content is kept");
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap(), b"0123456789");
        assert!(
            with_causes(&read(&path, 9).unwrap_err())
                .ends_with("file: longer than 9 bytes, the maximum for this file")
        );
        // A symbolic link is followed. The length that /proc reports is not trusted.
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert_eq!(read_text(&folder.path().join("link"), u64::MAX).unwrap(), "0123456789");
        assert!(matches!(
            read(Path::new("/proc/self/status"), 10),
            Err(Error { reason: Reason::TooLong(10), .. })
        ));
        fs::write(&path, b"a\nb\xff").unwrap();
        assert!(with_causes(&read_text(&path, 10).unwrap_err()).ends_with("file: not UTF-8 text in line 2"));
    }

    #[test]
    fn a_bare_name_is_in_the_current_folder() {
        for (path, folder) in
            [("a", "."), ("./a", "."), ("a/b", "a"), ("a/b/", "a"), ("/a", "/"), ("/", "."), ("", ".")]
        {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }

    #[test]
    fn an_io_error_keeps_the_kind_and_the_words() {
        let folder = tempfile::tempdir().unwrap();
        let converted = |path: &Path| {
            let error = io::Error::from(read(path, 1).unwrap_err());
            (error.kind(), with_causes(&error))
        };
        let missing = (io::ErrorKind::NotFound, "no such file or folder".to_owned());
        assert_eq!(converted(&folder.path().join("none")), missing);
        let kind = (io::ErrorKind::Other, "this is a folder, and a regular file is needed".to_owned());
        assert_eq!(converted(folder.path()), kind);
    }

    #[test]
    fn a_missing_file_is_distinguished_from_an_unusable_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(&folder.path().join("none"), 1).unwrap_err().is_missing());
        assert!(!read(folder.path(), 1).unwrap_err().is_missing());
    }
}
