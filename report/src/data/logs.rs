//! Logs of branches without a finding, for the map.

use serde::Serialize;

use super::Sources;
use super::limits::LOG_LINES_MAX;
use crate::scene::Event;

/// Output on the timeline of a branch, from the root moment to its end: its own lines, and those of the branches that it
/// extends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Log {
    /// The branch.
    pub branch: u64,
    /// Lines, in the order of vtime. Nodes are positions in the summary's list.
    pub events: Vec<Event>,
    /// Number of earlier lines that a bound left out.
    pub left_out: u64,
}

/// Returns the recorded logs, with the last lines of each: all of them have [`LOG_LINES_MAX`] lines at most.
pub(super) fn all(sources: &Sources<'_>) -> Vec<Log> {
    let each = LOG_LINES_MAX / sources.logs.len().max(1);
    let log = |(branch, scene): (&u64, &crate::scene::Scene)| {
        let cut = scene.events.len().saturating_sub(each);
        let events = scene.events.get(cut..).unwrap_or_default().to_vec();
        Log { branch: *branch, events, left_out: scene.left_out + cut as u64 }
    };
    sources.logs.iter().map(log).collect()
}
