//! Probes that recorded branches are made to print, after the fact.
//!
//! - this file: the replays of branches with probes
//! - `observer`: collects the hits of a branch
//!
//! **Invariant.** Each branch ends with the recorded trail, or the replays end with an error.

mod observer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everett_explorer::run::Reading;
use everett_host::interrupt::Interrupt;

use crate::explore::path_runner::{Branch, PathRunner};
use crate::explore::replays::{self, Job};
use crate::explore::setting::Setting;
use crate::inside::debug_files::DebugFolders;
use crate::probes::expression::Expression;
use crate::probes::hit::BranchHits;
use crate::probes::probe::Probe;
use crate::probes::probing::Probing;
use crate::probes::wanted::Wanted;
use observer::Observer;

/// Probes, and the branches that are replayed with them.
pub struct Options<'o> {
    /// Probes.
    pub probes: Vec<Probe>,
    /// Condition of all probes.
    pub condition: Option<Expression>,
    /// True if all hits are only counted.
    pub only_counts: bool,
    /// True if all hits have stacks.
    pub has_stack: bool,
    /// True if the lines of services are collected, too.
    pub with_logs: bool,
    /// The only node that is probed.
    pub node: Option<usize>,
    /// Branches that are replayed, with the branches that they extend. All branches if it is empty.
    pub branches: Vec<u64>,
    /// Number of branches that are replayed in parallel.
    pub workers: usize,
    /// Folders with separate debug files of programs.
    pub debug: DebugFolders,
    /// Interrupt that ends the replays.
    pub interrupt: &'o Interrupt,
}

/// State that the observers of all branches share.
struct Printing<'o> {
    probing: Arc<Probing>,
    only_counts: bool,
    has_stack: bool,
    with_logs: bool,
    stop: &'o (dyn Fn() -> bool + Sync),
}

impl Job for Printing<'_> {
    type Inherited = ();
    type Watch<'w>
        = Observer<'w>
    where
        Self: 'w;
    type Result = BranchHits;

    fn watch<'w>(&'w self, _: &mut PathRunner<'_>, number: u64, _: u64) -> Observer<'w> {
        Observer::new(self, number)
    }

    fn finish(&self, _: u64, (): &(), _: &Branch, observer: Observer<'_>) -> (BranchHits, ()) {
        (observer.into(), ())
    }
}

/// Maximum number of branches whose hits wait for a branch with a lower number. Beyond it, the waiting hits are received
/// first.
const WAITING_MAX: usize = 65_536;
/// Maximum memory of the hits that wait, in bytes. Beyond it, those of the branch with the lowest number are received first.
const BYTES_WAITING_MAX: usize = 64 << 20;

/// Hits of branches that wait for branches with lower numbers.
struct InOrder {
    /// Numbers of all branches that are still replayed, lowest first.
    left: BTreeSet<u64>,
    waiting: BTreeMap<u64, BranchHits>,
    /// Memory of the waiting hits, in bytes.
    bytes: usize,
}

impl InOrder {
    /// Adds the hits of a branch. Returns all hits that can be received now, in the order of their branches' numbers.
    fn add(&mut self, hits: BranchHits) -> Vec<BranchHits> {
        self.bytes += hits.bytes;
        self.left.remove(&hits.branch);
        self.waiting.insert(hits.branch, hits);
        let mut ready = Vec::new();
        while let Some((number, _)) = self.waiting.first_key_value() {
            let is_next = self.left.first().is_none_or(|left| number < left);
            let is_full = self.waiting.len() > WAITING_MAX || self.bytes > BYTES_WAITING_MAX;
            if !is_next && !is_full {
                break;
            }
            let Some((_, hits)) = self.waiting.pop_first() else { break };
            self.bytes -= hits.bytes;
            ready.push(hits);
        }
        ready
    }
}

/// Replays branches with probes, and calls `receive` with the hits of each, in the order of the branches' numbers as far as
/// `WAITING_MAX` and `BYTES_WAITING_MAX` allow. Each replayed branch has its recorded trail. Returns the number of branches to replay.
///
/// # Errors
/// Returns an error if a probe has no place in the kernel, if a branch cannot be run, if its trail differs from the
/// recorded one, or if `receive` returns an error.
pub fn hits(
    setting: &Setting,
    reading: &Reading,
    options: Options<'_>,
    receive: &mut dyn FnMut(BranchHits, u64) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let targets = match options.branches.is_empty() {
        true => replays::first_targets(reading, u64::MAX)?,
        false => replays::targets_of(reading, &options.branches)?,
    };
    let stop = || options.interrupt.wanted();
    let nodes = options.node.map(|node| [node].into());
    let wanted = options.probes.into_iter().map(|probe| Wanted {
        probe,
        conditions: options.condition.iter().cloned().collect(),
        nodes: nodes.clone(),
        declared_as: String::new(),
    });
    let printing = Printing {
        probing: Arc::new(Probing::new(&setting.launcher, wanted.collect(), &options.debug)?),
        only_counts: options.only_counts,
        has_stack: options.has_stack,
        with_logs: options.with_logs,
        stop: &stop,
    };
    let count = targets.len() as u64;
    let mut order = InOrder { left: targets.keys().copied().collect(), waiting: BTreeMap::new(), bytes: 0 };
    replays::run(setting, &targets, options.workers, &printing, &stop, &mut |hits| {
        order.add(hits).into_iter().try_for_each(|hits| receive(hits, count))
    })?;
    // After an interrupt, some branches with lower numbers have not run.
    std::mem::take(&mut order.waiting).into_values().try_for_each(|hits| receive(hits, count))?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_received_in_the_order_of_their_numbers() {
        let mut order = InOrder { left: (0..600).collect(), waiting: BTreeMap::new(), bytes: 0 };
        let mut add = |branch| -> Vec<u64> {
            let hits = BranchHits { branch, ..BranchHits::default() };
            order.add(hits).into_iter().map(|hits| hits.branch).collect()
        };
        assert_eq!(add(2), [0_u64; 0]);
        assert_eq!(add(1), [0_u64; 0]);
        assert_eq!(add(0), [0, 1, 2]);
        assert_eq!(add(3), [3]);
        let most = 100 + WAITING_MAX as u64;
        for branch in 100..most {
            assert_eq!(add(branch), [0_u64; 0]);
        }
        assert_eq!(add(most), [100], "the number is bounded");
        let mut order = InOrder { left: (0..9).collect(), waiting: BTreeMap::new(), bytes: 0 };
        let mut add = |branch, bytes| -> Vec<u64> {
            let hits = BranchHits { branch, bytes, ..BranchHits::default() };
            order.add(hits).into_iter().map(|hits| hits.branch).collect()
        };
        assert_eq!(add(5, BYTES_WAITING_MAX), [0_u64; 0]);
        assert_eq!(add(4, 1), [4], "memory is bounded");
        assert_eq!(add(3, 0), [0_u64; 0]);
    }
}
