//! How many branches are in flight, and how many are followed by checks, where the world leaves that open: what fits the length of
//! the exploration that is asked for.
//!
//! With K branches in flight, the first K are chosen before anything is known, so they all begin at the root moment. A short
//! exploration with a large K is one layer of branches. K grows with the square root of the number of branches, so that a longer
//! exploration has more layers as well as wider ones. Few branches reach the horizon in a short one, so more of them are checked.
//!
//! **Invariant.** A fit is a function of what the operator asked for, and never of cores, of host time that was measured, or of
//! results: explorations with one fit are beginnings of each other.

use everett_fault::{PPM, Ppm};

/// Branches that an exploration with a budget of time is taken to run in a second of it.
const BRANCHES_PER_S: u64 = 4;
const NS_PER_S: u64 = 1_000_000_000;

/// How long an exploration is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Length {
    /// At most so many branches.
    pub branches: Option<u64>,
    /// At most so many nanoseconds of host time.
    pub host_ns: Option<u64>,
}

/// What fits a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// K: how many branches may be chosen before the first one's result is known.
    pub in_flight: u32,
    /// How many branches are followed by the checks, besides those that reach the horizon.
    pub checks: Ppm,
}

/// From how many branches on which fit is taken, the longest first. K is at most the square root of the branches, and at least 8.
const FITS: [(u64, Fit); 4] = [
    (4096, Fit { in_flight: 64, checks: PPM / 8 }),
    (1024, Fit { in_flight: 32, checks: PPM / 4 }),
    (256, Fit { in_flight: 16, checks: PPM / 4 }),
    (0, Fit { in_flight: 8, checks: PPM / 2 }),
];

impl Default for Fit {
    /// That of an exploration without an end.
    fn default() -> Fit {
        FITS[0].1
    }
}

impl Fit {
    /// What fits an exploration of this length; of two limits the one that is likely to end it counts.
    #[must_use]
    pub fn of(length: Length) -> Fit {
        let in_time = length.host_ns.map(|ns| (ns / NS_PER_S).saturating_mul(BRANCHES_PER_S));
        let branches = [length.branches, in_time].into_iter().flatten().min();
        let fits = |&(least, _): &(u64, Fit)| branches.is_none_or(|branches| branches >= least);
        FITS.into_iter().find(fits).map_or_else(Fit::default, |(_, fit)| fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(branches: impl Into<Option<u64>>, seconds: impl Into<Option<u64>>) -> (u32, u32) {
        let host_ns = seconds.into().map(|seconds: u64| seconds * NS_PER_S);
        let Fit { in_flight, checks } = Fit::of(Length { branches: branches.into(), host_ns });
        (in_flight, PPM / checks)
    }

    #[test]
    fn short_explorations_have_few_branches_in_flight_and_check_many() {
        assert_eq!(of(None, None), (64, 8));
        assert_eq!((of(0, None), of(150, None), of(255, None)), ((8, 2), (8, 2), (8, 2)));
        assert_eq!((of(256, None), of(1023, None)), ((16, 4), (16, 4)));
        assert_eq!((of(1024, None), of(4095, None), of(4096, None)), ((32, 4), (32, 4), (64, 8)));
        // Of time, a quarter of a second is a branch.
        assert_eq!(
            (of(None, 60), of(None, 240), of(None, 600), of(None, 3600)),
            ((8, 2), (16, 4), (32, 4), (64, 8))
        );
        assert_eq!(
            (of(100_000, 60), of(100, 86_400), of(u64::MAX, u64::MAX / NS_PER_S)),
            ((8, 2), (8, 2), (64, 8))
        );
    }

    /// At least twice as many layers as a branch can be deep in by chance: what the fit is for.
    #[test]
    fn there_are_always_layers() {
        for branches in [64, 150, 256, 1_000, 1_024, 5_000, 1_000_000] {
            let Fit { in_flight, .. } = Fit::of(Length { branches: Some(branches), host_ns: None });
            assert!(branches / u64::from(in_flight) >= 8, "{branches}");
        }
    }
}
