//! Result of a history's check, as data and as text.

use std::fmt;

use serde::Serialize;

use super::evidence::{Evidence, Limit, Verdict};
use super::gist::Gist;
use super::lost::Lost;
use super::spec::ModelKind;

/// Result for one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyReport {
    /// The key as JSON, shortened; `None` if the object has no keys.
    pub key: Option<String>,
    /// Number of the key's operations that did not fail.
    pub operations: usize,
    /// Verdict on these operations.
    pub verdict: Verdict,
}

/// Result of a history's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Model against which the history was checked.
    pub model: ModelKind,
    /// Results by key, in the order of appearance.
    pub keys: Vec<KeyReport>,
    /// Acknowledged writes that are gone, by key: the first [`LOST_MAX`](super::limits::LOST_MAX) of them.
    pub lost: Vec<Lost>,
    /// Number of all acknowledged writes that are gone.
    pub lost_count: u64,
    /// Losses by cause, in the order of the causes' texts.
    pub losses: Vec<Gist<Lost>>,
    /// Violations by cause, in the order of the causes' texts. Keys with a loss are left out, because the loss explains
    /// their violation. Causes whose [`Evidence::earliest`] is false are left out if it is true for another cause.
    pub causes: Vec<Gist<Evidence>>,
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
    /// True if nothing is lost, no line had a problem, and every key is known to be linearizable.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.lost_count == 0 && self.problems == 0 && self.keys.iter().all(|key| key.verdict == Verdict::Fine)
    }

    /// Returns the violations, by key.
    pub fn violations(&self) -> impl Iterator<Item = &Evidence> {
        self.keys.iter().filter_map(|key| match &key.verdict {
            Verdict::Violation(evidence) => Some(&**evidence),
            Verdict::Fine | Verdict::Unknown { .. } => None,
        })
    }

    /// Returns the keys whose check exceeded a limit, each with the limit.
    pub fn unknown(&self) -> impl Iterator<Item = (&KeyReport, Limit)> {
        self.keys.iter().filter_map(|key| match key.verdict {
            Verdict::Unknown { why } => Some((key, why)),
            Verdict::Fine | Verdict::Violation(_) => None,
        })
    }

    /// Returns the report as lines of text; the first is a summary.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.to_string()];
        lines.extend(self.lost.iter().map(ToString::to_string));
        match self.lost_count - self.lost.len() as u64 {
            0 => {}
            more => lines.push(format!("and {more} more lost writes")),
        }
        lines.extend(self.violations().flat_map(Evidence::lines));
        for (key, why) in self.unknown() {
            let key = key.key.as_ref().map_or(String::new(), |key| format!("key {key}: "));
            lines.push(format!("{key}unknown: {why}"));
        }
        lines
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (violations, unknown) = (self.violations().count(), self.unknown().count());
        let open = self.operations - self.acknowledged - self.failed;
        write!(
            f,
            "{}: {} operations ({} acknowledged, {} failed, {open} of unknown outcome) on {} keys: ",
            self.model,
            self.operations,
            self.acknowledged,
            self.failed,
            self.keys.len(),
        )?;
        if violations + unknown == 0 {
            f.write_str("linearizable")?;
        } else {
            write!(f, "{violations} not linearizable, {unknown} unknown")?;
        }
        if self.lost_count > 0 {
            write!(f, ", {} acknowledged writes lost", self.lost_count)?;
        }
        match self.problems {
            0 => Ok(()),
            problems => write!(f, "; {problems} lines with problems, so that operations may be missing"),
        }
    }
}
