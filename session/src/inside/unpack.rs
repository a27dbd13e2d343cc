//! Writes copied files below a folder of the host.
//!
//! A guest chooses names, links and structure, and may be hostile. So each file is made under a name without slashes in a
//! folder that this module has made itself and holds open (openat(2)). A file is never written over, and no symbolic link is
//! followed. Therefore nothing outside the destination changes, whatever the names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, linkat, mkdirat, openat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::copied::Copied;
use super::error::FilesError;
use super::field::is_name;
use super::file_entry::{FileEntry, FileKind};
use super::frames::Frame;
use super::limits::{DEPTH_MAX, ENTRIES_MAX, LEFT_OUT_MAX, LINKED_MAX};

/// Permission bits that a copy keeps. A program that a guest made must not get the rights of the user who copied it.
const MODE_KEPT: u32 = 0o777;

/// Writer of copied files.
pub(super) struct Unpacker {
    /// Folder of the host in which the copy is made.
    parent: PathBuf,
    base: OwnedFd,
    /// Name of the copy. `None` if it is that of the first entry.
    name: Option<Vec<u8>>,
    folders: Vec<Folder>,
    /// File whose content comes.
    file: Option<OpenFile>,
    /// Paths, relative to `parent`, of files with several names, by the numbers of their entries.
    linked: BTreeMap<u64, PathBuf>,
    entries: u64,
    bytes_left: u64,
    bytes_max: u64,
    copied: Copied,
    has_ended: bool,
}

struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    entry: FileEntry,
}

struct OpenFile {
    file: File,
    path: PathBuf,
    name: Vec<u8>,
    entry: FileEntry,
}

