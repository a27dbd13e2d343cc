//! Digests, trails and the search for the first difference between two runs.
//!
//! A digest covers everything that decides what happens next: registers, RAM, devices, timers, streams, clock and disks. In clock
//! modes `exit` and `branch` it is the same on all engines, so RAM is not in it (when page tables note accesses is a processor's own
//! business, and some note more than others), nor are registers in which makes of processors differ ([`registers`]), nor are the
//! registers of a CPU that came to its end within an instruction. It is
//! incremental: only pages and blocks written since the last one are hashed. Taking one changes nothing: it is an
//! observer (`tests` runs with none, one and a thousand).
//!
//! - `registers`: which registers are covered and compared
//! - `leaves`: the hash of a set of pages or blocks
//! - `trail`: digests at fixed vtimes
//! - `diff`: two machines' states, named and side by side
//! - `bisect`: the first instruction at which two runs part

pub mod bisect;
pub mod diff;
pub(crate) mod leaves;
pub mod registers;
pub mod trail;

#[cfg(test)]
mod tests;

pub use bisect::{Cause, Divergence, Side, first_difference};
pub use diff::{Difference, differences};
pub use leaves::LeafSum;
pub use trail::Trail;

use std::fmt;

use everett_snapshot::PageHash;
use serde::{Deserialize, Serialize};

use crate::clock::ClockMode;
use crate::disk::{BLOCK, Disk};
use crate::engine::Engine;
use crate::layout::PAGE;
use crate::machine::Machine;
use leaves::Leaves;

/// A blake3 digest. Shown as its first eight bytes in hex; `{:#}` shows all.
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

/// Hashes that stay valid from one digest to the next.
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
    /// The digest of all parts.
    pub fn total(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for (name, digest) in &self.parts {
            hasher.update(name.as_bytes()).update(&[0]).update(&digest.0);
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

impl<E: Engine> Machine<E> {
    /// The digest of everything that decides what happens next.
    pub fn digest(&mut self) -> Digest {
        self.breakdown().total()
    }

    /// The digests of the parts.
    pub fn breakdown(&mut self) -> Breakdown {
        let cpu = self.compared_registers();
        let memory = match self.clock_mode() {
            ClockMode::Insn => {
                self.update_memory_hashes();
                Some(("memory".to_owned(), self.digest.memory.sum().digest()))
            }
            ClockMode::Exit | ClockMode::Branch => None,
        };
        self.note_failure();
        let mut parts =
            vec![("cpu".to_owned(), serialized(&cpu)), ("devices".to_owned(), serialized(&self.state))];
        parts.extend(memory);
        parts.extend(self.state.legacy.as_ref().map(|legacy| ("legacy".to_owned(), serialized(legacy))));
        parts.extend(self.state.slice.as_ref().map(|slice| ("slice".to_owned(), serialized(slice))));
        let disks = self.disk_digests();
        parts.extend(disks.into_iter().enumerate().map(|(i, digest)| (format!("disk {i}"), digest)));
        Breakdown { parts }
    }

    /// The digests of the disks. The engine is not involved.
    pub(crate) fn disk_digests(&mut self) -> Vec<Digest> {
        self.disks.iter_mut().map(Disk::digest).collect()
    }

    /// Hash the pages that were written since the last time.
    pub(crate) fn update_memory_hashes(&mut self) {
        for page in self.take_written_pages() {
            // An engine names only pages of RAM.
            let Some(content) = self.ram.page(page) else { continue };
            // A page of zeroes has no hash, so that one that was never written equals one that is zero again.
            self.digest.memory.set(page, PageHash::of_nonzero(content), self.memory.hash(page));
        }
    }
}

const _: () = assert!(BLOCK == PAGE);

/// Serialised state has one form: every map in it is ordered.
pub(crate) fn serialized<T: Serialize>(value: &T) -> Digest {
    let mut hasher = blake3::Hasher::new();
    // A hasher takes any amount of bytes, and none of the state types can fail to serialise.
    let written = postcard::to_io(value, &mut hasher).is_ok();
    debug_assert!(written);
    Digest(*hasher.finalize().as_bytes())
}
