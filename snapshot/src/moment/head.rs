//! The head of a moment file. It describes the moment, so that a list of moments needs only the heads. It also has the
//! sizes and the hash of the directory (the file's table of contents).

use std::path::Path;

use super::{
    DIRECTORY_BYTES_MAX, ENTRIES_MAX, KIND, LABEL_BYTES_MAX, MAGIC, MOMENT_FORMAT, MomentHeader, MomentInfo,
    STATE_BYTES_MAX,
};
use crate::file::wire::Reader;
use crate::file::{FileError, check_kind, checksum};

/// Offset of the head's checksum. The checksum covers the bytes before it, and the bytes from `FIELDS_AT` to the end of
/// the head.
const CHECKSUM_AT: usize = 16;
const FIELDS_AT: usize = 48;
/// Size of a head with an empty label, in bytes.
const FIXED_BYTES: usize = FIELDS_AT + 4 + 8 + 8 + 32 + 8 + 8 + 8 + 8 + 8 + 8 + 32 + 4;

/// Decoded head of a moment file.
pub(super) struct Head {
    pub(super) header: MomentHeader,
    pub(super) directory: Directory,
    pub(super) bytes: u64,
}

/// Sizes and hash of the compressed directory.
#[derive(Clone, Copy)]
pub(super) struct Directory {
    pub(super) stored: u64,
    pub(super) bytes: u64,
    pub(super) hash: [u8; 32],
}

/// Returns the size in bytes of a head with this label.
pub(super) fn bytes_for(label: &str) -> u64 {
    (FIXED_BYTES + label.len()) as u64
}

/// Encodes the head.
pub(super) fn encode(header: &MomentHeader, directory: &Directory) -> Vec<u8> {
    let MomentHeader { info, state_bytes, delta_pages, distinct_pages, file_bytes } = header;
    let mut bytes = Vec::with_capacity(FIXED_BYTES + info.label.len());
    bytes.extend(MAGIC);
    bytes.extend(MOMENT_FORMAT.to_le_bytes());
    bytes.extend((bytes_for(&info.label) as u32).to_le_bytes());
    bytes.extend([0; 32]);
    bytes.extend(info.state_version.to_le_bytes());
    bytes.extend(info.vtime.to_le_bytes());
    bytes.extend(info.seed.to_le_bytes());
    bytes.extend(info.key);
    for count in [state_bytes, delta_pages, distinct_pages, file_bytes, &directory.stored, &directory.bytes] {
        bytes.extend(count.to_le_bytes());
    }
    bytes.extend(directory.hash);
    bytes.extend((info.label.len() as u32).to_le_bytes());
    bytes.extend(info.label.as_bytes());
    let sum = checksum(&bytes[..CHECKSUM_AT], &bytes[FIELDS_AT..]);
    bytes[CHECKSUM_AT..FIELDS_AT].copy_from_slice(&sum);
    bytes
}

/// Reads and verifies the head, and verifies the length of the file.
pub(super) fn read(path: &Path, file: &[u8]) -> Result<Head, FileError> {
    check_kind(path, file, KIND, MAGIC, MOMENT_FORMAT)?;
    let damaged = |what: &str| FileError::damaged(path, what);
    let short = || damaged("it ends within its head");
    let len = Reader::new(&file[MAGIC.len() + 4..]).u32().ok_or_else(short)? as usize;
    if !(FIXED_BYTES..=FIXED_BYTES + LABEL_BYTES_MAX).contains(&len) {
        return Err(damaged("its head has an impossible length"));
    }
    let bytes = file.get(..len).ok_or_else(short)?;
    let (before, rest) = bytes.split_at(CHECKSUM_AT);
    let (stated, fields) = rest.split_at(FIELDS_AT - CHECKSUM_AT);
    if checksum(before, fields) != stated {
        return Err(damaged("the checksum of its head does not match"));
    }
    let head = decode(fields, len).ok_or_else(|| damaged("its head is invalid"))?;
    let MomentHeader { state_bytes, delta_pages, distinct_pages, file_bytes, .. } = head.header;
    if file.len() as u64 != file_bytes {
        return Err(damaged(&format!("it has {} bytes instead of {file_bytes}", file.len())));
    }
    let directory = head.directory;
    let possible = state_bytes <= STATE_BYTES_MAX
        && delta_pages <= ENTRIES_MAX
        && distinct_pages <= delta_pages
        && directory.bytes <= DIRECTORY_BYTES_MAX
        && directory.stored <= file_bytes - head.bytes;
    if !possible {
        return Err(damaged("its head has impossible counts"));
    }
    Ok(head)
}

fn decode(fields: &[u8], len: usize) -> Option<Head> {
    let mut reader = Reader::new(fields);
    let state_version = reader.u32()?;
    let (vtime, seed, key) = (reader.u64()?, reader.u64()?, reader.array()?);
    let (state_bytes, delta_pages, distinct_pages, file_bytes) =
        (reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?);
    let directory = Directory { stored: reader.u64()?, bytes: reader.u64()?, hash: reader.array()? };
    let label = reader.u32()? as usize;
    let label = reader.text(label)?.to_owned();
    if !reader.is_empty() {
        return None;
    }
    let info = MomentInfo { label, vtime, seed, key, state_version };
    let header = MomentHeader { info, state_bytes, delta_pages, distinct_pages, file_bytes };
    Some(Head { header, directory, bytes: len as u64 })
}
