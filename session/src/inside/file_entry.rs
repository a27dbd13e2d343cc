//! Attributes of a file in a guest.

use super::field::bytes;
use super::limits::PATH_BYTES_MAX;

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file.
    File,
    /// Folder.
    Folder,
    /// Symbolic link.
    Link,
    /// Character device.
    CharacterDevice,
    /// Block device.
    BlockDevice,
    /// Named pipe.
    Pipe,
    /// Socket.
    Socket,
}

impl FileKind {
    /// Returns the letter with which `ls -l` shows the kind.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            FileKind::File => '-',
            FileKind::Folder => 'd',
            FileKind::Link => 'l',
            FileKind::CharacterDevice => 'c',
            FileKind::BlockDevice => 'b',
            FileKind::Pipe => 'p',
            FileKind::Socket => 's',
        }
    }

    /// Returns the word for the kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FileKind::File => "file",
            FileKind::Folder => "folder",
            FileKind::Link => "link",
            FileKind::CharacterDevice => "character-device",
            FileKind::BlockDevice => "block-device",
            FileKind::Pipe => "pipe",
            FileKind::Socket => "socket",
        }
    }

    fn of(letter: &str) -> Option<FileKind> {
        use FileKind::{BlockDevice, CharacterDevice, File, Folder, Link, Pipe, Socket};
        let kinds = [File, Folder, Link, CharacterDevice, BlockDevice, Pipe, Socket];
        kinds.into_iter().find(|kind| letter.chars().eq([kind.letter()]))
    }
}

/// Attributes of a file in a guest. The guest says all of them, and may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Kind of the file.
    pub kind: FileKind,
    /// Permission bits, with set-user-ID, set-group-ID and sticky bit.
    pub mode: u32,
    /// Number of the owner.
    pub user: u32,
    /// Number of the owner's group.
    pub group: u32,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change of the content, in seconds since 1970 by the guest's clock.
    pub changed_s: i64,
    /// Nanoseconds within the second, less than 10^9.
    pub changed_ns: u32,
    /// Inode number.
    pub inode: u64,
    /// Number of names.
    pub names: u64,
    /// Major and minor number of a device.
    pub device: (u32, u32),
    /// Name of the file. It can have any bytes, and is at most [`PATH_BYTES_MAX`] bytes long.
    pub name: Vec<u8>,
    /// Target of a symbolic link. `None` for other files.
    pub target: Option<Vec<u8>>,
}

impl FileEntry {
    /// Decodes the fields of a frame. `None` if they are invalid.
    pub(super) fn decode(words: &[&str]) -> Option<FileEntry> {
        let (fields, target) = match words {
            [fields @ .., target] if words.len() == 13 => (fields, Some(*target)),
            fields => (fields, None),
        };
        let &[kind, mode, user, group, length, s, ns, inode, names, major, minor, name] = fields else {
            return None;
        };
        let path = |field: &str| {
            bytes(field).filter(|path| (1..=PATH_BYTES_MAX).contains(&path.len()) && !path.contains(&0))
        };
        let entry = FileEntry {
            kind: FileKind::of(kind)?,
            mode: u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777)?,
            user: user.parse().ok()?,
            group: group.parse().ok()?,
            bytes: length.parse().ok()?,
            changed_s: s.parse().ok()?,
            changed_ns: ns.parse().ok().filter(|ns| *ns < 1_000_000_000)?,
            inode: inode.parse().ok()?,
            names: names.parse().ok()?,
            device: (major.parse().ok()?, minor.parse().ok()?),
            name: path(name)?,
            target: target.map(path).map_or(Some(None), |target| target.map(Some))?,
        };
        (entry.target.is_some() == (entry.kind == FileKind::Link)).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "l 777 0 5 3 -7 999999999 12 1 0 0 YQ== Li4veA==";

    fn decode(text: &str) -> Option<FileEntry> {
        FileEntry::decode(&text.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn attributes_are_decoded() {
        let link = decode(LINK).unwrap();
        assert_eq!((link.kind, link.mode, link.changed_s), (FileKind::Link, 0o777, -7));
        assert_eq!((&link.name[..], link.target.as_deref()), (&b"a"[..], Some(&b"../x"[..])));
        assert_eq!(decode(&LINK.replacen("l 777", "- 4755", 1)), None, "a file with a target");
    }

    #[test]
    fn invalid_attributes_are_refused() {
        for (from, to) in [
            ("l 777", "q 777"),
            (" 777", " 10000"),
            ("999999999", "1000000000"),
            ("YQ==", "AA=="),
            (" 12", " -1"),
            ("YQ== Li4veA==", "YQ=="),
        ] {
            assert_eq!(decode(&LINK.replacen(from, to, 1)), None, "{to}");
        }
    }
}
