//! Reads the records of `branches.bin` (one for each branch of an exploration) in order, up to the point where the
//! writer was interrupted.
//!
//! A record is durable once the file was synced after it. Before the sync, a power loss may leave any of the record's
//! sectors unwritten, and may leave the file longer than its data.
//!
//! Each record says how many bytes of the file were durable when it was written. The largest of these numbers is the
//! durable length. Damage after the durable length can come from a crash, so the scan ends there and returns the rest
//! of the file as the [`Tail`]. A crash cannot damage the bytes before the durable length, so damage there is an error.

use std::io::{BufReader, Read};

use super::error::{Damage, RunError};
use super::frame::{HEAD_BYTES, Head, MAGIC};
use super::limits::{RECORD_BYTES_MAX, SEARCH_BYTES_MAX};
use super::media::{At, Source};

/// Number of bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// Number of bytes that are read at a time in the search for the next record after damage. Each position where a record
/// may begin costs one read of this size.
const SEARCH_BUFFER_BYTES: usize = 64 << 10;

/// Record whose bytes match its checksum.
pub(super) struct Frame {
    /// Number of the record in file order, from 1.
    pub(super) number: u32,
    /// Offset of the record in the file.
    pub(super) offset: u64,
    /// Bytes of the record, without the head (28 bytes with the length and the checksum).
    pub(super) text: Vec<u8>,
}

/// Scan of the first bytes of a file.
pub(super) struct Scan {
    source: Source,
    from: BufReader<At>,
    /// Offset of the next record. At the end of the scan, the offset at which the last whole record ends.
    offset: u64,
    /// Number of whole records so far.
    number: u32,
    length: u64,
}

/// Rest of a file from its first damaged record on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tail {
    /// Number of whole records in the tail. They follow a damaged record.
    pub(super) records: u64,
    /// Length of the tail, in bytes.
    pub(super) bytes: u64,
    /// Damage to the record at the beginning of the tail. `None` if the tail is empty.
    pub(super) damage: Option<Damage>,
}

impl Scan {
    /// Starts a scan of the file's first `length` bytes.
    pub(super) fn new(source: Source, length: u64) -> Scan {
        let at = At { source: source.clone(), offset: 0, end: length };
        let from = BufReader::with_capacity(BUFFER_BYTES, at);
        Scan { source, from, offset: 0, number: 0, length }
    }

    /// Returns the next record. If the next record is damaged, or the scan is at the end, returns the tail as the inner
    /// `Err`.
    ///
    /// # Errors
    /// Returns an error if a durable record is damaged, or if a system call fails.
    pub(super) fn next(&mut self) -> Result<Result<Frame, Tail>, RunError> {
        let left = self.length - self.offset;
        if left == 0 {
            return Ok(Err(Tail { records: 0, bytes: 0, damage: None }));
        }
        let read = RunError::io("read", &self.source.path);
        match self.read(left).map_err(read)? {
            Ok(frame) => Ok(Ok(frame)),
            Err(damage) => self.tail(damage).map(Err),
        }
    }

    fn read(&mut self, left: u64) -> std::io::Result<Result<Frame, Damage>> {
        if left < HEAD_BYTES as u64 {
            return Ok(Err(Damage::Short));
        }
        let mut head = [0; HEAD_BYTES];
        self.from.read_exact(&mut head)?;
        let Some(head) = Head::parse(&head) else { return Ok(Err(Damage::Form)) };
        let bytes = HEAD_BYTES as u64 + u64::from(head.length);
        if head.length as usize > RECORD_BYTES_MAX {
            return Ok(Err(Damage::TooLong));
        }
        if bytes > left {
            return Ok(Err(Damage::Short));
        }
        let mut text = vec![0; head.length as usize];
        self.from.read_exact(&mut text)?;
        if !head.fits(self.offset, &text) {
            return Ok(Err(Damage::Sum));
        }
        if head.number != self.number + 1 || head.synced > self.offset {
            return Ok(Err(Damage::Form));
        }
        let frame = Frame { number: head.number, offset: self.offset, text };
        (self.number, self.offset) = (head.number, self.offset + bytes);
        Ok(Ok(frame))
    }

    /// Returns the tail that begins with a damaged record. Returns an error if a crash cannot have caused the damage.
    fn tail(&self, damage: Damage) -> Result<Tail, RunError> {
        let damaged = || RunError::Damaged {
            path: self.source.path.clone(),
            record: u64::from(self.number) + 1,
            offset: self.offset,
            damage: damage.clone(),
        };
        let mut tail = Tail { records: 0, bytes: self.length - self.offset, damage: Some(damage.clone()) };
        if tail.bytes > SEARCH_BYTES_MAX {
            // A crash does not leave this many bytes.
            return Err(damaged());
        }
        let (mut from, mut searched) = (self.offset + 1, 0);
        while let Some(place) = self.find(from, &mut searched)? {
            let whole = self.whole_at(place, &mut searched)?;
            if searched > SEARCH_BYTES_MAX {
                // A crash does not leave this many positions that look like records.
                return Err(damaged());
            }
            match whole {
                Some((_, synced)) if synced > self.offset => return Err(damaged()),
                Some((end, _)) => (from, tail.records) = (end, tail.records + 1),
                None => from = place + 1,
            }
        }
        Ok(tail)
    }

    /// Returns the next offset at which a record may begin. Adds the number of bytes read to `searched`.
    fn find(&self, from: u64, searched: &mut u64) -> Result<Option<u64>, RunError> {
        let at = At { source: self.source.clone(), offset: from, end: self.length };
        let mut reader = BufReader::with_capacity(SEARCH_BUFFER_BYTES, at);
        let (mut last, mut offset, mut found) = ([0; MAGIC.len()], from, None);
        for byte in reader.by_ref().bytes() {
            last.rotate_left(1);
            if let Some(end) = last.last_mut() {
                *end = byte.map_err(RunError::io("read", &self.source.path))?;
            }
            offset += 1;
            if last == MAGIC && offset - from >= MAGIC.len() as u64 {
                found = Some(offset - MAGIC.len() as u64);
                break;
            }
        }
        *searched += reader.get_ref().offset - from;
        Ok(found)
    }

    /// Returns the end of the record at an offset, and the number of bytes that were durable when it was written.
    /// Returns `None` if no whole record starts there. Adds the record's length to `searched`.
    fn whole_at(&self, place: u64, searched: &mut u64) -> Result<Option<(u64, u64)>, RunError> {
        let left = self.length - place;
        if left < HEAD_BYTES as u64 {
            return Ok(None);
        }
        let mut head = [0; HEAD_BYTES];
        self.source.read_exact_at(&mut head, place)?;
        let Some(head) = Head::parse(&head) else { return Ok(None) };
        let bytes = HEAD_BYTES as u64 + u64::from(head.length);
        if head.length as usize > RECORD_BYTES_MAX || bytes > left || head.synced > place {
            return Ok(None);
        }
        *searched += bytes;
        let mut text = vec![0; head.length as usize];
        self.source.read_exact_at(&mut text, place + HEAD_BYTES as u64)?;
        Ok(head.fits(place, &text).then_some((place + bytes, head.synced)))
    }
}
