//! Events of a branch from which coverage is computed.
//!
//! Not here: the sources of events. The caller converts the reports of the engine, the wire and the agents.

use super::point::Outcome;
use crate::sdk::{AssertionKind, Guidance};

/// An observed event. Events come in the order of vtime; events with the same time come in the order in which they
/// happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Time of the event, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// Index of the node in the [`World`](super::World), if the event has one node. Wire and fault events name their
    /// nodes in `what`.
    pub node: Option<u16>,
    /// Content of the event.
    pub what: What,
}

/// Content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A line of a program's log.
    LogLine {
        /// The program's name.
        unit: String,
        /// The line, without its end.
        text: String,
    },
    /// A line of the kernel log. Rules see it as a line of the unit `kernel`.
    Console(String),
    /// A step of the wire.
    Wire {
        /// Kind of step.
        kind: WireKind,
        /// The sender.
        from: u16,
        /// The receiver.
        to: u16,
        /// Number of the message. Each sent message has a higher number than the previous one. `None` if the caller
        /// does not know it: then a delivery counts as sent at the moment when it arrives.
        message: Option<u64>,
        /// Short description of the message.
        summary: String,
    },
    /// A program started or ended.
    Process {
        /// The program's name.
        unit: String,
        /// The change: a start or an exit.
        change: ProcessChange,
    },
    /// An event of a node's disks.
    Disk(DiskEvent),
    /// A fault begins or ends. An instantaneous fault ends right after it begins.
    Fault {
        /// Kind of the fault as in a fault plan: `power_loss`, `partition`, ….
        kind: String,
        /// The nodes that it affects.
        targets: Vec<u16>,
        /// True if the fault begins, false if it ends.
        begins: bool,
    },
    /// A program reported an event through the SDK. Rules see it as a line of the unit `sdk`: the name, a space, the
    /// details.
    Sdk {
        /// The event's name.
        name: String,
        /// Its details, as JSON.
        details: String,
    },
    /// A program registered or evaluated an assertion.
    Assertion {
        /// Its name.
        name: String,
        /// Its kind.
        kind: AssertionKind,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A program reported a value of guidance.
    Guidance(Guidance),
    /// A program reached an edge of its code.
    Edge {
        /// The program or its module.
        module: String,
        /// Number of the edge in the module.
        edge: u32,
    },
    /// A line of an operation history.
    History {
        /// Number of the client process.
        process: u64,
        /// Name of the operation, e.g. `read`.
        f: String,
        /// Type of the line: `invoke`, `ok`, `fail` or `info`.
        kind: String,
    },
}

/// Steps of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireKind {
    /// The sender gives a message to the wire.
    Send,
    /// The message arrives at the receiver.
    Deliver,
    /// A copy of the message arrives at the receiver.
    Duplicate,
    /// The message is lost, and no node notices.
    Drop,
    /// The sender gives up on the message.
    Timeout,
}

/// Change of a program's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessChange {
    /// The program started.
    Started,
    /// The program ended.
    Exited {
        /// True if it ended successfully.
        success: bool,
    },
}

/// Event of a node's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEvent {
    /// The guest flushed its writes to stable storage.
    Flush,
    /// The node lost power.
    Loss {
        /// True if unflushed writes were lost.
        lost: bool,
    },
}
