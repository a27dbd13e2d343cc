//! Stored form of a disk's write cache: a head, then the contents of all records. The cache is a log of the writes that
//! are not yet durable. A record of the log is an old version of a few sectors, i.e. their content before a write. The
//! newest version is on the disk itself. Contents of only zeroes are left out. Files may be hostile.

use serde::{Deserialize, Serialize};

use super::{Before, CACHE_BYTES_MAX, Cache, Record};
use crate::disk::{BLOCK, SectorSize};

/// Maximum number of writes that a stored disk may have completed. No real disk completes this many writes. The bound
/// also leaves enough numbers for the writes that follow, so that `u64` never overflows.
const WRITES_MAX: u64 = 1 << 62;

/// Defect of a stored cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The number of writes that the disk has completed exceeds [`WRITES_MAX`].
    #[error("its number of writes, {0}, is more than {WRITES_MAX}")]
    Writes(u64),
    /// A record's write number, i.e. the number of the write that replaced the record's content, is invalid. It is
    /// lower than the previous record's, or not lower than the number that the disk's next write will have.
    #[error("version {record} has write number {write}; it must be at least {after} and less than {before}")]
    Order {
        /// Index of the record.
        record: usize,
        /// Write number of the record.
        write: u64,
        /// Write number of the previous record.
        after: u64,
        /// Number of the disk's next write.
        before: u64,
    },
    /// A record has no sectors, or its sectors are beyond the end of the disk or not all in one 4 KiB block.
    #[error("version {record}: {sectors} sectors from {sector} on are not on the disk, or not in one block")]
    Sectors {
        /// Index of the record.
        record: usize,
        /// Number of the first sector.
        sector: u64,
        /// Number of sectors.
        sectors: u8,
    },
    /// The records have more than [`CACHE_BYTES_MAX`] bytes of content in total, including zeroes.
    #[error("its versions exceed {CACHE_BYTES_MAX} bytes")]
    TooMuch,
    /// The contents do not have the length that the head requires.
    #[error("its contents have {found} bytes; its versions need {named}")]
    Content {
        /// Bytes found.
        found: usize,
        /// Bytes that the head requires.
        named: usize,
    },
}

/// Stored form of a cache, without contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::disk) struct Head {
    next: u64,
    records: Vec<RecordHead>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RecordHead {
    write: u64,
    sector: u64,
    sectors: u8,
    zero: bool,
}

impl Cache {
    /// Returns the head and the contents.
    pub(in crate::disk) fn to_parts(&self, size: SectorSize) -> (Head, Vec<u8>) {
        let mut content = Vec::new();
        let mut records = Vec::with_capacity(self.log.len());
        for Record { write, sector, sectors, before } in self.log.iter_from(0) {
            let zero = matches!(before, Before::Zero);
            if !zero {
                content.extend(before.part(0, usize::from(*sectors) * size.bytes() as usize));
            }
            records.push(RecordHead { write: *write, sector: *sector, sectors: *sectors, zero });
        }
        (Head { next: self.next, records }, content)
    }

