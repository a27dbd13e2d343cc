//! What happened before a finding: events, messages, faults and operations of clients, on one time axis.
//!
//! - `evidence`: reads all of this from the lines that a run directory keeps with a finding
//! - `operation`: lines of histories as operations; `fault`: lines of fault plans as bars and in words; `vtime`: the vtime
//!   with which each line begins
//! - `story`: the story in one sentence, and its most telling lines
//!
//! Not here: drawing (`crate::page` and its script).
//!
//! **Invariant.** Lines of evidence come from guests and from files. A line that cannot be read is left out and never
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

/// Maximum number of events of a scene; the last ones are kept.
pub const EVENTS_MAX: usize = 20_000;
/// Maximum number of messages of a scene; the last ones are kept.
pub const MESSAGES_MAX: usize = 20_000;

/// What happened before a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Scene {
    /// Names of the nodes. Other fields name a node by its position here.
    pub lanes: Vec<String>,
    /// Vtime of the finding, in nanoseconds.
    pub found_ns: u64,
    /// Output of programs and kernels, and what Everett did, in the order of vtime.
    pub events: Vec<Event>,
    /// Messages between nodes, in the order of arrival.
    pub messages: Vec<Message>,
    /// Faults, in the order of their beginnings.
    pub faults: Vec<Bar>,
    /// Operations of clients, in the order of their invocations.
    pub operations: Vec<Operation>,
    /// True if this is the whole timeline, which a replay recorded. False if it has only the last lines and messages.
    pub is_recorded: bool,
    /// Number of earlier lines and messages of a recorded timeline that a bound left out.
    pub left_out: u64,
}

/// One line of output, or one event of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Vtime in nanoseconds.
    pub at_ns: u64,
    /// Node, by its position in [`Scene::lanes`]; `None` for the whole world.
    pub lane: Option<u16>,
    /// Name of the service, driver or check; or `kernel`, `guest`, `fault`, `disk`, `world`.
    pub unit: String,
    /// The line.
    pub text: String,
}

/// A message between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Vtime at which it was sent, in nanoseconds, if it is recorded.
    pub sent_ns: Option<u64>,
    /// Vtime of its fate, in nanoseconds.
    pub at_ns: u64,
    /// Sender, by its position in [`Scene::lanes`].
    pub from: u16,
    /// Receiver.
    pub to: u16,
    /// Its fate.
    pub fate: Fate,
    /// Summary of the frame.
    pub text: String,
}

/// Fate of a message on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It arrived.
    Deliver,
    /// An extra copy of it arrived.
    Duplicate,
    /// It was lost.
    Drop,
    /// It arrived late.
    Timeout,
}

impl Scene {
    /// Returns the position of a node.
    fn lane(&self, name: &str) -> Option<u16> {
        self.lanes.iter().position(|lane| lane == name).and_then(|lane| u16::try_from(lane).ok())
    }

    /// Returns the number of its events, messages and operations.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.events.len() + self.messages.len() + self.operations.len()
    }

    /// Returns the vtimes of the first and of the last thing that happens, in nanoseconds.
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
