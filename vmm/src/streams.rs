//! Randomness: one ChaCha20 stream a purpose, keyed by name, so that drawing more from one moves no other.
//!
//! A position is the key *and* the word position; both are state. Nothing under `vmm` draws from anywhere else.

use std::collections::BTreeMap;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::machine::Machine;

/// What streams are for. A purpose is part of the machine version: renaming one moves every trail.
pub mod purpose {
    /// virtio-rng, the boot seed and the generation ID.
    pub const ENTROPY: &str = "entropy";
    /// Anything that disks draw.
    pub const DISKS: &str = "disks";
    /// Anything that the wire draws.
    pub const NETWORK: &str = "network";
    /// When a node's CPU is stolen, and for how long.
    pub const SCHEDULING: &str = "scheduling";
}

/// The streams of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    key: [u8; 32],
    open: BTreeMap<String, ChaCha20Rng>,
}

impl Streams {
    /// The streams of node `node` in the world with this seed.
    pub fn new(seed: u64, node: &str) -> Streams {
        Streams { key: key(seed, node), open: BTreeMap::new() }
    }

    /// From here on these are the streams of node `node` in the world with this seed, from their beginning, whatever was
    /// drawn before: a timeline begins on a machine that booted under another seed.
    pub fn reseed(&mut self, seed: u64, node: &str) {
        *self = Streams::new(seed, node);
    }

    /// The stream for a purpose, at its position.
    pub fn get(&mut self, purpose: &str) -> &mut ChaCha20Rng {
        let key = &self.key;
        self.open.entry(purpose.to_owned()).or_insert_with(|| {
            ChaCha20Rng::from_seed(*blake3::keyed_hash(key, purpose.as_bytes()).as_bytes())
        })
    }

    /// Draw bytes. A last partial word is drawn whole and its rest dropped.
    pub fn fill(&mut self, purpose: &str, buf: &mut [u8]) {
        self.get(purpose).fill_bytes(buf);
    }

    /// Draw a number.
    pub fn next_u64(&mut self, purpose: &str) -> u64 {
        self.get(purpose).next_u64()
    }

    /// A branch begins: every stream restarts under key(child) = blake3(key(parent), vtime, child).
    pub fn branch(&mut self, vtime: u64, child: u64) {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&vtime.to_le_bytes());
        hasher.update(&child.to_le_bytes());
        self.key = *hasher.finalize().as_bytes();
        self.open.clear();
    }
}

fn key(seed: u64, node: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("everett 1 world seed and node");
    hasher.update(&seed.to_le_bytes());
    hasher.update(node.as_bytes());
    *hasher.finalize().as_bytes()
}

impl<E: Engine> Machine<E> {
    /// The machine's stream for a purpose, for what is done to it.
    pub fn stream(&mut self, purpose: &str) -> &mut ChaCha20Rng {
        self.state.streams.get(purpose)
    }

    /// Draw bytes of the entropy stream, for what the host gives to the guest besides virtio-rng.
    pub fn draw_entropy(&mut self, buf: &mut [u8]) {
        self.state.streams.fill(purpose::ENTROPY, buf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(streams: &mut Streams, purpose: &str) -> [u8; 24] {
        let mut buf = [0; 24];
        streams.fill(purpose, &mut buf);
        buf
    }

    #[test]
    fn purposes_do_not_move_each_other() {
        let mut a = Streams::new(1, "a");
        let mut b = Streams::new(1, "a");
        draw(&mut a, purpose::DISKS);
        draw(&mut a, purpose::DISKS);
        assert_eq!(draw(&mut a, purpose::ENTROPY), draw(&mut b, purpose::ENTROPY));
        assert_ne!(draw(&mut a, purpose::ENTROPY), draw(&mut b, purpose::DISKS));
    }

    #[test]
    fn seeds_nodes_and_branches_differ() {
        let mut seen = std::collections::BTreeSet::new();
        for mut streams in [Streams::new(1, "a"), Streams::new(2, "a"), Streams::new(1, "b")] {
            assert!(seen.insert(draw(&mut streams, purpose::ENTROPY)));
            streams.branch(5, 1);
            assert!(seen.insert(draw(&mut streams, purpose::ENTROPY)));
        }
    }

    #[test]
    fn a_new_seed_forgets_what_was_drawn() {
        let mut fresh = Streams::new(7, "n");
        let mut used = Streams::new(0, "n");
        draw(&mut used, purpose::ENTROPY);
        draw(&mut used, purpose::DISKS);
        used.branch(3, 1);
        used.reseed(7, "n");
        assert_eq!(used, fresh);
        assert_eq!(draw(&mut used, purpose::ENTROPY), draw(&mut fresh, purpose::ENTROPY));
    }

    #[test]
    fn a_position_survives_storage() {
        let mut a = Streams::new(9, "n");
        draw(&mut a, purpose::ENTROPY);
        a.next_u64(purpose::NETWORK);
        let bytes = postcard::to_stdvec(&a).unwrap();
        let mut b: Streams = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(a, b);
        assert_eq!(draw(&mut a, purpose::ENTROPY), draw(&mut b, purpose::ENTROPY));
        assert_eq!(a.next_u64(purpose::NETWORK), b.next_u64(purpose::NETWORK));
    }

    /// Pins the derivation: a change here moves every trail and takes a new machine version.
    #[test]
    fn the_derivation_is_pinned() {
        let mut buf = [0; 8];
        Streams::new(42, "node").fill(purpose::ENTROPY, &mut buf);
        assert_eq!(buf, PINNED);
    }
    const PINNED: [u8; 8] = [33, 251, 243, 86, 16, 218, 201, 50];
}
