//! The bound on how many bytes a compressed stream becomes.
//!
//! A megabyte of Zstandard or bzip2 can hold tens of gigabytes of equal bytes. A megabyte of gzip holds at most 1,032
//! megabytes: its shortest code for 258 bytes has two bits. The bound is a little above that, so it refuses no gzip.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// Maximum number of bytes that each compressed byte may become, beyond [`FREE_BYTES`].
pub const EXPANSION_MAX: u64 = 1_100;

/// Number of bytes that a stream of any length may become.
pub const FREE_BYTES: u64 = 256 << 20;

/// Error of a stream that becomes too many bytes.
#[derive(Debug, thiserror::Error)]
#[error("it unpacks to more than {EXPANSION_MAX} times its length and {} MiB", FREE_BYTES >> 20)]
pub struct Expanded;

impl Expanded {
    /// Returns true if an error of reading is this one.
    #[must_use]
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Expanded>())
    }
}

/// A compressed stream that counts the bytes that its decoder has taken.
pub(super) struct Counted<R> {
    inner: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.taken.set(self.taken.get() + length as u64);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.taken.set(self.taken.get() + length as u64);
        self.inner.consume(length);
    }
}

/// The bytes of a decoder, up to the bound.
struct Bounded<D> {
    decoder: D,
    taken: Rc<Cell<u64>>,
    given: u64,
    /// [`FREE_BYTES`], or less in tests.
    free: u64,
}

impl<D: Read> Read for Bounded<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.decoder.read(buffer)?;
        self.given += length as u64;
        let most = self.taken.get().saturating_mul(EXPANSION_MAX).saturating_add(self.free);
        if self.given > most {
            return Err(io::Error::other(Expanded));
        }
        Ok(length)
    }
}

/// Returns the reader of a decoder that `make` puts on a stream, with the bound.
pub(super) fn bounded<'a, R: BufRead + 'a, D: Read + 'a>(
    packed: R,
    make: impl FnOnce(Counted<R>) -> io::Result<D>,
) -> io::Result<Box<dyn Read + 'a>> {
    let taken = Rc::new(Cell::new(0));
    let decoder = make(Counted { inner: packed, taken: Rc::clone(&taken) })?;
    #[cfg(test)]
    let free = tests::FREE.get();
    #[cfg(not(test))]
    let free = FREE_BYTES;
    Ok(Box::new(Bounded { decoder, taken, given: 0, free }))
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// The bytes that are free for streams of this thread.
        pub(in super::super) static FREE: Cell<u64> = const { Cell::new(super::FREE_BYTES) };
    }
}
