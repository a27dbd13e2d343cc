//! Kinds of file systems, by their magic numbers, and the commands that check them.

use everett_vmm::disk::Disk;

/// Number of bytes at the start of a disk that hold all magic numbers.
const HEAD_BYTES: usize = 66 << 10;
/// Start of an ext2, ext3 or ext4 superblock, and of an EROFS superblock.
const SUPERBLOCK: usize = 1024;
/// Feature of ext3 and ext4: a journal (`EXT4_FEATURE_COMPAT_HAS_JOURNAL`).
const HAS_JOURNAL: u32 = 0x4;
/// The journal has transactions that are not in the file system yet (`EXT4_FEATURE_INCOMPAT_RECOVER`).
const RECOVER: u32 = 0x4;
/// Features that only ext4 has: extents, 64-bit block numbers, flexible block groups.
const OF_EXT4: u32 = 0x40 | 0x80 | 0x200;

/// Kind of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// The ext2, ext3 or ext4 file system.
    Ext {
        /// Version: 2, 3 or 4.
        version: u8,
        /// True if the journal must be replayed, as after a crash.
        needs_recovery: bool,
    },
    /// The XFS file system.
    Xfs,
    /// The SquashFS file system.
    SquashFs,
    /// The EROFS file system.
    Erofs,
    /// The Btrfs file system.
    Btrfs,
    /// Swap space.
    Swap,
}

impl FileSystem {
    /// Returns the kind of the file system on a disk, or `None` if no known magic number is there.
    #[must_use]
    pub fn of(disk: &Disk) -> Option<FileSystem> {
        let mut head = vec![0; HEAD_BYTES];
        disk.read(0, &mut head);
        FileSystem::of_head(&head)
    }

    fn of_head(head: &[u8]) -> Option<FileSystem> {
        let is = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
        let word = |at: usize| {
            let bytes = head.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        if is(SUPERBLOCK + 0x38, &[0x53, 0xef]) {
            let (compatible, incompatible) = (word(SUPERBLOCK + 0x5c), word(SUPERBLOCK + 0x60));
            let version = match (incompatible & OF_EXT4 != 0, compatible & HAS_JOURNAL != 0) {
                (true, _) => 4,
                (false, true) => 3,
                (false, false) => 2,
            };
            return Some(FileSystem::Ext { version, needs_recovery: incompatible & RECOVER != 0 });
        }
        let others = [
            (0, &b"XFSB"[..], FileSystem::Xfs),
            (0, b"hsqs", FileSystem::SquashFs),
            (SUPERBLOCK, &[0xe2, 0xe1, 0xf5, 0xe0], FileSystem::Erofs),
            (0x1_0040, b"_BHRfS_M", FileSystem::Btrfs),
            (4086, b"SWAPSPACE2", FileSystem::Swap),
        ];
        others.into_iter().find(|(at, magic, _)| is(*at, magic)).map(|(_, _, kind)| kind)
    }

    /// Returns the name of the file system.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext { version: 2, .. } => "ext2",
            FileSystem::Ext { version: 3, .. } => "ext3",
            FileSystem::Ext { .. } => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::SquashFs => "squashfs",
            FileSystem::Erofs => "erofs",
            FileSystem::Btrfs => "btrfs",
            FileSystem::Swap => "swap",
        }
    }

    /// True if the file system has a journal that must be replayed.
    #[must_use]
    pub fn needs_recovery(self) -> bool {
        matches!(self, FileSystem::Ext { needs_recovery: true, .. })
    }

    /// Returns the commands that check the file system in an image, in their order. The image's path follows each.
    #[must_use]
    pub fn checks(self) -> &'static [&'static str] {
        match self {
            // `e2fsck -n` replays no journal, and reports what the journal would repair.
            FileSystem::Ext { needs_recovery: true, .. } => &["e2fsck -p -E journal_only", "e2fsck -fn"],
            FileSystem::Ext { .. } => &["e2fsck -fn"],
            FileSystem::Xfs => &["xfs_repair -n"],
            FileSystem::SquashFs => &["unsquashfs -ll"],
            FileSystem::Erofs => &["fsck.erofs"],
            FileSystem::Btrfs => &["btrfs check --readonly"],
            FileSystem::Swap => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES];
        head[at..at + bytes.len()].copy_from_slice(bytes);
        head
    }

    fn ext(compatible: u8, incompatible: u8) -> Option<FileSystem> {
        let mut head = with(SUPERBLOCK + 0x38, &[0x53, 0xef]);
        (head[SUPERBLOCK + 0x5c], head[SUPERBLOCK + 0x60]) = (compatible, incompatible);
        FileSystem::of_head(&head)
    }

    #[test]
    fn magic_numbers_are_found() {
        let ext_of = |version, needs_recovery| Some(FileSystem::Ext { version, needs_recovery });
        assert_eq!(ext(0, 0), ext_of(2, false));
        assert_eq!(ext(4, 0), ext_of(3, false));
        assert_eq!(ext(4, 0x44), ext_of(4, true));
        assert_eq!(FileSystem::of_head(&with(0, b"XFSB")), Some(FileSystem::Xfs));
        assert_eq!(FileSystem::of_head(&with(0, b"hsqs")), Some(FileSystem::SquashFs));
        assert_eq!(FileSystem::of_head(&with(0x1_0040, b"_BHRfS_M")), Some(FileSystem::Btrfs));
        assert_eq!(FileSystem::of_head(&with(4086, b"SWAPSPACE2")), Some(FileSystem::Swap));
        assert_eq!(
            FileSystem::of_head(&with(SUPERBLOCK, &[0xe2, 0xe1, 0xf5, 0xe0])),
            Some(FileSystem::Erofs)
        );
        assert_eq!(FileSystem::of_head(&[0; HEAD_BYTES]), None);
        assert_eq!(FileSystem::of_head(b"hs"), None);
    }
}
