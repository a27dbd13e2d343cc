//! Makes empty ext4 filesystems (Linux, Documentation/filesystems/ext4), for data disks of machines whose root
//! filesystem has no `mkfs.ext4`.
//!
//! Blocks, inodes and the journal have the sizes that mke2fs chooses. As in mke2fs, a tiny last block group is left
//! out. The filesystem differs from mke2fs's in three ways: it has no checksums of metadata, no room for growth, and
//! no `lost+found`. A new volume of a container must be empty, so `lost+found` would be wrong. Only blocks that are
//! not zero are written, so most blocks of the inode tables stay holes.
//!
//! **Invariant.** The content depends on the size and the UUID alone.

/// Block size in bytes.
const BLOCK_BYTES: u64 = 4096;
/// Maximum number of blocks of a group. A group's bitmap is one block, with one bit for each block of the group.
const GROUP_BLOCKS: u64 = 8 * BLOCK_BYTES;
/// Size of an inode in bytes.
const INODE_BYTES: u64 = 256;
/// Length of the filesystem in bytes for each inode: the inode tables have one inode for every 16 KiB.
const BYTES_PER_INODE: u64 = 16 << 10;
/// Size of a group's descriptor in bytes.
const DESCRIPTOR_BYTES: u64 = 32;
/// Minimum number of blocks for files in the last group. A last group with fewer blocks is left out.
const LAST_GROUP_BLOCKS_MIN: u64 = 50;

/// Length of the smallest filesystem, in bytes.
pub const BYTES_MIN: u64 = 8 << 20;
/// Length of the largest filesystem, in bytes: the largest power of two with at most 2^32 - 1 blocks. A filesystem with
/// more blocks needs descriptors of 64 bytes.
pub const BYTES_MAX: u64 = 8 << 40;

const ROOT_INODE: u64 = 2;
const JOURNAL_INODE: u64 = 8;
/// Highest number of a reserved inode.
const RESERVED_INODES: u64 = 10;

const COMPAT: u32 = 0x0004 | 0x0008 | 0x0020; // has_journal, ext_attr, dir_index
const INCOMPAT: u32 = 0x0002 | 0x0040; // filetype, extents
const RO_COMPAT: u32 = 0x0001 | 0x0002 | 0x0008 | 0x0020 | 0x0040; // sparse_super, large_file, huge_file, dir_nlink, extra_isize
/// Default mount options: extended attributes and access control lists.
const MOUNT_OPTIONS: u32 = 0x0004 | 0x0008;
/// Inode flag: the inode's blocks are described by extents.
const EXTENTS: u32 = 0x0008_0000;

/// A block of the filesystem that has a byte other than zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Offset of the block on the disk, in bytes.
    pub offset: u64,
    /// Content of the block: 4096 bytes.
    pub content: Vec<u8>,
}

/// Returns the non-zero blocks of an empty filesystem on a disk of `bytes` bytes. `None` if `bytes` is not in
/// [`BYTES_MIN`] to [`BYTES_MAX`].
#[must_use]
pub fn empty(bytes: u64, uuid: [u8; 16]) -> Option<Vec<Block>> {
    if !(BYTES_MIN..=BYTES_MAX).contains(&bytes) {
        return None;
    }
    Some(Layout::of(bytes / BLOCK_BYTES).blocks(uuid))
}

/// Sizes and block numbers of the filesystem's parts.
struct Layout {
    blocks: u64,
    groups: u64,
    inodes_per_group: u64,
    /// Number of blocks of one copy of the group descriptors.
    descriptor_blocks: u64,
    journal_blocks: u64,
    /// Block of the root folder. The journal starts in the next block.
    root_block: u64,
}

impl Layout {
    fn of(mut blocks: u64) -> Layout {
        loop {
            let groups = blocks.div_ceil(GROUP_BLOCKS);
            let inodes = (blocks.min(GROUP_BLOCKS) * BLOCK_BYTES / BYTES_PER_INODE)
                .next_multiple_of(BLOCK_BYTES / INODE_BYTES);
            let mut layout = Layout {
                blocks,
                groups,
                inodes_per_group: inodes,
                descriptor_blocks: (groups * DESCRIPTOR_BYTES).div_ceil(BLOCK_BYTES),
                journal_blocks: journal_blocks(blocks),
                root_block: 0,
            };
            let last = groups - 1;
            if last > 0 && layout.length(last) < layout.overhead(last) + LAST_GROUP_BLOCKS_MIN {
                blocks = last * GROUP_BLOCKS;
                continue;
            }
            layout.root_block = layout.overhead(0);
            return layout;
        }
    }

    fn length(&self, group: u64) -> u64 {
        (self.blocks - group * GROUP_BLOCKS).min(GROUP_BLOCKS)
    }

