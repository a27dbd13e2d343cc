//! Outcome of recording timelines at the end of an exploration, as stored in `recorded.json` in the run directory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scene::Scene;

/// Outcome of recording timelines at the end of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recordings {
    /// Budget of host time, in nanoseconds.
    pub budget_ns: u64,
    /// Host time that recording took, in nanoseconds.
    pub host_ns: u64,
    /// Numbers of findings with a recorded timeline.
    pub recorded: Vec<u32>,
    /// Numbers of other branches with a recorded timeline. They were chosen because they reached many coverage points
    /// before any other branch did.
    pub branches: Vec<u64>,
    /// Numbers of findings that were not recorded, because the budget ran out or because there are more findings than a
    /// report can show with timelines.
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
    /// Numbers of findings that the branch was the first to show.
    pub findings: Vec<u32>,
    /// How the replay differed, in words.
    pub why: String,
}

impl Recordings {
    /// Returns the outcome, updated for the timelines in `scenes`: later commands may have recorded more.
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

    /// `everett replay --record` records timelines later, and files may have been removed.
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
