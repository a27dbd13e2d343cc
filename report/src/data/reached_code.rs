//! Functions and source lines that the exploration reached.

use everett_explorer::reached_code::{FailingPlace, FindingCode, KERNEL, Program, ReplaysEnd};
use everett_explorer::run::Hit;
use serde::Serialize;

use super::Sources;
use super::limits::{REACHED_FUNCTIONS_MAX, REACHED_PROGRAMS_MAX};

/// Functions and source lines of programs that branches reached after the root moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReachedCode {
    /// Number of branches that were replayed to record executed code.
    pub branches: u64,
    /// Number of branches of the exploration when they were replayed.
    pub branches_all: u64,
    /// Number of replayed branches whose timeline shows no finding.
    pub passing: u64,
    /// Reason why the replays ended.
    pub why: ReplaysEnd,
    /// Sentence that names the replayed branches.
    pub sentence: String,
    /// Programs in descending order of reached functions, then the kernel. Each lists the functions that the fewest
    /// branches reached first.
    pub programs: Vec<Program>,
    /// Number of programs with reached code, including programs that `programs` omits.
    pub programs_count: u64,
}

impl ReachedCode {
    /// Returns the reached code. `None` if it was not recorded.
    pub(super) fn of(sources: &Sources<'_>) -> Option<ReachedCode> {
        let code = sources.reached.as_ref()?;
        let mut programs: Vec<Program> = code.programs.clone();
        if programs.len() > REACHED_PROGRAMS_MAX {
            // The kernel is last, and is kept.
            programs.drain(REACHED_PROGRAMS_MAX - 1..programs.len() - 1);
        }
        let mut left = REACHED_FUNCTIONS_MAX;
        // The kernel has many functions, and people look at programs first.
        programs.sort_by_key(|program| program.path == KERNEL);
        for program in &mut programs {
            program.functions.truncate(left);
            left -= program.functions.len();
        }
        Some(ReachedCode {
            branches: code.branches,
            branches_all: code.branches_all,
            passing: code.passing,
            why: code.why,
            sentence: crate::reached_code::sentence(code),
            programs,
            programs_count: code.programs_count,
        })
    }
}

/// Code that only branches with a finding reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailingCode {
    /// The result as a sentence.
    pub sentence: String,
    /// Number of replayed branches whose timeline shows this finding.
    pub branches: u64,
    /// The code: programs of images before the kernel, then in descending order of branches.
    pub places: Vec<FailingPlace>,
    /// Number of such functions and lines, including those that `places` omits.
    pub places_count: u64,
}

impl FailingCode {
    /// Returns the code that only failing branches reached, for a finding. `None` if it was not recorded, or if each
    /// replayed branch shows a finding.
    pub(super) fn of(sources: &Sources<'_>, hit: &Hit) -> Option<FailingCode> {
        let code = sources.reached.as_ref().filter(|code| code.passing > 0)?;
        let is_it = |one: &&FindingCode| (&one.property, &one.signature) == (&hit.property, &hit.signature);
        let one = code.findings.iter().find(is_it)?;
        Some(FailingCode {
            sentence: crate::reached_code::finding(one),
            branches: one.branches,
            places: one.places.clone(),
            places_count: one.places_count,
        })
    }
}
