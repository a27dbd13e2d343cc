//! Throw-away forks: a timeline goes on from an instant, and a caller runs commands in its machines.
//!
//! A fork owns the timeline that has reached the instant, with all its machines. Vtime goes on only in the fork, and only
//! while a method of the fork runs. All nodes go on, and so do the drivers and the faults of the timeline's plan. Two forks of
//! the same instant in which a caller does the same at the same vtimes are equal to the bit.
//!
//! ```no_run
//! # fn example(timeline: everett_session::world::timeline::Timeline) -> Result<(), everett_session::inside::fork::ForkError> {
//! use everett_session::inside::fork::Fork;
//! let mut fork = Fork::new(timeline);
//! let command = fork.command(0, vec!["uname".to_owned(), "-r".to_owned()], None);
//! let exit = fork.run(0, command, 5_000_000_000, &mut |output| print!("{}", String::from_utf8_lossy(&output.bytes)))?;
//! fork.pass(1_000_000_000)?;
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use everett_explorer::plan::{Names, PlanEntry};
use everett_host::interrupt::Interrupt;
use everett_input::units::show_duration_ns;
use everett_protocol::limits::PUT_FILE_BYTES_MAX;
use everett_protocol::{Bytes, Exec, Exit, Operation, PutFile, Reply, Stream};
use everett_vmm::machine::{Stop, Until};
use everett_vmm::wire::log::FrameStep;

use super::limits::{ANSWER_NS_MAX, EVENTS_MAX, MESSAGES_MAX};
use super::program_copy::ProgramCopy;
use crate::world::conversation::{Answered, CannotAsk};
use crate::world::event::Event;
use crate::world::timeline::{CannotInject, Timeline};

/// Vtime for which a fork runs before it takes the output of the world again, in nanoseconds.
const SLICE_NS: u64 = 10_000_000;

/// A throw-away fork of a timeline.
pub struct Fork {
    timeline: Timeline,
    events: VecDeque<Event>,
    messages: VecDeque<FrameStep>,
    /// Numbers of events and messages that were dropped before the caller took them.
    dropped: (u64, u64),
    interrupt: Interrupt,
    /// End of the last machine that ended. The timeline reports it once.
    ended: Option<String>,
    /// Answers by node and request that callers have not taken. Requests that have no entry are not waited for.
    answers: BTreeMap<(usize, u64), VecDeque<Answered>>,
    observer: Option<Box<dyn ForkObserver>>,
    /// Copies of Everett's program that may run.
    pub(super) running_copies: BTreeSet<ProgramCopy>,
}

/// Observer of a fork, such as one of probes.
pub trait ForkObserver: Send {
    /// Observes that a node's next instruction is at a breakpoint.
    ///
    /// # Errors
    /// Returns an error if the observer cannot go on. The fork's method that runs ends with it.
    fn stopped(&mut self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()>;
    /// Returns the events of the timeline since the last call together with those of the observer, ordered by vtime.
    fn add_events(&mut self, timeline: &Timeline, events: Vec<Event>) -> Vec<Event>;
}

/// A command that runs in a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    node: usize,
    request: u64,
}

/// Output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Stream to which the command wrote.
    pub stream: Stream,
    /// The bytes: a line with its newline, or the end of the stream if it has no newline.
    pub bytes: Vec<u8>,
    /// True if the end of the line is missing, because the line was longer than
    /// [`EXEC_TEXT_BYTES_MAX`](everett_protocol::limits::EXEC_TEXT_BYTES_MAX).
    pub truncated: bool,
}

/// Progress of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The command printed.
    Output(Output),
    /// The command has ended. All its output came before.
    Ended(Exit),
    /// The fork has reached the vtime up to which the caller let it run.
    Runs,
}

