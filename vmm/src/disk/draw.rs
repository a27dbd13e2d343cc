//! Random draws with integers only, so results are equal on every host. Each draw takes one number from `rng`.

use chacha20::rand_core::Rng;

use everett_fault::{PPM, Ppm};

/// Draws a number from 0 to `count` - 1. All numbers are equally likely. Returns 0 if `count` is 0.
pub(super) fn below(rng: &mut impl Rng, count: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(count)) >> 64) as u64
}

/// Draws true with a probability of `ppm` in a million.
pub(super) fn hits(rng: &mut impl Rng, ppm: Ppm) -> bool {
    below(rng, PPM.into()) < u64::from(ppm)
}

/// Draws true or false with equal probability.
pub(super) fn coin(rng: &mut impl Rng) -> bool {
    rng.next_u64() >> 63 == 1
}

/// Draws the probability for a group of events, from nine values between rare and almost certain. With a constant
/// probability of one half, about half of the events would happen each time. Varied probabilities also produce cases in
/// which nearly all or none happen.
pub(super) fn odds(rng: &mut impl Rng) -> Ppm {
    const ODDS: [Ppm; 9] = [4_000, 16_000, 62_500, 250_000, 500_000, 750_000, 937_500, 984_000, 996_000];
    ODDS[below(rng, ODDS.len() as u64) as usize]
}
