//! Result of a history's check.

use super::cause::ViolationGroup;
use super::evidence::{Evidence, Verdict};
use super::lost::Lost;

/// Result for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReport {
    /// The key, as shortened JSON. `None` if the object that the operations use has no keys.
    pub key: Option<String>,
    /// Number of the key's operations that did not fail.
    pub operations: usize,
    /// Verdict on these operations.
    pub verdict: Verdict,
}

/// Result of a history's check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Results for each key, in the order of first appearance.
    pub keys: Vec<KeyReport>,
    /// Lost writes, by key. The list has at most [`LOST_MAX`](super::limits::LOST_MAX) entries.
    pub lost: Vec<Lost>,
    /// Number of all lost writes.
    pub lost_count: u64,
    /// Lost writes, grouped by cause and sorted by the text of the cause.
    pub losses: Vec<ViolationGroup<Lost>>,
    /// Violations of linearizability, grouped by cause and sorted by the text of the cause. Keys with a lost write are
    /// omitted, because the loss explains their violation. If the first impossible operation is known for some
    /// violations ([`Evidence::earliest`]), only the causes of these violations are listed. If it is known for none,
    /// only the first cause is listed.
    pub causes: Vec<ViolationGroup<Evidence>>,
    /// Number of operations that were invoked.
    pub operations: usize,
    /// Number of operations that were acknowledged.
    pub acknowledged: usize,
    /// Number of operations that failed. All other operations were acknowledged or have an unknown outcome.
    pub failed: usize,
    /// Number of invalid lines of the history. If it is not zero, operations may be missing.
    pub problems: u64,
}

impl Report {
    /// Returns the keys whose check exceeded a limit.
    pub fn unknown(&self) -> impl Iterator<Item = &KeyReport> {
        self.keys.iter().filter(|key| matches!(key.verdict, Verdict::Unknown { .. }))
    }
}
