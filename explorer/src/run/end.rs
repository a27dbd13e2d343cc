//! How an exploration ended: `end.json`.

use serde::{Deserialize, Serialize};

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Why.
    pub why: Why,
    /// How many branches were merged.
    pub branches: u64,
    /// How many findings there are.
    pub findings: u64,
    /// [`Merged::digest`](super::Merged::digest) in hexadecimal digits.
    pub digest: String,
    /// The last link of the chain: [`Merged::digest_at`](super::Merged::digest_at) all branches.
    pub chain: String,
    /// The host's time that it took since it was started or resumed last, in nanoseconds. For accounts.
    pub host_ns: u64,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// All branches that were asked for were run.
    Branches,
    /// Its time was over.
    Time,
    /// It was to end with a finding, and there is one.
    Found,
    /// Somebody stopped it.
    Stopped,
    /// It could not go on.
    Failed,
}

impl Why {
    /// In words: "It ended since …".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Why::Branches => "all branches were run",
            Why::Time => "its time was over",
            Why::Found => "something was found",
            Why::Stopped => "it was stopped",
            Why::Failed => "it could not go on",
        }
    }
}
