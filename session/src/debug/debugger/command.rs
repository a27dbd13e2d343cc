//! Commands of a debugger, as values.

use regex::Regex;
use regex::bytes::Regex as BytesRegex;

use super::entry::Kind;
use crate::debug::origin::{FileBytes, MessageBytes};
use crate::probes::expression::Expression;
use crate::probes::probe::Probe;

/// Direction of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To later instants.
    Forwards,
    /// To earlier instants.
    Backwards,
}

/// Thing of which a move goes to the next or the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Entry of the timeline of this kind.
    Entry(Kind),
    /// System call of the process in focus, or of any process of the node in focus.
    Syscall,
    /// Source line of the process in focus.
    Line,
    /// Number of instructions of the node in focus.
    Instructions(u64),
}

/// Instant to which a move goes.
#[derive(Debug, Clone)]
pub enum Goal {
    /// Vtime in nanoseconds since power-on.
    Vtime(u64),
    /// Later by this vtime in nanoseconds.
    Later(u64),
    /// Earlier by this vtime in nanoseconds.
    Earlier(u64),
    /// The start of the timeline.
    Start,
    /// The end of the timeline.
    End,
    /// The first log line after this instant that matches, on a node or on all nodes. If there is none, the last one
    /// before this instant.
    Log(Regex, Option<String>),
    /// The arrival or loss of the frame with this number.
    Message(u64),
    /// The first message after this instant whose data matches. If there is none, the last one before this instant.
    MessageLike(BytesRegex),
    /// The violation of a property of this name. Without a name, the finding's violation, or the first one.
    Finding(Option<String>),
}

/// Condition at which a breakpoint stops.
#[derive(Debug, Clone)]
pub enum Break {
    /// A message whose data matches.
    Message(BytesRegex),
    /// A log line that matches, on a node or on all nodes.
    Log(Regex, Option<String>),
    /// A change of the state variable of this name.
    State(String),
    /// Code, on a node or on all nodes.
    Code(Box<Probe>, Option<String>),
    /// A store to the object that an expression names, or to which it points.
    Store(Expression),
}

/// Bytes of which a command asks who wrote them.
#[derive(Debug, Clone)]
pub enum Asked {
    /// The object that an expression names, or to which it points.
    Object(Expression),
    /// Content of a file on the node in focus.
    File(FileBytes),
    /// Payload of a message of any sender.
    Message(MessageBytes),
}

/// A command.
#[derive(Debug, Clone)]
pub enum Command {
    /// Moves to the next or previous thing of a kind.
    Step(Step, Direction),
    /// Moves to an instant.
    Goto(Goal),
    /// Sets a breakpoint. The text is what the user wrote.
    Break(Break, String),
    /// Deletes a breakpoint, or all of them.
    Delete(Option<u32>),
    /// Lists the breakpoints.
    Breakpoints,
    /// Moves to the next or previous hit of a breakpoint.
    Continue(Direction),
    /// Looks at a process or node, or says what is in focus.
    Focus(Option<String>),
    /// Says where the timeline is.
    Where,
    /// Lists the processes that run programs, or all of them with the threads of the kernel.
    Processes {
        /// True for all.
        all: bool,
    },
    /// Prints stacks of the process in focus, or of another one.
    Stack(Option<String>),
    /// Prints the value of an expression. The text is what the user wrote.
    Print(Expression, String),
    /// Prints this number of bytes of memory from the address that an expression states.
    Memory(Expression, usize),
    /// Finds who wrote bytes, and where that program had them from.
    Who(Asked),
    /// Prints the last entries of a kind up to this instant, at most this number.
    Last(Kind, usize),
    /// Prints the source line in focus, and the calls that lead to it.
    Source,
    /// Prints the values of state variables.
    State,
    /// Prints the faults up to this instant.
    Faults,
    /// Prints the digest of the world.
    Digest,
}
