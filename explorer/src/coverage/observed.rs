//! Events from which a branch's coverage is computed. The rules of a world file capture parts of the branch's abstract
//! state (a summary of its logs and faults) from log lines.
//!
//! Not here: the sources of events. The caller converts the reports of the engine, the wire and the agents.

use super::point::Outcome;
use crate::sdk::{AssertionKind, Guidance};

use super::abstraction::Capture;

/// Observed event. Events arrive in the order of vtime. Events with the same vtime arrive in the order in which they
/// happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Vtime of the event, in nanoseconds.
    pub vtime_ns: u64,
    /// Index of the event's node in the [`World`](super::World). `None` for events without a single node. Wire and
    /// fault events name their nodes in `what`.
    pub node: Option<u16>,
    /// Content of the event.
    pub what: What,
}

/// Content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A line of a program's log.
    LogLine {
        /// Name of the unit, i.e. of the service or of the driver (the workload's program).
        unit: String,
        /// Text of the line, without its line feed.
        text: String,
    },
    /// A line of the kernel log. Rules read it as a line of the unit `kernel`.
    Console(String),
    /// A message was sent, arrived or was lost.
    Wire {
        /// Fate of the message.
        kind: WireKind,
        /// Index of the sending node.
        from: u16,
        /// Index of the receiving node.
        to: u16,
        /// Number of the message, which increases with each sent message. If the caller does not know it, the number is
        /// `None`, and the message is treated as sent at its arrival.
        message: Option<u64>,
        /// Short description of the message.
        summary: String,
    },
    /// A program started or ended.
    Process {
        /// Name of the program's unit.
        unit: String,
        /// Start or exit of the program.
        change: ProcessChange,
    },
    /// An event on a node's disk.
    Disk(DiskEvent),
    /// A fault begins or ends. An instantaneous fault ends right after it begins.
    Fault {
        /// Kind of the fault as in a fault plan: `power_loss`, `partition`, ….
        kind: String,
        /// Indices of the nodes that the fault affects.
        targets: Vec<u16>,
        /// True if the fault begins, false if it ends.
        begins: bool,
    },
    /// A program reported an event through the SDK. Rules read it as a line of the unit `sdk`: the name, a space, the
    /// details.
    Sdk {
        /// Name of the event.
        name: String,
        /// Details of the event, as JSON.
        details: String,
    },
    /// A program registered or evaluated an assertion.
    Assertion {
        /// Name of the assertion.
        name: String,
        /// Kind of the assertion.
        kind: AssertionKind,
        /// Outcome of the assertion.
        outcome: Outcome,
    },
    /// A program reported guidance: through the SDK, it told the explorer a value, e.g. a number to maximise.
    Guidance(Guidance),
    /// A probe read a new value of a state variable of the node.
    Variable {
        /// Name of the variable.
        name: String,
        /// Text of the value.
        text: String,
        /// Interpretation of the text.
        capture: Capture,
    },
    /// A program reached an edge of its control-flow graph.
    Edge {
        /// Name of the program or of its module.
        module: String,
        /// Number of the edge in the module.
        edge: u32,
    },
    /// A line of an operation history, in which clients record their operations and the results.
    History {
        /// Number of the client process.
        process: u64,
        /// Name of the operation, e.g. `read`.
        f: String,
        /// Type of the line: `invoke`, `ok`, `fail` or `info`.
        kind: String,
    },
}

/// Fate of a message on the wire, i.e. on the simulated network between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireKind {
    /// The sender gave a message to the wire.
    Send,
    /// The message arrived at the receiver.
    Deliver,
    /// A copy of the message arrived at the receiver.
    Duplicate,
    /// The wire dropped the message. No node notices the loss at this vtime.
    Drop,
    /// The message arrived so late that its sender may have sent it again. If the caller closes the wire's log at the
    /// end of a timeline, each message that is late or held by a fault at that time gets this fate, too.
    Timeout,
}

/// Start or exit of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessChange {
    /// The program started.
    Started,
    /// The program ended.
    Exited {
        /// True if the program ended successfully.
        success: bool,
    },
}

/// Event on a node's disk.
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
