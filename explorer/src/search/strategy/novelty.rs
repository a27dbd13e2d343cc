//! Where something new was reached there may be more of it.

use rand_chacha::ChaCha20Rng;

use super::{Strategy, below};
use crate::search::tree::{Place, Tree};

const PPM: u128 = 1_000_000;

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
const UNSEEN_PPM_PLENTY: u128 = 50_000;
/// A weight's unit, so that quotients of small rewards differ.
const UNIT: u128 = 1 << 16;

impl Novelty {
    fn fresh(&self, unseen_ppm: u32) -> u128 {
        let least = u128::from(self.fresh_ppm).min(PPM);
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
                let decay = (1 + u128::from(branch.children)).pow(2);
                (number, u128::from(standing.reward) * UNIT / decay)
            })
        };
        let total: u128 = weights().map(|(_, weight)| weight).sum();
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
