//! Chooses the vtimes at which a timeline can be forked. They are called cuts. A step is an observed event, e.g. a
//! message or a line of output. Events at the same vtime count as one step. Two neighbouring cuts have at most one step
//! between them.

/// Maximum distance between neighbouring cuts, in nanoseconds. A timeline that is longer than [`CUTS_MAX`] times this
/// distance has a larger maximum: its length divided by [`CUTS_MAX`].
///
/// A smaller distance would not say more exactly when a finding became likely. After a fork, Everett's agent in the
/// guest reseeds the kernel's random number generator, which takes part of a millisecond. Only then do the guest's own
/// random numbers differ from those of the original timeline.
pub const GRID_NS: u64 = 1_000_000;
/// Maximum number of cuts that separate no steps, and only keep the distance between neighbouring cuts small. Cuts that
/// separate consecutive steps do not count towards this maximum.
pub const CUTS_MAX: u64 = 1_000_000;

/// Cuts of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    all: Vec<u64>,
}

impl Cuts {
    /// Chooses the cuts of a timeline from `from_ns` to `to_ns`. Both of these vtimes are cuts. `steps` has the vtimes
    /// of the timeline's steps, in any order.
    #[must_use]
    pub fn new(from_ns: u64, to_ns: u64, mut steps: Vec<u64>) -> Cuts {
        let to_ns = to_ns.max(from_ns);
        steps.retain(|at| (from_ns..=to_ns).contains(at));
        steps.sort_unstable();
        steps.dedup();
        let grid_ns = GRID_NS.max((to_ns - from_ns) / CUTS_MAX);
        let mut all = vec![from_ns];
        // Divide the time between two consecutive steps into parts of equal length, and place a cut in the middle of
        // each part.
        let mut before = from_ns;
        for at in steps {
            let cuts = (at - before) / grid_ns + 1;
            let part = |i: u64| {
                before + (u128::from(at - before) * u128::from(2 * i + 1) / u128::from(2 * cuts)) as u64
            };
            all.extend((0..cuts).map(part));
            before = at;
        }
        let rest = (to_ns - before).div_ceil(grid_ns);
        let part = |i: u64| before + (u128::from(to_ns - before) * u128::from(i) / u128::from(rest)) as u64;
        all.extend((1..=rest).map(part));
        all.push(to_ns);
        all.dedup();
        Cuts { all }
    }

    /// Returns the cuts, in ascending order. There is at least one.
    #[must_use]
    pub fn all(&self) -> &[u64] {
        &self.all
    }

    /// Returns the index of the last cut.
    #[must_use]
    pub fn last(&self) -> usize {
        self.all.len() - 1
    }

    /// Returns the vtime of a cut, in nanoseconds. An index that is too large returns the vtime of the last cut.
    #[must_use]
    pub fn at(&self, cut: usize) -> u64 {
        self.all.get(cut).or(self.all.last()).copied().unwrap_or(0)
    }

    /// Returns the index of the cut that is nearest to a vtime.
    #[must_use]
    pub fn nearest(&self, vtime_ns: u64) -> usize {
        let after = self.all.partition_point(|at| *at < vtime_ns).min(self.last());
        let before = after.saturating_sub(1);
        if self.at(before).abs_diff(vtime_ns) < self.at(after).abs_diff(vtime_ns) { before } else { after }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn cuts_lie_between_steps_and_on_a_grid() {
        assert_eq!(Cuts::new(0, 2 * MS, vec![600_000, 1_000_000]).all(), [0, 300_000, 800_000, 2 * MS]);
        assert_eq!(Cuts::new(7, 7, vec![7]).all(), [7]);
        let cuts = Cuts::new(0, 10 * MS, Vec::new());
        assert_eq!(cuts.all().len(), 11);
        assert_eq!((cuts.nearest(0), cuts.nearest(3_400_000), cuts.nearest(u64::MAX)), (0, 3, 10));
    }

    proptest! {
        #[test]
        fn at_most_one_step_lies_between_two_cuts(
            from in 0..1_000u64, length in 0..50 * MS, steps in prop::collection::vec(0..51 * MS, 0..60),
        ) {
            let cuts = Cuts::new(from, from + length, steps.clone());
            prop_assert_eq!((cuts.at(0), cuts.at(cuts.last())), (from, from + length));
            for pair in cuts.all().windows(2) {
                prop_assert!(pair[0] < pair[1] && pair[1] - pair[0] <= 2 * GRID_NS);
                let mut within: Vec<u64> = steps.iter().copied().filter(|at| pair[0] < *at && *at < pair[1]).collect();
                within.sort_unstable();
                within.dedup();
                prop_assert!(within.len() <= 1, "{within:?} between {pair:?}");
            }
            prop_assert!(Cuts::new(0, u64::MAX / 2, steps).all().len() as u64 <= CUTS_MAX + 200);
        }
    }
}
