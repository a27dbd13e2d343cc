//! Streams of random numbers: each owner (a node, for example) has one ChaCha20 stream for each purpose. Drawing more
//! from one stream does not affect other streams.
//!
//! - this file: [`Lineage`] and [`Streams`]
//! - `seed`: [`Seed`] and [`BootSeed`], from which lineages are derived; `key`: the keys of streams
//! - `owner`: the owners of streams, for example a node
//! - `purpose`: the purposes of streams, for example disk errors
//! - `encode`: the derivation of keys
//! - `position`: stores a stream in moments and digests
//!
//! A stream's key is derived in steps. The seed gives the lineage of the timeline, which is a key, too. Each fork gives
//! the lineage of the child. The lineage gives the owner's key, and the owner's key gives the key for the purpose. Each
//! step has a key derivation context of its own, and hashes the length of each input before the input. Therefore no
//! node name can produce the key of another owner, and no owner can produce the key of a purpose. Boots have a context
//! of their own, too: a boot and the timeline after it draw different values even if their seeds are equal.
//!
//! The state of a stream is its key *and* its word position. Everything random that decides a guest's computation comes
//! from these streams.

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

/// Key from which all keys of a timeline or boot are derived. For a timeline, it is a function of the seed and of the
/// forks that lead to the timeline. For a boot, it is a function of the boot seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage(Key);

impl Lineage {
    /// Returns the lineage of a timeline that has no forks yet.
    #[must_use]
    pub fn new(seed: Seed) -> Lineage {
        Lineage::of_number(context::SEED, seed.number())
    }

    /// Returns the lineage of a boot. A world's first boot uses it from power-on until the timeline begins. A machine
    /// that starts again in a timeline uses the lineage of a new boot seed until the next fork.
    #[must_use]
    pub fn boot(seed: BootSeed) -> Lineage {
        Lineage::of_number(context::BOOT, seed.number())
    }

    fn of_number(context: &str, number: u64) -> Lineage {
        let mut encoder = Encoder::new(context);
        encoder.part(&number.to_le_bytes());
        Lineage(encoder.key())
    }

    /// Returns the lineage of child number `child` of a fork at `vtime_ns`.
    #[must_use]
    pub fn child(&self, vtime_ns: u64, child: u64) -> Lineage {
        let mut encoder = Encoder::new(context::CHILD);
        encoder.part(self.0.as_bytes());
        encoder.part(&vtime_ns.to_le_bytes());
        encoder.part(&child.to_le_bytes());
        Lineage(encoder.key())
    }
}

/// Streams of one owner. After a fork, the child's owners get new streams from the child's lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    key: Key,
    open: BTreeMap<Purpose, Stream>,
}

impl Streams {
    /// Creates the streams of an owner in a timeline or boot, each at its beginning.
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

    /// Fills `buf` with random bytes. Draws whole 32-bit words, and drops the unused bytes of the last word.
    pub fn fill(&mut self, purpose: Purpose, buf: &mut [u8]) {
        self.get(purpose).fill_bytes(buf);
    }

    /// Draws a 64-bit number.
    pub fn next_u64(&mut self, purpose: Purpose) -> u64 {
        self.get(purpose).next_u64()
    }

    /// Draws the boot seed of a node's machine that starts again. `node` is the number of the node.
    pub fn next_boot_seed(&mut self, node: u16) -> BootSeed {
        BootSeed::new(self.next_u64(Purpose::Restart { node }))
    }
}

#[cfg(test)]
mod tests;
