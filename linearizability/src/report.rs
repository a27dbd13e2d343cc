//! Result of a history's check.

use super::cause::ViolationGroup;
use super::evidence::{Evidence, Verdict};
use super::lost::Lost;

/// Result for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReport {
    /// The key as JSON, shortened; `None` if the object has no keys.
    pub key: Option<String>,
    /// Number of the key's operations that did not fail.
    pub operations: usize,
    /// Verdict on these operations.
    pub verdict: Verdict,
}

/// Result of a history's check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Results by key, in the order of appearance.
    pub keys: Vec<KeyReport>,
    /// Acknowledged writes that are gone, by key: the first [`LOST_MAX`](super::limits::LOST_MAX) of them.
    pub lost: Vec<Lost>,
    /// Number of all acknowledged writes that are gone.
    pub lost_count: u64,
    /// Losses by cause, in the order of the causes' texts.
    pub losses: Vec<ViolationGroup<Lost>>,
    /// Violations by cause, in the order of the causes' texts. Keys with a loss are left out, because the loss explains
    /// their violation. Causes whose [`Evidence::earliest`] is false are left out if it is true for another cause.
    pub causes: Vec<ViolationGroup<Evidence>>,
    /// Number of operations that were invoked.
    pub operations: usize,
    /// Number of operations that were acknowledged.
    pub acknowledged: usize,
    /// Number of operations that failed. Operations that neither failed nor were acknowledged are of unknown outcome.
    pub failed: usize,
    /// Number of lines that could not be read or were invalid. If it is not zero, operations may be missing.
    pub problems: u64,
}

impl Report {
    /// Returns the keys whose check exceeded a limit.
    pub fn unknown(&self) -> impl Iterator<Item = &KeyReport> {
        self.keys.iter().filter(|key| matches!(key.verdict, Verdict::Unknown { .. }))
    }
}
