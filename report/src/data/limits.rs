//! Bounds of the report's data.

use super::Sources;

/// Maximum number of findings with a scene, i.e. with the events, messages, faults and operations before the finding.
/// Further findings are listed without a scene.
pub const SCENES_MAX: usize = 64;
/// Maximum number of lines, messages and operations of all recorded timelines together. A finding whose timeline no
/// longer fits has only its last lines and messages. The bound keeps the page below about 30 MB.
pub const ENTRIES_MAX: usize = 150_000;
/// Maximum total number of lines in the logs of branches without a finding.
pub const LOG_LINES_MAX: usize = 40_000;
/// Maximum number of branches on the map. For a larger run, the map shows the first branches.
pub const BRANCHES_MAX: usize = 1_000_000;
/// Maximum number of phases (states of one node) in the matrix of faults and phases. If there are more phases, the
/// matrix omits the phases that the fewest branches reached.
pub const PHASES_MAX: usize = 40;
/// Maximum number of kinds of faults in the matrix.
pub const KINDS_MAX: usize = 40;
/// Maximum number of samples in a growth curve (coverage by number of branches), besides the last sample.
pub const SAMPLES_MAX: usize = 120;
/// Maximum number of pairs of events that occurred in only one order.
pub const ORDERS_MAX: usize = 200;
/// Maximum number of binaries, and of functions per binary.
pub const CODE_MAX: usize = 200;
/// Maximum number of programs whose reached functions are listed.
pub const REACHED_PROGRAMS_MAX: usize = 200;
/// Maximum number of reached functions of all programs together.
pub const REACHED_FUNCTIONS_MAX: usize = 8_000;
/// Maximum number of points in the curve that shows, by vtime, how likely a finding was. The last points are kept.
pub const POINTS_MAX: usize = 2_000;
/// Maximum number of findings of older runs that this run does not show.
pub const GONE_MAX: usize = 256;

/// Maximum length of the name of a node, a binary or a function, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// Maximum length of the path of a world file, and of the name of a property, in characters.
pub const PATH_CHARS_MAX: usize = 1000;

/// Returns a line for each bound that cut something off.
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