impl Unpacker {
    pub(super) fn new(to: &Path, bytes_max: u64) -> Result<Unpacker, FilesError> {
        let (parent, name) = match std::fs::metadata(to) {
            Ok(metadata) if metadata.is_dir() => (to.to_owned(), None),
            Ok(_) => return Err(FilesError::Exists(to.display().to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = to.file_name().map(|name| name.as_bytes().to_vec());
                let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
                (parent.unwrap_or(Path::new(".")).to_owned(), name)
            }
            Err(error) => return Err(failed(to, error)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = openat(CWD, &parent, flags, Mode::empty()).map_err(|error| failed(&parent, error))?;
        Ok(Unpacker {
            parent,
            base,
            name,
            folders: Vec::new(),
            file: None,
            linked: BTreeMap::new(),
            entries: 0,
            bytes_left: bytes_max,
            bytes_max,
            copied: Copied::default(),
            has_ended: false,
        })
    }

    pub(super) fn take(&mut self, frame: Frame) -> Result<(), FilesError> {
        match frame {
            Frame::Entry(entry) => self.entry(*entry),
            Frame::Content(bytes) => self.content(&bytes),
            Frame::End => self.end(),
            Frame::Broken(why) => self.broken(&why),
            Frame::Link(number, name) => self.link(number, &name),
            Frame::LeftOut(why) => self.left_out(why),
            _ => Err(FilesError::Invalid("another line than for a file")),
        }
    }

    /// Returns what was copied. Every folder and file must have ended.
    pub(super) fn finish(self) -> Result<Copied, FilesError> {
        let is_whole = self.folders.is_empty() && self.file.is_none();
        if !is_whole || self.copied.to.is_empty() && self.copied.left_out.is_empty() {
            return Err(FilesError::Invalid("a file without an end"));
        }
        Ok(self.copied)
    }

    fn entry(&mut self, entry: FileEntry) -> Result<(), FilesError> {
        if self.has_ended || self.file.is_some() {
            return Err(FilesError::Invalid("a file within a file"));
        }
        if self.entries >= ENTRIES_MAX as u64 {
            return Err(FilesError::TooMany);
        }
        let number = self.entries;
        self.entries += 1;
        let is_top = self.folders.is_empty();
        let name = self.name.take().filter(|_| is_top).unwrap_or_else(|| entry.name.clone());
        if !is_name(&name) {
            return Err(FilesError::Invalid("the name of a file leads to another folder"));
        }
        let (fd, folder) = match self.folders.last() {
            Some(folder) => (&folder.fd, folder.path.as_path()),
            None => (&self.base, Path::new("")),
        };
        let path = folder.join(OsStr::from_bytes(&name));
        if is_top {
            self.copied.to = self.parent.join(&path).display().to_string();
        }
        let what = |error: Errno| match error {
            Errno::EXIST => FilesError::Exists(self.parent.join(&path).display().to_string()),
            error => failed(&self.parent.join(&path), error),
        };
        let mode = Mode::from_raw_mode(0o600);
        match entry.kind {
            FileKind::Folder => {
                if self.folders.len() >= DEPTH_MAX {
                    return Err(FilesError::Invalid("too many folders within each other"));
                }
                mkdirat(fd, &name[..], Mode::from_raw_mode(0o700)).map_err(what)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = openat(fd, &name[..], flags, Mode::empty()).map_err(what)?;
                self.copied.folders += 1;
                self.folders.push(Folder { fd, path, entry });
            }
            FileKind::File => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = File::from(openat(fd, &name[..], flags, mode).map_err(what)?);
                if entry.names > 1 && self.linked.len() < LINKED_MAX {
                    self.linked.insert(number, path.clone());
                }
                self.file = Some(OpenFile { file, path, name, entry });
            }
            FileKind::Link => {
                let target = entry.target.as_deref().unwrap_or_default();
                symlinkat(target, fd, &name[..]).map_err(what)?;
                self.copied.links += 1;
                self.has_ended = is_top;
            }
            kind => {
                self.has_ended = is_top;
                let shown = path.display().to_string();
                self.left_out(format!("{shown}: a {} has no content", kind.word().replace('-', " ")))?;
            }
        }
        Ok(())
    }

    fn content(&mut self, bytes: &[u8]) -> Result<(), FilesError> {
        let Some(open) = &mut self.file else { return Err(FilesError::Invalid("content without a file")) };
        let length = bytes.len() as u64;
        let Some(left) = self.bytes_left.checked_sub(length) else {
            self.drop_file();
            return Err(FilesError::TooLong(self.bytes_max));
        };
        self.bytes_left = left;
        self.copied.bytes += length;
        let written = open.file.write_all(bytes);
        written.map_err(|error| failed(&self.parent.join(&open.path), error))
    }

    fn end(&mut self) -> Result<(), FilesError> {
        if let Some(open) = self.file.take() {
            attributes(&open.file, &open.entry)
                .map_err(|error| failed(&self.parent.join(&open.path), error))?;
            self.copied.files += 1;
            self.has_ended = self.folders.is_empty();
            return Ok(());
        }
        let folder = self.folders.pop().ok_or(FilesError::Invalid("an end without a folder"))?;
        attributes(&folder.fd, &folder.entry)
            .map_err(|error| failed(&self.parent.join(&folder.path), error))?;
        self.has_ended = self.folders.is_empty();
        Ok(())
    }

    /// Removes a file of which the rest cannot be read.
    fn broken(&mut self, why: &str) -> Result<(), FilesError> {
        let Some(path) = self.drop_file() else { return Err(FilesError::Invalid("an error without a file")) };
        self.linked.retain(|_, linked| *linked != path);
        self.has_ended = self.folders.is_empty();
        self.left_out(format!("{}: {why}", path.display()))
    }

    fn drop_file(&mut self) -> Option<PathBuf> {
        let open = self.file.take()?;
        let fd = self.folders.last().map_or(&self.base, |folder| &folder.fd);
        // If the file stays, it is shorter than in the guest, and the error says so.
        let _ = unlinkat(fd, &open.name[..], AtFlags::empty());
        Some(open.path)
    }

    fn link(&mut self, number: u64, name: &[u8]) -> Result<(), FilesError> {
        if self.file.is_some() || self.entries >= ENTRIES_MAX as u64 {
            return Err(FilesError::Invalid("a link within a file"));
        }
        let Some(folder) = self.folders.last() else {
            return Err(FilesError::Invalid("a link without a folder"));
        };
        let path = folder.path.join(OsStr::from_bytes(name));
        let Some(first) = self.linked.get(&number) else {
            let why = "another name of a file that was not copied";
            return self.left_out(format!("{}: {why}", path.display()));
        };
        match linkat(&self.base, first, &folder.fd, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                return Err(FilesError::Exists(self.parent.join(&path).display().to_string()));
            }
            // A folder on the way can have a mode that forbids it, and a filesystem of the host can lack links.
            Err(error) => return self.left_out(format!("{}: {error}", path.display())),
        }
        self.copied.links += 1;
        Ok(())
    }

    fn left_out(&mut self, why: String) -> Result<(), FilesError> {
        if self.copied.left_out.len() >= LEFT_OUT_MAX {
            return Err(FilesError::TooManyLeftOut);
        }
        self.copied.left_out.push(why);
        Ok(())
    }
}

/// Gives a file or a folder its mode and its time of change.
fn attributes(fd: impl std::os::fd::AsFd, entry: &FileEntry) -> Result<(), Errno> {
    fchmod(&fd, Mode::from_raw_mode(entry.mode & MODE_KEPT))?;
    let last_modification = Timespec { tv_sec: entry.changed_s, tv_nsec: i64::from(entry.changed_ns) };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    match futimens(&fd, &Timestamps { last_access, last_modification }) {
        // A filesystem cannot store every time that a guest can claim.
        Ok(()) | Err(Errno::INVAL | Errno::OVERFLOW) => Ok(()),
        Err(error) => Err(error),
    }
}

fn failed(path: &Path, error: impl Into<io::Error>) -> FilesError {
    FilesError::Write { path: path.display().to_string(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use proptest::prelude::*;

    use super::*;

    fn entry(kind: FileKind, name: &str) -> Frame {
        let is_link = kind == FileKind::Link;
        Frame::Entry(Box::new(FileEntry {
            kind,
            mode: 0o4751,
            user: 0,
            group: 0,
            bytes: 0,
            changed_s: 1_000_000,
            changed_ns: 5,
            inode: 1,
            names: 2,
            device: (0, 0),
            name: name.as_bytes().to_vec(),
            target: is_link.then(|| b"/etc".to_vec()),
        }))
    }

    fn unpack(to: &Path, frames: Vec<Frame>) -> Result<Copied, FilesError> {
        let mut unpacker = Unpacker::new(to, 100)?;
        frames.into_iter().try_for_each(|frame| unpacker.take(frame))?;
        unpacker.finish()
    }

    #[test]
    fn files_get_contents_modes_times_and_names() {
        let folder = tempfile::tempdir().unwrap();
        let frames = vec![
            entry(FileKind::Folder, "top"),
            entry(FileKind::File, "a"),
            Frame::Content(b"con".to_vec()),
            Frame::Content(b"tent".to_vec()),
            Frame::End,
            entry(FileKind::Link, "b"),
            Frame::Link(1, b"c".to_vec()),
            entry(FileKind::Pipe, "p"),
            entry(FileKind::File, "q"),
            Frame::Content(b"half".to_vec()),
            Frame::Broken("no".to_owned()),
            Frame::Link(5, b"r".to_vec()),
            Frame::End,
        ];
        let copied = unpack(folder.path(), frames.clone()).unwrap();
        assert_eq!((copied.files, copied.folders, copied.links, copied.bytes), (1, 1, 2, 11));
        assert_eq!(copied.left_out.len(), 3, "{copied:?}");
        let at = |name: &str| folder.path().join("top").join(name);
        assert_eq!(fs::read(at("a")).unwrap(), b"content");
        let metadata = fs::metadata(at("c")).unwrap();
        assert_eq!((metadata.mtime(), metadata.mtime_nsec(), metadata.nlink()), (1_000_000, 5, 2));
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o751);
        assert_eq!(fs::metadata(at("")).unwrap().mtime(), 1_000_000);
        assert_eq!(fs::read_link(at("b")).unwrap(), Path::new("/etc"));
        assert!(!at("q").exists() && !at("p").exists() && !at("r").exists());
        assert!(matches!(unpack(folder.path(), frames), Err(FilesError::Exists(_))));
        let one = vec![entry(FileKind::File, "x"), Frame::End];
        unpack(&folder.path().join("new"), one).unwrap();
        assert!(folder.path().join("new").is_file());
    }

    #[test]
    fn hostile_names_and_structures_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (top, file) = (|| entry(FileKind::Folder, "t"), |name| entry(FileKind::File, name));
        for frames in [
            vec![file("../x")],
            vec![file("/x")],
            vec![file("..")],
            vec![file("")],
            vec![file("x"), file("y")],
            vec![file("x")],
            vec![file("x"), Frame::Content(vec![0; 101])],
            vec![Frame::Content(vec![0])],
            vec![Frame::End],
            vec![top()],
            vec![top(), Frame::End, top(), Frame::End],
            vec![top(), entry(FileKind::Link, "l"), file("l")],
            vec![top(), entry(FileKind::Link, "l"), entry(FileKind::Folder, "l")],
            vec![Frame::Link(0, b"l".to_vec())],
            vec![Frame::Broken("why".to_owned())],
            vec![Frame::Output(Vec::new())],
            vec![],
        ] {
            let told = format!("{frames:?}");
            assert!(unpack(&inner, frames).is_err(), "{told}");
            fs::remove_dir_all(&inner).unwrap();
            fs::create_dir(&inner).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A destination with a link in it is no way out either.
    #[test]
    fn links_of_the_host_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, outer) = (folder.path().join("inner"), folder.path().join("outer"));
        fs::create_dir(&inner).unwrap();
        fs::create_dir(&outer).unwrap();
        symlink(&outer, inner.join("top")).unwrap();
        let frames = vec![entry(FileKind::Folder, "top"), entry(FileKind::File, "a"), Frame::End, Frame::End];
        assert!(matches!(unpack(&inner, frames), Err(FilesError::Exists(_))));
        assert_eq!(fs::read_dir(outer).unwrap().count(), 0);
    }

    fn any_frame() -> impl Strategy<Value = Frame> {
        let name = prop_oneof![Just("a"), Just("b"), Just(".."), Just("a/b"), Just("/tmp/a")];
        let kind = prop_oneof![
            Just(FileKind::File),
            Just(FileKind::Folder),
            Just(FileKind::Link),
            Just(FileKind::Pipe)
        ];
        prop_oneof![
            4 => (kind, name).prop_map(|(kind, name)| entry(kind, name)),
            3 => Just(Frame::End),
            2 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Frame::Content),
            1 => (0..4u64).prop_map(|number| Frame::Link(number, b"c".to_vec())),
            1 => Just(Frame::Broken("no".to_owned())),
        ]
    }

    proptest! {
        /// Whatever a guest sends, nothing appears beside the destination.
        #[test]
        fn nothing_leaves_the_destination(frames in prop::collection::vec(any_frame(), 0..12)) {
            let folder = tempfile::tempdir().unwrap();
            let inner = folder.path().join("inner");
            fs::create_dir(&inner).unwrap();
            let _ = unpack(&inner, frames);
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            prop_assert!(fs::read_dir(&inner).unwrap().count() <= 2);
        }
    }
}
