//! The entries of a tar archive that is not trusted, each bounded before it is read.
//!
//! The `tar` crate keeps records of long names and attributes in memory, whatever they claim, and reads holes of sparse
//! files as zeros without an end. So the reader below it counts, and sizes are added up before anything is read.

use super::Error;
use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use tar::Entry;

/// Most entries of an archive.
pub const ENTRIES_MAX: u64 = 1_000_000;

/// Most bytes of the headers and records of one entry: long names, attributes, maps of sparse files.
pub const RECORDS_BYTES_MAX: u64 = 1 << 20;

/// How much of the stream may be headers, records and padding: as much as the contents.
const STREAM_PART: u64 = 2;

/// What may still be read.
#[derive(Debug)]
struct Meter {
    stream: Cell<u64>,
    /// Only while the headers and records of an entry are read.
    records: Cell<Option<u64>>,
}

/// A reader that refuses to give more than its meter has.
#[derive(Debug)]
pub(crate) struct Metered<R> {
    inner: R,
    meter: Rc<Meter>,
}

/// Why a meter refused.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a bound is exceeded")]
pub(super) enum Refusal {
    Stream,
    Records,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let refuse = |refusal| Err(io::Error::other(refusal));
        let Some(stream) = self.meter.stream.get().checked_sub(read as u64) else {
            return refuse(Refusal::Stream);
        };
        self.meter.stream.set(stream);
        if let Some(records) = self.meter.records.get() {
            let Some(left) = records.checked_sub(read as u64) else { return refuse(Refusal::Records) };
            self.meter.records.set(Some(left));
        }
        Ok(read)
    }
}

/// Calls `visit` for each entry. The contents of all entries together have at most `bytes_max` bytes, holes included.
///
/// # Errors
/// The archive is damaged, exceeds a bound, or `visit` fails.
pub(crate) fn each<R: Read, E: From<Error>>(
    reader: R,
    bytes_max: u64,
    mut visit: impl FnMut(&mut Entry<'_, Metered<R>>) -> Result<(), E>,
) -> Result<(), E> {
    let stream_max = bytes_max.saturating_mul(STREAM_PART);
    let meter = Rc::new(Meter { stream: Cell::new(stream_max), records: Cell::new(None) });
    let told = |error: io::Error| match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Refusal::Stream) => Error::Stream { most: stream_max },
        Some(Refusal::Records) => Error::Records,
        None => Error::Read(error),
    };
    let mut archive = tar::Archive::new(Metered { inner: reader, meter: Rc::clone(&meter) });
    let mut entries = archive.entries().map_err(told)?;
    let (mut count, mut bytes) = (0, 0_u64);
    loop {
        meter.records.set(Some(RECORDS_BYTES_MAX));
        let Some(entry) = entries.next() else { return Ok(()) };
        let mut entry = entry.map_err(told)?;
        meter.records.set(None);
        count += 1;
        if count > ENTRIES_MAX {
            return Err(Error::TooMany.into());
        }
        bytes = bytes.saturating_add(entry.size());
        if bytes > bytes_max {
            return Err(Error::TooLong { path: name(&entry), most: bytes_max }.into());
        }
        visit(&mut entry)?;
        // What is left of an entry is read here, so that the next one's records are all that is read for it.
        io::copy(&mut entry, &mut io::sink()).map_err(told)?;
    }
}

/// An entry's path, for messages.
pub(super) fn name<R: Read>(entry: &Entry<'_, R>) -> String {
    const SHOWN: usize = 256;
    let path = entry.path_bytes();
    path[..path.len().min(SHOWN)].escape_ascii().to_string()
}
