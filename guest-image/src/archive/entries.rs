//! Entries of an untrusted tar archive, each with bounds that are checked before the entry is read.
//!
//! The `tar` crate has two weaknesses. It keeps records of long names and attributes in memory without a bound. It also
//! returns a hole of a sparse file as zeros, however long the hole is. Therefore the crate reads the archive through
//! [`Metered`], which counts bytes. [`each`] adds the length of each file to a total before anything reads the file's
//! content. [`Metered`] also parses the PAX records, because the crate parses them incorrectly ([`super::records`]).

use super::Error;
use super::records::Records;
use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::rc::Rc;
use tar::{Entry, Header};

/// Maximum number of entries of an archive.
pub const ENTRIES_MAX: u64 = 1_000_000;

/// Maximum total length of one entry's headers and records, in bytes. Records are long names, attributes and maps of
/// sparse files.
pub const RECORDS_BYTES_MAX: u64 = 1 << 20;

/// Maximum length of a sparse file's map after its header, in bytes: room for 2,688 stored pieces. The time to read a
/// file grows with the square of the number of pieces.
pub const SPARSE_MAP_BYTES_MAX: u64 = 64 << 10;

/// Maximum total length of the maps of all sparse files in an archive, in bytes.
pub const SPARSE_MAPS_BYTES_MAX: u64 = 16 << 20;

/// Length of a header in bytes. Every part of an archive is padded to a multiple of this length.
const BLOCK_BYTES: usize = 512;

/// Ratio of the bound on an archive to the bound on its contents: headers, records and padding may be as long as the
/// contents.
const STREAM_PART: u64 = 2;

/// Numbers of bytes that may still be read before a bound is exceeded. The reader and the loop over entries share them.
#[derive(Debug)]
struct Meter {
    stream: Cell<u64>,
    /// Number of bytes that may still be read of the current entry's headers and records. `None` while the entry's
    /// content is read.
    records: Cell<Option<u64>>,
    head: RefCell<Head>,
}

/// Progress of reading an entry's headers and records.
#[derive(Debug, Default)]
struct Head {
    stage: Stage,
    records: Records,
    /// Number of bytes read after the last header of the entry. These bytes are the map of a sparse file.
    map_bytes: u64,
}

/// Position between the end of one entry's content and the start of the next entry's content.
#[derive(Debug)]
enum Stage {
    /// In the padding after the previous content, or in a header. The value is the part of the header that was read.
    Header(Vec<u8>),
    /// In PAX records, which were read completely. The first `given` bytes were returned to the `tar` crate.
    Records { bytes: Vec<u8>, given: usize },
    /// In a long name. The value is the number of bytes that remain.
    Name(u64),
    /// After the last header of the entry.
    Over,
}

impl Default for Stage {
    fn default() -> Self {
        Stage::Header(Vec::new())
    }
}

/// A reader that fails as soon as a bound is exceeded.
#[derive(Debug)]
pub(crate) struct Metered<R> {
    inner: R,
    meter: Rc<Meter>,
    /// Number of bytes returned so far, modulo [`BLOCK_BYTES`].
    in_block: usize,
}

/// Bound that a read has exceeded.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a bound is exceeded")]
pub(super) enum Refusal {
    Stream,
    Records,
}

impl<R: Read> Metered<R> {
    /// Reads bytes and subtracts their number from the remaining bounds.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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

    /// Reads headers and records. Stops at the end of the current part: padding, a header, records or a name.
    fn take_head(&mut self, head: &mut Head, buffer: &mut [u8]) -> io::Result<usize> {
        let upto =
            |buffer_bytes: usize, most: u64| buffer_bytes.min(usize::try_from(most).unwrap_or(usize::MAX));
        match &mut head.stage {
            // The padding of the previous part.
            Stage::Header(block) if block.is_empty() && self.in_block > 0 => {
                let most = buffer.len().min(BLOCK_BYTES - self.in_block);
                self.take(&mut buffer[..most])
            }
            Stage::Header(block) => {
                let most = buffer.len().min(BLOCK_BYTES - block.len());
                let read = self.take(&mut buffer[..most])?;
                block.extend_from_slice(&buffer[..read]);
                if block.len() == BLOCK_BYTES {
                    head.stage = self.behind(block, &mut head.records)?;
                }
                Ok(read)
            }
            Stage::Records { bytes, given } => {
                let read = buffer.len().min(bytes.len() - *given);
                buffer[..read].copy_from_slice(&bytes[*given..*given + read]);
                *given += read;
                if *given == bytes.len() {
                    head.stage = Stage::default();
                }
                Ok(read)
            }
            Stage::Name(left) => {
                let most = upto(buffer.len(), *left);
                let read = self.take(&mut buffer[..most])?;
                *left -= read as u64;
                if *left == 0 {
                    head.stage = Stage::default();
                }
                Ok(read)
            }
            Stage::Over => {
                let read = self.take(buffer)?;
                head.map_bytes += read as u64;
                Ok(read)
            }
        }
    }

