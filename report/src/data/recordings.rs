//! Recording of timelines at the end of an exploration, as `recorded.json` in the run directory keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scene::Scene;

/// Result of the recording at the end of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recordings {
    /// Budget of host time, in nanoseconds.
    pub budget_ns: u64,
    /// Host time that was used, in nanoseconds.
    pub host_ns: u64,
    /// Findings with a recorded timeline.
    pub recorded: Vec<u32>,
    /// Other branches with a recorded timeline: those that were the first to reach the most points.
    pub branches: Vec<u64>,
    /// Findings for which the budget did not suffice, or that are beyond the bound of a report.
    pub left_out: Vec<u32>,
    /// Branches whose replay differed from the exploration.
    pub different: Vec<Different>,
}

/// Branch whose replay differed from the exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Different {
    /// Number of the branch.
    pub branch: u64,
    /// Findings that it was the first to show.
    pub findings: Vec<u32>,
    /// The difference, in words.
    pub why: String,
}

impl Recordings {
    /// Returns the result as it is now that these timelines are recorded: some may have been recorded later.
    pub(super) fn now(&self, scenes: &BTreeMap<u32, Scene>) -> Recordings {
        let mut now = self.clone();
        now.left_out.retain(|finding| !scenes.contains_key(finding));
        now.recorded = scenes.keys().copied().collect();
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `everett replay --record` records a timeline later, and a file may have gone.
    #[test]
    fn timelines_count_by_the_files_that_are_there() {
        let at_the_end = Recordings {
            recorded: vec![1, 2],
            left_out: vec![3, 4],
            branches: vec![9],
            ..Recordings::default()
        };
        let scenes = [1, 4].map(|finding| (finding, Scene::default()));
        let now = at_the_end.now(&scenes.into());
        assert_eq!((now.recorded, now.left_out, now.branches), (vec![1, 4], vec![3], vec![9]));
    }
}
