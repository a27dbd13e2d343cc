//! Chooses which sectors of a request in flight land, i.e. reach the disk before the request is aborted.

use chacha20::rand_core::Rng;

use crate::disk::draw;

/// Outcome that is drawn for one request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landing {
    /// No sector reaches the disk.
    Nowhere,
    /// All sectors reach the disk.
    Whole,
    /// This number of sectors reach the disk, from the first on.
    Prefix(u64),
    /// A fair coin decides for each sector whether it reaches the disk.
    Each,
}

impl Landing {
    /// Draws an outcome. The four kinds are equally likely.
    pub(super) fn draw(rng: &mut impl Rng, sectors: u64) -> Landing {
        match draw::below(rng, 4) {
            0 => Landing::Nowhere,
            1 => Landing::Whole,
            2 => Landing::Prefix(draw::below(rng, sectors + 1)),
            _ => Landing::Each,
        }
    }

    /// Returns a function that says whether sector number `n` of the request lands. Call it once per sector, in
    /// ascending order.
    pub(super) fn sectors(self, rng: &mut impl Rng) -> impl FnMut(u64) -> bool {
        move |number| match self {
            Landing::Nowhere => false,
            Landing::Whole => true,
            Landing::Prefix(end) => number < end,
            Landing::Each => draw::coin(rng),
        }
    }
}
