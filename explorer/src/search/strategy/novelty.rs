//! Where something new was reached there may be more of it.

use rand_chacha::ChaCha20Rng;

use super::Strategy;
use crate::plan::draw::numbers::below;
use crate::search::tree::{Place, Tree};

const PPM: u64 = 1_000_000;

/// A moment is picked by what its branch reached first, the less the more often it was picked. A share of branches is fresh
/// draws from the root moment, at least [`Novelty::fresh_ppm`], and the more the less is still unseen: where the vocabulary is
/// small and known, novelty says nothing, and following it loses to drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Novelty {
    /// The least share of fresh draws, in parts of a million.
    pub fresh_ppm: u32,
}

impl Default for Novelty {
    fn default() -> Novelty {
        Novelty { fresh_ppm: 250_000 }
    }
}

/// The mass of what is unseen from which on there is no more than the least share of fresh draws: a twentieth.
const UNSEEN_PPM_PLENTY: u64 = 50_000;
/// A weight's unit, so that quotients of small rewards differ.
const UNIT: u64 = 1 << 16;
/// More reward than this weighs no more: the weights of a billion branches have a sum.
const REWARD_MAX: u64 = 1 << 17;

impl Novelty {
    fn fresh(&self, unseen_ppm: u32) -> u64 {
        let least = u64::from(self.fresh_ppm).min(PPM);
        let seen = UNSEEN_PPM_PLENTY.saturating_sub(unseen_ppm.into());
        least + (PPM - least) * seen / UNSEEN_PPM_PLENTY
    }
}

impl Strategy for Novelty {
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> Place {
        if below(rng, PPM) < self.fresh(unseen_ppm) {
            return Place::Root;
        }
        let weights = || {
            tree.open().map(|(number, branch, standing)| {
                let decay = branch.children.saturating_add(1).saturating_pow(2);
                (number, standing.reward.min(REWARD_MAX) * UNIT / decay)
            })
        };
        let total: u64 = weights().map(|(_, weight)| weight).sum();
        let mut drawn = below(rng, total);
        for (number, weight) in weights() {
            if drawn < weight {
                return Place::After(number);
            }
            drawn -= weight;
        }
        // Nothing reached anything new.
        Place::Root
    }
}
