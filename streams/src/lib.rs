//! Random numbers: one ChaCha20 stream for each purpose of each owner. Drawing more from one stream does not affect
//! the others.
//!
//! - this file: [`Lineage`] and [`Streams`]
//! - `seed`: [`Seed`] and [`BootSeed`], from which lineages are derived; `key`: the keys of streams
//! - `owner`: the owners of streams
//! - `purpose`: the purposes of streams
//! - `encode`: the derivation of keys
//! - `position`: the form in which moments contain a stream
//!
//! A stream's key is derived in steps: seed -> lineage -> lineage of a child, for each fork -> key of an owner -> key
//! of a purpose. Each step has its own domain, and every part is preceded by its length. Therefore no node name can
//! be mistaken for another owner, and no owner for a purpose. Boots have a domain of their own: a boot and the timeline
//! that begins after it draw different values even if both seeds are the same number.
//!
//! The state of a stream is its key *and* its word position. Everything that decides a guest's computation
//! draws from these streams only.

mod encode;
mod key;
mod owner;
mod position;
mod purpose;
mod seed;

use std::collections::BTreeMap;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;
use serde::{Deserialize, Serialize};

use encode::{Encoder, context};
use key::Key;
pub use owner::{Owner, OwnerKind};
use position::Stream;
pub use purpose::{LinkDraw, Purpose};
pub use seed::{BootSeed, Seed};

/// Root of all keys of a timeline or of a boot. A timeline's root is a function of its seed and of the forks that led
/// to it. A boot's root is a function of the boot seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage(Key);

impl Lineage {
    /// Returns the lineage of a timeline without forks.
    #[must_use]
    pub fn new(seed: Seed) -> Lineage {
        Lineage::of_number(context::SEED, seed.number())
    }

    /// Returns the lineage of boots, from power-on to *ready*, at the first start and after a power loss.
    #[must_use]
    pub fn boot(seed: BootSeed) -> Lineage {
        Lineage::of_number(context::BOOT, seed.number())
    }

    fn of_number(context: &str, number: u64) -> Lineage {
        let mut encoder = Encoder::new(context);
        encoder.part(&number.to_le_bytes());
        Lineage(encoder.key())
    }

    /// Returns the lineage of a child of a fork at `vtime_ns`.
    #[must_use]
    pub fn child(&self, vtime_ns: u64, child: u64) -> Lineage {
        let mut encoder = Encoder::new(context::CHILD);
        encoder.part(self.0.as_bytes());
        encoder.part(&vtime_ns.to_le_bytes());
        encoder.part(&child.to_le_bytes());
        Lineage(encoder.key())
    }
}

/// Streams of one owner. After a fork, the child has new streams, from its own lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    key: Key,
    open: BTreeMap<Purpose, Stream>,
}

impl Streams {
    /// Creates the streams of an owner in a timeline, each at its beginning.
    #[must_use]
    pub fn new(lineage: &Lineage, owner: Owner<'_>) -> Streams {
        let mut encoder = Encoder::new(context::OWNER);
        encoder.part(lineage.0.as_bytes());
        owner.encode(&mut encoder);
        Streams { key: encoder.key(), open: BTreeMap::new() }
    }

    /// Returns the stream for a purpose, at its current position.
    pub fn get(&mut self, purpose: Purpose) -> &mut ChaCha20Rng {
        let key = &self.key;
        let stream = self.open.entry(purpose).or_insert_with(|| {
            let mut encoder = Encoder::new(context::PURPOSE);
            encoder.part(key.as_bytes());
            purpose.encode(&mut encoder);
            Stream(encoder.key().stream())
        });
        &mut stream.0
    }

    /// Fills `buf` with random bytes. A final partial word is drawn whole and its remaining bytes are dropped.
    pub fn fill(&mut self, purpose: Purpose, buf: &mut [u8]) {
        self.get(purpose).fill_bytes(buf);
    }

    /// Draws a 64-bit number.
    pub fn next_u64(&mut self, purpose: Purpose) -> u64 {
        self.get(purpose).next_u64()
    }

    /// Draws the boot seed of a machine that starts again.
    pub fn next_boot_seed(&mut self, purpose: Purpose) -> BootSeed {
        BootSeed::new(self.next_u64(purpose))
    }
}

#[cfg(test)]
mod tests;
