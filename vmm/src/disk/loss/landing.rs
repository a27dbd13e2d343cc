//! Choice of the sectors that a request in flight writes before it is aborted.

use chacha20::rand_core::Rng;

use crate::disk::draw;

/// Draw for one request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landing {
    /// No sector lands.
    Nowhere,
    /// All sectors land.
    Whole,
    /// The first sectors land, up to this number.
    Prefix(u64),
    /// A fair coin decides for each sector.
    Each,
}

impl Landing {
    /// Draws a landing; the four kinds are equally likely.
    pub(super) fn draw(rng: &mut impl Rng, sectors: u64) -> Landing {
        match draw::below(rng, 4) {
            0 => Landing::Nowhere,
            1 => Landing::Whole,
            2 => Landing::Prefix(draw::below(rng, sectors + 1)),
            _ => Landing::Each,
        }
    }

    /// Returns a function that is true if the sector with this number lands. It must be called once per sector, in
    /// order.
    pub(super) fn sectors(self, rng: &mut impl Rng) -> impl FnMut(u64) -> bool {
        move |number| match self {
            Landing::Nowhere => false,
            Landing::Whole => true,
            Landing::Prefix(end) => number < end,
            Landing::Each => draw::coin(rng),
        }
    }
}
