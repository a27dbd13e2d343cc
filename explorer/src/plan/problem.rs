//! What can be wrong with a plan, as one line for each error.

use std::fmt;

use everett_fault::FaultError;

use everett_input::units::{UnitError, write_duration_ns};

use super::limits::{AT_NS_MAX, ERRORS_MAX, LINE_BYTES_MAX, LINES_MAX, NETWORK_FAULTS_MAX, PLAN_BYTES_MAX};

/// The most characters of a name or value of the plan's that an error repeats.
const QUOTED_CHARS_MAX: usize = 48;
/// The most names that an error lists.
const LISTED_MAX: usize = 24;

/// All that is wrong with a plan, by line. At most [`ERRORS_MAX`] are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors {
    /// At least one, in the order of the lines.
    pub errors: Vec<PlanError>,
    /// There are more.
    pub more: bool,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    /// The line, from 1. Of a plan that was not read from text: the entry, from 1.
    pub line: usize,
    /// The field, such as `links.from`; empty for the whole line.
    pub field: String,
    /// What is wrong with it.
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
    /// Errors in any order.
    pub(super) fn sorted(mut errors: Vec<PlanError>) -> PlanErrors {
        errors.sort_by_key(|error| error.line);
        let more = errors.len() > ERRORS_MAX;
        errors.truncate(ERRORS_MAX);
        PlanErrors { errors, more }
    }
}

/// What is wrong with a line or a field. Names and values in it are quoted and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Problem {
    /// The plan is too large.
    #[error("a plan has at most {PLAN_BYTES_MAX} bytes")]
    PlanTooLarge,
    /// The plan has too many lines.
    #[error("a plan has at most {LINES_MAX} lines")]
    TooManyLines,
    /// More network faults at once than a wire can have.
    #[error(
        "at most {NETWORK_FAULTS_MAX} network faults at a time, and as many are active since line {since} and later"
    )]
    TooManyAtOnce { since: usize },
    /// The line is too long, as it is or in canonical form.
    #[error("a line has at most {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// Not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    Type { expected: &'static str, found: &'static str },
    /// A field that is needed.
    #[error("is missing")]
    Missing,
    /// A field twice.
    #[error("is given twice")]
    Twice,
    /// A field that nobody reads.
    #[error("unknown field; {0}")]
    UnknownField(String),
    /// A fault that does not exist.
    #[error("there is no fault {name}; {hint}")]
    NoFault { name: String, hint: String },
    /// A node that does not exist.
    #[error("there is no node {name}; {hint}")]
    NoNode { name: String, hint: String },
    /// A disk that does not exist.
    #[error("node {node} has no data disk {disk}: it has {disks}, counted from 0")]
    NoDisk { node: String, disk: u32, disks: u32 },
    /// A unit that does not exist.
    #[error("node {node} has no unit {name}; {hint}")]
    NoUnit { node: String, name: String, hint: String },
    /// A word that is none of those known here.
    #[error("{found} is none of {words}")]
    NoneOf { found: String, words: String },
    /// A list with nothing in it.
    #[error("names no node")]
    NoNodes,
    /// Links of which there are none in this world.
    #[error("there is no link between two nodes among these")]
    NoLinks,
    /// A number below zero.
    #[error("must not be negative")]
    Negative,
    /// A number that no value holds.
    #[error("is too large")]
    TooLarge,
    /// A duration that cannot be read.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A duration that is no text of one.
    #[error("{0} is no duration; write one such as \"1.5s\"")]
    NoDuration(String),
    /// A time beyond the bound.
    #[error("is beyond a day ({})", write_duration_ns(AT_NS_MAX))]
    BeyondADay,
    /// A duration of nothing.
    #[error("must be longer than nothing")]
    Zero,
    /// A distribution with not exactly one form.
    #[error("give one of \"constant\", \"uniform\" and \"quantiles\"")]
    DistributionForm,
    /// A value that is out of the fault's bounds.
    #[error(transparent)]
    Value(#[from] FaultError),
    /// A duration of something that is over at once.
    #[error("{0} is over at once and cannot last")]
    NothingLasts(&'static str),
    /// A duration of a power loss without a restart.
    #[error("a node that never restarts stays off for good")]
    NeverRestarts,
    /// A fault that lasts into a quiet period.
    #[error("lasts until {end}, beyond the {what} of line {line} at {at}", end = write_duration_ns(*.end_ns), at = write_duration_ns(*.at_ns))]
    Crosses { end_ns: u64, what: &'static str, line: usize, at_ns: u64 },
    /// A fault that starts in a quiet period.
    #[error("starts in the quiet period of line {line}, which lasts until {end}", end = write_duration_ns(*.end_ns))]
    InQuiet { line: usize, end_ns: u64 },
    /// A node that is off or paused.
    #[error("{node} is {state} since line {line}")]
    NotRunning { node: String, state: &'static str, line: usize },
    /// Something that is already under a fault of the kind.
    #[error("is still under the {fault} of line {line}")]
    Busy { fault: &'static str, line: usize },
}

/// A text of somebody's in quotes, on one line and not too long.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

/// A name without quotes where that is clear.
pub(super) fn bare(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let clear = (1..=QUOTED_CHARS_MAX).contains(&name.len()) && name.bytes().all(plain);
    if clear { name.to_owned() } else { quoted(name) }
}

/// Names in a row, the first of them if there are many.
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
