//! Little-endian numbers in byte strings. Reading never panics, and returns `None` if bytes are missing.

/// Maximum length of a varint (LEB128) in bytes.
const VARINT_BYTES_MAX: u32 = 10;

/// Reads numbers and strings from the front of a byte string.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    /// Reads a varint that fits into a `u64`.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for i in 0..VARINT_BYTES_MAX {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * i);
            if shifted >> (7 * i) != bits {
                return None;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
    /// Reads `len` bytes as UTF-8.
    pub(crate) fn text(&mut self, len: usize) -> Option<&'a str> {
        std::str::from_utf8(self.take(len)?).ok()
    }
}

/// Appends a number as a varint.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_come_back(values in proptest::collection::vec(prop_oneof![any::<u64>(), 0u64..300], 0..20)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|&value| put_varint(&mut bytes, value));
            let mut reader = Reader::new(&bytes);
            for value in values {
                prop_assert_eq!(reader.varint(), Some(value));
            }
            prop_assert!(reader.is_empty());
        }
        /// A number that is read from arbitrary bytes survives encoding and decoding. Its encoding is no longer than
        /// these bytes.
        #[test]
        fn garbage_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut reader = Reader::new(&bytes);
            let read: Vec<u64> = std::iter::from_fn(|| reader.varint()).collect();
            let mut written = Vec::new();
            read.iter().for_each(|&value| put_varint(&mut written, value));
            prop_assert!(written.len() <= bytes.len());
            let mut reader = Reader::new(&written);
            prop_assert_eq!(std::iter::from_fn(|| reader.varint()).collect::<Vec<u64>>(), read);
        }
    }

    #[test]
    fn varints_are_bounded() {
        assert_eq!(Reader::new(&[0xff; 20]).varint(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(), None);
        assert_eq!(Reader::new(&[0x80]).varint(), None);
    }
}
