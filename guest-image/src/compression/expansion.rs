//! Bound on the ratio between a stream's decompressed and compressed length.
//!
//! A megabyte of Zstandard or bzip2 can decompress to tens of gigabytes of equal bytes. A megabyte of gzip decompresses
//! to at most 1,032 megabytes, because the shortest code for 258 bytes has two bits. The bound is a little higher, so
//! no gzip stream exceeds it.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// Maximum number of decompressed bytes for each compressed byte. A stream may exceed it by [`FREE_BYTES`] in total.
pub const EXPANSION_MAX: u64 = 1_100;

/// Number of decompressed bytes that a stream of any length may have.
pub const FREE_BYTES: u64 = 256 << 20;

/// Error of a stream that decompresses to more bytes than the bound allows.
#[derive(Debug, thiserror::Error)]
#[error("it unpacks to more than {EXPANSION_MAX} times its length and {} MiB", FREE_BYTES >> 20)]
pub struct Expanded;

impl Expanded {
    /// Returns true if `error` is an [`Expanded`].
    #[must_use]
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Expanded>())
    }
}

/// A compressed stream that counts the bytes that its decoder has read.
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

/// Reader of decompressed bytes. Reading fails as soon as the bytes exceed the bound.
struct Bounded<D> {
    decoder: D,
    taken: Rc<Cell<u64>>,
    given: u64,
    /// Number of bytes that are always allowed: [`FREE_BYTES`], or fewer in tests.
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

/// Calls `make` to put a decoder on a stream. Returns the decoder's reader, with the bound.
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
        /// Value of [`FREE_BYTES`](super::FREE_BYTES) for streams of the current thread.
        pub(in super::super) static FREE: Cell<u64> = const { Cell::new(super::FREE_BYTES) };
    }
}
