//! An exploration as plain data.

use serde::Serialize;

/// Maximum number of runs in a history. The oldest ones beyond it are forgotten when a run is added.
pub const RUNS_MAX: u32 = 10_000;
/// Maximum number of findings that are kept of a run.
pub const FINDINGS_MAX: usize = 1024;
/// Maximum length of a kept text in bytes. Longer ones are cut.
pub const TEXT_BYTES_MAX: usize = 512;
/// Maximum length of a path in bytes. A run with a longer one is refused.
pub const PATH_BYTES_MAX: usize = 4096;

/// An exploration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Run {
    /// Absolute path of the run directory.
    pub folder: String,
    /// Absolute path of the world file.
    pub world: String,
    /// Identity of the exploration, in hexadecimal digits. It changes with the world, its images and the machine
    /// version.
    pub identity: String,
    /// Seed of all choices.
    pub seed: u64,
    /// Strategy that chose the branches.
    pub strategy: String,
    /// Engine that executed the guests.
    pub engine: String,
    /// True if the engine was proved exact on its host.
    pub exact: bool,
    /// Time of its start, in seconds since 1970.
    pub begun_unix_s: u64,
    /// Time of its last end, in seconds since 1970. `None` while it runs, and if it was killed.
    pub ended_unix_s: Option<u64>,
    /// Reason of the end.
    pub why: Option<String>,
    /// Number of branches after which it was to end.
    pub budget_branches: Option<u64>,
    /// Host time after which it was to end, in nanoseconds.
    pub budget_ns: Option<u64>,
    /// Number of branches.
    pub branches: u64,
    /// Vtime of all branches, in nanoseconds.
    pub vtime_ns: u64,
    /// CPU time of all branches, in nanoseconds.
    pub cpu_ns: u64,
    /// Digest of all results. Empty while it runs.
    pub digest: String,
    /// Number of findings, also of those beyond [`FINDINGS_MAX`].
    pub findings: u64,
}

/// A finding of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its number in its run, from 1.
    pub id: u32,
    /// Violated property.
    pub property: String,
    /// Signature. Findings with equal properties and signatures are the same one.
    pub signature: String,
    /// Description for people.
    pub text: String,
}

impl Finding {
    /// Returns what makes two findings the same one.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.property, &self.signature)
    }
}

/// Returns the longest part of `text` that begins with its first character and has at most [`TEXT_BYTES_MAX`] bytes.
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
