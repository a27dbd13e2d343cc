//! Strategy `pct`: random priorities. The priorities themselves are part of the fault plan (`crate::plan::draw::pct`).

use chacha20::ChaCha20Rng;

use super::Strategy;
use crate::plan::draw::numbers::below;
use crate::search::tree::{ForkPoint, Tree};

/// Starts half of the branches at the root moment. The guarantee of random priorities holds for these. The others start
/// at the end of any open branch, all equally likely. The strategy has no state: each branch draws its own priorities.
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
