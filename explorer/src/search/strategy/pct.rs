//! The strategy beside random priorities, which are in the fault plan (`crate::plan::draw::pct`).

use rand_chacha::ChaCha20Rng;

use super::Strategy;
use crate::plan::draw::numbers::below;
use crate::search::tree::{Place, Tree};

/// Half of the branches are fresh draws from the root moment, of which the promise of random priorities speaks; the others go on
/// from the end of any branch, each as likely as the next. Nothing is remembered: each run draws priorities of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pct;

impl Strategy for Pct {
    fn choose(&self, tree: &Tree, _: u32, rng: &mut ChaCha20Rng) -> Place {
        if below(rng, 2) == 0 {
            return Place::Root;
        }
        let drawn = below(rng, tree.open_count());
        tree.open_at(drawn).map_or(Place::Root, Place::After)
    }
}
