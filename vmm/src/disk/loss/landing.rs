//! Which sectors of a request in flight land.

use rand_chacha::rand_core::Rng;

use crate::disk::draw;

/// What is drawn for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landing {
    /// None.
    Nowhere,
    /// All.
    Whole,
    /// The first so many.
    Prefix(u64),
    /// A fair coin for each.
    Each,
}

impl Landing {
    /// Each kind is as likely.
    pub(super) fn draw(rng: &mut impl Rng, sectors: u64) -> Landing {
        match draw::below(rng, 4) {
            0 => Landing::Nowhere,
            1 => Landing::Whole,
            2 => Landing::Prefix(draw::below(rng, sectors + 1)),
            _ => Landing::Each,
        }
    }

    /// Whether the sector with this number lands: to be asked once for each.
    pub(super) fn sectors(self, rng: &mut impl Rng) -> impl FnMut(u64) -> bool {
        move |number| match self {
            Landing::Nowhere => false,
            Landing::Whole => true,
            Landing::Prefix(end) => number < end,
            Landing::Each => draw::coin(rng),
        }
    }
}
