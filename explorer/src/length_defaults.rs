//! Defaults that depend on the length of an exploration: the number of branches in flight (chosen, result not yet
//! merged), and the share of branches after which the checks run. A world file can set other values.
//!
//! With K branches in flight, Everett chooses the first K before any result is known, so they all begin at the root
//! moment. If a short exploration had a large K, nearly all of its branches would begin there, and few would extend
//! others. K grows with the square root of the number of branches. A longer exploration therefore has both deeper and
//! wider trees.
//!
//! Everett always runs the checks after branches that reach the horizon, i.e. the vtime beyond which no branch runs. In
//! a short exploration few branches reach the horizon, so Everett runs the checks after a larger share of the others.
//!
//! **Invariant.** The defaults depend only on the length that the operator asked for. They do not depend on the number
//! of cores, on measured host time or on results. If two explorations differ only in length and have the same defaults,
//! the shorter one is a prefix of the longer one.

use everett_fault::{PPM, Ppm};

/// Assumed number of branches per second in an exploration whose length is given as host time.
const BRANCHES_PER_S: u64 = 4;
const NS_PER_S: u64 = 1_000_000_000;

/// Length of an exploration, as the operator requested it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Length {
    /// Maximum number of branches.
    pub branches: Option<u64>,
    /// Maximum host time, in nanoseconds.
    pub host_ns: Option<u64>,
}

/// Defaults for an exploration's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthDefaults {
    /// K, the maximum number of branches in flight (chosen, result not yet merged).
    pub in_flight: u32,
    /// Share of branches after which the checks run, in ppm. The checks always run after branches that reach the
    /// horizon.
    pub checks: Ppm,
}

/// Table of defaults. Each row has a minimum number of branches and the defaults from that number on. Rows are in
/// descending order. K is the square root of the minimum, but at least 8.
const DEFAULTS: [(u64, LengthDefaults); 4] = [
    (4096, LengthDefaults { in_flight: 64, checks: PPM / 8 }),
    (1024, LengthDefaults { in_flight: 32, checks: PPM / 4 }),
    (256, LengthDefaults { in_flight: 16, checks: PPM / 4 }),
    (0, LengthDefaults { in_flight: 8, checks: PPM / 2 }),
];

impl Default for LengthDefaults {
    /// Returns the defaults of an exploration of unlimited length.
    fn default() -> LengthDefaults {
        DEFAULTS[0].1
    }
}

impl LengthDefaults {
    /// Returns the defaults of an exploration of this length. If both limits are given, uses the limit that will
    /// probably be reached first.
    #[must_use]
    pub fn of(length: Length) -> LengthDefaults {
        let in_time = length.host_ns.map(|ns| (ns / NS_PER_S).saturating_mul(BRANCHES_PER_S));
        let branches = [length.branches, in_time].into_iter().flatten().min();
        let reached = |&(least, _): &(u64, LengthDefaults)| branches.is_none_or(|branches| branches >= least);
        DEFAULTS.into_iter().find(reached).map_or_else(LengthDefaults::default, |(_, defaults)| defaults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(branches: impl Into<Option<u64>>, seconds: impl Into<Option<u64>>) -> (u32, u32) {
        let host_ns = seconds.into().map(|seconds: u64| seconds * NS_PER_S);
        let LengthDefaults { in_flight, checks } =
            LengthDefaults::of(Length { branches: branches.into(), host_ns });
        (in_flight, PPM / checks)
    }

    #[test]
    fn short_explorations_have_few_branches_in_flight_and_check_many() {
        assert_eq!(of(None, None), (64, 8));
        assert_eq!((of(0, None), of(150, None), of(255, None)), ((8, 2), (8, 2), (8, 2)));
        assert_eq!((of(256, None), of(1023, None)), ((16, 4), (16, 4)));
        assert_eq!((of(1024, None), of(4095, None), of(4096, None)), ((32, 4), (32, 4), (64, 8)));
        // Four branches are assumed for each second of host time.
        assert_eq!(
            (of(None, 60), of(None, 240), of(None, 600), of(None, 3600)),
            ((8, 2), (16, 4), (32, 4), (64, 8))
        );
        assert_eq!(
            (of(100_000, 60), of(100, 86_400), of(u64::MAX, u64::MAX / NS_PER_S)),
            ((8, 2), (8, 2), (64, 8))
        );
    }

    /// The defaults exist so that an exploration has several layers of K branches, each of which extends the layer
    /// before.
    #[test]
    fn explorations_of_64_branches_or_more_have_8_layers() {
        for branches in [64, 150, 256, 1_000, 1_024, 5_000, 1_000_000] {
            let LengthDefaults { in_flight, .. } =
                LengthDefaults::of(Length { branches: Some(branches), host_ns: None });
            assert!(branches / u64::from(in_flight) >= 8, "{branches}");
        }
    }
}
