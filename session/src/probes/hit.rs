//! Hits of probes on a branch.

use everett_inspect::program_stack::Frame;
use serde::Serialize;

use crate::world::event::Event;

/// A hit of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Number of the probe.
    pub probe: usize,
    /// World's vtime of the instruction, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of the node.
    pub node: usize,
    /// Process ID. 0 if the CPU is idle.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub thread: String,
    /// Values as text: in the probe's format, or each with its expression.
    pub text: String,
    /// The values.
    pub values: Vec<HitValue>,
    /// Stack, if the probe asks for it.
    pub stack: Option<HitStack>,
}

/// Value at a hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HitValue {
    /// The expression.
    pub expression: String,
    /// The value as text. `None` if it is not known.
    pub value: Option<String>,
    /// Reason why the value is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// Stack at a hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HitStack {
    /// Frames of the kernel.
    pub kernel: Vec<String>,
    /// Frames of the program.
    pub user: Vec<Frame>,
    /// True if all frames are known.
    pub is_complete: bool,
}

/// Hit or event of a branch.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Hit of a probe.
    Hit(Hit),
    /// Event between the hits.
    Event(Event),
}

impl Entry {
    pub(crate) fn vtime_ns(&self) -> u64 {
        match self {
            Entry::Hit(hit) => hit.vtime_ns,
            Entry::Event(event) => event.vtime_ns,
        }
    }
}

/// Numbers of a probe's hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Hits whose condition, if there is one, is true.
    pub hits: u64,
    /// Hits whose condition has no known value.
    pub undecided: u64,
}

/// Hits of all probes on a branch.
#[derive(Debug, Clone, Default)]
pub struct BranchHits {
    /// Number of the branch.
    pub branch: u64,
    /// Hits and events in the order of their vtimes.
    pub entries: Vec<Entry>,
    /// Numbers of hits by probe.
    pub counts: Vec<Count>,
    /// True for each probe that was placed in a program.
    pub placed: Vec<bool>,
    /// Number of hits and events that exceeded the bounds. Their hits are counted.
    pub left_out: u64,
    /// Approximate memory of the hits and events, in bytes.
    pub bytes: usize,
    /// Reasons why code was not probed.
    pub problems: std::collections::BTreeSet<String>,
}
