//! Scene before a finding: events, messages, faults and operations of clients, on one time axis.
//!
//! - `evidence`: reads a scene from the lines that a run directory has for a finding
//! - `fault`: faults as bars of a diagram, and in words
//! - `operation`: operations of clients, from lines of histories
//! - `story`: the story in one sentence, and its most important lines
//! - `vtime`: reads the vtime at the beginning of a line
//!
//! Not here: drawing (`crate::page` and its script).
//!
//! **Invariant.** Lines of evidence come from guests and files. A line that cannot be read is left out; it is never
//! an error.

mod evidence;
mod fault;
mod operation;
mod story;
mod vtime;

use serde::Serialize;

pub use fault::Bar;
pub use operation::{Operation, Outcome};
pub use story::{StoryLine, facts, lines_told, story};

/// Maximum number of events in a scene. A longer scene keeps its last events.
pub const EVENTS_MAX: usize = 20_000;
/// Maximum number of messages in a scene. A longer scene keeps its last messages.
pub const MESSAGES_MAX: usize = 20_000;

/// Scene before a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Scene {
    /// Names of the nodes. Other fields refer to a node by its index in this list.
    pub lanes: Vec<String>,
    /// Vtime of the finding, in nanoseconds.
    pub found_ns: u64,
    /// Output of programs and kernels, and Everett's actions, in the order of vtime.
    pub events: Vec<Event>,
    /// Messages between nodes, in the order of arrival.
    pub messages: Vec<Message>,
    /// Faults, in the order in which they began.
    pub faults: Vec<Bar>,
    /// Operations of clients, in the order of invocation.
    pub operations: Vec<Operation>,
    /// True if a replay recorded the whole timeline. False if the scene has only the timeline's last lines and
    /// messages.
    pub is_recorded: bool,
    /// Number of earlier lines and messages that were dropped because of a bound.
    pub left_out: u64,
}

/// Line of output, or event of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Vtime, in nanoseconds.
    pub at_ns: u64,
    /// Index of the node in [`Scene::lanes`]. `None` for the whole world.
    pub lane: Option<u16>,
    /// Name of the service, driver or check, or one of `kernel`, `guest`, `fault`, `disk` and `world`.
    pub unit: String,
    /// Text of the line.
    pub text: String,
}

/// Message between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Vtime at which the message was sent, in nanoseconds. `None` if it is not recorded.
    pub sent_ns: Option<u64>,
    /// Vtime at which the message arrived or was lost, in nanoseconds.
    pub at_ns: u64,
    /// Index of the sender in [`Scene::lanes`].
    pub from: u16,
    /// Index of the receiver in [`Scene::lanes`].
    pub to: u16,
    /// Fate of the message.
    pub fate: Fate,
    /// Summary of the frame.
    pub text: String,
}

/// Fate of a message on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The message arrived.
    Deliver,
    /// An extra copy of the message arrived.
    Duplicate,
    /// The message was lost.
    Drop,
    /// The message arrived so late (`TIMEOUT_NS` in `vmm/src/wire/`) that its receiver had probably stopped waiting. A
    /// message that has not arrived when Everett closes the log of frames also gets this fate, if it has been on its
    /// way for that long, or if a fault holds it.
    Timeout,
}

impl Scene {
    /// Returns the index of a node in [`Scene::lanes`]. `None` if it is not there.
    fn lane(&self, name: &str) -> Option<u16> {
        self.lanes.iter().position(|lane| lane == name).and_then(|lane| u16::try_from(lane).ok())
    }

    /// Returns the number of events, messages and operations.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.events.len() + self.messages.len() + self.operations.len()
    }

    /// Returns the vtimes of the first and the last entry of the scene, in nanoseconds.
    #[must_use]
    pub fn span_ns(&self) -> (u64, u64) {
        let events = self.events.iter().map(|event| event.at_ns);
        let messages = self
            .messages
            .iter()
            .flat_map(|message| [message.at_ns, message.sent_ns.unwrap_or(message.at_ns)]);
        let faults = self.faults.iter().map(|bar| bar.begin_ns);
        let operations =
            self.operations.iter().flat_map(|op| [op.begin_ns, op.end_ns.unwrap_or(op.begin_ns)]);
        let all = events.chain(messages).chain(faults).chain(operations).chain([self.found_ns]);
        all.fold((self.found_ns, self.found_ns), |(low, high), at| (low.min(at), high.max(at)))
    }
}

#[cfg(test)]
mod tests;
