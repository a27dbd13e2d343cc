//! Strategy `uniform`: chooses moments without regard to results. It is the baseline for the other strategies.

use chacha20::ChaCha20Rng;

use super::Strategy;
use crate::plan::draw::numbers::below;
use crate::search::tree::{ForkPoint, Tree};

/// Draws a depth of the tree, and then a moment of this depth. All depths are equally likely, and so are all moments of
/// one depth.
///
/// A uniform draw among all moments would nearly always pick the depth with the most moments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uniform;

impl Strategy for Uniform {
    fn choose(&self, tree: &Tree, _: u32, rng: &mut ChaCha20Rng) -> ForkPoint {
        let by_depth = tree.open_by_depth();
        let depth = below(rng, 1 + by_depth.len() as u64) as usize;
        let Some(moments) = depth.checked_sub(1).and_then(|i| by_depth.values().nth(i)) else {
            return ForkPoint::Root;
        };
        let drawn = below(rng, moments.len() as u64) as usize;
        moments.get(drawn).map_or(ForkPoint::Root, |&number| ForkPoint::After(number))
    }
}
