//! Answers of a debugger, as values.

use everett_inspect::program_stack::Frame;
use serde::Serialize;

use super::entry::Kind;
use crate::debug::origin::step::Step;

/// Answer to a command.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// The timeline has moved, or was asked where it is.
    Stopped(Box<Stopped>),
    /// A breakpoint was set.
    Breakpoint(Breakpoint),
    /// All breakpoints.
    Breakpoints {
        /// The breakpoints by number.
        breakpoints: Vec<Breakpoint>,
    },
    /// Breakpoints were deleted.
    Deleted {
        /// Their numbers.
        numbers: Vec<u32>,
    },
    /// Node or process in focus.
    Focus(Focus),
    /// Processes.
    Processes {
        /// The nodes that are looked at.
        nodes: Vec<NodeProcesses>,
    },
    /// Stacks.
    Stacks {
        /// Stacks of threads.
        threads: Vec<ThreadStack>,
    },
    /// Value of an expression.
    Value {
        /// The expression as the user wrote it.
        expression: String,
        /// The value. `None` if it is not known.
        value: Option<String>,
        /// Why it is not known.
        absent: Option<String>,
    },
    /// Memory.
    Memory {
        /// Address of the first byte.
        address: String,
        /// Bytes as hexadecimal digits. `??` for a byte that is not mapped.
        bytes: Vec<String>,
    },
    /// Who wrote bytes.
    Origins {
        /// The steps back to the origins.
        steps: Vec<OriginStep>,
    },
    /// Entries of the timeline.
    Entries {
        /// The entries.
        entries: Vec<EntryLine>,
        /// Text that says from which vtime on entries are missing, if that is before here.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Source lines.
    Source {
        /// The frames of the program, the innermost first.
        frames: Vec<Frame>,
    },
    /// State variables.
    State {
        /// The variables that have a value.
        variables: Vec<Variable>,
        /// Text that says from which vtime on changes are missing, if that is before here.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Names of the variables that probes set, whose values a session does not know.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        probes: Vec<String>,
    },
    /// Digest of the world.
    Digest {
        /// Vtime in nanoseconds.
        vtime_ns: u64,
        /// The digest, shortened.
        digest: String,
        /// The digest that the exploration has recorded for this vtime.
        recorded: Option<String>,
    },
    /// Comparison with another timeline.
    Compared(Box<Compared>),
}

/// Reason why a move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The session has begun, or asked where it is.
    Here,
    /// The instant was reached.
    Reached,
    /// An entry of the timeline.
    Entry,
    /// A breakpoint.
    Breakpoint,
    /// A system call begins.
    Syscall,
    /// A source line begins.
    Line,
    /// Instructions were executed.
    Stepped,
    /// Start of the timeline.
    Start,
    /// End of the timeline.
    End,
    /// The user interrupted the move.
    Interrupted,
}

/// Place at which a timeline stands, and the reason.
#[derive(Debug, Clone, Serialize)]
pub struct Stopped {
    /// Why the move ended.
    pub reason: Reason,
    /// Vtime in nanoseconds.
    pub vtime_ns: u64,
    /// Number of the breakpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakpoint: Option<u32>,
    /// Entry of the timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryLine>,
    /// Node at whose instruction the timeline stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The thread that runs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadName>,
    /// The next instruction: address, function and source line, as far as they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Event there: the system call, the store, the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A thread by name.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadName {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Name of the process.
    pub process: String,
}

/// Entry of a timeline as text.
#[derive(Debug, Clone, Serialize)]
pub struct EntryLine {
    /// Vtime in nanoseconds.
    pub vtime_ns: u64,
    /// Kind of the entry.
    pub what: Kind,
    /// Number of the frame, if the entry is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// The entry as a line, which begins with the vtime. Control characters are escaped.
    pub text: String,
}

/// A breakpoint.
#[derive(Debug, Clone, Serialize)]
pub struct Breakpoint {
    /// Its number.
    pub number: u32,
    /// Text of the user.
    pub text: String,
    /// Number of addresses of code, by node. Empty for breakpoints at entries.
    pub places: Vec<(String, usize)>,
}

/// Node or process at which the user looks.
#[derive(Debug, Clone, Serialize)]
pub struct Focus {
    /// Name of the node.
    pub node: String,
    /// Process ID. `None` if the node's CPU is in focus.
    pub pid: Option<u32>,
    /// Name of the process, if it exists here.
    pub process: Option<String>,
}

/// Processes of a node.
#[derive(Debug, Clone, Serialize)]
pub struct NodeProcesses {
    /// Name of the node.
    pub node: String,
    /// The processes.
    pub processes: Vec<ProcessLine>,
    /// Why the node cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A process.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessLine {
    /// Process ID.
    pub pid: u32,
    /// Process ID of the parent.
    pub parent: u32,
    /// User ID.
    pub user: u32,
    /// State of its first thread, as `ps` shows it.
    pub state: char,
    /// Name of its first thread.
    pub name: String,
    /// Arguments. Empty for threads of the kernel.
    pub command: Vec<String>,
}

/// Stack of a thread.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadStack {
    /// Name of the node.
    pub node: String,
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// State of the thread, as `ps` shows it.
    pub state: char,
    /// Frames of the kernel, the innermost first.
    pub kernel: Vec<String>,
    /// True if no frame of the kernel is missing.
    pub kernel_complete: bool,
    /// Frames of the program, the innermost first.
    pub user: Vec<Frame>,
    /// True if no frame of the program is missing.
    pub user_complete: bool,
    /// Why the stack cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Step on the way back to the origin of bytes.
#[derive(Debug, Clone, Serialize)]
pub struct OriginStep {
    /// Name of the node.
    pub node: String,
    /// Name of the node that sent the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
}

/// A state variable with its value.
#[derive(Debug, Clone, Serialize)]
pub struct Variable {
    /// Node to which it belongs. `None` for a variable of the world.
    pub node: Option<String>,
    /// Name.
    pub variable: String,
    /// Value.
    pub value: String,
}

/// A difference between two timelines.
#[derive(Debug, Clone, Serialize)]
pub struct Differing {
    /// Kind of the entries.
    pub what: Kind,
    /// Entry of this timeline. `None` if it lacks the other's entry.
    pub here: Option<EntryLine>,
    /// Entry of the other timeline.
    pub there: Option<EntryLine>,
}

/// Comparison of two timelines.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// Name of the other timeline.
    pub other: String,
    /// Vtime up to which both are one timeline, in nanoseconds.
    pub common_ns: u64,
    /// Vtime up to which they were compared, in nanoseconds, if too much happened to compare all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// First difference of any text or data.
    pub first: Option<Differing>,
    /// First difference of each kind that is not only one of numbers, times or identifiers, the earliest first.
    pub mattered: Vec<Differing>,
    /// Place of this timeline now: at the first of `mattered`, or else at `first`.
    pub now: Option<Box<Stopped>>,
}
