//! Finding files: single files with which another host can replay a finding. A finding file is a tar archive,
//! compressed with zstd, whose first member is a list of the other members.
//!
//! ```text
//! manifest.json     format, version, what the file is about, and name, length and BLAKE3 of each other member
//! …                 the members, in the order of the manifest
//! ```
//!
//! - `manifest`: the manifest, and the rules for members' names; `header`: tar headers
//! - [`write`](write()): writes a file; [`reader`]: reads and verifies one; [`limits`]: all bounds; [`error`]: reasons
//!   why a file cannot be read or written
//!
//! Not here: which files a finding file contains, and the paths to which they are unpacked (`everett-session`).
//!
//! **Invariants.**
//! - Equal inputs make equal bytes. Headers have no times, owners or permissions from the host.
//! - A file may come from a hostile author. The names, order, lengths and digests of the members must be those of the
//!   manifest, otherwise reading fails. Therefore only members in the manifest are ever unpacked. Links, folders and
//!   extensions are not allowed.
//! - [`limits`] bounds the memory that reading takes, and the unpacked length. The reader checks the unpacked length
//!   before it unpacks anything.

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

/// First bytes of a zstd frame, and therefore of a finding file.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

#[cfg(test)]
mod tests;
