//! Randomness: one ChaCha20 stream for each purpose of each owner, so that drawing more from one moves no other.
//!
//! Map: here: [`Lineage`] and [`Streams`]; `owner`: who has streams; `purpose`: what they are for; `encode`: how keys are derived.
//!
//! A stream's key is derived in steps, each in a domain of its own, with every part preceded by its length:
//! seed -> lineage -> lineage of a child, for each fork -> key of an owner -> key of a purpose. So no name of a node can be
//! mistaken for another owner, nor an owner for a purpose. Boots have a domain beside that of timelines: a boot and the timeline
//! that begins behind it draw different values even if both seeds are the same number.
//!
//! A position is the key *and* the word position; both are state. Nothing under `vmm` draws from anywhere else.

mod encode;
mod owner;
mod purpose;

use std::collections::BTreeMap;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::machine::Machine;
use encode::{Encoder, context};
pub use owner::{Owner, OwnerKind};
pub use purpose::{LinkDraw, Purpose};

/// The root of all keys of a timeline, a function of its seed and of the forks behind it; or that of a boot, a function of the
/// boot seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage([u8; 32]);

impl Lineage {
    /// The lineage of a timeline without forks.
    #[must_use]
    pub fn new(seed: u64) -> Lineage {
        Lineage::of_seed(context::SEED, seed)
    }

    /// The lineage of what happens from power-on to *ready*, at the first start and after a loss of power.
    #[must_use]
    pub fn boot(seed: u64) -> Lineage {
        Lineage::of_seed(context::BOOT, seed)
    }

    fn of_seed(context: &str, seed: u64) -> Lineage {
        let mut encoder = Encoder::new(context);
        encoder.part(&seed.to_le_bytes());
        Lineage(encoder.key())
    }

    /// The lineage of this child of a fork at `vtime_ns`.
    #[must_use]
    pub fn child(&self, vtime_ns: u64, child: u64) -> Lineage {
        let mut encoder = Encoder::new(context::CHILD);
        encoder.part(&self.0);
        encoder.part(&vtime_ns.to_le_bytes());
        encoder.part(&child.to_le_bytes());
        Lineage(encoder.key())
    }
}

/// The streams of one owner. A fork replaces them by those of the child's lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    key: [u8; 32],
    open: BTreeMap<Purpose, ChaCha20Rng>,
}

impl Streams {
    /// The streams of an owner in a timeline, each at its beginning.
    #[must_use]
    pub fn new(lineage: &Lineage, owner: Owner<'_>) -> Streams {
        let mut encoder = Encoder::new(context::OWNER);
        encoder.part(&lineage.0);
        owner.encode(&mut encoder);
        Streams { key: encoder.key(), open: BTreeMap::new() }
    }

    /// The stream for a purpose, at its position.
    pub fn get(&mut self, purpose: Purpose) -> &mut ChaCha20Rng {
        let key = &self.key;
        self.open.entry(purpose).or_insert_with(|| {
            let mut encoder = Encoder::new(context::PURPOSE);
            encoder.part(key);
            purpose.encode(&mut encoder);
            ChaCha20Rng::from_seed(encoder.key())
        })
    }

    /// Draws bytes. A last partial word is drawn whole and its rest dropped.
    pub fn fill(&mut self, purpose: Purpose, buf: &mut [u8]) {
        self.get(purpose).fill_bytes(buf);
    }

    /// Draws a number.
    pub fn next_u64(&mut self, purpose: Purpose) -> u64 {
        self.get(purpose).next_u64()
    }
}

impl<E: Engine> Machine<E> {
    /// The machine's streams, to look at.
    pub fn streams(&self) -> &Streams {
        &self.state.streams
    }

    /// The machine's stream for a purpose, for what is done to it.
    pub fn stream(&mut self, purpose: Purpose) -> &mut ChaCha20Rng {
        self.state.streams.get(purpose)
    }

    /// From here on everything that is drawn for this machine follows `lineage`, from the beginning.
    pub fn restart_streams(&mut self, lineage: &Lineage) {
        self.state.streams = Streams::new(lineage, Owner::Node(self.name()));
    }
}

#[cfg(test)]
mod tests;
