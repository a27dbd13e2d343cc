//! Strategy `pct`: each fault plan gives the nodes random priorities, and frames of nodes with lower priorities arrive
//! later. `crate::plan::draw::pct` draws the priorities. This file chooses where each branch starts.

use chacha20::ChaCha20Rng;

use super::Strategy;
use crate::plan::draw::numbers::below;
use crate::search::tree::{ForkPoint, Tree};

/// Starts half of the branches at the root moment (the beginning of all timelines). `crate::plan::draw::guarantee`
/// computes a lower bound on the probability that one of these branches finds a bug. Each other branch starts at the
/// end of an open branch, i.e. a branch that can be extended. All open branches have equal probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pct;

impl Strategy for Pct {
    fn choose(&self, tree: &Tree, _: u32, rng: &mut ChaCha20Rng) -> ForkPoint {
        if below(rng, 2) == 0 {
            return ForkPoint::Root;
        }
        let drawn = below(rng, tree.open_count());
        tree.open_at(drawn).map_or(ForkPoint::Root, ForkPoint::After)
    }
}
