//! Coverage points: their kinds, contents, ids and readable form.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits::STATE_BYTES_MAX;
use crate::sdk::AssertionKind;

/// Kind of a coverage point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Abstract state of the whole world.
    State,
    /// Phase, i.e. abstract state of one node.
    Phase,
    /// A fault began while its target node was in some phase.
    Fault,
    /// Two kinds of faults were active at once on a node in some phase.
    FaultPair,
    /// An event of one type happened before an event of another type.
    Order,
    /// A variable of an abstract state had a value. Values captured as ranks among nodes do not count.
    Value,
    /// An assertion was registered, held or failed.
    Assertion,
    /// Value that a program reported to guide the explorer (guidance).
    Guidance,
    /// Control-flow edge that an instrumented program reported.
    Edge,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 9] = [
        Kind::State,
        Kind::Phase,
        Kind::Fault,
        Kind::FaultPair,
        Kind::Order,
        Kind::Value,
        Kind::Assertion,
        Kind::Guidance,
        Kind::Edge,
    ];

    /// Number of kinds whose points can be reached without the SDK. These kinds come first in [`Kind::ALL`].
    pub const OF_EVERY_WORLD: usize = 6;

    /// True if only programs with the SDK reach points of this kind.
    #[must_use]
    pub fn is_of_sdk(self) -> bool {
        self as usize >= Kind::OF_EVERY_WORLD
    }

    /// Returns the kind's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::State => "state",
            Kind::Phase => "phase",
            Kind::Fault => "fault",
            Kind::FaultPair => "fault_pair",
            Kind::Order => "order",
            Kind::Value => "value",
            Kind::Assertion => "assertion",
            Kind::Guidance => "guidance",
            Kind::Edge => "edge",
        }
    }
}

/// Coverage point: something that a branch can reach. Its texts are bounded. A text that is too long ends in its hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// Abstract state of the whole world.
    State {
        /// Canonical text of the state.
        state: String,
    },
    /// Phase, i.e. abstract state of one node.
    Phase {
        /// Canonical text of the phase.
        phase: String,
    },
    /// A fault began on a node.
    Fault {
        /// Kind of the fault.
        fault: String,
        /// Phase of the node just before the fault.
        phase: String,
    },
    /// Two kinds of faults were active at once on a node.
    FaultPair {
        /// Kinds of the faults, in the order of names.
        faults: [String; 2],
        /// Phase of the node.
        phase: String,
    },
    /// An event of one type happens before an event of another type.
    Order {
        /// Type of the first event.
        first: String,
        /// Type of the second event.
        then: String,
        /// True if the events happened on two nodes and messages led from the first event to the second. False if both
        /// events happened on one node.
        across: bool,
    },
    /// A variable of an abstract state had a value. Values captured as ranks among nodes do not count.
    Value {
        /// Name of the variable.
        variable: String,
        /// Value of the variable. A node's name in the value is replaced by `<node>`.
        value: String,
    },
    /// An assertion of a program.
    Assertion {
        /// Name of the assertion.
        name: String,
        /// Kind of the assertion.
        kind: AssertionKind,
        /// Outcome of the assertion.
        outcome: Outcome,
    },
    /// Value that a program reported to guide the explorer (guidance).
    Guidance {
        /// Name of the guidance.
        name: String,
        /// Value as text.
        value: String,
        /// Rank of a number among the values of this guidance; a higher rank is better. `None` if the value is not a
        /// number.
        rank: Option<i64>,
    },
    /// Control-flow edge that an instrumented program reported.
    Edge {
        /// Name of the program or of its module.
        module: String,
        /// Number of the edge in the module, from 0.
        edge: u32,
    },
}

/// Outcome of an assertion on one branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A program that contains the assertion has started.
    Registered,
    /// The assertion was reached, and its condition held.
    Held,
    /// The assertion was reached, and its condition did not hold.
    Failed,
}

impl Outcome {
    /// Returns the outcome's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Registered => "registered",
            Outcome::Held => "held",
            Outcome::Failed => "failed",
        }
    }
}

