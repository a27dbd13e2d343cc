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
        let drawn = below(rng, tree.weight());
        // There is none if nothing reached anything new.
        tree.open_at_weight(drawn).map_or(Place::Root, Place::After)
    }
}
