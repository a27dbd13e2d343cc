//! Strategy `novelty`: prefers moments at the end of branches that reached something new.

use chacha20::ChaCha20Rng;

use super::Strategy;
use crate::plan::draw::numbers::below;
use crate::search::tree::{ForkPoint, Tree};

const PPM: u64 = 1_000_000;

/// Draws a moment at random. A moment's weight is r / (n + 1)^2. Here r is the reward of the branch that ends at the
/// moment, i.e. the number of coverage points that this branch was the first to reach. The number n counts the branches
/// that already start at the moment.
///
/// Some branches start at the root moment instead. Their share is at least [`Novelty::fresh_ppm`], and grows as the
/// estimated share of unseen states falls. If few states are unseen, rewards guide the search badly, and fresh starts
/// find more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Novelty {
    /// Minimum share of branches that start at the root moment, in parts of a million.
    pub fresh_ppm: u32,
}

impl Default for Novelty {
    fn default() -> Novelty {
        Novelty { fresh_ppm: 250_000 }
    }
}

/// Estimated share of unseen states, in parts of a million, from which the share of branches that start at the root
/// moment is at its minimum, [`Novelty::fresh_ppm`].
const UNSEEN_PPM_PLENTY: u64 = 50_000;

impl Novelty {
    fn fresh(&self, unseen_ppm: u32) -> u64 {
        let least = u64::from(self.fresh_ppm).min(PPM);
        let seen = UNSEEN_PPM_PLENTY.saturating_sub(unseen_ppm.into());
        least + (PPM - least) * seen / UNSEEN_PPM_PLENTY
    }
}

impl Strategy for Novelty {
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> ForkPoint {
        if below(rng, PPM) < self.fresh(unseen_ppm) {
            return ForkPoint::Root;
        }
        let drawn = below(rng, tree.weight());
        // A branch is open if other branches can start at its end. The result is `None` if no open branch has a reward.
        tree.open_at_weight(drawn).map_or(ForkPoint::Root, ForkPoint::After)
    }
}
