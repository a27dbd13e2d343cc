//! Errors of a fault plan. Each error's message is one line.

use std::fmt;

use everett_fault::FaultError;

use everett_input::text::{QUOTED_CHARS_MAX, quoted};
use everett_input::units::{UnitError, write_duration_ns};

use super::limits::{
    AT_NS_MAX, ERRORS_MAX, LINES_MAX, NETWORK_FAULTS_MAX, PLAN_BYTES_MAX, PLAN_LINE_BYTES_MAX,
};

/// Maximum number of names that an error lists.
const LISTED_MAX: usize = 24;

/// Errors of a plan, sorted by line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors {
    /// At least one and at most [`ERRORS_MAX`] errors.
    pub errors: Vec<PlanError>,
    /// True if the plan has more errors than [`ERRORS_MAX`].
    pub more: bool,
}

/// Error of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    /// Line number from 1. For a plan that was built from entries, the position of the entry from 1.
    pub line: usize,
    /// Path of the field, such as `links.from`. Empty if the error concerns the whole line.
    pub field: String,
    /// Problem with the field or line.
    pub what: Problem,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        self.what.fmt(f)
    }
}

impl std::error::Error for PlanErrors {}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        if self.more { f.write_str("\nthere are more errors") } else { Ok(()) }
    }
}

impl PlanErrors {
    /// Sorts errors by line number and keeps the first [`ERRORS_MAX`].
    pub(super) fn sorted(mut errors: Vec<PlanError>) -> PlanErrors {
        errors.sort_by_key(|error| error.line);
        let more = errors.len() > ERRORS_MAX;
        errors.truncate(ERRORS_MAX);
        PlanErrors { errors, more }
    }
}

/// Problem with a line or a field. Messages shorten long names and values, and quote all of them except plain names in
/// lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Problem {
    /// The plan is too large.
    #[error("a plan has at most {PLAN_BYTES_MAX} bytes")]
    PlanTooLarge,
    /// The plan has too many lines.
    #[error("a plan has at most {LINES_MAX} lines")]
    TooManyLines,
    /// More network faults are active at once than the simulated network supports.
    #[error(
        "at most {NETWORK_FAULTS_MAX} network faults can be active at a time, and {NETWORK_FAULTS_MAX} already are, \
         the first of them from line {since}"
    )]
    TooManyAtOnce { since: usize },
    /// The line is too long, as it was given or as Everett would print it.
    #[error("a line has at most {PLAN_LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// The line is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A value has the wrong type.
    #[error("expected {expected}, found {found}")]
    Type { expected: &'static str, found: &'static str },
    /// A required field is missing.
    #[error("is missing")]
    Missing,
    /// A field is given twice.
    #[error("is given twice")]
    Twice,
    /// A field is unknown.
    #[error("unknown field; {0}")]
    UnknownField(String),
    /// The fault does not exist.
    #[error("there is no fault {name}; {hint}")]
    NoFault { name: String, hint: String },
    /// The node does not exist.
    #[error("there is no node {name}; {hint}")]
    NoNode { name: String, hint: String },
    /// The data disk does not exist.
    #[error("node {node} has no data disk {disk}: it has {disks}, numbered from 0")]
    NoDisk { node: String, disk: u32, disks: u32 },
    /// The node has no unit of this name, or the unit is not a service.
    #[error("node {node} has no {what} {name}; {hint}")]
    NoUnit { node: String, what: &'static str, name: String, hint: String },
    /// The field accepts only certain words, and the value is none of them.
    #[error("{found} is not one of {words}")]
    NoneOf { found: String, words: String },
    /// A list of nodes is empty.
    #[error("names no node")]
    NoNodes,
    /// The two groups have no links between them.
    #[error("these groups select no link: a link joins two different nodes")]
    NoLinks,
    /// A number is negative.
    #[error("must not be negative")]
    Negative,
    /// A number is too large for its type.
    #[error("is too large")]
    TooLarge,
    /// A duration cannot be parsed.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The string is too long for a duration, or has characters that cannot occur in a duration.
    #[error("{0} is not a duration; write one such as \"1.5s\"")]
    NoDuration(String),
    /// A start time or a duration exceeds one day.
    #[error("is beyond a day ({})", write_duration_ns(AT_NS_MAX))]
    BeyondADay,
    /// A duration is 0.
    #[error("must be longer than 0")]
    Zero,
    /// A distribution of times does not have exactly one of the three forms that the message lists.
    #[error("give one of \"constant\", \"uniform\" and \"quantiles\"")]
    DistributionForm,
    /// A value is outside the bounds that the fault has for it.
    #[error(transparent)]
    Value(#[from] FaultError),
    /// An instantaneous entry has a duration.
    #[error("{0} is instantaneous and takes no duration")]
    NothingLasts(&'static str),
    /// A power loss without a restart has a duration.
    #[error("a power loss with restart \"never\" takes no duration")]
    NeverRestarts,
    /// A fault would last beyond the start of the next heal (an entry that ends faults) or quiet period.
    #[error("lasts until {end}, beyond the {what} of line {line} at {at}", end = write_duration_ns(*.end_ns), at = write_duration_ns(*.at_ns))]
    Crosses { end_ns: u64, what: &'static str, line: usize, at_ns: u64 },
    /// A fault starts in a quiet period.
    #[error("starts in the quiet period of line {line}, which lasts until {end}", end = write_duration_ns(*.end_ns))]
    InQuiet { line: usize, end_ns: u64 },
    /// The fault needs a running node, but the node is off or paused.
    #[error("{node} is {state} since line {line}")]
    NotRunning { node: String, state: &'static str, line: usize },
    /// An earlier fault is still active, and changes the same property as this fault, e.g. the speed of a node.
    #[error("is still affected by the {fault} of line {line}")]
    Busy { fault: &'static str, line: usize },
}

/// Returns a name without quotes if it is plain and short, otherwise in quotes and shortened.
pub(super) fn bare(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let clear = (1..=QUOTED_CHARS_MAX).contains(&name.len()) && name.bytes().all(plain);
    if clear { name.to_owned() } else { quoted(name) }
}

/// Returns a list of names, cut after [`LISTED_MAX`] names.
pub(super) fn some_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut text = String::new();
    for (i, name) in names.enumerate() {
        if i == LISTED_MAX {
            text.push_str(", …");
            break;
        }
        text.push_str(if i == 0 { "" } else { ", " });
        text.push_str(&bare(name));
    }
    if text.is_empty() { "none".to_owned() } else { text }
}
