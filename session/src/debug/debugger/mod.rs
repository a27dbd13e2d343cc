//! A debugger of a whole world on a recorded branch: moves by what happened, breakpoints, looks at machines, and a
//! comparison with another timeline. It has commands and answers as values, and no terminal.
//!
//! One pass through the branch makes an index of everything that happened. Moves then seek, which moments make cheap.
//!
//! - [`limits`]: bounds of a debugger
//! - [`error`]: commands that cannot be carried out
//! - [`entry`]: entries of a timeline
//! - `data`: data of messages
//! - [`index`]: all entries of a timeline
//! - `observe`: the pass that makes the index
//! - [`differences`]: the first difference between two timelines
//! - [`command`] and [`answer`]: commands and answers as values
//! - `text`: entries as lines
//! - this file: the debugger
//! - `sight`: what is in focus, and where the timeline stands
//! - `looks`: commands that look at machines
//! - `origins`: who wrote bytes
//! - `points`: breakpoints and watchpoints
//! - `motion`: moves to what happened, and to instants
//! - `travel`: continues, system calls and source lines, which stop at code
//! - `compare`: comparison with another timeline
//!
//! **Invariants.**
//! - No command changes what a guest computes. At each vtime, the world's digest is the recorded one.
//! - What cannot be read is missing in an answer, with the reason.

pub mod answer;
pub mod command;
mod compare;
mod data;
pub mod differences;
pub mod entry;
pub mod error;
pub mod index;
pub mod limits;
mod looks;
mod motion;
mod observe;
mod origins;
mod points;
mod sight;
mod text;
mod travel;

use std::collections::BTreeMap;

use everett_explorer::search::Path;
use everett_inspect::Kernel;

use super::cursor::{Aim, Cursor, Listener, Unless};
use crate::explore::path_runner::Interrupted;
use crate::explore::setting::Setting;
use crate::inside::debug_files::DebugFolders;
use crate::probes::code::Code;
use answer::{Answer, Reason};
use command::{Command, Step};
use entry::Hit;
use error::Refused;
use index::Index;
use motion::Origin;
use observe::observe;
use points::Points;

/// A recorded branch.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Name for people, such as `finding 1`.
    pub name: String,
    /// Path of the branch.
    pub path: Path,
    /// Vtime at which its timeline ends, in nanoseconds.
    pub end_ns: u64,
    /// Violations of properties on the timeline, each with its vtime in nanoseconds.
    pub hits: Vec<(u64, Hit)>,
    /// Shortened digests of the world that the exploration has recorded, by vtime in nanoseconds.
    pub marks: BTreeMap<u64, String>,
    /// Vtime of the finding, if the user named one, in nanoseconds.
    pub finding_ns: Option<u64>,
}

/// Place at which a debugger stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// All nodes are at the world's vtime.
    Vtime,
    /// At the entry of this number.
    Entry(usize),
    /// At an instruction of this node.
    Node(usize),
}

/// A debugger of a recorded branch.
pub struct Debugger<'d> {
    setting: &'d Setting,
    kernel: &'d Kernel,
    debug: DebugFolders,
    recorded: Recorded,
    nodes: Vec<String>,
    cursor: Cursor<'d>,
    /// Programs that ran. `None` if the engine has no breakpoints.
    code: Option<Code<'d>>,
    index: Index,
    at: At,
    /// Node in focus.
    node: usize,
    /// Process in focus. `None` if the CPU is.
    pid: Option<u32>,
    points: Points,
    interrupted: &'d dyn Fn() -> bool,
}

