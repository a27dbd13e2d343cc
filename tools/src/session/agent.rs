//! The host's end of a conversation with a guest's agent.
//!
//! A state machine without input or output: bytes from the guest's ports go in with their vtime, bytes for its control
//! port and events come out. It reads no clock and draws nothing, so that what it answers, and when, is a function of
//! what the guest said.

use std::collections::BTreeMap;

use everett_protocol::{
    self as protocol, Exit, LineSplitter, Message, Operation, Port, Reply, Request, Stream, Unit,
};

use super::event::{Event, What};
use super::plan::{Plan, ROUND_VARIABLE};

/// How far a conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The agent has not said anything yet.
    Booting,
    /// The root is being mounted, files are put, services start.
    SettingUp,
    /// Services are ready, drivers run.
    Running,
    /// Drivers were told to end.
    Stopping,
    /// Checks run.
    Checking,
    /// Nothing more will be asked.
    Done,
    /// The agent cannot be used: the reason is among the findings.
    Broken,
}

/// What an outstanding request was for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Purpose {
    Setup,
    File(usize),
    Services,
    Driver(usize),
    StopDriver,
    Check(usize),
    Command,
    PowerOff,
}

/// The host's end.
#[derive(Debug)]
pub struct Conversation {
    plan: Plan,
    phase: Phase,
    control: LineSplitter,
    log: LineSplitter,
    next_id: u64,
    pending: BTreeMap<u64, Purpose>,
    /// Names of commands, by their request's number: a line of output names only the number.
    commands: BTreeMap<u64, String>,
    services_started: bool,
    /// How often each driver was started, and whether it runs.
    drivers: Vec<(u64, bool)>,
    /// How the last command that [`Conversation::command`] ran ended.
    command_exit: Option<Exit>,
    powering_off: bool,
    outgoing: Vec<u8>,
    events: Vec<Event>,
    findings: u64,
}

