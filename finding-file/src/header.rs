//! Tar headers. The reader accepts only the exact bytes that the writer would write, so it trusts no field of a header.

use tar::{EntryType, Header};

use crate::error::Error;

/// Length of a header in bytes. Contents are padded to a multiple of this length.
pub(crate) const BLOCK: usize = 512;

/// Permission bits in the header of every member.
const MODE: u32 = 0o644;

/// Returns the header of a member. If the name does not fit a header, the header contains `long/` and the member's
/// number instead. Nothing is lost, because readers take names from the manifest.
pub(crate) fn of(name: &str, place: usize, bytes: u64) -> Result<[u8; BLOCK], Error> {
    let mut header = Header::new_ustar();
    // A failed `set_path` may leave a part of the name in the header, so a copy of the header is tried first.
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

/// Reads the header of the manifest, which is member number 0. Returns the manifest's length. `None` if any byte of the
/// header differs from the header that [`of`] makes for this name and length.
pub(crate) fn length(block: &[u8; BLOCK], name: &str) -> Option<u64> {
    let bytes = Header::from_byte_slice(block).entry_size().ok()?;
    (of(name, 0, bytes).ok()? == *block).then_some(bytes)
}

/// Returns the number of zero bytes that follow a content of this length.
pub(crate) fn padding(bytes: u64) -> usize {
    // The remainder is less than BLOCK, so the cast is exact.
    let over = (bytes % BLOCK as u64) as usize;
    if over == 0 { 0 } else { BLOCK - over }
}