impl<'d> Debugger<'d> {
    /// Runs a recorded branch once to its end, and stands at its start. Moments along the timeline may use about
    /// `budget_bytes` bytes. Moves end when `interrupted` returns true.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if `interrupted` ended the run, and an error if the branch cannot be run.
    pub fn new(
        setting: &'d Setting,
        kernel: &'d Kernel,
        debug: &DebugFolders,
        recorded: Recorded,
        budget_bytes: u64,
        interrupted: &'d dyn Fn() -> bool,
    ) -> anyhow::Result<Debugger<'d>> {
        let mut cursor = Cursor::new(setting, &recorded.path, recorded.end_ns, budget_bytes)?;
        let nodes: Vec<String> =
            cursor.timeline().world().nodes().iter().map(|node| node.machine().name().to_owned()).collect();
        let mut code = match cursor.set_breakpoints(0, &[]) {
            true => Some(Code::new(kernel, &setting.launcher, debug)?),
            false => None,
        };
        let goes_on = || !interrupted();
        let index = observe(setting, &recorded.path, &mut cursor, code.as_mut(), &recorded.hits, &goes_on)?;
        cursor.seek(Aim::Vtime(setting.root_ns), &mut Unless(interrupted))?;
        let points = Points::default();
        let (at, node, pid) = (At::Vtime, 0, None);
        Ok(Debugger {
            setting,
            kernel,
            debug: debug.clone(),
            recorded,
            nodes,
            cursor,
            code,
            index,
            at,
            node,
            pid,
            points,
            interrupted,
        })
    }

    /// Returns the index of the timeline.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the names of the nodes.
    #[must_use]
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Returns the vtime at which the timeline stands, in nanoseconds.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        match self.at {
            At::Vtime => self.cursor.vtime(),
            At::Entry(n) => self.index.entries().get(n).map_or(0, |entry| entry.vtime_ns),
            At::Node(node) => self.cursor.position(node).vtime_ns,
        }
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// Returns [`Refused`] if the command cannot be carried out here, and other errors if the host or the engine failed.
    /// After those, the debugger cannot be used any more.
    pub fn run(&mut self, command: &Command) -> anyhow::Result<Answer> {
        let origin = self.origin();
        let answer = self.carry_out(command);
        self.settled(answer, origin)
    }

    /// Returns an answer after a command, and returns to where the debugger stood if the command was interrupted or cannot
    /// be carried out.
    fn settled(&mut self, answer: anyhow::Result<Answer>, origin: Origin) -> anyhow::Result<Answer> {
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let (is_interrupted, is_refused) = (error.is::<Interrupted>(), error.is::<Refused>());
        if is_interrupted || is_refused {
            self.clear_stops();
            if self.origin() != origin {
                // A search has left the timeline anywhere.
                self.return_to(origin)?;
            }
        }
        if is_interrupted { Ok(self.stopped(Reason::Interrupted)) } else { Err(error) }
    }

    fn carry_out(&mut self, command: &Command) -> anyhow::Result<Answer> {
        match command {
            Command::Step(Step::Entry(kind), direction) => self.move_to_entry(*kind, *direction),
            Command::Step(Step::Syscall, direction) => self.move_to_syscall(*direction),
            Command::Step(Step::Line, direction) => self.move_to_line(*direction),
            Command::Step(Step::Instructions(count), direction) => self.instructions(*count, *direction),
            Command::Goto(goal) => self.goto(goal),
            Command::Break(what, text) => self.set_point(what, text),
            Command::Delete(number) => self.delete(*number),
            Command::Breakpoints => Ok(Answer::Breakpoints { breakpoints: self.points.list(&self.nodes) }),
            Command::Continue(direction) => self.go_on(*direction),
            Command::Focus(wanted) => self.focus(wanted.as_deref()),
            Command::Where => Ok(self.stopped(Reason::Here)),
            Command::Processes { all } => Ok(self.processes(*all)),
            Command::Stack(wanted) => self.stack(wanted.as_deref()),
            Command::Print(expression, text) => self.print(expression, text),
            Command::Memory(expression, count) => self.memory(expression, *count),
            Command::Who(asked) => self.who(asked),
            Command::Last(kind, count) => Ok(self.last(*kind, *count)),
            Command::Source => self.source(),
            Command::State => Ok(self.state()),
            Command::Faults => Ok(self.last(entry::Kind::Fault, limits::LISTED_MAX)),
            Command::Digest => Ok(self.digest()),
        }
    }

    fn listener(&self) -> impl Listener + use<'d> {
        Unless(self.interrupted)
    }

    /// Returns the number of a node by its name.
    fn node_named(&self, name: &str) -> anyhow::Result<usize> {
        self.nodes.iter().position(|node| node == name).ok_or_else(|| {
            Refused::because(format!("no node is named {name}; the nodes are {}", self.nodes.join(", ")))
        })
    }
}