    /// Returns the number of blocks at the start of a group that hold copies of the superblock and the descriptors.
    fn copies(&self, group: u64) -> u64 {
        let power = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        let has_copy = group <= 1 || power(3) || power(5) || power(7);
        if has_copy { 1 + self.descriptor_blocks } else { 0 }
    }

    fn table_blocks(&self) -> u64 {
        self.inodes_per_group * INODE_BYTES / BLOCK_BYTES
    }

    /// Returns the number of a group's blocks that hold metadata: copies, two bitmaps and the inode table.
    fn overhead(&self, group: u64) -> u64 {
        self.copies(group) + 2 + self.table_blocks()
    }

    /// Returns the number of a group's blocks that are in use in an empty filesystem.
    fn used(&self, group: u64) -> u64 {
        self.overhead(group) + if group == 0 { 1 + self.journal_blocks } else { 0 }
    }

    fn blocks(&self, uuid: [u8; 16]) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut put =
            |number: u64, content: Vec<u8>| blocks.push(Block { offset: number * BLOCK_BYTES, content });
        let descriptors = self.descriptors();
        for group in 0..self.groups {
            let start = group * GROUP_BLOCKS;
            let copies = self.copies(group);
            if copies > 0 {
                put(start, self.superblock(group, uuid));
                for (number, content) in (1..).zip(descriptors.chunks(BLOCK_BYTES as usize)) {
                    put(start + number, content.to_vec());
                }
            }
            put(start + copies, bitmap(self.used(group), self.length(group)));
            let inodes = if group == 0 { RESERVED_INODES } else { 0 };
            put(start + copies + 1, bitmap(inodes, self.inodes_per_group));
        }
        // All reserved inodes are in the first block of the inode table.
        put(self.copies(0) + 2, self.inodes());
        put(self.root_block, root_folder());
        put(self.root_block + 1, self.journal(uuid));
        blocks
    }

    fn superblock(&self, group: u64, uuid: [u8; 16]) -> Vec<u8> {
        let mut block = Fields::new();
        // The first superblock is 1 KiB after the start of the disk. A copy is at the start of its group.
        let base = if group == 0 { 1024 } else { 0 };
        let inodes = self.groups * self.inodes_per_group;
        let free = self.blocks - (0..self.groups).map(|group| self.used(group)).sum::<u64>();
        let mut u32 = |at: usize, value: u64| block.u32(base + at, value);
        u32(0, inodes);
        u32(4, self.blocks & 0xffff_ffff);
        u32(12, free & 0xffff_ffff);
        u32(16, inodes - RESERVED_INODES);
        u32(24, 2); // 4 KiB blocks
        u32(28, 2);
        u32(32, GROUP_BLOCKS);
        u32(36, GROUP_BLOCKS);
        u32(40, self.inodes_per_group);
        u32(76, 1); // dynamic revision
        u32(84, RESERVED_INODES + 1);
        u32(92, COMPAT.into());
        u32(96, INCOMPAT.into());
        u32(100, RO_COMPAT.into());
        u32(224, JOURNAL_INODE);
        u32(256, MOUNT_OPTIONS.into());
        u32(352, 1); // signed directory hash
        for (at, value) in [(54, 0xffff), (56, 0xef53), (58, 1), (60, 1), (88, 256), (348, 32), (350, 32)] {
            block.u16(base + at, value);
        }
        block.u16(base + 90, group as u16);
        block.bytes(base + 104, &uuid);
        block.bytes(base + 236, &uuid); // seed of directory hashes
        block.bytes(base + 252, &[1, 1]); // directory hash is half MD4; a copy of the journal's inode follows
        let journal = self.journal_inode();
        block.bytes(base + 268, &journal[40..100]);
        block.bytes(base + 268 + 64, &journal[4..8]);
        block.done()
    }

    fn descriptors(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for group in 0..self.groups {
            let start = group * GROUP_BLOCKS + self.copies(group);
            let mut one = Fields::new();
            one.u32(0, start);
            one.u32(4, start + 1);
            one.u32(8, start + 2);
            one.u16(12, (self.length(group) - self.used(group)) as u16);
            let reserved = if group == 0 { RESERVED_INODES } else { 0 };
            one.u16(14, (self.inodes_per_group - reserved) as u16);
            one.u16(16, u16::from(group == 0));
            all.extend_from_slice(&one.done()[..DESCRIPTOR_BYTES as usize]);
        }
        all.resize(all.len().next_multiple_of(BLOCK_BYTES as usize), 0);
        all
    }

    fn inodes(&self) -> Vec<u8> {
        let mut block = Fields::new();
        let place = |number: u64| ((number - 1) * INODE_BYTES) as usize;
        block.bytes(place(ROOT_INODE), &inode(0o040_755, BLOCK_BYTES, 2, self.root_block, 1));
        block.bytes(place(JOURNAL_INODE), &self.journal_inode());
        block.done()
    }

    fn journal_inode(&self) -> Vec<u8> {
        inode(0o100_600, self.journal_blocks * BLOCK_BYTES, 1, self.root_block + 1, self.journal_blocks)
    }

    /// Returns the journal's superblock, which is big-endian.
    fn journal(&self, uuid: [u8; 16]) -> Vec<u8> {
        let mut block = Fields::new();
        let words: [u32; 7] = [0xc03b_3998, 4, 0, BLOCK_BYTES as u32, self.journal_blocks as u32, 1, 1];
        for (number, word) in words.into_iter().enumerate() {
            block.bytes(4 * number, &word.to_be_bytes());
        }
        block.bytes(48, &uuid);
        block.bytes(64, &1_u32.to_be_bytes());
        block.done()
    }
}