impl Conversation {
    /// Nothing was said yet.
    #[must_use]
    pub fn new(plan: Plan) -> Conversation {
        let drivers = vec![(0, false); plan.drivers.len()];
        Conversation {
            plan,
            phase: Phase::Booting,
            control: LineSplitter::control(),
            log: LineSplitter::log(),
            next_id: 1,
            pending: BTreeMap::new(),
            commands: BTreeMap::new(),
            services_started: false,
            drivers,
            command_exit: None,
            powering_off: false,
            outgoing: Vec::new(),
            events: Vec::new(),
            findings: 0,
        }
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How long the checks may take together, in nanoseconds of vtime.
    #[must_use]
    pub fn checks_ns(&self) -> u64 {
        let limit_ms = |check: &super::plan::Check| check.exec.limit_ms.unwrap_or(0);
        self.plan.checks.iter().map(limit_ms).fold(0u64, u64::saturating_add).saturating_mul(1_000_000)
    }

    /// How many findings there were.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.findings
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What the guest's control port is to receive since the last call.
    pub fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// How the command that [`Conversation::command`] started ended, once it has.
    #[must_use]
    pub fn command_exit(&self) -> Option<Exit> {
        self.command_exit
    }

    /// The guest wrote `bytes` to `port` at `vtime_ns`.
    pub fn received(&mut self, port: Port, bytes: &[u8], vtime_ns: u64) {
        match port {
            Port::Control => self.control.push(bytes),
            Port::Log => self.log.push(bytes),
            Port::History | Port::Sdk | Port::Debug | Port::Spare => return,
        }
        while let Some(line) = self.control.next_line() {
            match line.and_then(|line| protocol::decode_message(&line)) {
                Ok(message) => self.message(message, vtime_ns),
                Err(error) => self.finding(vtime_ns, error.to_string()),
            }
        }
        while let Some(line) = self.log.next_line() {
            match line.and_then(|line| protocol::decode_output(&line)) {
                Ok(output) => self.output(output, vtime_ns),
                Err(error) => self.finding(vtime_ns, error.to_string()),
            }
        }
    }

    /// The workload's time is over: stop the drivers, then run the checks.
    pub fn end(&mut self, vtime_ns: u64) {
        match self.phase {
            Phase::Running => {}
            Phase::Booting => {
                self.finding(vtime_ns, "the agent did not speak before the end of the timeline");
                self.phase = Phase::Done;
                return;
            }
            Phase::SettingUp => {
                self.finding(vtime_ns, "the services were not ready before the end of the timeline");
                self.phase = Phase::Done;
                return;
            }
            Phase::Stopping | Phase::Checking | Phase::Done | Phase::Broken => return,
        }
        self.event(vtime_ns, What::End);
        self.phase = Phase::Stopping;
        for index in 0..self.drivers.len() {
            if self.drivers[index].1 {
                let service = self.plan.drivers[index].service.name.clone();
                self.request(Purpose::StopDriver, Operation::Signal { service, signal: SIGKILL }, vtime_ns);
            }
        }
        self.drivers_stopped(vtime_ns);
    }

    /// The end came, but the guest does not do what it was asked: give up.
    pub fn give_up(&mut self, vtime_ns: u64, why: &str) {
        if !matches!(self.phase, Phase::Done | Phase::Broken) {
            self.finding(vtime_ns, why);
            self.phase = Phase::Done;
        }
    }

    /// Run a command in the guest; its output appears under `name`.
    pub fn command(&mut self, name: &str, exec: protocol::Exec, vtime_ns: u64) {
        self.commands.insert(self.next_id, name.to_owned());
        self.request(Purpose::Command, Operation::Exec(exec), vtime_ns);
    }

    /// The machine came to its end; `asked` says whether that is what it was asked for.
    pub fn machine_ended(&mut self, vtime_ns: u64, asked: bool, why: &str) {
        if asked {
            self.phase = Phase::Done;
        } else {
            self.broken(vtime_ns, format!("the machine stopped: {why}"));
        }
    }

    /// Something is wrong with the machine that the agent need not know of.
    pub fn noticed(&mut self, vtime_ns: u64, text: &str) {
        self.finding(vtime_ns, text);
    }

    /// Whether the guest was asked to power off.
    #[must_use]
    pub fn is_powering_off(&self) -> bool {
        self.powering_off
    }

    /// Ask the guest to power off.
    pub fn power_off(&mut self, vtime_ns: u64) {
        self.powering_off = true;
        self.request(Purpose::PowerOff, Operation::PowerOff, vtime_ns);
    }

    fn event(&mut self, vtime_ns: u64, what: What) {
        self.events.push(Event { vtime_ns, node: self.plan.node.clone(), what });
    }

    fn finding(&mut self, vtime_ns: u64, text: impl Into<String>) {
        self.findings += 1;
        self.event(vtime_ns, What::finding(text));
    }

    fn broken(&mut self, vtime_ns: u64, text: impl Into<String>) {
        self.finding(vtime_ns, text);
        self.phase = Phase::Broken;
    }

    fn request(&mut self, purpose: Purpose, op: Operation, vtime_ns: u64) {
        let id = self.next_id;
        self.next_id += 1;
        match protocol::encode_request(&Request { id, op }) {
            Ok(line) => {
                self.outgoing.extend_from_slice(&line);
                self.pending.insert(id, purpose);
            }
            Err(error) => self.broken(vtime_ns, format!("the agent cannot be asked: {error}")),
        }
    }

    fn message(&mut self, message: Message, vtime_ns: u64) {
        match message {
            Message::Hello(hello) => self.hello(hello, vtime_ns),
            Message::Ready => {
                if self.phase == Phase::SettingUp && self.services_started {
                    self.ready(vtime_ns);
                }
            }
            Message::Response(response) => match self.pending.remove(&response.id) {
                Some(purpose) => self.response(response.id, purpose, response.reply, vtime_ns),
                None => {
                    self.finding(vtime_ns, format!("the agent answers {}, which was not asked", response.id))
                }
            },
            Message::Output(output) => self.output(output, vtime_ns),
            Message::Exited(exited) => self.exited(&exited, vtime_ns),
            Message::Error { message } => self.finding(vtime_ns, format!("agent: {message}")),
        }
    }

    fn hello(&mut self, hello: protocol::Hello, vtime_ns: u64) {
        if self.phase != Phase::Booting {
            return self.broken(vtime_ns, "the agent says hello a second time");
        }
        if hello.version != protocol::VERSION {
            let (theirs, ours) = (hello.version, protocol::VERSION);
            return self.broken(vtime_ns, format!("the agent speaks protocol {theirs}, this host {ours}"));
        }
        self.event(vtime_ns, What::Hello { release: hello.release });
        self.phase = Phase::SettingUp;
        let setup = Box::new(self.plan.setup.clone());
        self.request(Purpose::Setup, Operation::Setup(setup), vtime_ns);
    }

    /// The machine is set up and `files` are put: put the next one, or start the services.
    fn put_next(&mut self, files: usize, vtime_ns: u64) {
        if let Some(piece) = self.plan.files.get(files) {
            let piece = piece.clone();
            self.request(Purpose::File(files), Operation::PutFile(piece), vtime_ns);
        } else if self.plan.services.is_empty() {
            self.ready(vtime_ns);
        } else {
            let services = self.plan.services.clone();
            self.request(Purpose::Services, Operation::Start { services }, vtime_ns);
        }
    }

    fn ready(&mut self, vtime_ns: u64) {
        self.event(vtime_ns, What::Ready);
        self.phase = Phase::Running;
        for index in 0..self.drivers.len() {
            self.start_driver(index, vtime_ns);
        }
    }

    fn start_driver(&mut self, index: usize, vtime_ns: u64) {
        let (round, running) = &mut self.drivers[index];
        let mut service = self.plan.drivers[index].service.clone();
        service.env.insert(ROUND_VARIABLE.to_owned(), round.to_string());
        let what = What::Start { unit: service.name.clone(), round: *round };
        (*round, *running) = (*round + 1, true);
        self.event(vtime_ns, what);
        self.request(Purpose::Driver(index), Operation::Start { services: vec![service] }, vtime_ns);
    }

    fn response(&mut self, id: u64, purpose: Purpose, reply: Reply, vtime_ns: u64) {
        match (purpose, reply) {
            (Purpose::Setup, Reply::Done) => self.put_next(0, vtime_ns),
            (Purpose::File(index), Reply::Done) => self.put_next(index + 1, vtime_ns),
            (Purpose::Services, Reply::Done) => self.services_started = true,
            (Purpose::Driver(_) | Purpose::StopDriver | Purpose::PowerOff, Reply::Done) => {}
            (Purpose::Check(index), Reply::Exited(exit)) => self.check_ended(index, exit, vtime_ns),
            (Purpose::Command, Reply::Exited(exit)) => {
                let name = self.commands.get(&id).cloned().unwrap_or_default();
                self.event(vtime_ns, What::exit(&name, exit));
                self.command_exit = Some(exit);
            }
            (Purpose::Setup, Reply::Error { message }) => self.broken(vtime_ns, format!("setup: {message}")),
            (Purpose::File(_), Reply::Error { message }) => {
                self.broken(vtime_ns, format!("files: {message}"))
            }
            (Purpose::Services, Reply::Error { message }) => {
                self.broken(vtime_ns, format!("services: {message}"));
            }
            (Purpose::Driver(index), Reply::Error { message }) => {
                self.drivers[index].1 = false;
                self.finding(vtime_ns, message);
                self.drivers_stopped(vtime_ns);
            }
            // It ended by itself just before.
            (Purpose::StopDriver, Reply::Error { .. }) => {}
            (Purpose::Check(index), Reply::Error { message }) => {
                let name = &self.plan.checks[index].name;
                self.finding(vtime_ns, format!("check {name}: {message}"));
                self.check_next(index + 1, vtime_ns);
            }
            (Purpose::Command, Reply::Error { message }) => {
                self.finding(vtime_ns, message);
                self.command_exit = Some(Exit::Code(COMMAND_NOT_RUN));
            }
            (Purpose::PowerOff, Reply::Error { message }) => {
                self.finding(vtime_ns, format!("power off: {message}"));
            }
            (purpose, reply) => {
                self.broken(vtime_ns, format!("the agent answers {purpose:?} with {reply:?}"));
            }
        }
    }

    fn output(&mut self, output: protocol::Output, vtime_ns: u64) {
        let unit = match output.unit {
            Unit::Service(name) => name,
            Unit::Exec(id) => self.commands.get(&id).cloned().unwrap_or_else(|| format!("exec {id}")),
        };
        let text = output.text.to_str_lossy().into_owned();
        let (stream, truncated): (Stream, _) = (output.stream, output.truncated);
        self.event(vtime_ns, What::Line { unit, stream: stream.into(), text, truncated });
    }

    fn exited(&mut self, exited: &protocol::Exited, vtime_ns: u64) {
        let (name, exit) = (&exited.service, exited.exit);
        let Some(index) = self.plan.drivers.iter().position(|driver| driver.service.name == *name) else {
            self.event(vtime_ns, What::exit(name, exit));
            if !exit.success() && !exited.restarting {
                self.finding(vtime_ns, format!("service {name} ended with {exit}"));
            }
            return;
        };
        self.drivers[index].1 = false;
        if self.phase == Phase::Stopping {
            self.drivers_stopped(vtime_ns);
            return;
        }
        self.event(vtime_ns, What::exit(name, exit));
        if !exit.success() {
            self.finding(vtime_ns, format!("driver {name} ended with {exit}"));
        }
        if self.phase == Phase::Running && self.plan.drivers[index].repeat && exit.success() {
            self.start_driver(index, vtime_ns);
        }
    }

    fn drivers_stopped(&mut self, vtime_ns: u64) {
        if self.phase == Phase::Stopping && self.drivers.iter().all(|(_, running)| !running) {
            self.phase = Phase::Checking;
            self.check_next(0, vtime_ns);
        }
    }

    fn check_next(&mut self, index: usize, vtime_ns: u64) {
        let Some(check) = self.plan.checks.get(index) else {
            self.phase = Phase::Done;
            return;
        };
        let (name, exec) = (check.name.clone(), check.exec.clone());
        self.event(vtime_ns, What::Start { unit: name.clone(), round: 0 });
        self.commands.insert(self.next_id, name);
        self.request(Purpose::Check(index), Operation::Exec(exec), vtime_ns);
    }

    fn check_ended(&mut self, index: usize, exit: Exit, vtime_ns: u64) {
        let name = self.plan.checks[index].name.clone();
        self.event(vtime_ns, What::exit(&name, exit));
        if !exit.success() {
            self.finding(vtime_ns, format!("check {name} ended with {exit}"));
        }
        self.check_next(index + 1, vtime_ns);
    }
}

/// Linux's number of the signal that cannot be caught.
const SIGKILL: i32 = 9;
/// What a shell reports for a command that could not be run (POSIX, 2.8.2).
const COMMAND_NOT_RUN: i32 = 126;

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
