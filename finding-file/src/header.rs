//! Tar headers. The reader accepts only the bytes that the writer writes, so no field of a header is ever trusted.

use tar::{EntryType, Header};

use crate::error::Error;

/// Length of a header, and of the unit to which contents are padded, in bytes.
pub(crate) const BLOCK: usize = 512;

/// Mode of every member.
const MODE: u32 = 0o644;

/// Returns the header of a member. A name that does not fit a header is replaced by its place in the manifest, since the
/// manifest has the name.
pub(crate) fn of(name: &str, place: usize, bytes: u64) -> Result<[u8; BLOCK], Error> {
    let mut header = Header::new_ustar();
    // On an error, a part of the name may be in the header.
    let fits = header.clone().set_path(name).is_ok();
    let shown = if fits { name.to_owned() } else { format!("long/{place}") };
    header.set_path(shown).map_err(Error::io(name))?;
    header.set_entry_type(EntryType::Regular);
    header.set_mode(MODE);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes);
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// Returns the length of the member with this header, if it is the header of a member of this name.
pub(crate) fn length(block: &[u8; BLOCK], name: &str) -> Option<u64> {
    let bytes = Header::from_byte_slice(block).entry_size().ok()?;
    (of(name, 0, bytes).ok()? == *block).then_some(bytes)
}

/// Returns the number of zeros after a content of this length.
pub(crate) fn padding(bytes: u64) -> usize {
    // The remainder is less than BLOCK.
    let over = (bytes % BLOCK as u64) as usize;
    if over == 0 { 0 } else { BLOCK - over }
}
