//! Strategies: the choice of the moment at which the next branch starts.
//!
//! A strategy is a function of the tree, of the estimated probability that the next state is new, and of random draws.
//! It has no state, so a resumed exploration makes the same choices.
//!
//! The tree keeps the sums that strategies need (`super::weights`), so a choice takes time logarithmic in the size of
//! the tree. No strategy uses host time, cached data, or costs that depend on the host. A branch's only cost is its
//! number of instructions.

mod kind;
mod novelty;
mod pct;
mod uniform;

use chacha20::ChaCha20Rng;

use super::tree::{ForkPoint, Tree};

pub use kind::{NoStrategy, StrategyKind};
pub use novelty::Novelty;
pub use pct::Pct;
pub use uniform::Uniform;

/// Rule that chooses the moment at which the next branch starts.
pub trait Strategy {
    /// Returns the moment at which the next branch starts. `unseen_ppm` is the estimated probability that the next
    /// state that a branch reaches is new, in parts of a million.
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> ForkPoint;
}

impl Strategy for Box<dyn Strategy + Send> {
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> ForkPoint {
        (**self).choose(tree, unseen_ppm, rng)
    }
}