    /// Returns the stage that follows the header in `block`. Reads PAX records completely, before the `tar` crate sees
    /// any byte of them.
    fn behind(&mut self, block: &[u8], records: &mut Records) -> io::Result<Stage> {
        let header = Header::from_byte_slice(block);
        let Ok(size) = header.entry_size() else { return Ok(Stage::Over) };
        let kind = header.entry_type();
        let extends = header.as_gnu().is_some() || header.as_ustar().is_some();
        let is_name = kind.is_gnu_longname() || kind.is_gnu_longlink();
        if !extends || !(is_name || kind.is_pax_local_extensions()) {
            return Ok(Stage::Over);
        }
        if size == 0 {
            return Ok(Stage::default());
        }
        if is_name {
            return Ok(Stage::Name(size));
        }
        let mut bytes = Vec::new();
        let mut piece = [0; 8 * BLOCK_BYTES];
        // Reads until the claimed length is reached, the archive ends, or a bound is exceeded.
        while (bytes.len() as u64) < size {
            let left = usize::try_from(size - bytes.len() as u64).unwrap_or(usize::MAX);
            let most = piece.len().min(left);
            match self.take(&mut piece[..most]) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        records.take(&mut bytes);
        Ok(if bytes.is_empty() { Stage::default() } else { Stage::Records { bytes, given: 0 } })
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let meter = Rc::clone(&self.meter);
        let read = match meter.records.get() {
            Some(_) => self.take_head(&mut meter.head.borrow_mut(), buffer)?,
            None => self.take(buffer)?,
        };
        self.in_block = (self.in_block + read) % BLOCK_BYTES;
        Ok(read)
    }
}

/// Calls `visit` for each entry. Fails if the contents of all entries together exceed `bytes_max` bytes. The holes of
/// sparse files count as content. The exception is the PAX format of sparse files ([`super::sparse`]): the `tar` crate
/// does not know this format, so only the stored bytes count.
///
/// # Errors
/// Returns an error if the archive is damaged or exceeds a bound, or if `visit` fails.
pub(crate) fn each<R: Read, E: From<Error>>(
    reader: R,
    bytes_max: u64,
    mut visit: impl FnMut(&mut Entry<'_, Metered<R>>, &Records) -> Result<(), E>,
) -> Result<(), E> {
    let stream_max = bytes_max.saturating_mul(STREAM_PART);
    let meter = Rc::new(Meter {
        stream: Cell::new(stream_max),
        records: Cell::new(None),
        head: RefCell::new(Head::default()),
    });
    let classify = |error: io::Error| match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Refusal::Stream) => Error::Stream { most: stream_max },
        Some(Refusal::Records) => Error::Records,
        None => Error::Read(error),
    };
    let mut archive = tar::Archive::new(Metered { inner: reader, meter: Rc::clone(&meter), in_block: 0 });
    let mut entries = archive.entries().map_err(classify)?;
    let (mut count, mut bytes, mut maps_bytes) = (0, 0_u64, 0_u64);
    loop {
        meter.records.set(Some(RECORDS_BYTES_MAX));
        meter.head.replace(Head::default());
        let Some(entry) = entries.next() else { return Ok(()) };
        let mut entry = entry.map_err(classify)?;
        meter.records.set(None);
        let Head { records, map_bytes, .. } = meter.head.take();
        maps_bytes = maps_bytes.saturating_add(map_bytes);
        for (bytes, most) in [(map_bytes, SPARSE_MAP_BYTES_MAX), (maps_bytes, SPARSE_MAPS_BYTES_MAX)] {
            if bytes > most {
                return Err(Error::SparseMap { path: name(&entry), most }.into());
            }
        }
        if records.damaged {
            return Err(Error::Pax { path: name(&entry) }.into());
        }
        count += 1;
        if count > ENTRIES_MAX {
            return Err(Error::TooMany.into());
        }
        bytes = bytes.saturating_add(entry.size());
        if bytes > bytes_max {
            return Err(Error::TooLong { path: name(&entry), most: bytes_max }.into());
        }
        visit(&mut entry, &records)?;
        // Reads the rest of the content here. Otherwise the `tar` crate would skip it on the way to the next entry, and
        // it would be counted as that entry's headers.
        io::copy(&mut entry, &mut io::sink()).map_err(classify)?;
    }
}

/// Returns at most the first 256 bytes of an entry's path, escaped for messages.
pub(super) fn name<R: Read>(entry: &Entry<'_, R>) -> String {
    const SHOWN: usize = 256;
    let path = entry.path_bytes();
    path[..path.len().min(SHOWN)].escape_ascii().to_string()
}
