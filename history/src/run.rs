//! The data that the history (the database of explorations) stores for an exploration, also called a run, and for each
//! of its findings.

use serde::Serialize;

/// Maximum number of runs in a history. When a run is added, the oldest runs beyond this number are deleted.
pub const RUNS_MAX: u32 = 10_000;
/// Maximum number of findings that the history stores for a run.
pub const FINDINGS_MAX: usize = 1024;
/// Maximum length of a stored text, in bytes. Longer texts are cut.
pub const TEXT_BYTES_MAX: usize = 512;
/// Maximum length of a path, in bytes. A run with a longer path is refused.
pub const PATH_BYTES_MAX: usize = 4096;

/// Exploration, as the history records it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Run {
    /// Absolute path of the run directory.
    pub folder: String,
    /// Absolute path of the world file.
    pub world: String,
    /// Identity of the exploration, in hexadecimal digits. It changes with the world, its images and the machine
    /// version.
    pub identity: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Strategy that chose the branches.
    pub strategy: String,
    /// Engine that executed the guests.
    pub engine: String,
    /// True if the engine was proved exact on the host where the exploration ran.
    pub exact: bool,
    /// Time at which the exploration started, in seconds since 1970.
    pub begun_unix_s: u64,
    /// Time at which the exploration last ended, in seconds since 1970. `None` while it runs, and after it was killed.
    pub ended_unix_s: Option<u64>,
    /// Reason why the exploration ended. `None` while it runs, and after it was killed.
    pub why: Option<String>,
    /// Maximum number of branches, if the operator set a limit.
    pub budget_branches: Option<u64>,
    /// Maximum host time, in nanoseconds, if the operator set a limit.
    pub budget_ns: Option<u64>,
    /// Number of branches.
    pub branches: u64,
    /// Total vtime of all branches, in nanoseconds.
    pub vtime_ns: u64,
    /// Total CPU time of all branches, in nanoseconds.
    pub cpu_ns: u64,
    /// Digest of all results. Empty until the results are recorded, normally at the end of the exploration.
    pub digest: String,
    /// Number of findings, including the findings beyond [`FINDINGS_MAX`].
    pub findings: u64,
}

/// Finding of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Number of the finding in its run, from 1.
    pub id: u32,
    /// Violated property.
    pub property: String,
    /// Signature: hexadecimal digits that all failures with the same cause share. Two findings are equal if they have
    /// the same property and signature.
    pub signature: String,
    /// Description of the finding.
    pub text: String,
}

impl Finding {
    /// Returns the fields that identify a finding across runs.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.property, &self.signature)
    }
}

/// Cuts a text to [`TEXT_BYTES_MAX`] bytes, at a character boundary.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::{TEXT_BYTES_MAX, cut};

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "é".repeat(TEXT_BYTES_MAX);
        assert_eq!(cut(&long).len(), TEXT_BYTES_MAX);
        assert_eq!(cut(&format!("x{long}")).len(), TEXT_BYTES_MAX - 1);
    }
}