impl Point {
    /// Returns the point's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Point::State { .. } => Kind::State,
            Point::Phase { .. } => Kind::Phase,
            Point::Fault { .. } => Kind::Fault,
            Point::FaultPair { .. } => Kind::FaultPair,
            Point::Order { .. } => Kind::Order,
            Point::Value { .. } => Kind::Value,
            Point::Assertion { .. } => Kind::Assertion,
            Point::Guidance { .. } => Kind::Guidance,
            Point::Edge { .. } => Kind::Edge,
        }
    }

    /// True if no text in the point is longer than [`STATE_BYTES_MAX`].
    pub(crate) fn is_bounded(&self) -> bool {
        self.lengths().iter().all(|length| *length <= STATE_BYTES_MAX)
    }

    /// Returns the length of the point's texts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// Returns the lengths of the point's texts, in bytes. A point has at most three texts; missing texts have length
    /// 0.
    fn lengths(&self) -> [usize; 3] {
        match self {
            Point::State { state } => [state.len(), 0, 0],
            Point::Phase { phase } => [phase.len(), 0, 0],
            Point::Fault { fault, phase } => [fault.len(), phase.len(), 0],
            Point::FaultPair { faults: [a, b], phase } => [a.len(), b.len(), phase.len()],
            Point::Order { first, then, .. } => [first.len(), then.len(), 0],
            Point::Value { variable, value } => [variable.len(), value.len(), 0],
            Point::Assertion { name, .. } => [name.len(), 0, 0],
            Point::Guidance { name, value, .. } => [name.len(), value.len(), 0],
            Point::Edge { module, .. } => [module.len(), 0, 0],
        }
    }

    /// Returns the point's id: the first half of a hash of the point's kind and all of its fields, each as a text after
    /// its length.
    #[must_use]
    pub fn id(&self) -> PointId {
        let mut hasher = blake3::Hasher::new();
        let mut text = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        text("everett coverage point 1");
        text(self.kind().name());
        match self {
            Point::State { state } => text(state),
            Point::Phase { phase } => text(phase),
            Point::Fault { fault, phase } => [fault, phase].into_iter().for_each(|t| text(t)),
            Point::FaultPair { faults: [a, b], phase } => [a, b, phase].into_iter().for_each(|t| text(t)),
            Point::Order { first, then, across } => {
                text(first);
                text(then);
                text(if *across { "across" } else { "within" });
            }
            Point::Value { variable, value } => [variable, value].into_iter().for_each(|t| text(t)),
            Point::Assertion { name, kind, outcome } => {
                [name.as_str(), kind.name(), outcome.name()].into_iter().for_each(text);
            }
            Point::Guidance { name, value, rank } => {
                text(name);
                text(value);
                text(&rank.map_or(String::new(), |rank| rank.to_string()));
            }
            Point::Edge { module, edge } => {
                text(module);
                text(&edge.to_string());
            }
        }
        let mut half = [0; 16];
        hasher.finalize_xof().fill(&mut half);
        PointId(u128::from_be_bytes(half))
    }
}

/// Formats the point for reports.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::State { state } => write!(f, "the world is in {state}"),
            Point::Phase { phase } => write!(f, "a node is in {phase}"),
            Point::Fault { fault, phase } => write!(f, "{fault} begins in {phase}"),
            Point::FaultPair { faults: [a, b], phase } => write!(f, "{a} and {b} in {phase}"),
            Point::Order { first, then, across } => {
                let place = if *across { "another" } else { "the same" };
                write!(f, "{first:?} on {place} node before {then:?}")
            }
            Point::Value { variable, value } => write!(f, "{variable} is {value:?}"),
            Point::Assertion { name, kind, outcome } => {
                write!(f, "{} {name:?} {}", kind.name(), outcome.name())
            }
            Point::Guidance { name, value, .. } => write!(f, "guidance {name:?} is {value}"),
            Point::Edge { module, edge } => write!(f, "edge {edge} of {module:?}"),
        }
    }
}

/// Id of a point. Its text form has 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PointId(pub u128);

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for PointId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PointId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PointId, D::Error> {
        let text = String::deserialize(deserializer)?;
        let canonical = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(&text, 16) {
            Ok(id) if canonical => Ok(PointId(id)),
            _ => Err(serde::de::Error::custom("a point's id is 32 hexadecimal digits")),
        }
    }
}
