//! Strategies: from where the next branch goes on.
//!
//! A strategy is a function of the tree, of how much is still unseen, and of draws. It keeps nothing: an exploration that is
//! resumed chooses as it would have. What a choice costs grows with the logarithm of the tree: sums over it are the tree's to keep
//! (`super::weights`). Nothing here knows host time, caches, or how long a branch took but in instructions.

mod kind;
mod novelty;
mod pct;
mod uniform;

use rand_chacha::ChaCha20Rng;

use super::tree::{Place, Tree};

pub use kind::{NoStrategy, StrategyKind};
pub use novelty::Novelty;
pub use pct::Pct;
pub use uniform::Uniform;

/// From where branches go on.
pub trait Strategy {
    /// From where the next branch goes on, in a tree of which so many parts of a million of what is reached next will be new.
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> Place;
}

impl Strategy for Box<dyn Strategy + Send> {
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> Place {
        (**self).choose(tree, unseen_ppm, rng)
    }
}
