//! Assertions that programs report through the SDK.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::Problem;
use super::limits::{EVIDENCE_BYTES_MAX, NAME_BYTES_MAX};
use crate::text::{clip, head};

/// Kind of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssertionKind {
    /// The condition must hold every time, and be evaluated at least once.
    Always,
    /// The condition must hold every time. It may also never be evaluated.
    AlwaysOrUnreachable,
    /// The condition must hold at least once.
    Sometimes,
    /// The assertion must be reached at least once.
    Reachable,
    /// The assertion must never be reached.
    Unreachable,
}

impl AssertionKind {
    /// All kinds.
    pub const ALL: [AssertionKind; 5] = [
        AssertionKind::Always,
        AssertionKind::AlwaysOrUnreachable,
        AssertionKind::Sometimes,
        AssertionKind::Reachable,
        AssertionKind::Unreachable,
    ];

    /// Returns the kind's name, as in the SDKs' field `display_type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AssertionKind::Always => "Always",
            AssertionKind::AlwaysOrUnreachable => "AlwaysOrUnreachable",
            AssertionKind::Sometimes => "Sometimes",
            AssertionKind::Reachable => "Reachable",
            AssertionKind::Unreachable => "Unreachable",
        }
    }

    /// Returns the kind with this name, or `None` if the name is unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Option<AssertionKind> {
        AssertionKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True if an assertion of this kind is violated when its condition does not hold.
    #[must_use]
    pub fn forbids_false(self) -> bool {
        !matches!(self, AssertionKind::Sometimes | AssertionKind::Reachable)
    }
}

/// Position of an assertion in a program's source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// Name of the class, module or namespace.
    pub class: String,
    /// Name of the function.
    pub function: String,
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Number of the column.
    pub column: u64,
}

/// Formats the position as `file:line:column in class::function`, without the unknown parts.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        match (self.class.is_empty(), self.function.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => write!(f, " in {}", self.class),
            (true, false) => write!(f, " in {}", self.function),
            (false, false) => write!(f, " in {}::{}", self.class, self.function),
        }
    }
}

/// SDK line about an assertion. The line either registers the assertion, i.e. reports that the program contains it, or
/// reports one evaluation of the assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Kind of the assertion.
    pub kind: AssertionKind,
    /// Name of the assertion, at most [`NAME_BYTES_MAX`] bytes. SDK lines call this field `id`.
    pub name: String,
    /// True if the program reached the assertion. False if the line only registers the assertion.
    pub hit: bool,
    /// Value of the condition.
    pub condition: bool,
    /// Position in the source.
    pub location: Location,
    /// Details of the evaluation, as JSON. Empty if there are none.
    pub details: String,
}

impl Assertion {
    pub(super) fn read(fields: &Map<String, Value>) -> Result<Assertion, Problem> {
        let flag = |name: &'static str| fields.get(name).and_then(Value::as_bool).ok_or(Problem::Field(name));
        let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let must_hit = flag("must_hit")?;
        let kind = match (text("assert_type").ok_or(Problem::Field("assert_type"))?, must_hit) {
            ("always", true) => AssertionKind::Always,
            ("always", false) => AssertionKind::AlwaysOrUnreachable,
            ("sometimes", _) => AssertionKind::Sometimes,
            ("reachability", true) => AssertionKind::Reachable,
            ("reachability", false) => AssertionKind::Unreachable,
            _ => return Err(Problem::AssertType),
        };
        let name = text("id").or_else(|| text("message")).ok_or(Problem::Field("id"))?;
        Ok(Assertion {
            kind,
            name: clip(name, NAME_BYTES_MAX),
            hit: flag("hit")?,
            condition: flag("condition")?,
            location: location(fields.get("location")),
            details: match fields.get("details") {
                None | Some(Value::Null) => String::new(),
                Some(details) => details.to_string(),
            },
        })
    }

    /// True if this evaluation violates the assertion.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        self.hit
            && match self.kind {
                // Reaching the assertion is the violation, even if the condition holds.
                AssertionKind::Unreachable => true,
                AssertionKind::Always | AssertionKind::AlwaysOrUnreachable => !self.condition,
                AssertionKind::Sometimes | AssertionKind::Reachable => false,
            }
    }

    /// Returns the evidence of a violation as one line: kind, name, position and details. The line is cut to
    /// [`EVIDENCE_BYTES_MAX`] bytes.
    #[must_use]
    pub fn evidence(&self) -> String {
        let did = if self.kind == AssertionKind::Unreachable { "was reached" } else { "does not hold" };
        let details = if self.details.is_empty() { String::new() } else { format!(": {}", self.details) };
        let text = format!("{} {:?} {did} at {}{details}", self.kind.name(), self.name, self.location);
        head(&text, EVIDENCE_BYTES_MAX).to_owned()
    }
}

fn location(value: Option<&Value>) -> Location {
    let field = |name: &str| value.and_then(|value| value.get(name));
    let text = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| field(name).and_then(Value::as_u64).unwrap_or(0);
    Location {
        class: text("class"),
        function: text("function"),
        file: text("file"),
        line: number("begin_line"),
        column: number("begin_column"),
    }
}
