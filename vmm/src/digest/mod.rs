//! Digests: 256-bit hashes of states.
//!
//! In clock mode `insn`, the digest of a machine covers everything that determines its further execution: registers,
//! RAM, devices, timers, random streams, clock and disks. In clock modes `exit` and `branch` it leaves out RAM and some
//! registers (`machine/digest.rs`). Digests are incremental: to compute a digest, Everett hashes only the pages and
//! blocks that were written since the last digest. This does not affect the machine's execution.
//!
//! - `leaves`: the hash of a set of pages or blocks
//! - `registers`: the registers that digests and comparisons cover
//!
//! Elsewhere: trails of digests and the search for the first difference ([`crate::divergence`]).

pub(crate) mod leaves;
pub mod registers;

pub use leaves::LeafSum;

use std::fmt;

use serde::{Deserialize, Serialize};

use leaves::Leaves;

/// A BLAKE3 digest. It is displayed as its first eight bytes in hex; `{:#}` shows all 32 bytes.
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

/// Hashes that later digests reuse.
#[derive(Debug, Default)]
pub(crate) struct DigestCache {
    pub(crate) memory: Leaves,
}

/// Digests of the parts of a machine or world, each with its name, in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// Names and digests. Names are "cpu", "cpu extended" (unless the CPU model is `v2`), "devices", "memory", "disk 0" and so
    /// on. The model itself is in no part: the identity of a world has it.
    pub parts: Vec<(String, Digest)>,
}

impl Breakdown {
    /// Returns the digest of all parts together.
    pub fn total(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for (name, digest) in &self.parts {
            hasher.update(name.as_bytes()).update(&[0]).update(&digest.0);
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// Returns the digest of a value's serialised form. Equal values have equal forms, because all maps in them are
/// ordered.
pub(crate) fn serialized<T: Serialize>(value: &T) -> Digest {
    // Moments use the same serialisation, so it is compiled once per type.
    let bytes = postcard::to_stdvec(value).expect("a state is plain data, which postcard can always write");
    Digest(*blake3::hash(&bytes).as_bytes())
}
