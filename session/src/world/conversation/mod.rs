//! Everett's end of a conversation with a guest's agent.
//!
//! The conversation is a state machine that does no I/O itself. The caller passes it the bytes from the guest's ports
//! with their vtimes, and takes from it the bytes for the control port, and events. The conversation reads no clock
//! and draws no random numbers. So only the calls of its methods, with the bytes and vtimes passed, decide what the
//! conversation sends and when.
//!
//! The conversation pauses at the restart point (see [`Phase::Mounted`]) until its owner, a timeline, calls
//! [`Conversation::join`]. It pauses again when the services are ready, until [`Conversation::begin`]. A moment stored
//! at a pause can be continued many times. If the services wait for other nodes, the conversation also pauses before
//! they start, until [`Conversation::start_services`].
//!
//! - this file: phases, requests and answers
//! - `boot`: from the agent's first message until the timeline begins with its seed
//! - `workload`: drivers and checks
//! - `commands`: commands of a test template
//! - `history`: lines on the history port
//! - `sdk`: lines from the SDK
//! - `restarts`: restarts of services
//! - `asked`: requests of a caller outside the timeline
//! - `waiting`: says what a late machine waits for
//! - [`state`]: stored state of a conversation
//! - [`state_error`]: errors of the stored state

mod asked;
mod boot;
mod commands;
mod history;
mod restarts;
mod sdk;
pub mod state;
pub mod state_error;
mod waiting;
mod workload;

use everett_explorer::property::builtin;
use everett_input::causes::with_causes;
use everett_protocol::{
    self as protocol, Exit, LineSplitter, Message, Operation, Port, Reply, Request, Unit,
};
use everett_streams::Seed;
use serde::{Deserialize, Serialize};

pub use asked::{Answer, Answered, CannotAsk};
pub use commands::{Said, Word};
pub use restarts::Restarted;
pub use sdk::Quiet;

use super::event::{Event, What};
use crate::guest::agent_script::AgentScript;
use asked::Asked;
use history::HistoryLines;
use state::ConversationProgress;

/// Maximum number of unanswered requests. Everett gives up on an agent that does not answer this many.
pub const PENDING_MAX: usize = 4096;
/// Maximum number of names of commands and checks that a conversation stores. It drops the oldest name first.
pub const COMMANDS_MAX: usize = 4096;

/// Phase of a conversation. The phases are in the order in which they occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// The agent has sent no message.
    Booting,
    /// The agent mounts the root filesystem.
    Mounting,
    /// The *restart point*: the agent has mounted the root filesystem. The machine's state does not depend on its
    /// starting time, its data disks or its network yet. After a power loss, Everett can therefore start the node
    /// from this state. The conversation waits for [`Conversation::join`].
    Mounted,
    /// The agent sets up disks and network, writes files and starts services.
    Joining,
    /// All services are ready; this is the root moment of all timelines. The conversation waits for
    /// [`Conversation::begin`].
    Ready,
    /// The agent seeds the guest's random numbers.
    Beginning,
    /// Drivers run.
    Running,
    /// The agent kills the drivers.
    Stopping,
    /// All drivers have ended.
    Stopped,
    /// Everett sends no more requests.
    Done,
    /// The agent or its machine is unusable. A finding has the reason.
    Broken,
}

/// Purpose of an unanswered request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Purpose {
    Mount,
    Join,
    File(usize),
    Services,
    /// List the folder of the test template, whose files are the test commands.
    List,
    Reseed,
    /// Apply a fault through the agent.
    Fault,
    Driver(usize),
    StopDriver,
    /// Start a command of the test template. The value is the number of this run.
    TestCommand(u64),
    Check(usize),
    Command,
    /// Start the collector, a program in the guest that collects the lines from the SDK.
    Collector,
    PowerOff,
    /// Set the priorities of a unit's threads.
    Priorities,
    /// Ask this service to exit, or kill it.
    Stop(String),
    /// Start this service again after its end.
    Again(String),
}

