//! The end of an exploration, as stored in `end.json`.

use serde::{Deserialize, Serialize};

/// End of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplorationEnd {
    /// Reason why the exploration ended.
    pub why: EndReason,
    /// Number of branches whose results were merged into the exploration's results.
    pub branches: u64,
    /// Number of findings.
    pub findings: u64,
    /// Digest of all results, i.e. [`Merged::digest`](super::Merged::digest), in hexadecimal digits.
    pub digest: String,
    /// Last link of the chain of digests, i.e. [`Merged::digest_at`](super::Merged::digest_at) for all branches. Each
    /// link covers one branch more than the link before.
    pub chain: String,
    /// Host time since the exploration was last started or resumed, in nanoseconds. Used only for statistics.
    pub host_ns: u64,
    /// Limits of the last start or resume. `None` if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Limits of an exploration, as the operator set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of branches, including branches of earlier starts. `None` for no limit.
    pub branches: Option<u64>,
    /// Maximum host time since the last start, in nanoseconds. `None` for no limit.
    pub host_ns: Option<u64>,
    /// True if the exploration ends at the first finding.
    pub until_found: bool,
}

/// Reason why an exploration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// All requested branches were run.
    Branches,
    /// The time limit was reached.
    Time,
    /// The operator asked to stop at the first finding, and a finding was found.
    Found,
    /// The operator stopped the exploration.
    Stopped,
    /// An error ended the exploration.
    Failed,
}

impl EndReason {
    /// Returns the reason as a clause that follows "The exploration ended: ".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            EndReason::Branches => "all branches were run",
            EndReason::Time => "its time limit was reached",
            EndReason::Found => "something was found",
            EndReason::Stopped => "it was stopped",
            EndReason::Failed => "an error prevented it from continuing",
        }
    }
}
