//! Errors of a plan, each as one line.

use std::fmt;

use everett_fault::FaultError;

use everett_input::text::{QUOTED_CHARS_MAX, quoted};
use everett_input::units::{UnitError, write_duration_ns};

use super::limits::{
    AT_NS_MAX, ERRORS_MAX, LINES_MAX, NETWORK_FAULTS_MAX, PLAN_BYTES_MAX, PLAN_LINE_BYTES_MAX,
};

/// Maximum number of names that an error lists.
const LISTED_MAX: usize = 24;

/// Errors of a plan, sorted by line. At most [`ERRORS_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors {
    /// Errors in the order of the lines; at least one.
    pub errors: Vec<PlanError>,
    /// True if there are more errors than [`ERRORS_MAX`].
    pub more: bool,
}

/// Error of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    /// Line number from 1, or the entry's number from 1 if the plan was not read from text.
    pub line: usize,
    /// Path of the field, such as `links.from`; empty for the whole line.
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
    /// Sorts errors by line and keeps the first [`ERRORS_MAX`].
    pub(super) fn sorted(mut errors: Vec<PlanError>) -> PlanErrors {
        errors.sort_by_key(|error| error.line);
        let more = errors.len() > ERRORS_MAX;
        errors.truncate(ERRORS_MAX);
        PlanErrors { errors, more }
    }
}

/// Problem with a line or a field. Long names and values in its message are shortened. They are quoted, except for
/// plain names in lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Problem {
    /// The plan is too large.
    #[error("a plan has at most {PLAN_BYTES_MAX} bytes")]
    PlanTooLarge,
    /// The plan has too many lines.
    #[error("a plan has at most {LINES_MAX} lines")]
    TooManyLines,
    /// More network faults are active at once than a wire supports.
    #[error(
        "at most {NETWORK_FAULTS_MAX} network faults can be active at a time, and {NETWORK_FAULTS_MAX} already are, \
         the first of them from line {since}"
    )]
    TooManyAtOnce { since: usize },
    /// The line is too long, as written or in canonical form.
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
    /// The disk does not exist.
    #[error("node {node} has no data disk {disk}: it has {disks}, numbered from 0")]
    NoDisk { node: String, disk: u32, disks: u32 },
    /// The unit, or the service among them, does not exist.
    #[error("node {node} has no {what} {name}; {hint}")]
    NoUnit { node: String, what: &'static str, name: String, hint: String },
    /// A word is not one of those that the field accepts.
    #[error("{found} is not one of {words}")]
    NoneOf { found: String, words: String },
    /// A list is empty.
    #[error("names no node")]
    NoNodes,
    /// The groups have no links between them.
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
    /// A string is too long for a duration, or has characters that cannot occur in a duration.
    #[error("{0} is not a duration; write one such as \"1.5s\"")]
    NoDuration(String),
    /// A time is later than a day, or a duration is longer than a day.
    #[error("is beyond a day ({})", write_duration_ns(AT_NS_MAX))]
    BeyondADay,
    /// A duration is 0.
    #[error("must be longer than 0")]
    Zero,
    /// A distribution does not have exactly one form.
    #[error("give one of \"constant\", \"uniform\" and \"quantiles\"")]
    DistributionForm,
    /// A value is outside the bounds of its fault.
    #[error(transparent)]
    Value(#[from] FaultError),
    /// A duration is given for an entry that is instantaneous.
    #[error("{0} is instantaneous and takes no duration")]
    NothingLasts(&'static str),
    /// A power loss without a restart has a duration.
    #[error("a power loss with restart \"never\" takes no duration")]
    NeverRestarts,
    /// A fault lasts beyond the beginning of a heal or quiet period.
    #[error("lasts until {end}, beyond the {what} of line {line} at {at}", end = write_duration_ns(*.end_ns), at = write_duration_ns(*.at_ns))]
    Crosses { end_ns: u64, what: &'static str, line: usize, at_ns: u64 },
    /// A fault starts in a quiet period.
    #[error("starts in the quiet period of line {line}, which lasts until {end}", end = write_duration_ns(*.end_ns))]
    InQuiet { line: usize, end_ns: u64 },
    /// The node is off or paused.
    #[error("{node} is {state} since line {line}")]
    NotRunning { node: String, state: &'static str, line: usize },
    /// Another fault still holds the resource.
    #[error("is still affected by the {fault} of line {line}")]
    Busy { fault: &'static str, line: usize },
}

/// Returns a name, in quotes only if it has unusual characters or is too long.
pub(super) fn bare(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let clear = (1..=QUOTED_CHARS_MAX).contains(&name.len()) && name.bytes().all(plain);
    if clear { name.to_owned() } else { quoted(name) }
}

/// Returns a list of names, cut after [`LISTED_MAX`].
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