/// Everett's end of a conversation with a guest's agent.
#[derive(Debug)]
pub struct Conversation {
    script: AgentScript,
    at: ConversationProgress,
    control: LineSplitter,
    log: LineSplitter,
    history: HistoryLines,
    outgoing: Vec<u8>,
    events: Vec<Event>,
    words: Vec<Word>,
    /// Requests of programs for quiet periods (times without faults), which the owner has not read yet.
    quiets: Vec<Quiet>,
    /// Reports of restarted services, which the owner has not read yet.
    restarted: Vec<Restarted>,
    /// File that the agent refused: its path in the guest, and the reason. Moments do not store this field, because
    /// Everett ends the boot with an error right after the refusal.
    refused_file: Option<(String, String)>,
    /// Requests of a caller outside the timeline. Moments do not store them.
    asked: Asked,
}

impl Conversation {
    /// Creates a conversation with an agent that has sent no message.
    #[must_use]
    pub fn new(script: AgentScript) -> Conversation {
        let at = ConversationProgress::new(script.drivers.len());
        Conversation {
            script,
            at,
            control: LineSplitter::control(),
            log: LineSplitter::log(),
            history: HistoryLines::new(),
            outgoing: Vec::new(),
            events: Vec::new(),
            words: Vec::new(),
            quiets: Vec::new(),
            restarted: Vec::new(),
            refused_file: None,
            asked: Asked::default(),
        }
    }

