//! Draws: integers only, so that they are the same on every host. Each takes one number from the stream.

use rand_chacha::rand_core::Rng;

use everett_fault::{PPM, Ppm};

/// An even draw from 0 to `count` - 1; 0 when there is nothing to choose.
pub(super) fn below(rng: &mut impl Rng, count: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(count)) >> 64) as u64
}

/// Whether something happens that does so `ppm` times in a million.
pub(super) fn hits(rng: &mut impl Rng, ppm: Ppm) -> bool {
    below(rng, PPM.into()) < u64::from(ppm)
}

/// A coin.
pub(super) fn coin(rng: &mut impl Rng) -> bool {
    rng.next_u64() >> 63 == 1
}

/// Odds of one event among many: seldom, evenly and nearly always are as likely as each other, since of many events with
/// even odds nearly as many happen as do not, always.
pub(super) fn odds(rng: &mut impl Rng) -> Ppm {
    const ODDS: [Ppm; 9] = [4_000, 16_000, 62_500, 250_000, 500_000, 750_000, 937_500, 984_000, 996_000];
    ODDS[below(rng, ODDS.len() as u64) as usize]
}
