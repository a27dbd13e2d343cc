//! Heals and quiet periods of a fault plan. At a heal, and at the start of a quiet period, all faults end except
//! permanent power losses. In a quiet period no fault may start.

use everett_fault::Fault;

use super::{PlanEntry, What};

/// Heal or quiet period of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) at_ns: u64,
    /// First vtime at which a fault may start again, in nanoseconds after *ready*, when all services are up. Equal to
    /// `at_ns` for a heal.
    pub(super) end_ns: u64,
    pub(super) line: usize,
    /// Word for the period in error messages.
    pub(super) name: &'static str,
}

/// All heals and quiet periods of a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct QuietPeriods {
    /// Heals and quiet periods, sorted by time.
    periods: Vec<Period>,
    /// For each period, the index of the period that ends last among this period and all earlier periods.
    last: Vec<usize>,
}

impl QuietPeriods {
    /// Collects the heals and quiet periods of entries, each with its line number. The entries must be in order of
    /// time.
    pub(super) fn of<'e>(entries: impl Iterator<Item = (usize, &'e PlanEntry)>) -> QuietPeriods {
        let mut quiet = QuietPeriods::default();
        for (line, entry) in entries {
            let (name, lasts) = match entry.what {
                What::Heal => ("heal", 0),
                What::Quiet => ("quiet period", entry.for_ns.unwrap_or(0)),
                What::Fault(_) => continue,
            };
            let end_ns = entry.at_ns.saturating_add(lasts);
            let before = quiet.last.last().copied();
            let longer = before.filter(|&i| quiet.periods[i].end_ns >= end_ns);
            quiet.last.push(longer.unwrap_or(quiet.periods.len()));
            quiet.periods.push(Period { at_ns: entry.at_ns, end_ns, line, name });
        }
        quiet
    }

    /// Returns the quiet period that contains this time. If several do, returns the one that ends last.
    pub(super) fn around(&self, at_ns: u64) -> Option<&Period> {
        let begun = self.periods.partition_point(|period| period.at_ns <= at_ns);
        let last = &self.periods[self.last[begun.checked_sub(1)?]];
        (last.end_ns > at_ns).then_some(last)
    }

    /// Returns the first heal or quiet period that begins after this time. A fault that starts at the same time as a
    /// heal starts after the heal.
    pub(super) fn next(&self, at_ns: u64) -> Option<&Period> {
        self.periods.get(self.periods.partition_point(|period| period.at_ns <= at_ns))
    }

    /// Returns the time at which a fault ends, in nanoseconds after *ready*. Returns `None` if the fault is
    /// instantaneous, or lasts until the end of the workload.
    pub(super) fn end(&self, at_ns: u64, for_ns: Option<u64>, fault: &Fault) -> Option<u64> {
        if !fault.kind().lasts() || fault.is_for_good() {
            return None;
        }
        match for_ns {
            Some(ns) => Some(at_ns.saturating_add(ns)),
            None => self.next(at_ns).map(|period| period.at_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use everett_fault::{GuestFault, NodeFault};

    use super::*;

    fn quiet(entries: &[(u64, Option<u64>)]) -> QuietPeriods {
        let entry = |&(at_ns, for_ns): &(u64, Option<u64>)| PlanEntry {
            at_ns,
            for_ns,
            what: if for_ns.is_some() { What::Quiet } else { What::Heal },
        };
        let entries: Vec<PlanEntry> = entries.iter().map(entry).collect();
        QuietPeriods::of(entries.iter().enumerate())
    }

    #[test]
    fn around_and_next() {
        // A long period that contains a short period and a heal, and a heal after the long period.
        let quiet = quiet(&[(10, Some(100)), (20, Some(5)), (30, None), (200, None)]);
        let around = |at| quiet.around(at).map(|p| p.line);
        assert_eq!(
            [9, 10, 22, 29, 109, 110, 200].map(around),
            [None, Some(0), Some(0), Some(0), Some(0), None, None]
        );
        let next = |at| quiet.next(at).map(|p| p.at_ns);
        assert_eq!(
            [0, 10, 20, 30, 199, 200].map(next),
            [Some(10), Some(20), Some(30), Some(200), Some(200), None]
        );
    }

    #[test]
    fn ends() {
        let quiet = quiet(&[(50, None)]);
        let node = || "a".to_owned();
        let pause = Fault::Node { node: node(), fault: NodeFault::Pause };
        assert_eq!(quiet.end(10, Some(5), &pause), Some(15));
        assert_eq!(quiet.end(10, None, &pause), Some(50));
        assert_eq!(quiet.end(50, None, &pause), None);
        assert_eq!(quiet.end(10, None, &Fault::Guest { node: node(), fault: GuestFault::Reseed }), None);
        let never =
            Fault::Node { node: node(), fault: NodeFault::PowerLoss { restart: None, tear_sectors: false } };
        assert_eq!(quiet.end(10, None, &never), None);
    }
}
