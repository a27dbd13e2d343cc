//! Digests: 256-bit hashes of states.
//!
//! The digest of a machine covers everything that determines its further execution: registers, RAM, devices, timers,
//! streams, clock and disks (`machine/digest.rs`). It is incremental: only pages and blocks written since the last
//! one are hashed. It changes nothing in the machine.
//!
//! - `leaves`: the hash of a set of pages or blocks
//! - `registers`: the registers that are covered and compared
//!
//! Not here: trails of digests and the search for the first difference ([`crate::divergence`]).

pub(crate) mod leaves;
pub mod registers;

pub use leaves::LeafSum;

use std::fmt;

use serde::{Deserialize, Serialize};

use leaves::Leaves;

/// A BLAKE3 digest. Displayed as its first eight bytes in hex; `{:#}` shows all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() { 32 } else { 8 };
        self.0[..shown].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Hashes that remain valid from one digest to the next.
#[derive(Debug, Default)]
pub(crate) struct DigestCache {
    pub(crate) memory: Leaves,
}

/// Digests of the parts of a machine, by name, in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// "cpu", "devices", "memory", "disk 0" and so on.
    pub parts: Vec<(String, Digest)>,
}

impl Breakdown {
    /// Returns the digest of all parts.
    pub fn total(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for (name, digest) in &self.parts {
            hasher.update(name.as_bytes()).update(&[0]).update(&digest.0);
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// Returns the digest of a value's serialised form. The form is unique, because all maps of the state are ordered.
pub(crate) fn serialized<T: Serialize>(value: &T) -> Digest {
    // Moments use the same form, so the serialisation of each type is compiled once.
    let bytes = postcard::to_stdvec(value).expect("a state is plain data, which postcard can always write");
    Digest(*blake3::hash(&bytes).as_bytes())
}
