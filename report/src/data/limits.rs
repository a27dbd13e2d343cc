//! Bounds of the data.

use super::Sources;

/// Maximum number of findings with a scene: events, messages, operations. Others have figures only.
pub const SCENES_MAX: usize = 64;
/// Maximum number of lines, messages and operations of all recorded timelines together. A finding whose timeline does
/// not fit any more has its last lines and messages only. It bounds the page to about 30 MB.
pub const ENTRIES_MAX: usize = 150_000;
/// Maximum number of lines of all logs of branches without a finding.
pub const LOG_LINES_MAX: usize = 40_000;
/// Maximum number of branches of the map; the first ones are shown.
pub const BRANCHES_MAX: usize = 1_000_000;
/// Maximum number of phases of the matrix of faults and phases: those that most branches reached.
pub const PHASES_MAX: usize = 40;
/// Maximum number of kinds of faults of the matrix.
pub const KINDS_MAX: usize = 40;
/// Maximum number of samples of a growth curve.
pub const SAMPLES_MAX: usize = 120;
/// Maximum number of pairs of events that were seen in one order only.
pub const ORDERS_MAX: usize = 200;
/// Maximum number of binaries of executed code, and of functions of each.
pub const CODE_MAX: usize = 200;
/// Maximum number of vtimes of a likelihood.
pub const POINTS_MAX: usize = 2_000;
/// Maximum number of findings of older runs that this run does not show.
pub const GONE_MAX: usize = 256;

/// Maximum length of a name of a node, a binary or a function, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// Maximum length of the path of a world file and of a property's name, in characters.
pub const PATH_CHARS_MAX: usize = 1000;

/// Returns what these bounds cut off, a line each.
pub(super) fn cut(sources: &Sources<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let findings = sources.run.merged.findings().len();
    if findings > SCENES_MAX {
        lines.push(format!("diagrams and logs of {} of {findings} findings", findings - SCENES_MAX));
    }
    let branches = sources.branches.all.len();
    if branches > BRANCHES_MAX {
        lines.push(format!("{} of {branches} branches on the map", branches - BRANCHES_MAX));
    }
    lines
}
