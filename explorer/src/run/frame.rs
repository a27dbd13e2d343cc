//! Frames of records. A record is the result of one branch. Its frame is the form in which `branches.bin` stores it: a
//! head of 28 bytes, followed by the encoded record. The encoded record is called the record's text.
//!
//! | bytes | contents |
//! |---|---|
//! | 4 | `89 45 76 42` |
//! | 4 | length of the record's text |
//! | 4 | number of the record in the file, from 1 |
//! | 8 | number of bytes of the file that were durable when the record was written |
//! | 8 | first bytes of a BLAKE3 hash over the offset in the file, the fields above and the record's text |
//!
//! Numbers are little-endian. The hash detects any changed byte. It also makes the record invalid at any other offset.

/// First bytes of each frame.
pub(super) const MAGIC: [u8; 4] = *b"\x89EvB";
/// Length of a head, in bytes.
pub(super) const HEAD_BYTES: usize = 28;
const SUM_BYTES: usize = 8;

/// Head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Length of the record's text, in bytes.
    pub(super) length: u32,
    /// Number of the record in the file, from 1.
    pub(super) number: u32,
    /// Number of bytes of the file that were durable (synced) when the record was written.
    pub(super) synced: u64,
    sum: [u8; SUM_BYTES],
}

/// Returns the frame of a record for this offset of the file. Returns `None` if the text is too long for a frame.
pub(super) fn encode(offset: u64, number: u32, synced: u64, text: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(text.len()).ok()?;
    let mut head = Head { length, number, synced, sum: [0; SUM_BYTES] };
    head.sum = sum(offset, &head, text);
    let mut frame = Vec::with_capacity(HEAD_BYTES + text.len());
    frame.extend(MAGIC);
    frame.extend(head.length.to_le_bytes());
    frame.extend(head.number.to_le_bytes());
    frame.extend(head.synced.to_le_bytes());
    frame.extend(head.sum);
    frame.extend(text);
    Some(frame)
}

impl Head {
    /// Parses a head. Returns `None` if the bytes do not start with the magic number.
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (synced, rest) = rest.split_first_chunk::<8>()?;
        let (sum, _) = rest.split_first_chunk::<SUM_BYTES>()?;
        (*magic == MAGIC).then_some(Head {
            length: u32::from_le_bytes(*length),
            number: u32::from_le_bytes(*number),
            synced: u64::from_le_bytes(*synced),
            sum: *sum,
        })
    }

    /// True if this head and this text form a valid frame at this offset of the file.
    pub(super) fn fits(&self, offset: u64, text: &[u8]) -> bool {
        self.length as usize == text.len() && self.sum == sum(offset, self, text)
    }
}

fn sum(offset: u64, head: &Head, text: &[u8]) -> [u8; SUM_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(&head.length.to_le_bytes());
    hasher.update(&head.number.to_le_bytes());
    hasher.update(&head.synced.to_le_bytes());
    hasher.update(text);
    let mut sum = [0; SUM_BYTES];
    hasher.finalize_xof().fill(&mut sum);
    sum
}
