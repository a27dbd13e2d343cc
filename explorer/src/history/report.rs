//! What a check found, as data and as text.

use std::fmt;

use serde::Serialize;

use super::evidence::{Evidence, Limit, Verdict};
use super::gist::Gist;
use super::lost::Lost;
use super::model::ModelKind;

/// What is said of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyReport {
    /// The key as JSON, `None` of what has none. Shortened.
    pub key: Option<String>,
    /// Its operations that did not fail.
    pub operations: usize,
    /// Whether they are linearizable.
    pub verdict: Verdict,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was expected.
    pub model: ModelKind,
    /// By key, in the order of appearance.
    pub keys: Vec<KeyReport>,
    /// Acknowledged writes that are gone, by key. The first of them, if there are many.
    pub lost: Vec<Lost>,
    /// How many there are.
    pub lost_count: u64,
    /// What is lost, for each cause, in the order of their names.
    pub losses: Vec<Gist<Lost>>,
    /// What has no order, for each cause, in the order of their names. A key that has lost something is left out: its history has no
    /// order for that reason. A cause is left out where others are certain and it is not: see [`Evidence::earliest`].
    pub causes: Vec<Gist<Evidence>>,
    /// Operations that were invoked.
    pub operations: usize,
    /// Those that were acknowledged.
    pub acknowledged: usize,
    /// Those that failed. The others are of unknown outcome.
    pub failed: usize,
    /// Lines that could not be read or were not as they should be. With one, operations may be missing.
    pub problems: u64,
}

impl Report {
    /// Whether everything is known to be as it should be.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.lost_count == 0 && self.problems == 0 && self.keys.iter().all(|key| key.verdict == Verdict::Fine)
    }

    /// The violations, by key.
    pub fn violations(&self) -> impl Iterator<Item = &Evidence> {
        self.keys.iter().filter_map(|key| match &key.verdict {
            Verdict::Violation(evidence) => Some(&**evidence),
            Verdict::Fine | Verdict::Unknown { .. } => None,
        })
    }

    /// The keys of which nothing is known, and why.
    pub fn unknown(&self) -> impl Iterator<Item = (&KeyReport, Limit)> {
        self.keys.iter().filter_map(|key| match key.verdict {
            Verdict::Unknown { why } => Some((key, why)),
            Verdict::Fine | Verdict::Violation(_) => None,
        })
    }

    /// All of it as lines, the first of which sums it up.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.to_string()];
        lines.extend(self.lost.iter().map(ToString::to_string));
        match self.lost_count - self.lost.len() as u64 {
            0 => {}
            more => lines.push(format!("and {more} more that are lost")),
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
