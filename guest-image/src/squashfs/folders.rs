//! Writes the directory table of a SquashFS image: the listing of each folder.
//!
//! A listing contains the folder's entries, sorted by the bytes of their names. It is divided into runs of
//! consecutive entries, and the entries of a run share a header.

use super::metadata::{MetadataLocation, MetadataWriter};

/// Maximum number of entries in a run.
const RUN_ENTRIES_MAX: usize = 256;

/// An entry of a folder.
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    /// Location of the entry's inode.
    pub(super) inode: MetadataLocation,
    pub(super) number: u32,
    /// Number of the entry's basic type. Listings never contain the numbers of extended types.
    pub(super) kind: u16,
}

/// A folder's listing in the table.
pub(super) struct Listing {
    pub(super) place: MetadataLocation,
    /// Length of the listing in bytes, without block headers.
    pub(super) bytes: usize,
    /// Index of a listing that continues in further blocks of the table. It has one entry for each further block. With
    /// the index, a look-up of a name can skip blocks.
    pub(super) index: Vec<IndexEntry>,
}

/// An entry of the index of a long listing.
pub(super) struct IndexEntry {
    /// Offset of a run's header in the listing, in bytes.
    pub(super) offset: u32,
    /// Start of the block that contains the run's header, in bytes from the start of the table.
    pub(super) block: u32,
    /// Name of the run's first entry.
    pub(super) name: Vec<u8>,
}

/// Appends the listing of one folder to the table. Returns the listing's location, length and index.
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

/// Returns the number of entries that can share a header. Their inodes must be in one block of the inode table, and
/// their inode numbers must be close to the first entry's number. A run ends when it reaches the end of a block of the
/// directory table, so that the index can have an entry for each further block.
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

/// Returns the difference of two inode numbers if it fits the 16 bits that the format has for it.
fn difference(entry: &Entry<'_>, first: &Entry<'_>) -> Option<i16> {
    i16::try_from(i64::from(entry.number) - i64::from(first.number)).ok()
}
