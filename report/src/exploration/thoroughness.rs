//! How much an exploration proves if it finds nothing.

use std::fmt;

use serde::Serialize;

use super::figures::{count, counted};
use everett_explorer::coverage::statistics::{CONFIDENCE, probability_below};
use everett_explorer::run::{Header, Merged};

/// Thoroughness of an exploration.
///
/// Its measure is an upper bound of the share of subtrees with a finding. A subtree is a branch from the root moment,
/// with all branches that continue from it. The bound counts subtrees and not branches, because only the first branch
/// of each subtree is drawn independently. Many properties are judged only by checks, so a subtree counts only if
/// the checks ran after one of its branches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Thoroughness {
    /// Number of branches.
    pub branches: u64,
    /// Number of branches after which the checks ran.
    pub checked: u64,
    /// Number of applied faults.
    pub faults: u64,
    /// Maximum number of branches on one timeline.
    pub depth: u64,
    /// Number of branches on a timeline that reaches the horizon, which is the maximum length of a timeline.
    pub depth_max: u64,
    /// Number of subtrees with a branch after which the checks ran.
    pub subtrees_checked: u64,
    /// Number of findings.
    pub findings: u64,
    /// Upper bound of the share of checked subtrees that have a finding, at a confidence of 95 %. `None` if there is a
    /// finding, or if the checks did not run after any branch.
    pub finding_below: Option<f64>,
    /// True if the strategy is not `uniform`. The bound is then only a guide.
    pub adaptive: bool,
}

impl Thoroughness {
    /// Returns the thoroughness of an exploration.
    #[must_use]
    pub fn of(header: &Header, merged: &Merged) -> Thoroughness {
        let totals = merged.totals();
        let (subtrees_checked, findings) = (merged.subtrees_checked(), merged.findings().len() as u64);
        let clean = findings == 0 && subtrees_checked > 0;
        Thoroughness {
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

impl fmt::Display for Thoroughness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Thoroughness { branches, checked, faults, depth, depth_max, subtrees_checked, findings, .. } =
            *self;
        let faults = match faults {
            1 => "1 fault was applied".to_owned(),
            n => format!("{} faults were applied", count(n)),
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
                    "; no finding in {subtrees} with checks: with {confidence:.0} % confidence, less than \
                     {percent:.1} % of such subtrees have a finding"
                )?;
                if self.adaptive {
                    f.write_str(
                        " (a guide and no proof, because this strategy extends some subtrees more than others)",
                    )?;
                }
                Ok(())
            }
            None if findings > 0 => Ok(()),
            None => {
                f.write_str("; no branch had checks, so problems that only checks show are not ruled out")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth() -> Thoroughness {
        Thoroughness {
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
    fn thoroughness_is_one_line() {
        let thorough = "53 of 150 branches had checks, 312 faults were applied, and the deepest timeline has \
                        6 of 10 segments";
        let clean = format!(
            "{thorough}; no finding in 21 subtrees with checks: with 95 % confidence, less than 13.3 % of such \
             subtrees have a finding"
        );
        assert_eq!(worth().to_string(), clean);
        let adaptive = Thoroughness { adaptive: true, ..worth() }.to_string();
        assert!(adaptive.starts_with(&clean) && adaptive.contains("no proof"), "{adaptive}");
        let found = Thoroughness { findings: 1, finding_below: None, ..worth() };
        assert_eq!(found.to_string(), thorough);
        let unchecked = Thoroughness { subtrees_checked: 0, finding_below: None, ..worth() }.to_string();
        assert!(unchecked.contains("problems that only checks show are not ruled out"), "{unchecked}");
    }
}
