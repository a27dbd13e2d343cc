//! Logs of branches without a finding, for the map of branches.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Sources;
use super::limits::LOG_LINES_MAX;
use crate::scene::{Event, Scene};

/// Log of a timeline from the root moment to the end of a branch: lines of the branch and of the branches that it
/// extends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Log {
    /// Number of the branch.
    pub branch: u64,
    /// Lines in the order of vtime. A line names its node by an index into `nodes` of the report's `Summary`.
    pub events: Vec<Event>,
    /// Number of earlier lines that were dropped because of a bound.
    pub left_out: u64,
}

/// Returns the recorded logs. Each log may have an equal share of [`LOG_LINES_MAX`] lines. A longer log loses its first
/// lines.
pub(super) fn all(sources: &Sources<'_>) -> Vec<Log> {
    bounded(&sources.logs)
}

fn bounded(logs: &BTreeMap<u64, Scene>) -> Vec<Log> {
    let each = LOG_LINES_MAX / logs.len().max(1);
    let log = |(branch, scene): (&u64, &Scene)| {
        let cut = scene.events.len().saturating_sub(each);
        let events = scene.events.get(cut..).unwrap_or_default().to_vec();
        Log { branch: *branch, events, left_out: scene.left_out + cut as u64 }
    };
    logs.iter().map(log).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(lines: u64, left_out: u64) -> Scene {
        let line = |at_ns| Event { at_ns, lane: None, unit: String::new(), text: String::new() };
        Scene { events: (0..lines).map(line).collect(), left_out, ..Scene::default() }
    }

    #[test]
    fn each_log_has_its_last_lines_and_counts_the_others() {
        let half = LOG_LINES_MAX as u64 / 2;
        let logs = bounded(&[(3, scene(half + 5, 7)), (8, scene(2, 1))].into());
        let shown: Vec<(u64, usize, u64, u64)> = logs
            .iter()
            .map(|log| (log.branch, log.events.len(), log.events[0].at_ns, log.left_out))
            .collect();
        assert_eq!(shown, [(3, half as usize, 5, 12), (8, 2, 0, 1)]);
        assert_eq!(bounded(&[(1, scene(half + 5, 0))].into())[0].left_out, 0, "one log has all the room");
        assert_eq!(bounded(&BTreeMap::new()), []);
    }
}
