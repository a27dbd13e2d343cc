//! Quiet periods: periods of vtime in which Everett applies no faults. Programs request them through the SDK.
//!
//! A period begins one wire latency (the shortest delay of a frame between nodes) after the request. Other nodes may
//! have run ahead of the requesting node, but never by more than this latency. When a period begins, Everett ends all
//! active faults. Everett does not apply a fault that is due within a period. Overlapping requests make one period.

use serde::{Deserialize, Serialize};

use everett_input::units::Vtime;

use super::Timeline;
use crate::world::conversation::Quiet;
use crate::world::event::What;

/// Maximum number of quiet periods. If a request would add another period, it extends the last one instead.
pub(super) const PERIODS_MAX: usize = 64;

/// A period without faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Period {
    /// Vtime at which the period begins, in nanoseconds.
    from_ns: u64,
    /// First vtime at which a fault may begin again, in nanoseconds.
    until_ns: u64,
    /// True if the period has begun and active faults were ended.
    begun: bool,
}

/// Adds a request to `periods`, which are ordered by their beginnings. Drops periods that ended before `now_ns`.
fn add(periods: &mut Vec<Period>, from_ns: u64, until_ns: u64, now_ns: u64) {
    periods.retain(|period| !period.begun || period.until_ns > now_ns);
    let mut new = Period { from_ns, until_ns, begun: false };
    let full = periods.len() >= PERIODS_MAX;
    let last = periods.last().copied();
    let overlaps = |period: &Period| {
        period.from_ns <= new.until_ns && new.from_ns <= period.until_ns || full && Some(*period) == last
    };
    let (merged, apart): (Vec<Period>, Vec<Period>) = periods.iter().partition(|period| overlaps(period));
    for period in merged {
        new.from_ns = new.from_ns.min(period.from_ns);
        new.until_ns = new.until_ns.max(period.until_ns);
        new.begun |= period.begun;
    }
    *periods = apart;
    let place = periods.partition_point(|period| period.from_ns <= new.from_ns);
    periods.insert(place, new);
}

impl Timeline {
    /// Adds a program's request.
    pub(super) fn ask_quiet(&mut self, quiet: Quiet) {
        let from_ns = quiet.vtime_ns.saturating_add(self.distance_ns());
        let until_ns = from_ns.saturating_add(quiet.for_ns);
        let now_ns = self.vtime();
        add(&mut self.course.quiet, from_ns, until_ns, now_ns);
    }

    /// Returns the vtime at which the next period begins, in nanoseconds.
    pub(super) fn next_quiet_ns(&self) -> Option<u64> {
        self.course.quiet.iter().filter(|period| !period.begun).map(|period| period.from_ns).min()
    }

    /// Ends all active faults if a period begins now.
    pub(super) fn begin_quiet(&mut self) {
        let now = self.world.vtime();
        let mut until_ns = None;
        for period in self.course.quiet.iter_mut().filter(|period| !period.begun && period.from_ns <= now) {
            period.begun = true;
            until_ns = until_ns.max(Some(period.until_ns));
        }
        let Some(until_ns) = until_ns else { return };
        let text = format!("a program asked for a time without faults, until {}", Vtime(until_ns));
        self.tell(What::Effect { text });
        if let Some(faults) = self.faults.clone() {
            self.heal(&faults);
        }
    }

    /// Returns true if a quiet period lasts at the current vtime.
    pub(super) fn is_quiet(&self) -> bool {
        let now = self.world.vtime();
        self.course.quiet.iter().any(|period| period.begun && now < period.until_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlapping_requests_make_one_period() {
        let mut periods = Vec::new();
        add(&mut periods, 10, 20, 0);
        add(&mut periods, 30, 40, 0);
        assert_eq!(periods.iter().map(|p| (p.from_ns, p.until_ns)).collect::<Vec<_>>(), [(10, 20), (30, 40)]);
        add(&mut periods, 15, 30, 0);
        assert_eq!(periods, [Period { from_ns: 10, until_ns: 40, begun: false }]);
        periods[0].begun = true;
        add(&mut periods, 35, 50, 35);
        assert_eq!(periods, [Period { from_ns: 10, until_ns: 50, begun: true }]);
        add(&mut periods, 60, 61, 50);
        assert_eq!(periods, [Period { from_ns: 60, until_ns: 61, begun: false }], "the first one is over");
    }

    proptest! {
        /// A vtime is quiet exactly if a request covers it, as long as there are at most [`PERIODS_MAX`] periods.
        #[test]
        fn periods_cover_what_was_asked_for(asked in prop::collection::vec((0..1000u64, 0..40u64), 0..40)) {
            let mut periods = Vec::new();
            for (from, length) in &asked {
                add(&mut periods, *from, from + length, 0);
            }
            for at in 0..1100 {
                let wanted = asked.iter().any(|(from, length)| (*from..from + length).contains(&at));
                let is = periods.iter().any(|period| (period.from_ns..period.until_ns).contains(&at));
                prop_assert_eq!(is, wanted, "{}", at);
            }
        }

        #[test]
        fn their_number_is_bounded(asked in prop::collection::vec((0..u64::MAX, 0..9u64), 100..200)) {
            let mut periods = Vec::new();
            for (from, length) in asked {
                add(&mut periods, from, from.saturating_add(length), 0);
                prop_assert!(periods.len() <= PERIODS_MAX);
                prop_assert!(periods.is_sorted_by_key(|period| period.from_ns));
            }
        }
    }
}
