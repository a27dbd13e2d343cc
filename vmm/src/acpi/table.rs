//! System description tables: a header, content, and a checksum over both (ACPI 6.5, section 5.2.6).

/// OEM ID: the maker of the machine.
pub(super) const OEM: &[u8; 6] = b"EVERET";
const OEM_TABLE: &[u8; 8] = b"EVERETT1";
const OEM_REVISION: u32 = 1;
/// ID and revision of the program that made the table. Guests print them, so all versions of Everett use the same.
const CREATOR: &[u8; 8] = b"RVAT\0\0\0\x01";
const LENGTH_OFFSET: usize = 4;
const CHECKSUM_OFFSET: usize = 9;

/// A table under construction.
pub(super) struct Table {
    bytes: Vec<u8>,
}

impl Table {
    /// Begins a table with this signature.
    pub(super) fn new(signature: [u8; 4], revision: u8) -> Table {
        // The length (which `finish` writes), the revision, and the checksum.
        let start = [0, 0, 0, 0, revision, 0];
        let mut bytes = [&signature[..], &start, OEM, OEM_TABLE].concat();
        bytes.extend(OEM_REVISION.to_le_bytes());
        bytes.extend(CREATOR);
        Table { bytes }
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Table {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends zeroes up to a total length in bytes, which includes the header.
    pub(super) fn zeroes(mut self, length: usize) -> Table {
        self.bytes.resize(length, 0);
        self
    }

    /// Writes bytes at an offset.
    pub(super) fn set<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        self.bytes[offset..offset + N].copy_from_slice(&bytes);
    }

    /// Returns the table after setting its length and checksum.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // The length fits, because tables have at most some kilobytes.
        let length = self.bytes.len() as u32;
        self.set(LENGTH_OFFSET, length.to_le_bytes());
        self.bytes[CHECKSUM_OFFSET] = checksum(&self.bytes);
        self.bytes
    }
}

/// Returns the byte that makes the sum of all bytes 0, modulo 256.
pub(super) fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_sub(*byte))
}
