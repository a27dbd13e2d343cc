//! When a world is to be calm: its heals and quiet periods, and what they end.

use everett_fault::Fault;

use super::{Entry, What};

/// A heal, or a quiet period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) at_ns: u64,
    /// The first time at which something may start again. A heal's is its own.
    pub(super) end_ns: u64,
    pub(super) line: usize,
    /// What it is, for errors.
    pub(super) name: &'static str,
}

/// All of a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct Calm {
    /// In order of time.
    periods: Vec<Period>,
    /// For each period, which of those up to it ends last.
    last: Vec<usize>,
}

impl Calm {
    /// Of entries in order of time, with their lines.
    pub(super) fn of<'e>(entries: impl Iterator<Item = (usize, &'e Entry)>) -> Calm {
        let mut calm = Calm::default();
        for (line, entry) in entries {
            let (name, lasts) = match entry.what {
                What::Heal => ("heal", 0),
                What::Quiet => ("quiet period", entry.for_ns.unwrap_or(0)),
                What::Fault(_) => continue,
            };
            let end_ns = entry.at_ns.saturating_add(lasts);
            let before = calm.last.last().copied();
            let longer = before.filter(|&i| calm.periods[i].end_ns >= end_ns);
            calm.last.push(longer.unwrap_or(calm.periods.len()));
            calm.periods.push(Period { at_ns: entry.at_ns, end_ns, line, name });
        }
        calm
    }

    /// The quiet period in which this time lies; of several, the one that ends last.
    pub(super) fn around(&self, at_ns: u64) -> Option<&Period> {
        let begun = self.periods.partition_point(|period| period.at_ns <= at_ns);
        let last = &self.periods[self.last[begun.checked_sub(1)?]];
        (last.end_ns > at_ns).then_some(last)
    }

    /// The first heal or quiet period that begins after this time. What starts with one starts after it.
    pub(super) fn next(&self, at_ns: u64) -> Option<&Period> {
        self.periods.get(self.periods.partition_point(|period| period.at_ns <= at_ns))
    }

    /// When a fault ends. `None`: at once, or not before the end of the run.
    pub(super) fn end(&self, at_ns: u64, for_ns: Option<u64>, fault: &Fault) -> Option<u64> {
        if !fault.kind().lasts() || matches!(fault, Fault::PowerLoss { restart: None, .. }) {
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
    use super::*;

    fn calm(entries: &[(u64, Option<u64>)]) -> Calm {
        let entry = |&(at_ns, for_ns): &(u64, Option<u64>)| Entry {
            at_ns,
            for_ns,
            what: if for_ns.is_some() { What::Quiet } else { What::Heal },
        };
        let entries: Vec<Entry> = entries.iter().map(entry).collect();
        Calm::of(entries.iter().enumerate())
    }

    #[test]
    fn around_and_next() {
        // A long period with a short one and a heal inside, another heal behind.
        let calm = calm(&[(10, Some(100)), (20, Some(5)), (30, None), (200, None)]);
        let around = |at| calm.around(at).map(|p| p.line);
        assert_eq!(
            [9, 10, 22, 29, 109, 110, 200].map(around),
            [None, Some(0), Some(0), Some(0), Some(0), None, None]
        );
        let next = |at| calm.next(at).map(|p| p.at_ns);
        assert_eq!(
            [0, 10, 20, 30, 199, 200].map(next),
            [Some(10), Some(20), Some(30), Some(200), Some(200), None]
        );
    }

    #[test]
    fn ends() {
        let calm = calm(&[(50, None)]);
        let node = || "a".to_owned();
        let pause = Fault::Pause { node: node() };
        assert_eq!(calm.end(10, Some(5), &pause), Some(15));
        assert_eq!(calm.end(10, None, &pause), Some(50));
        assert_eq!(calm.end(50, None, &pause), None);
        assert_eq!(calm.end(10, None, &Fault::Reseed { node: node() }), None);
        let never = Fault::PowerLoss { node: node(), restart: None, tear_sectors: false };
        assert_eq!(calm.end(10, None, &never), None);
    }
}
