//! Finding files: a tar archive, packed with zstd, whose first member says what the others are.
//!
//! ```text
//! manifest.json     format, version, what the file is about, and name, length and BLAKE3 of each other member
//! …                 the members, in the order of the manifest
//! ```
//!
//! - `manifest`: the manifest, and the names that members can have; `header`: tar headers
//! - [`write`](write()): the writer; [`reader`]: the reader; [`limits`]: every bound by name; [`error`]: errors
//!
//! Not here: what a finding consists of (`everett-session`), and the places of unpacked members.
//!
//! **Invariants.**
//! - Equal inputs make equal bytes. Headers have no times, owners or modes of the host.
//! - A file is a stranger's. Members have the names, the order, the lengths and the digests of the manifest, or reading
//!   ends in an error; so nothing that is not in the manifest is ever unpacked. There are no links, folders or extensions.
//! - Memory is bounded by [`limits`], and so is the unpacked length, before anything is unpacked.

pub mod error;
mod header;
pub mod limits;
mod manifest;
pub mod reader;
mod write;

pub use error::Error;
pub use manifest::{Manifest, Member, check_name};
pub use reader::Reader;
pub use write::{Content, MemberSource, write};

/// First bytes of a zstd frame, and so of a finding file.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

#[cfg(test)]
mod tests;
