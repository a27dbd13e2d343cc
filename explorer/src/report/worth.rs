//! Thoroughness of an exploration, and the meaning of finding nothing.

use std::fmt;

use serde::Serialize;

use super::figures::{count, counted};
use crate::coverage::statistics::{CONFIDENCE, probability_below};
use crate::run::{Header, Merged};

/// Thoroughness of an exploration.
///
/// A trial is a subtree: its first branch is drawn under a key of its own, and later branches are not independent of it.
/// Many properties are judged only by checks, so only subtrees with a check count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Worth {
    /// Number of branches.
    pub branches: u64,
    /// Number of branches that were followed by checks.
    pub checked: u64,
    /// Number of faults that were applied.
    pub faults: u64,
    /// Maximum number of branches on a timeline.
    pub depth: u64,
    /// Number of branches on a timeline that reaches the horizon.
    pub depth_max: u64,
    /// Number of subtrees in which a branch was followed by checks.
    pub subtrees_checked: u64,
    /// Number of findings.
    pub findings: u64,
    /// If nothing was found: upper bound of the share of such subtrees with a finding, at a confidence of 95 %.
    pub finding_below: Option<f64>,
    /// True if the start of branches depended on results. The bound is then only a guide.
    pub adaptive: bool,
}

impl Worth {
    /// Returns the thoroughness of an exploration.
    #[must_use]
    pub fn of(header: &Header, merged: &Merged) -> Worth {
        let totals = merged.totals();
        let (subtrees_checked, findings) = (merged.subtrees_checked(), merged.findings().len() as u64);
        let clean = findings == 0 && subtrees_checked > 0;
        Worth {
            branches: merged.branches(),
            checked: totals.checked,
            faults: totals.faults,
            depth: totals.depth,
            depth_max: header.horizon_ns.div_ceil(header.segment_ns.max(1)),
            subtrees_checked,
            findings,
            finding_below: clean.then(|| probability_below(subtrees_checked)),
            adaptive: !header.strategy.is_uniform(),
        }
    }
}

impl fmt::Display for Worth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Worth { branches, checked, faults, depth, depth_max, subtrees_checked, findings, .. } = *self;
        let faults = match faults {
            1 => "1 fault was done".to_owned(),
            n => format!("{} faults were done", count(n)),
        };
        write!(
            f,
            "{} of {} had checks, {faults}, and the deepest timeline has {} of {}",
            count(checked),
            counted(branches, "branch", "branches"),
            count(depth),
            counted(depth_max, "segment", "segments"),
        )?;
        match self.finding_below {
            Some(below) => {
                let subtrees = counted(subtrees_checked, "subtree", "subtrees");
                let (percent, confidence) = (below * 100.0, CONFIDENCE * 100.0);
                write!(
                    f,
                    "; nothing in {subtrees} with checks: less than {percent:.1} % of subtrees like these show something, with \
                     {confidence:.0} % confidence"
                )?;
                if self.adaptive {
                    f.write_str(
                        " (a guide and no proof, since this strategy extends some more than others)",
                    )?;
                }
                Ok(())
            }
            None if findings > 0 => Ok(()),
            None => {
                f.write_str("; no subtree had checks, so problems that only checks show are not ruled out")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth() -> Worth {
        Worth {
            branches: 150,
            checked: 53,
            faults: 312,
            depth: 6,
            depth_max: 10,
            subtrees_checked: 21,
            findings: 0,
            finding_below: Some(probability_below(21)),
            adaptive: false,
        }
    }

    #[test]
    fn in_one_line() {
        let thorough = "53 of 150 branches had checks, 312 faults were done, and the deepest timeline has 6 of 10 segments";
        let clean = format!(
            "{thorough}; nothing in 21 subtrees with checks: less than 13.3 % of subtrees like these show something, with 95 % \
             confidence"
        );
        assert_eq!(worth().to_string(), clean);
        let adaptive = Worth { adaptive: true, ..worth() }.to_string();
        assert!(adaptive.starts_with(&clean) && adaptive.contains("no proof"), "{adaptive}");
        let found = Worth { findings: 1, finding_below: None, ..worth() };
        assert_eq!(found.to_string(), thorough);
        let unchecked = Worth { subtrees_checked: 0, finding_below: None, ..worth() }.to_string();
        assert!(unchecked.contains("problems that only checks show are not ruled out"), "{unchecked}");
    }
}
