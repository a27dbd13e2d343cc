//! Distributions of times. Draws use only integers, so that a draw is the same on every host.

use chacha20::rand_core::Rng;
use serde::{Deserialize, Serialize};

/// Maximum number of points of a [`Distribution::Quantiles`].
pub const QUANTILES_MAX: usize = 64;
/// Maximum time of a distribution, in nanoseconds: one day.
pub const TIME_NS_MAX: u64 = 86_400_000_000_000;

/// Distribution of times, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// Each draw gives the same time.
    Constant(u64),
    /// Uniform between the first time and the second time, both included.
    Uniform(u64, u64),
    /// Quantiles as pairs of parts per million and time, with linear interpolation. The parts per million ascend from 0
    /// to 1,000,000, and the times never descend.
    Quantiles(Vec<(u32, u64)>),
}

/// Reason why a distribution is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// A time exceeds [`TIME_NS_MAX`].
    #[error("{0} ns: at most a day ({TIME_NS_MAX} ns)")]
    TooLong(u64),
    /// The first time of a uniform distribution exceeds the second.
    #[error("uniform from {0} to {1} ns: the first must not be above the second")]
    Empty(u64, u64),
    /// There are too few or too many quantiles, or they are out of order, or they do not span 0 to 1,000,000 ppm.
    #[error(
        "quantiles: 2 to {QUANTILES_MAX} pairs that ascend from 0 to 1000000 ppm, with times that never descend"
    )]
    Quantiles,
}

impl Distribution {
    /// Checks that the distribution is valid.
    ///
    /// # Errors
    /// Returns an error if a time exceeds [`TIME_NS_MAX`], a uniform range is empty, or the quantiles are malformed.
    pub fn check(&self) -> Result<(), DistributionError> {
        let most = match self {
            Distribution::Constant(ns) => *ns,
            Distribution::Uniform(least, most) if least > most => {
                return Err(DistributionError::Empty(*least, *most));
            }
            Distribution::Uniform(_, most) => *most,
            Distribution::Quantiles(points) => {
                let ends = (points.first().map(|p| p.0), points.last().map(|p| p.0));
                let ascending = points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
                if ends != (Some(0), Some(super::PPM)) || !ascending || points.len() > QUANTILES_MAX {
                    return Err(DistributionError::Quantiles);
                }
                points.last().map_or(0, |p| p.1)
            }
        };
        if most > TIME_NS_MAX { Err(DistributionError::TooLong(most)) } else { Ok(()) }
    }

    /// Returns the minimum time that a draw can give, in nanoseconds.
    #[must_use]
    pub fn least(&self) -> u64 {
        match self {
            Distribution::Constant(ns) | Distribution::Uniform(ns, _) => *ns,
            Distribution::Quantiles(points) => points.first().map_or(0, |p| p.1),
        }
    }

    /// Returns the maximum time that a draw can give, in nanoseconds.
    #[must_use]
    pub fn most(&self) -> u64 {
        match self {
            Distribution::Constant(ns) | Distribution::Uniform(_, ns) => *ns,
            Distribution::Quantiles(points) => points.last().map_or(0, |p| p.1),
        }
    }

    /// Draws a time, in nanoseconds. Every draw takes one 64-bit number from `rng`, whatever the distribution.
    pub fn draw(&self, rng: &mut impl Rng) -> u64 {
        let number = rng.next_u64();
        // Multiplies `span` by `number` / 2^64. A span is at most a day, so the relative bias of each value is below 5
        // ppm.
        let part = |span: u64| ((u128::from(number) * u128::from(span)) >> 64) as u64;
        match self {
            Distribution::Constant(ns) => *ns,
            Distribution::Uniform(least, most) => {
                least.saturating_add(part(most.saturating_sub(*least).saturating_add(1)))
            }
            Distribution::Quantiles(points) => {
                // Position on the scale of parts per million, in units of 2^-32 ppm.
                let at = ((u128::from(number) * u128::from(super::PPM)) >> 32) as u64;
                let above =
                    points.partition_point(|p| u64::from(p.0) << 32 <= at).clamp(1, points.len().max(2) - 1);
                let (Some(&(from, low)), Some(&(to, high))) = (points.get(above - 1), points.get(above))
                else {
                    return 0;
                };
                let width = u128::from(to.saturating_sub(from).max(1)) << 32;
                let along = u128::from(at.saturating_sub(u64::from(from) << 32)).min(width);
                low + (u128::from(high.saturating_sub(low)) * along / width) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use chacha20::rand_core::SeedableRng;
    use proptest::prelude::*;

    fn draws(distribution: &Distribution) -> Vec<u64> {
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        let mut draws: Vec<u64> = (0..40_000).map(|_| distribution.draw(&mut rng)).collect();
        draws.sort_unstable();
        draws
    }

    #[test]
    fn draws_follow_their_distribution() {
        assert!(draws(&Distribution::Constant(5)).iter().all(|&ns| ns == 5));
        let uniform = draws(&Distribution::Uniform(10, 13));
        for value in 10..=13 {
            let count = uniform.iter().filter(|&&ns| ns == value).count();
            // The test allows four standard deviations.
            assert!((9_650..=10_350).contains(&count), "{value}: {count}");
        }
        assert_eq!((uniform[0], uniform[39_999]), (10, 13));
        let long_tail =
            Distribution::Quantiles(vec![(0, 100), (500_000, 200), (990_000, 1000), (1_000_000, 50_000)]);
        let tail = draws(&long_tail);
        let near =
            |at: usize, expected: u64, off: u64| assert!(tail[at].abs_diff(expected) <= off, "{}", tail[at]);
        near(10_000, 150, 2);
        near(20_000, 200, 15);
        near(39_600, 1000, 900);
        assert!(tail[0] >= 100 && tail[39_999] <= 50_000);
    }

    #[test]
    fn invalid_distributions_are_refused() {
        for bad in [
            Distribution::Constant(TIME_NS_MAX + 1),
            Distribution::Uniform(2, 1),
            Distribution::Quantiles(vec![]),
            Distribution::Quantiles(vec![(0, 1)]),
            Distribution::Quantiles(vec![(0, 1), (PPM - 1, 2)]),
            Distribution::Quantiles(vec![(0, 2), (PPM, 1)]),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(Distribution::Quantiles(vec![(0, 1), (PPM, 1)]).check().is_ok());
    }
    const PPM: u32 = crate::PPM;

    proptest! {
        /// Drawing never panics, even with an invalid distribution. Each draw takes one number from the random number
        /// generator.
        #[test]
        fn any_draws(points in prop::collection::vec((any::<u32>(), any::<u64>()), 0..6), a: u64, b: u64, seed: [u8; 32]) {
            for distribution in [Distribution::Uniform(a, b), Distribution::Quantiles(points.clone()), Distribution::Constant(a)] {
                let (mut one, mut other) = (ChaCha20Rng::from_seed(seed), ChaCha20Rng::from_seed(seed));
                let drawn = distribution.draw(&mut one);
                other.next_u64();
                prop_assert_eq!(one.next_u64(), other.next_u64());
                if distribution.check().is_ok() {
                    prop_assert!(distribution.least() <= drawn && drawn <= distribution.most());
                    prop_assert!(distribution.most() <= TIME_NS_MAX);
                }
            }
        }
    }
}