/// Error of a fork. Nodes are named by their index; callers know their names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// The agent cannot be asked.
    #[error(transparent)]
    CannotAsk(#[from] CannotAsk),
    /// The machine ended, or lost its power, while a request was in flight. A fault of the plan can be the cause.
    #[error("the machine has ended or lost its power in the fork")]
    Lost,
    /// All machines have ended, or the host failed.
    #[error("the fork cannot go on: {0}")]
    Ended(String),
    /// The agent did not answer in time.
    #[error("its agent, Everett's program in the machine, has not answered for {} of vtime", show_duration_ns(*.0))]
    NoAnswer(u64),
    /// The command did not end in time.
    #[error("the command has not ended within {} of vtime", show_duration_ns(*.0))]
    NoEnd(u64),
    /// The agent has refused a request.
    #[error("{0}")]
    Refused(String),
    /// The agent has answered in an unexpected way.
    #[error("its agent, Everett's program in the machine, has answered {0}")]
    Unexpected(String),
    /// Everett's program for shells and files has failed.
    #[error("{0}")]
    Program(String),
    /// A fault cannot be injected.
    #[error("the fault")]
    Fault(#[from] CannotInject),
    /// The observer cannot go on.
    #[error("{0}")]
    Observer(String),
    /// The caller ended the work.
    #[error("interrupted")]
    Interrupted,
}

impl Fork {
    /// Makes a fork of a timeline at its present instant.
    #[must_use]
    pub fn new(timeline: Timeline) -> Fork {
        Fork {
            timeline,
            events: VecDeque::new(),
            messages: VecDeque::new(),
            dropped: (0, 0),
            interrupt: Interrupt::default(),
            ended: None,
            answers: BTreeMap::new(),
            observer: None,
            running_copies: BTreeSet::new(),
        }
    }

    /// Sets the observer of the fork from here on. It has set its breakpoints.
    pub fn observe(&mut self, observer: Box<dyn ForkObserver>) {
        self.observer = Some(observer);
    }

    /// Returns the vtime of the fork, in nanoseconds.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.timeline.vtime()
    }

    /// Returns the timeline of the fork. Callers can read its machines.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// Takes the latest [`EVENTS_MAX`] events of the fork since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events).into()
    }

    /// Takes the latest [`MESSAGES_MAX`] outcomes of frames on the wire since the last call.
    pub fn take_messages(&mut self) -> Vec<FrameStep> {
        std::mem::take(&mut self.messages).into()
    }

    /// Returns the numbers of events and of messages that no call of [`Fork::take_events`] and [`Fork::take_messages`]
    /// returns, because too many came between two calls.
    #[must_use]
    pub fn dropped(&self) -> (u64, u64) {
        self.dropped
    }

    /// Sets the flag that ends a running method with [`ForkError::Interrupted`]. The fork can go on afterwards.
    pub fn end_on(&mut self, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
    }

    /// Injects a fault, a heal or a quiet period: an entry of a fault plan that begins when the fork goes on. Returns its
    /// number, by which the events [`What::Fault`](crate::world::event::What::Fault) and `Healed` name it.
    ///
    /// # Errors
    /// Returns an error if the entry is invalid, if it contradicts other faults, or if the workload has ended.
    pub fn inject(&mut self, entry: &PlanEntry, names: &Names) -> Result<u32, ForkError> {
        Ok(self.timeline.inject(entry, names)?)
    }

    /// Ends all faults, as the checks of a world do, and switches all machines on.
    pub fn calm(&mut self) {
        self.timeline.calm();
    }

    /// Lets vtime pass, in nanoseconds.
    ///
    /// # Errors
    /// Returns an error if the fork cannot go on.
    pub fn pass(&mut self, ns: u64) -> Result<(), ForkError> {
        let until_ns = self.vtime().saturating_add(ns);
        while self.vtime() < until_ns {
            self.step(until_ns)?;
        }
        Ok(())
    }

    /// Waits until the agent of a node can carry out requests, for at most `limit_ns` of vtime.
    ///
    /// # Errors
    /// Returns an error if the agent cannot within this time.
    pub fn wait_for_agent(&mut self, node: usize, limit_ns: u64) -> Result<(), ForkError> {
        let until_ns = self.vtime().saturating_add(limit_ns);
        while !self.timeline.is_agent_up(node) && self.vtime() < until_ns {
            if !self.timeline.world().nodes()[node].is_on() {
                break;
            }
            self.step(until_ns)?;
        }
        self.answer(node, Operation::Ping).map(|_| ())
    }

    /// Returns a command as the node's own programs run: see [`Timeline::command_on`].
    #[must_use]
    pub fn command(&self, node: usize, argv: Vec<String>, user: Option<&str>) -> Exec {
        self.timeline.command_on(node, argv, user)
    }

    /// Writes a file in a machine, and the folders above it. `owner` is as in [`PutFile::owner`].
    ///
    /// # Errors
    /// Returns an error if the agent cannot write the file.
    pub fn put_file(
        &mut self,
        node: usize,
        path: &str,
        mode: u32,
        owner: Option<&str>,
        content: &[u8],
    ) -> Result<(), ForkError> {
        let mut pieces = content.chunks(PUT_FILE_BYTES_MAX);
        // An empty file has no piece.
        let mut piece = pieces.next().unwrap_or_default();
        let mut append = false;
        loop {
            let file = piece_of(path, mode, owner, append, piece);
            match self.answer(node, Operation::PutFile(file))? {
                Reply::Done => {}
                Reply::Error { message } => return Err(ForkError::Refused(message)),
                reply => return Err(ForkError::Unexpected(format!("{reply:?}"))),
            }
            let Some(next) = pieces.next() else { return Ok(()) };
            (piece, append) = (next, true);
        }
    }

    /// Appends to a file in a machine, and does not wait until the agent has done so.
    pub(super) fn append(&mut self, node: usize, path: &str, content: &[u8]) -> Result<(), ForkError> {
        for piece in content.chunks(PUT_FILE_BYTES_MAX) {
            let file = piece_of(path, 0o644, None, true, piece);
            self.timeline.ask_agent(node, Operation::PutFile(file))?;
        }
        Ok(())
    }

    /// Starts a command.
    ///
    /// # Errors
    /// Returns an error if the agent cannot be asked.
    pub fn start(&mut self, node: usize, command: Exec) -> Result<Job, ForkError> {
        let request = self.timeline.ask_agent(node, Operation::Exec(command))?;
        self.answers.insert((node, request), VecDeque::new());
        Ok(Job { node, request })
    }

    /// Gives up waiting for a command, which goes on with the fork. Its output from now on is dropped, and [`Fork::next`]
    /// returns no more of it.
    pub fn forget(&mut self, job: Job) {
        self.answers.remove(&(job.node, job.request));
    }

    /// Lets the fork run until the command prints or ends, but at most up to the vtime `until_ns`. A caller that does not
    /// call it again must call [`Fork::forget`], unless the command has ended.
    ///
    /// # Errors
    /// Returns an error if the agent cannot start the command, or if the machine or the fork cannot go on.
    pub fn next(&mut self, job: Job, until_ns: u64) -> Result<Progress, ForkError> {
        loop {
            match self.take((job.node, job.request)) {
                Some(Answered::Output { stream, text, truncated, unfinished }) => {
                    let mut bytes = text.as_bytes().to_vec();
                    if !unfinished {
                        bytes.push(b'\n');
                    }
                    return Ok(Progress::Output(Output { stream, bytes, truncated }));
                }
                Some(Answered::Reply(reply)) => {
                    self.answers.remove(&(job.node, job.request));
                    return match reply {
                        Reply::Exited(exit) => Ok(Progress::Ended(exit)),
                        Reply::Error { message } => Err(ForkError::Refused(message)),
                        reply => Err(ForkError::Unexpected(format!("{reply:?}"))),
                    };
                }
                Some(Answered::Lost) => {
                    self.answers.remove(&(job.node, job.request));
                    return Err(ForkError::Lost);
                }
                None if self.vtime() >= until_ns => return Ok(Progress::Runs),
                None => self.step(until_ns)?,
            }
        }
    }

    /// Runs a command to its end, for at most `limit_ns` of vtime, and passes its output to `output` as it comes.
    ///
    /// # Errors
    /// See [`Fork::next`]. Also returns an error if the command does not end in time.
    pub fn run(
        &mut self,
        node: usize,
        command: Exec,
        limit_ns: u64,
        output: &mut dyn FnMut(Output),
    ) -> Result<Exit, ForkError> {
        let until_ns = self.vtime().saturating_add(limit_ns);
        let job = self.start(node, command)?;
        let exit = loop {
            match self.next(job, until_ns) {
                Ok(Progress::Output(printed)) => output(printed),
                Ok(Progress::Ended(exit)) => break Ok(exit),
                Ok(Progress::Runs) => break Err(ForkError::NoEnd(limit_ns)),
                Err(error) => break Err(error),
            }
        };
        self.forget(job);
        exit
    }

    /// Sends a request that the agent can carry out at once, and waits for the answer.
    fn answer(&mut self, node: usize, op: Operation) -> Result<Reply, ForkError> {
        let until_ns = self.vtime().saturating_add(ANSWER_NS_MAX);
        let request = self.timeline.ask_agent(node, op)?;
        let job = Job { node, request };
        self.answers.insert((node, request), VecDeque::new());
        let reply = self.reply(job, until_ns);
        self.forget(job);
        reply
    }

    fn reply(&mut self, job: Job, until_ns: u64) -> Result<Reply, ForkError> {
        loop {
            match self.take((job.node, job.request)) {
                Some(Answered::Reply(reply)) => return Ok(reply),
                Some(Answered::Lost) => return Err(ForkError::Lost),
                Some(Answered::Output { .. }) => {}
                None if self.vtime() >= until_ns => return Err(ForkError::NoAnswer(ANSWER_NS_MAX)),
                None => self.step(until_ns)?,
            }
        }
    }

    fn take(&mut self, request: (usize, u64)) -> Option<Answered> {
        self.answers.get_mut(&request)?.pop_front()
    }

    /// Runs the world until an agent answers, for at most [`SLICE_NS`], and takes its output.
    fn step(&mut self, until_ns: u64) -> Result<(), ForkError> {
        if self.interrupt.wanted() {
            return Err(ForkError::Interrupted);
        }
        let mut nodes = self.timeline.world().nodes().iter();
        if let Some(end) = &self.ended
            && nodes.all(|node| node.machine().end().is_some())
        {
            return Err(ForkError::Ended(end.clone()));
        }
        let slice_ns = self.vtime().saturating_add(SLICE_NS).min(until_ns);
        let (node, stop) = self.timeline.run_to_answer(&Until::vtime(slice_ns));
        if let (Some(node), Stop::Breakpoint, Some(observer)) = (node, &stop, &mut self.observer) {
            let seen = observer.stopped(&mut self.timeline, node);
            seen.map_err(|error| ForkError::Observer(format!("{error:#}")))?;
        }
        let mut has_answers = false;
        for node in 0..self.timeline.world().nodes().len() {
            for answer in self.timeline.take_answers(node) {
                if let Some(answers) = self.answers.get_mut(&(node, answer.request)) {
                    answers.push_back(answer.what);
                    has_answers = true;
                }
            }
            let machine = self.timeline.machine_mut(node);
            machine.output().take_console();
            machine.take_edges();
        }
        self.messages.extend(self.timeline.world_mut().wire().take_steps());
        let events = self.timeline.take_events();
        self.events.extend(match &mut self.observer {
            Some(observer) => observer.add_events(&self.timeline, events),
            None => events,
        });
        let dropped = self.events.drain(..self.events.len().saturating_sub(EVENTS_MAX)).count();
        self.dropped.0 = self.dropped.0.saturating_add(dropped as u64);
        let dropped = self.messages.drain(..self.messages.len().saturating_sub(MESSAGES_MAX)).count();
        self.dropped.1 = self.dropped.1.saturating_add(dropped as u64);
        // The answers that came with the end are not lost: their callers take them, and only the next step is an error.
        let Stop::End(end) = stop else { return Ok(()) };
        self.ended = Some(end.to_string());
        if has_answers { Ok(()) } else { Err(ForkError::Ended(end.to_string())) }
    }
}

fn piece_of(path: &str, mode: u32, owner: Option<&str>, append: bool, data: &[u8]) -> PutFile {
    let owner = owner.map(str::to_owned);
    PutFile { path: path.to_owned(), mode, owner, append, data: Bytes(data.to_vec()) }
}