/// Returns the number of blocks of the journal, as mke2fs chooses it. The journal fits into the first group.
fn journal_blocks(blocks: u64) -> u64 {
    match blocks {
        ..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        _ => 16_384,
    }
}

/// Returns an inode whose content is one extent of consecutive blocks.
fn inode(mode: u16, bytes: u64, links: u16, first_block: u64, blocks: u64) -> Vec<u8> {
    let mut inode = Fields::new();
    inode.u16(0, mode);
    inode.u32(4, bytes & 0xffff_ffff);
    inode.u16(26, links);
    inode.u32(28, blocks * (BLOCK_BYTES / 512));
    inode.u32(32, EXTENTS.into());
    // The header of the extents comes first: magic number, one entry of at most four, depth 0. The extent follows.
    for (at, value) in [(40, 0xf30a), (42, 1), (44, 4)] {
        inode.u16(at, value);
    }
    inode.u16(56, blocks as u16);
    inode.u32(60, first_block);
    inode.u32(108, bytes >> 32);
    inode.u16(128, 32); // length of the fields beyond 128 bytes
    inode.done()[..INODE_BYTES as usize].to_vec()
}

/// Returns the block of an empty root folder. It contains the entry `.`, and `..` takes the remaining bytes.
fn root_folder() -> Vec<u8> {
    const FOLDER: u8 = 2;
    let mut block = Fields::new();
    block.u32(0, ROOT_INODE);
    block.u16(4, 12);
    block.bytes(6, &[1, FOLDER, b'.']);
    block.u32(12, ROOT_INODE);
    block.u16(16, (BLOCK_BYTES - 12) as u16);
    block.bytes(18, &[2, FOLDER, b'.', b'.']);
    block.done()
}

/// Returns a bitmap in which the first `used` bits and all bits from `length` on are set.
fn bitmap(used: u64, length: u64) -> Vec<u8> {
    let bit = |number: u64| u8::from(number < used || number >= length);
    let byte = |start: u64| (0..8).fold(0, |byte, number| byte | bit(8 * start + number) << number);
    (0..BLOCK_BYTES).map(byte).collect()
}

/// A block under construction, little-endian.
struct Fields(Vec<u8>);

impl Fields {
    fn new() -> Fields {
        Fields(vec![0; BLOCK_BYTES as usize])
    }

    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16(&mut self, at: usize, value: u16) {
        self.bytes(at, &value.to_le_bytes());
    }

    /// Writes the lower 32 bits of a value.
    fn u32(&mut self, at: usize, value: u64) {
        self.bytes(at, &(value as u32).to_le_bytes());
    }

    fn done(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_size_has_its_parts_within_the_disk_and_apart() {
        for bytes in [
            BYTES_MIN,
            9 << 20,
            100 << 20,
            (128 << 20) - 4096,
            128 << 20,
            (128 << 20) + 4096,
            (128 << 20) + (3 << 20),
            1 << 30,
            (10 << 30) + 4096,
            64 << 30,
        ] {
            let blocks = empty(bytes, [7; 16]).unwrap();
            let offsets: BTreeSet<u64> = blocks.iter().map(|block| block.offset).collect();
            assert_eq!(offsets.len(), blocks.len(), "two blocks at one place in {bytes} bytes");
            assert!(offsets.last().unwrap() + BLOCK_BYTES <= bytes, "{bytes} bytes");
            assert!(blocks.iter().all(|block| block.content.len() as u64 == BLOCK_BYTES));
            let layout = Layout::of(bytes / BLOCK_BYTES);
            assert!(layout.used(0) < layout.length(0), "{bytes} bytes: the journal does not fit");
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        assert_eq!(empty(BYTES_MIN - 1, [0; 16]), None);
        assert_eq!(empty(BYTES_MAX + 1, [0; 16]), None);
    }
}