    /// Returns the phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.at.phase
    }

    /// Returns true if checks can run: the workload has ended, all drivers have ended, and no service is being
    /// restarted. Returns true too if the conversation is over.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.at.phase > Phase::Stopped || self.at.phase == Phase::Stopped && !self.is_restarting()
    }

    /// Returns the seed under which the timeline has begun on this node.
    #[must_use]
    pub fn seed(&self) -> Option<Seed> {
        self.at.seed
    }

    /// Returns the vtime at which all services were ready, in nanoseconds.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.at.ready_ns
    }

    /// Returns the vtime of the latest of certain events on the node, in nanoseconds. The timeline uses it as the vtime
    /// at which the node came to rest, and the conversation measures the duration of a check from it.
    ///
    /// The events are: the beginning of the timeline, the end of the last running driver, the end of the last service
    /// restart, and the start and end of a check.
    #[must_use]
    pub fn rest_ns(&self) -> u64 {
        self.at.rest_ns
    }

    /// Returns the reason for [`Phase::Broken`].
    #[must_use]
    pub fn broken_because(&self) -> Option<&str> {
        self.at.broken.as_deref()
    }

    /// Returns the guest path of a file that the agent refused, and the reason.
    #[must_use]
    pub fn refused_file(&self) -> Option<(&str, &str)> {
        self.refused_file.as_ref().map(|(path, why)| (path.as_str(), why.as_str()))
    }

    /// Returns the number of findings so far.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.at.findings
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Takes the bytes to send to the guest's control port.
    pub fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the exit status of the command that [`Conversation::command`] started, if the command has ended.
    #[must_use]
    pub fn command_exit(&self) -> Option<Exit> {
        self.at.command_exit
    }

    /// Receives bytes that the guest wrote to `port` at `vtime_ns`.
    pub fn received(&mut self, port: Port, bytes: &[u8], vtime_ns: u64) {
        match port {
            Port::Control => self.control.push(bytes),
            Port::Log => self.log.push(bytes),
            Port::History => return self.history(bytes, vtime_ns),
            Port::Sdk => return self.packet(bytes, vtime_ns),
            Port::Debug | Port::Spare => return,
        }
        while let Some(line) = self.control.next_line() {
            match line.and_then(|line| protocol::decode_message(&line)) {
                Ok(message) => self.message(message, vtime_ns),
                Err(error) => self.finding(vtime_ns, builtin::AGENT_FAILURE, with_causes(&error)),
            }
        }
        while let Some(line) = self.log.next_line() {
            match line.and_then(|line| protocol::decode_output(&line)) {
                Ok(output) => self.output(output, vtime_ns),
                Err(error) => self.finding(vtime_ns, builtin::AGENT_FAILURE, with_causes(&error)),
            }
        }
    }

    /// Ends the conversation with a finding, because the guest does not do what Everett asked.
    pub fn give_up(&mut self, vtime_ns: u64, why: &str) {
        if !matches!(self.at.phase, Phase::Done | Phase::Broken) {
            self.finding(vtime_ns, builtin::AGENT_FAILURE, why);
            self.at.phase = Phase::Done;
        }
    }

    /// Runs a command in the guest. Its output appears under `name`.
    pub fn command(&mut self, name: &str, exec: protocol::Exec, vtime_ns: u64) {
        self.named_request(name, Purpose::Command, exec, vtime_ns);
    }

    /// Sends a request that applies a fault.
    pub fn fault(&mut self, op: Operation, vtime_ns: u64) {
        self.request(Purpose::Fault, op, vtime_ns);
    }

    /// Gives the threads of a service these priorities.
    pub fn prioritize(&mut self, service: &str, priorities: Vec<u8>, vtime_ns: u64) {
        let op = Operation::Prioritize { service: service.to_owned(), priorities };
        self.request(Purpose::Priorities, op, vtime_ns);
    }

    /// Returns true if the agent has not answered a request for priorities.
    pub fn is_prioritizing(&self) -> bool {
        self.at.pending.values().any(|purpose| *purpose == Purpose::Priorities)
    }

    /// Runs a command as a fault. Its output appears under `name`.
    pub fn custom(&mut self, name: &str, exec: protocol::Exec, vtime_ns: u64) {
        self.named_request(name, Purpose::Fault, exec, vtime_ns);
    }

    /// Records that the machine has powered off at Everett's request.
    pub fn machine_done(&mut self, vtime_ns: u64) {
        self.lose_asked(vtime_ns);
        self.at.phase = Phase::Done;
    }

    /// Breaks the conversation because the machine stopped by itself, which violates `property`.
    pub fn machine_ended(&mut self, vtime_ns: u64, property: &str, why: &str) {
        self.lose_asked(vtime_ns);
        self.broken(vtime_ns, property, format!("the machine stopped: {why}"));
    }

    /// Reports a finding about this node.
    pub fn noticed(&mut self, vtime_ns: u64, property: &str, text: &str) {
        self.finding(vtime_ns, property, text);
    }

    /// Reports an event of this node.
    pub fn report(&mut self, vtime_ns: u64, what: What) {
        self.event(vtime_ns, what);
    }

    /// Breaks the conversation because the agent cannot be used any more.
    pub fn unusable(&mut self, vtime_ns: u64, why: &str) {
        if !matches!(self.at.phase, Phase::Done | Phase::Broken) {
            self.broken(vtime_ns, builtin::AGENT_FAILURE, why);
        }
    }

    /// Returns true if Everett has asked the guest to power off.
    #[must_use]
    pub fn is_powering_off(&self) -> bool {
        self.at.powering_off
    }

    /// Asks the guest to power off.
    pub fn power_off(&mut self, vtime_ns: u64) {
        self.at.powering_off = true;
        self.request(Purpose::PowerOff, Operation::PowerOff, vtime_ns);
    }

    fn event(&mut self, vtime_ns: u64, what: What) {
        self.events.push(Event { vtime_ns, node: self.script.node.clone(), what });
    }

    fn finding(&mut self, vtime_ns: u64, property: &str, text: impl Into<String>) {
        self.at.findings = self.at.findings.saturating_add(1);
        self.event(vtime_ns, What::finding(property, text));
    }

    fn broken(&mut self, vtime_ns: u64, property: &str, text: impl Into<String>) {
        let text = text.into();
        self.at.phase = Phase::Broken;
        self.at.broken.get_or_insert_with(|| text.clone());
        self.finding(vtime_ns, property, text);
    }

    fn request(&mut self, purpose: Purpose, op: Operation, vtime_ns: u64) {
        if self.at.pending.len() >= PENDING_MAX {
            return self.unusable(vtime_ns, &format!("the agent has not answered {PENDING_MAX} requests"));
        }
        let id = self.at.next_id;
        self.at.next_id = id.saturating_add(1);
        match protocol::encode_request(&Request { id, op }) {
            Ok(line) => {
                self.outgoing.extend_from_slice(&line);
                self.at.pending.insert(id, purpose);
            }
            Err(error) => self.broken(
                vtime_ns,
                builtin::AGENT_FAILURE,
                format!("invalid request to the agent: {}", with_causes(&error)),
            ),
        }
    }

    /// Runs a command whose output appears under `name`. Lines of output have only the request's number, so the name is
    /// stored under this number.
    fn named_request(&mut self, name: &str, purpose: Purpose, exec: protocol::Exec, vtime_ns: u64) {
        if self.at.commands.len() >= COMMANDS_MAX {
            self.at.commands.pop_first();
        }
        self.at.commands.insert(self.at.next_id, name.to_owned());
        self.request(purpose, Operation::Exec(exec), vtime_ns);
    }

    fn message(&mut self, message: Message, vtime_ns: u64) {
        match message {
            Message::Hello(hello) => self.hello(hello, vtime_ns),
            Message::Ready => self.services_ready(vtime_ns),
            Message::NotReady { service, why } => self.service_not_ready(&service, &why, vtime_ns),
            Message::Response(response) => match self.at.pending.remove(&response.id) {
                Some(purpose) => self.response(response.id, purpose, response.reply, vtime_ns),
                None if self.answered(response.id, response.reply, vtime_ns).is_none() => {}
                None => self.finding(
                    vtime_ns,
                    builtin::AGENT_FAILURE,
                    format!("the agent answers request {}, which is not pending", response.id),
                ),
            },
            Message::Output(output) => self.output(output, vtime_ns),
            Message::Exited(exited) => self.exited(&exited, vtime_ns),
            Message::Error { message } => {
                self.finding(vtime_ns, builtin::AGENT_FAILURE, format!("agent: {message}"))
            }
        }
    }

    fn response(&mut self, id: u64, purpose: Purpose, reply: Reply, vtime_ns: u64) {
        match (purpose, reply) {
            (Purpose::Mount, Reply::Done) => self.mounted(vtime_ns),
            (Purpose::Join, Reply::Done) => self.put_next(0, vtime_ns),
            (Purpose::Join, Reply::Damaged { message }) => {
                self.broken(vtime_ns, builtin::FILE_SYSTEM_DAMAGED, message)
            }
            (Purpose::File(index), Reply::Done) => self.put_next(index.saturating_add(1), vtime_ns),
            (Purpose::Collector, Reply::Exited(exit)) => self.collector_started(exit, vtime_ns),
            (Purpose::Services, Reply::Done) => self.at.services_started = true,
            (Purpose::List, Reply::Names(names)) => self.listed(names, vtime_ns),
            (Purpose::Reseed, Reply::Done) => self.begun(vtime_ns),
            (Purpose::Fault | Purpose::Priorities, Reply::Done) => {}
            (Purpose::Stop(unit) | Purpose::Again(unit), _) if !self.is_latest(&unit, id) => {}
            (Purpose::Stop(unit), reply @ (Reply::Done | Reply::Exited(_) | Reply::Error { .. })) => {
                self.signal_answered(&unit, reply, vtime_ns);
            }
            (Purpose::Again(unit), reply @ (Reply::Done | Reply::Error { .. })) => {
                self.start_answered(&unit, reply, vtime_ns);
            }
            (Purpose::Fault, Reply::Exited(exit)) => {
                let name = self.at.commands.get(&id).cloned().unwrap_or_default();
                self.event(vtime_ns, What::exit(&name, exit));
            }
            (
                Purpose::Driver(_) | Purpose::StopDriver | Purpose::TestCommand(_) | Purpose::PowerOff,
                Reply::Done,
            ) => {}
            (Purpose::Check(index), Reply::Exited(exit)) => self.check_ended(index, exit, vtime_ns),
            (Purpose::Command, Reply::Exited(exit)) => {
                let name = self.at.commands.get(&id).cloned().unwrap_or_default();
                self.event(vtime_ns, What::exit(&name, exit));
                self.at.command_exit = Some(exit);
            }
            (purpose, Reply::Error { message }) => self.refused(purpose, &message, vtime_ns),
            (purpose, reply) => {
                self.broken(
                    vtime_ns,
                    builtin::AGENT_FAILURE,
                    format!("the agent answers {purpose:?} with {reply:?}"),
                );
            }
        }
    }

    /// Handles an error that the agent returned.
    fn refused(&mut self, purpose: Purpose, message: &str, vtime_ns: u64) {
        match purpose {
            Purpose::Mount => self.broken(vtime_ns, builtin::MACHINE_STOPPED, format!("mount: {message}")),
            Purpose::Join => self.broken(vtime_ns, builtin::MACHINE_STOPPED, format!("setup: {message}")),
            Purpose::File(index) => {
                let path = self.script.files.get(index).map(|file| file.path.clone()).unwrap_or_default();
                self.refused_file = Some((path, message.to_owned()));
                self.broken(vtime_ns, builtin::MACHINE_STOPPED, format!("files: {message}"));
            }
            Purpose::Services => {
                self.broken(vtime_ns, builtin::MACHINE_STOPPED, format!("services: {message}"))
            }
            Purpose::Collector => self.broken(vtime_ns, builtin::MACHINE_STOPPED, format!("SDK: {message}")),
            Purpose::List => self.broken(vtime_ns, builtin::NOT_READY, format!("test template: {message}")),
            Purpose::Reseed => {
                self.broken(vtime_ns, builtin::MACHINE_STOPPED, format!("random numbers: {message}"))
            }
            // `Stop` and `Again` do not get here, because `response` handles their errors.
            Purpose::Fault | Purpose::Priorities | Purpose::Stop(_) | Purpose::Again(_) => {
                self.not_done(vtime_ns, message);
            }
            Purpose::Driver(index) => self.driver_refused(index, message, vtime_ns),
            // The agent refused to stop a driver or command that had just ended by itself.
            Purpose::StopDriver => {}
            Purpose::TestCommand(run) => self.command_refused(run, message, vtime_ns),
            Purpose::Check(index) => self.check_refused(index, message, vtime_ns),
            Purpose::Command => {
                self.finding(vtime_ns, builtin::AGENT_FAILURE, message);
                self.at.command_exit = Some(Exit::Code(COMMAND_NOT_RUN));
            }
            Purpose::PowerOff => {
                self.finding(vtime_ns, builtin::AGENT_FAILURE, format!("power off: {message}"))
            }
        }
    }

    fn output(&mut self, output: protocol::Output, vtime_ns: u64) {
        let Some(output) = self.printed(output, vtime_ns) else { return };
        let unit = match output.unit {
            Unit::Service(name) => self.unit_of_command(&name).unwrap_or(name),
            Unit::Exec(id) => self.at.commands.get(&id).cloned().unwrap_or_else(|| format!("exec {id}")),
        };
        let text = output.text.to_str_lossy().into_owned();
        let (stream, truncated) = (output.stream.into(), output.truncated);
        self.event(vtime_ns, What::Line { unit, stream, text, truncated });
    }

    fn exited(&mut self, exited: &protocol::Exited, vtime_ns: u64) {
        let driver = self.script.drivers.iter().position(|driver| driver.service.name == exited.service);
        match (driver, self.run_of(&exited.service)) {
            (Some(index), _) => self.driver_exited(index, exited.exit, vtime_ns),
            (None, Some(run)) => self.command_exited(run, exited.exit, vtime_ns),
            (None, None) => self.service_exited(exited, vtime_ns),
        }
    }
}

/// Exit status with which a shell reports a command that it cannot execute (POSIX, 2.8.2).
const COMMAND_NOT_RUN: i32 = 126;

#[cfg(test)]
pub(crate) mod tests;
