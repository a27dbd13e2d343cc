//! Entries of a timeline: events, outcomes of messages, changes of state variables and violations of properties.

use std::sync::Arc;

use everett_vmm::wire::log::FrameStep;
use serde::Serialize;

use crate::world::event::{Event, What};

/// Something that happened on a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// Content of the entry.
    pub what: Happened,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// An event.
    Event(Event),
    /// The outcome of a message between two nodes.
    Message(Message),
    /// A state variable that the world file declares has another value.
    State(StateChange),
    /// A property was violated.
    Hit(Hit),
}

/// Outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The outcome.
    pub step: FrameStep,
    /// Data that the transport protocol carries, as it was sent. `None` if it is not known.
    pub data: Option<Arc<[u8]>>,
}

/// Change of a state variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateChange {
    /// Name of the node to which the variable belongs. `None` for a variable of the world.
    pub node: Option<String>,
    /// Name of the variable.
    pub variable: String,
    /// Value before.
    pub old: Option<String>,
    /// Value after. `None` if the variable has no value any more.
    pub new: Option<String>,
}

/// Recorded violation of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Name of the property.
    pub property: String,
    /// Name of the node, if the violation belongs to one.
    pub node: Option<String>,
    /// Text that violates the property.
    pub text: String,
}

/// Kinds of entries by which a debugger moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Any entry.
    Event,
    /// Outcome of a message.
    Message,
    /// Log line.
    Log,
    /// Begin or end of a fault, or its result.
    Fault,
    /// Change of a state variable.
    State,
    /// Violation of a property.
    Finding,
}

impl Entry {
    /// Returns the narrowest kind of the entry.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.what {
            Happened::Message(_) => Kind::Message,
            Happened::State(_) => Kind::State,
            Happened::Hit(_) => Kind::Finding,
            Happened::Event(event) => match &event.what {
                What::Line { .. } | What::Kernel { .. } => Kind::Log,
                What::Fault { .. } | What::Healed { .. } | What::Effect { .. } | What::Loss(_) => Kind::Fault,
                _ => Kind::Event,
            },
        }
    }

    /// True if the entry is one of this kind.
    #[must_use]
    pub fn is(&self, kind: Kind) -> bool {
        kind == Kind::Event || self.kind() == kind
    }

    /// Returns the text of a log line, and the name of its node.
    #[must_use]
    pub fn log(&self) -> Option<(&str, &str)> {
        let Happened::Event(event) = &self.what else { return None };
        match &event.what {
            What::Line { text, .. } | What::Kernel { text } => Some((text, &event.node)),
            _ => None,
        }
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        if let Happened::Message(message) = &self.what { Some(message) } else { None }
    }

    /// Returns the approximate memory of the entry without the data of a message, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Entry>()
            + match &self.what {
                Happened::Event(event) => event.bytes(),
                Happened::Message(_) => 0,
                Happened::State(StateChange { variable, old, new, .. }) => {
                    variable.len() + old.as_ref().map_or(0, String::len) + new.as_ref().map_or(0, String::len)
                }
                Happened::Hit(hit) => hit.property.len() + hit.text.len(),
            }
    }
}
