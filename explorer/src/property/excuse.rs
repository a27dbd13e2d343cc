//! Excuses: kernel messages that faults explain. A machine that stood still for a time reports that it hung.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kernel::Trouble;

/// Longest of Linux's watchdog periods, in nanoseconds: a hung task is reported after this time
/// (`kernel.hung_task_timeout_secs`).
pub const WATCHDOG_NS: u64 = 120_000_000_000;

/// For each node, the vtime until which messages of its watchdogs are excused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Excuses {
    until_ns: BTreeMap<u16, u64>,
}

impl Excuses {
    /// Notes that a node stands still, or stood still, until this vtime.
    pub fn stood_still(&mut self, node: u16, until_ns: u64) {
        let until = self.until_ns.entry(node).or_default();
        *until = (*until).max(until_ns.saturating_add(WATCHDOG_NS));
    }

    /// Notes that a node has restarted. Its kernel has no memory of the standstill.
    pub fn restarted(&mut self, node: u16) {
        self.until_ns.remove(&node);
    }

    /// Returns true if this problem is explained by a standstill of the node.
    #[must_use]
    pub fn explain(&self, node: u16, trouble: Trouble, vtime_ns: u64) -> bool {
        trouble.is_of_watchdogs() && self.until_ns.get(&node).is_some_and(|until| vtime_ns <= *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdogs_are_excused_for_a_period_and_nothing_else_is() {
        let mut excuses = Excuses::default();
        excuses.stood_still(1, 5);
        excuses.stood_still(1, 3);
        let last = 5 + WATCHDOG_NS;
        assert!(excuses.explain(1, Trouble::HungTask, last) && excuses.explain(1, Trouble::SoftLockup, 0));
        assert!(!excuses.explain(1, Trouble::HungTask, last + 1), "its time is over");
        assert!(!excuses.explain(2, Trouble::HungTask, 5), "another node");
        assert!(!excuses.explain(1, Trouble::Panic, 5));
        excuses.restarted(1);
        assert!(!excuses.explain(1, Trouble::RcuStall, 5));
    }
}
