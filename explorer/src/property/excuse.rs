//! Excuses: faults that explain a problem, so that its report is not a finding. For example, a kernel reports a hang
//! after its machine stood still for a time. A machine may fail to mount a disk with failing requests or flipped bits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::builtin::FILE_SYSTEM_DAMAGED;
use super::kernel::Trouble;

/// Longest period of Linux's watchdogs, in nanoseconds. Linux reports a hung task after this time
/// (`kernel.hung_task_timeout_secs`).
pub const WATCHDOG_NS: u64 = 120_000_000_000;

/// For each node, the faults that explain the problems that the node reports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Excuses {
    /// For each node, the vtime until which reports of watchdogs are excused, in nanoseconds.
    until_ns: BTreeMap<u16, u64>,
    /// Nodes with a disk whose requests fail now.
    failing: BTreeSet<u16>,
    /// Nodes with a disk whose requests failed since the node started.
    failed: BTreeSet<u16>,
    /// Nodes with a disk on which bits were flipped. A restart does not repair a disk.
    rotted: BTreeSet<u16>,
}

impl Excuses {
    /// Records that a node stands still until this vtime.
    pub fn stood_still(&mut self, node: u16, until_ns: u64) {
        let until = self.until_ns.entry(node).or_default();
        *until = (*until).max(until_ns.saturating_add(WATCHDOG_NS));
    }

    /// Records that requests to a disk of the node start to fail, or that requests to all of its disks succeed again.
    pub fn disk_errors(&mut self, node: u16, begins: bool) {
        if begins {
            self.failing.insert(node);
            self.failed.insert(node);
        } else {
            self.failing.remove(&node);
        }
    }

    /// Records that bits on a disk of the node were flipped.
    pub fn bits_rotted(&mut self, node: u16) {
        self.rotted.insert(node);
    }

    /// Records that a node has restarted. Its new kernel has not seen an earlier standstill, so the standstill no
    /// longer excuses reports. Disk errors continue to excuse reports only if requests still fail.
    pub fn restarted(&mut self, node: u16) {
        self.until_ns.remove(&node);
        if !self.failing.contains(&node) {
            self.failed.remove(&node);
        }
    }

    /// Returns true if a fault of the node's disks explains a violation of `property`. The caller found this violation
    /// without a report of the node's kernel. Only damage to a file system can be explained.
    #[must_use]
    pub fn explain_found(&self, node: u16, property: &str) -> bool {
        property == FILE_SYSTEM_DAMAGED && (self.rotted.contains(&node) || self.failed.contains(&node))
    }

    /// Returns true if a standstill of the node explains a problem that its kernel reported at this vtime.
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
        assert!(!excuses.explain(1, Trouble::HungTask, last + 1), "the excuse has ended");
        assert!(!excuses.explain(2, Trouble::HungTask, 5), "another node is not excused");
        assert!(!excuses.explain(1, Trouble::Panic, 5));
        excuses.restarted(1);
        assert!(!excuses.explain(1, Trouble::RcuStall, 5));
    }

    #[test]
    fn disk_errors_excuse_until_the_node_starts_without_them() {
        let mut excuses = Excuses::default();
        let explain = |excuses: &Excuses, node| excuses.explain_found(node, FILE_SYSTEM_DAMAGED);
        excuses.disk_errors(1, true);
        assert!(explain(&excuses, 1) && !explain(&excuses, 2));
        assert!(!excuses.explain_found(1, "service exit"));
        excuses.restarted(1);
        assert!(explain(&excuses, 1), "an excuse lasts while requests still fail");
        excuses.disk_errors(1, false);
        assert!(explain(&excuses, 1), "the mount may have begun before");
        excuses.restarted(1);
        assert!(!explain(&excuses, 1));
    }

    #[test]
    fn bit_rot_excuses_after_a_restart() {
        let mut excuses = Excuses::default();
        excuses.bits_rotted(1);
        excuses.restarted(1);
        assert!(excuses.explain_found(1, FILE_SYSTEM_DAMAGED));
        assert!(!excuses.explain_found(2, FILE_SYSTEM_DAMAGED));
        assert!(!excuses.explain_found(1, "file system error"));
    }
}
