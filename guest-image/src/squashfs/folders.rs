//! The directory table: the entries of each folder in byte order, in runs that share a header.

use super::metadata::{MetadataLocation, MetadataWriter};

/// Maximum number of entries in a run.
const RUN_ENTRIES_MAX: usize = 256;

/// An entry in a folder's listing.
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    /// Location of its inode.
    pub(super) inode: MetadataLocation,
    pub(super) number: u32,
    /// Number of the basic type; listings never contain extended types.
    pub(super) kind: u16,
}

/// A folder's listing in the table.
pub(super) struct Listing {
    pub(super) place: MetadataLocation,
    /// Length in bytes, without block headers.
    pub(super) bytes: usize,
    /// Starts of the table's blocks within a long listing, so that a look-up can skip to a block.
    pub(super) index: Vec<IndexEntry>,
}

/// An entry in the index of a long listing.
pub(super) struct IndexEntry {
    /// Offset of a run's header in the listing.
    pub(super) offset: u32,
    /// Start of the table's block that contains the header.
    pub(super) block: u32,
    /// First name of the run.
    pub(super) name: Vec<u8>,
}

/// Writes the listing of one folder.
pub(super) fn write(table: &mut MetadataWriter, entries: &[Entry<'_>]) -> Listing {
    let place = table.place();
    let start = table.length();
    let mut index = Vec::new();
    let mut indexed_block = place.block;
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let here = table.place();
        if here.block != indexed_block {
            indexed_block = here.block;
            index.push(IndexEntry {
                offset: u32::try_from(table.length() - start).unwrap_or(u32::MAX),
                block: u32::try_from(here.block).unwrap_or(u32::MAX),
                name: first.name.to_vec(),
            });
        }
        let run = run_length(rest, here);
        let (run, after) = rest.split_at(run);
        table.write(&u32::try_from(run.len() - 1).unwrap_or(0).to_le_bytes());
        table.write(&u32::try_from(first.inode.block).unwrap_or(u32::MAX).to_le_bytes());
        table.write(&first.number.to_le_bytes());
        for entry in run {
            table.write(&entry.inode.offset.to_le_bytes());
            table.write(&difference(entry, first).unwrap_or(0).to_le_bytes());
            table.write(&entry.kind.to_le_bytes());
            table.write(&u16::try_from(entry.name.len() - 1).unwrap_or(0).to_le_bytes());
            table.write(entry.name);
        }
        rest = after;
    }
    Listing { place, bytes: table.length() - start, index }
}

/// Returns the number of entries that can share a header. Their inodes must lie in one block of the inode table and
/// have numbers close to the first one's. A run ends with the first entry that reaches the end of this table's block,
/// so that the index has an entry for each block.
fn run_length(entries: &[Entry<'_>], here: MetadataLocation) -> usize {
    const HEADER_BYTES: usize = 12;
    const ENTRY_BYTES: usize = 8;
    const BLOCK_BYTES: usize = 8192;
    let first = &entries[0];
    let mut end = usize::from(here.offset) + HEADER_BYTES;
    let mut count = 0;
    for entry in entries.iter().take(RUN_ENTRIES_MAX) {
        let fits = entry.inode.block == first.inode.block && difference(entry, first).is_some();
        if !fits || (count > 0 && end >= BLOCK_BYTES) {
            break;
        }
        end += ENTRY_BYTES + entry.name.len();
        count += 1;
    }
    count
}

/// Returns the difference of two inode numbers if it fits the format.
fn difference(entry: &Entry<'_>, first: &Entry<'_>) -> Option<i16> {
    i16::try_from(i64::from(entry.number) - i64::from(first.number)).ok()
}
