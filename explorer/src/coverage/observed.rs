//! What a branch shows of itself: the events that coverage is computed from.
//!
//! Not here: where they come from. The caller converts what the engine, the wire and the agents report.

/// Something that was observed. Events come in the order of vtime; those of one time in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// When, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// On which node, by its index in the [`World`](super::World). Events of the wire and faults name their nodes
    /// themselves.
    pub node: Option<u16>,
    /// What.
    pub what: What,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A line of a program's log.
    LogLine {
        /// The program's name.
        unit: String,
        /// The line, without its end.
        text: String,
    },
    /// A line of the kernel's. Rules see it as a line of the unit `kernel`.
    Console(String),
    /// A step of the wire.
    Wire {
        /// Which step.
        kind: WireKind,
        /// The sender.
        from: u16,
        /// The receiver.
        to: u16,
        /// Which message: a number that rises with each that is sent. `None` if the caller does not know: then a delivery
        /// counts as sent at the moment it comes.
        message: Option<u64>,
        /// What it is, in a few words.
        summary: String,
    },
    /// A program started or ended.
    Process {
        /// The program's name.
        unit: String,
        /// Which of it.
        change: ProcessChange,
    },
    /// Something about a node's disks.
    Disk(DiskEvent),
    /// A fault begins or ends. One that is over at once ends right after it begins.
    Fault {
        /// Its kind, as in a fault plan: `power_loss`, `partition`, ….
        kind: String,
        /// The nodes that it hits.
        targets: Vec<u16>,
        /// Whether it begins.
        begins: bool,
    },
    /// A program told something through the SDK. Rules see it as a line of the unit `sdk`: the name, a space, the details.
    Sdk {
        /// The event's name.
        name: String,
        /// Its details, as JSON.
        details: String,
    },
    /// A line of an operation history.
    History {
        /// Which client.
        process: u64,
        /// What it does, such as `read`.
        f: String,
        /// How far it is: `invoke`, `ok`, `fail` or `info`.
        kind: String,
    },
}

/// Steps of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireKind {
    /// The sender gives a message to the wire.
    Send,
    /// It comes to the receiver.
    Deliver,
    /// A copy of it comes to the receiver.
    Duplicate,
    /// It is lost: no node notices.
    Drop,
    /// The sender gives up on it.
    Timeout,
}

/// What can happen to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessChange {
    /// It runs.
    Started,
    /// It ended.
    Exited {
        /// As it should.
        success: bool,
    },
}

/// What can happen to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEvent {
    /// What was written is made to last.
    Flush,
    /// Power went.
    Loss {
        /// Whether writes were lost that had not been flushed.
        lost: bool,
    },
}
