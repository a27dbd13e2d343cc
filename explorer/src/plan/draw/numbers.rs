//! Random numbers, computed with integers only so that a plan is the same on every host.

use chacha20::rand_core::Rng;

use everett_fault::{PPM, Ppm};

/// Maximum result of an exponential draw, in multiples of the mean. A true exponential draw exceeds it with a
/// probability of e^-64.
const EXPONENTIAL_MAX: u32 = 64;

/// Returns a uniform number from 0 to `n - 1`, or 0 if `n` is 0. Every caller's `n` is so far below 2^64 that the bias
/// is far below 1 ppm.
pub(crate) fn below(rng: &mut impl Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Returns true with a probability of `ppm` in a million.
pub(super) fn chance(rng: &mut impl Rng, ppm: Ppm) -> bool {
    below(rng, u64::from(PPM)) < u64::from(ppm)
}

/// Returns a number from `least` to `most`, both included, or `least` if `most` is smaller. The range is divided where
/// `least` doubles (e.g. at 1, 2, 4 and 8 ms), and each part is equally likely. A range from 1 ms to 10 s therefore
/// yields milliseconds as often as seconds. Always draws two numbers from the generator.
pub(super) fn between(rng: &mut impl Rng, least: u64, most: u64) -> u64 {
    let most = most.max(least);
    let base = least.max(1);
    let octaves = u64::from((most / base).max(1).ilog2()) + 1;
    let octave = below(rng, octaves);
    let from = if octave == 0 { least } else { base << octave };
    let to = if octave + 1 == octaves { most } else { (base << (octave + 1)) - 1 };
    from + below(rng, (to - from).saturating_add(1))
}

/// Returns an exponentially distributed time: the time between two successive events of a series of independent events.
/// The average of these times is `mean`.
///
/// This is John von Neumann's method, which needs only comparisons. It draws descending sequences of numbers until a
/// sequence has an odd length. The first number of that sequence is the fractional part of the result, in units of the
/// mean. Each earlier sequence adds one whole mean.
pub(super) fn exponential(rng: &mut impl Rng, mean: u64) -> u64 {
    for whole in 0..EXPONENTIAL_MAX {
        let first = rng.next_u64();
        let (mut last, mut odd) = (first, true);
        loop {
            let number = rng.next_u64();
            if number >= last {
                break;
            }
            (last, odd) = (number, !odd);
        }
        if odd {
            let (high, low) = (u128::from(whole), u128::from(first));
            let ns = high * u128::from(mean) + ((low * u128::from(mean)) >> 64);
            return u64::try_from(ns).unwrap_or(u64::MAX);
        }
    }
    mean.saturating_mul(u64::from(EXPONENTIAL_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use chacha20::rand_core::SeedableRng;
    use proptest::prelude::*;

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::from_seed([3; 32])
    }

    #[test]
    fn waits_are_exponential() {
        let (mut rng, mean, draws) = (rng(), 1_000_000u64, 100_000u64);
        let mut waits: Vec<u64> = (0..draws).map(|_| exponential(&mut rng, mean)).collect();
        // The mean of the draws has a standard deviation of mean/sqrt(draws). The test allows four standard deviations.
        let sum: u64 = waits.iter().sum();
        assert!((sum / draws).abs_diff(mean) < 4 * mean / 316, "{}", sum / draws);
        waits.sort_unstable();
        // Quantiles of the exponential distribution, -ln(1-q), in millionths. The test allows four standard deviations
        // of sqrt(q(1-q)/n)/(1-q).
        for (percent, expected, off) in [(10, 105_361, 4_300), (50, 693_147, 12_700), (90, 2_302_585, 38_000)]
        {
            let found = waits[(draws * percent / 100) as usize];
            assert!(found.abs_diff(expected) < off, "quantile of {percent} %: {found} instead of {expected}");
        }
    }

    #[test]
    fn doublings_are_equally_likely() {
        let mut rng = rng();
        let mut counts = [0u32; 4];
        for _ in 0..40_000 {
            counts[(between(&mut rng, 10, 159) / 10).ilog2() as usize] += 1;
        }
        // The parts of the range begin at 10, 20, 40 and 80. The test allows four standard deviations.
        assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 350), "{counts:?}");
        let values: std::collections::BTreeSet<u64> = (0..500).map(|_| between(&mut rng, 0, 5)).collect();
        assert!(values.iter().copied().eq(0..=5), "{values:?}");
    }

    #[test]
    fn chances() {
        let mut rng = rng();
        let hits = (0..40_000).filter(|_| chance(&mut rng, 250_000)).count();
        assert!(hits.abs_diff(10_000) < 350, "{hits}");
        assert!(!chance(&mut rng, 0) && chance(&mut rng, PPM));
    }

    proptest! {
        #[test]
        fn draws_stay_within(a: u64, b: u64, shift in 0u32..64, n: u64, mean: u64, seed: [u8; 32]) {
            let mut rng = ChaCha20Rng::from_seed(seed);
            let (a, b) = (a >> shift, b >> shift);
            let drawn = between(&mut rng, a, b);
            prop_assert!(a <= drawn && drawn <= a.max(b));
            prop_assert!(below(&mut rng, n) < n.max(1));
            exponential(&mut rng, mean);
        }
    }
}