    /// Decodes the cache of a disk of `disk_bytes` bytes.
    ///
    /// # Errors
    /// Returns an error if the stored form is invalid.
    pub(in crate::disk) fn from_parts(
        head: &Head,
        content: &[u8],
        size: SectorSize,
        disk_bytes: u64,
    ) -> Result<Cache, LogError> {
        if head.next > WRITES_MAX {
            return Err(LogError::Writes(head.next));
        }
        let mut cache = Cache { next: head.next, ..Cache::default() };
        let (mut after, mut used) = (0, 0);
        let per_block = BLOCK / size.bytes();
        for (record, &RecordHead { write, sector, sectors, zero }) in head.records.iter().enumerate() {
            if write < after || write >= head.next {
                return Err(LogError::Order { record, write, after, before: head.next });
            }
            after = write;
            let in_a_block = sectors > 0 && sector % per_block + u64::from(sectors) <= per_block;
            if !in_a_block || sector.saturating_add(sectors.into()) > disk_bytes / size.bytes() {
                return Err(LogError::Sectors { record, sector, sectors });
            }
            let len = if zero { 0 } else { usize::from(sectors) * size.bytes() as usize };
            let part = content.get(used..used + len);
            let part = part.ok_or(LogError::Content { found: content.len(), named: used + len })?;
            used += len;
            cache.push(Record { write, sector, sectors, before: Before::of(part) }, size);
            if cache.bytes > CACHE_BYTES_MAX {
                return Err(LogError::TooMuch);
            }
        }
        if used != content.len() {
            return Err(LogError::Content { found: content.len(), named: used });
        }
        Ok(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK_BYTES: u64 = 4 * BLOCK + 512;
    const SIZE: SectorSize = SectorSize::Bytes512;

    fn record(write: u64, sector: u64, sectors: u8) -> RecordHead {
        RecordHead { write, sector, sectors, zero: false }
    }

    fn decode(records: &[RecordHead], content: &[u8]) -> Result<Cache, LogError> {
        Cache::from_parts(&Head { next: 10, records: records.to_vec() }, content, SIZE, DISK_BYTES)
    }

    #[test]
    fn a_stored_cache_is_restored() {
        let records = [record(1, 0, 8), record(1, 8, 1), record(9, 32, 1)];
        let content: Vec<u8> = (0..10 * 512u32).map(|i| (i / 500) as u8).collect();
        let mut cache = decode(&records, &content).unwrap();
        assert_eq!((cache.len(), cache.bytes(), cache.completed()), (3, 5120, 10));
        let (head, again) = cache.to_parts(SIZE);
        assert_eq!((&head.records[..], &again), (&records[..], &content));
        // Content of only zeroes becomes `Zero`, even if the file has it as bytes.
        let zero = RecordHead { zero: true, ..record(1, 3, 2) };
        let mut stored = decode(std::slice::from_ref(&zero), &[]).unwrap();
        let mut as_bytes = decode(&[record(1, 3, 2)], &[0; 1024]).unwrap();
        assert_eq!(stored.digest(), as_bytes.digest());
        assert_eq!(as_bytes.to_parts(SIZE).0.records, [zero]);
        assert_ne!(stored.digest(), cache.digest());
    }

    #[test]
    fn invalid_caches_are_refused() {
        let content = [1; 8 * 512];
        for (records, expected) in [
            (
                vec![record(3, 0, 1), record(2, 0, 1)],
                LogError::Order { record: 1, write: 2, after: 3, before: 10 },
            ),
            (vec![record(10, 0, 1)], LogError::Order { record: 0, write: 10, after: 0, before: 10 }),
            (vec![record(1, 33, 1)], LogError::Sectors { record: 0, sector: 33, sectors: 1 }),
            (vec![record(1, 32, 2)], LogError::Sectors { record: 0, sector: 32, sectors: 2 }),
            (vec![record(1, u64::MAX, 1)], LogError::Sectors { record: 0, sector: u64::MAX, sectors: 1 }),
            (vec![record(1, 7, 2)], LogError::Sectors { record: 0, sector: 7, sectors: 2 }),
            (vec![record(1, 0, 0)], LogError::Sectors { record: 0, sector: 0, sectors: 0 }),
            (vec![record(1, 0, 9)], LogError::Sectors { record: 0, sector: 0, sectors: 9 }),
            (vec![record(1, 0, 8), record(1, 8, 1)], LogError::Content { found: 4096, named: 4608 }),
            (vec![record(1, 0, 7)], LogError::Content { found: 4096, named: 3584 }),
        ] {
            assert_eq!(decode(&records, &content).unwrap_err(), expected);
        }
        let head = Head { next: u64::MAX, records: Vec::new() };
        assert_eq!(Cache::from_parts(&head, &[], SIZE, DISK_BYTES).unwrap_err(), LogError::Writes(u64::MAX));
    }

    /// A version of only zeroes counts with its full size, so a head cannot list more versions than fit into the cache.
    #[test]
    fn a_cache_beyond_its_bound_is_refused() {
        let zero = RecordHead { zero: true, ..record(1, 0, 8) };
        let fits = (CACHE_BYTES_MAX / BLOCK) as usize;
        assert_eq!(decode(&vec![zero.clone(); fits], &[]).unwrap().bytes(), CACHE_BYTES_MAX);
        assert_eq!(decode(&vec![zero; fits + 1], &[]).unwrap_err(), LogError::TooMuch);
    }
}
