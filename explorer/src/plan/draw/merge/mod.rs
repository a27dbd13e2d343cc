//! Adds faults that make frames late (latencies) to a finished plan, as far as the maximum number of simultaneous
//! network faults allows.
//!
//! Not here: other kinds of faults. A latency holds no exclusive resource, so it conflicts with other faults only
//! through the maximum number of simultaneous network faults.

use std::collections::BTreeMap;

use everett_fault::{Fault, NetworkFault};

use crate::plan::limits::{
    AT_NS_MAX, FOR_NS_MAX, LINES_MAX, NETWORK_FAULTS_MAX, PLAN_BYTES_MAX, PLAN_LINE_BYTES_MAX,
};
use crate::plan::line::{self, Faulty};
use crate::plan::names::Names;
use crate::plan::quiet_periods::QuietPeriods;
use crate::plan::{Plan, PlanEntry, What, check};

/// Returns all entries of `plan`, and as many of the latencies `more` as fit.
///
/// A heal is an entry of a plan that ends all active faults. A quiet period also ends them, and no fault may start in
/// it. `merge` cuts latencies at heals and quiet periods into pieces: a latency ends when the heal or quiet period
/// begins, and starts again after it. The pieces are added in order of time. A piece that would exceed a bound of the
/// plan is dropped. Entries of `more` that are invalid or not latencies are dropped, too.
#[must_use]
pub fn merge(plan: &Plan, more: &[PlanEntry], names: &Names) -> Plan {
    let periods = QuietPeriods::of(plan.entries().iter().enumerate());
    let mut load = Load::default();
    for entry in plan.entries() {
        if let What::Fault(fault @ Fault::Network(_)) = &entry.what {
            let end_ns = periods.end(entry.at_ns, entry.for_ns, fault).unwrap_or(u64::MAX);
            load.add(entry.at_ns, end_ns);
        }
    }
    let mut entries = plan.entries().to_vec();
    let mut bytes: usize = entries.iter().map(|entry| line::write(entry).len() + 1).sum();
    let is_valid = |entry: &&PlanEntry| {
        let mut faulty = Faulty::default();
        check::entry(entry, names, &mut faulty);
        matches!(entry.what, What::Fault(Fault::Network(NetworkFault::Latency { .. }))) && faulty.is_empty()
    };
    let more: Vec<&PlanEntry> = more.iter().filter(is_valid).collect();
    for (from_ns, to_ns) in gaps(&periods) {
        let mut pieces: Vec<PlanEntry> =
            more.iter().filter_map(|entry| piece(entry, from_ns, to_ns)).collect();
        pieces.sort_by_key(|piece| piece.at_ns);
        for piece in pieces {
            if entries.len() >= LINES_MAX {
                break;
            }
            let end_ns = piece.at_ns.saturating_add(piece.for_ns.unwrap_or(0));
            let length = line::write(&piece).len();
            let room = length <= PLAN_LINE_BYTES_MAX && bytes + length < PLAN_BYTES_MAX;
            if room && load.most(piece.at_ns, end_ns) < NETWORK_FAULTS_MAX {
                load.add(piece.at_ns, end_ns);
                bytes += length + 1;
                entries.push(piece);
            }
        }
    }
    // The sort is stable, so at equal times the plan's own entries come first.
    entries.sort_by_key(|entry| entry.at_ns);
    Plan { entries }
}

/// Returns the spans between heals and quiet periods, each as its beginning and its end.
fn gaps(periods: &QuietPeriods) -> impl Iterator<Item = (u64, u64)> {
    let mut from_ns = Some(0);
    std::iter::from_fn(move || {
        let mut begin_ns = from_ns?;
        // The end of a quiet period can lie in another quiet period, because quiet periods can overlap.
        while let Some(quiet) = periods.around(begin_ns) {
            begin_ns = quiet.end_ns;
        }
        let next = periods.next(begin_ns);
        from_ns = next.map(|period| period.at_ns);
        Some((begin_ns, next.map_or(u64::MAX, |period| period.at_ns)))
    })
}

/// Returns the part of a latency that lies between two times, or `None` if no part does.
fn piece(entry: &PlanEntry, from_ns: u64, to_ns: u64) -> Option<PlanEntry> {
    let end_ns = entry.at_ns.saturating_add(entry.for_ns.unwrap_or(FOR_NS_MAX)).min(to_ns);
    let at_ns = Some(entry.at_ns.max(from_ns)).filter(|at_ns| *at_ns <= AT_NS_MAX)?;
    let for_ns = end_ns.checked_sub(at_ns).filter(|ns| *ns > 0)?;
    Some(PlanEntry { at_ns, for_ns: Some(for_ns), what: entry.what.clone() })
}

/// Number of active network faults over time. Each key is a time, and its number holds until the next key.
#[derive(Debug, Default)]
struct Load {
    steps: BTreeMap<u64, usize>,
}

impl Load {
    fn at(&self, ns: u64) -> usize {
        self.steps.range(..=ns).next_back().map_or(0, |(_, count)| *count)
    }

    /// Returns the maximum number of active faults in `from_ns..to_ns`.
    fn most(&self, from_ns: u64, to_ns: u64) -> usize {
        let later = self.steps.range(from_ns..to_ns.max(from_ns)).map(|(_, count)| *count);
        later.fold(self.at(from_ns), usize::max)
    }

    /// Adds a fault that is active in `from_ns..to_ns`.
    fn add(&mut self, from_ns: u64, to_ns: u64) {
        if from_ns >= to_ns {
            return;
        }
        for ns in [from_ns, to_ns] {
            let count = self.at(ns);
            self.steps.insert(ns, count);
        }
        self.steps.range_mut(from_ns..to_ns).for_each(|(_, count)| *count += 1);
    }
}

#[cfg(test)]
mod tests;
