//! Commands of a test template on one machine: their start, their kill and their end.
//!
//! `timeline::commands` decides which command runs at what time on which machine.
//!
//! To the agent (Everett's program in the guest), a command is a service. A command's name is a file name and can have
//! any character, so it is not the service name. The service name consists of the command's index in the agent's list
//! and a slot number, which tells parallel runs of the command apart. Slot numbers are used again, so there are few
//! service names.

use everett_explorer::composer::Prefix;
use everett_explorer::composer::limits::{ANYTIME_MAX, PARALLEL_MAX};
use everett_explorer::property::builtin;
use everett_input::signal;
use everett_protocol::{Exit, Operation};
use serde::{Deserialize, Serialize};

use super::{Conversation, Phase, Purpose, What};
use crate::guest::agent_script::{ROUND_VARIABLE, SEED_VARIABLE, test_command};

/// Maximum number of running commands of a test template on a node.
pub(super) const RUNS_MAX: usize = PARALLEL_MAX as usize + ANYTIME_MAX as usize;
/// First character of a command's service name. Names in a world file do not have this character.
const MARK: char = '@';

/// Message of a machine to the composer, which decides about commands on all machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Vtime of the message, in nanoseconds.
    pub vtime_ns: u64,
    /// Content of the message.
    pub said: Said,
}

/// Content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// The timeline has begun on this machine, or continues on it after a restart.
    Begun,
    /// A command has ended.
    Ended {
        /// Number of the command's run.
        run: u64,
        /// True if the exit status was 0.
        success: bool,
        /// True if Everett killed the command.
        killed: bool,
    },
}

/// Run of a command that Everett requested and that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TestRun {
    /// Number of the run.
    pub(super) run: u64,
    /// Index of the command in the agent's list.
    pub(super) command: usize,
    /// Number that tells parallel runs of a command apart: the lowest free number from 0 at the run's start.
    pub(super) slot: usize,
    /// True if Everett killed the command.
    pub(super) killed: bool,
}

impl Conversation {
    /// Returns the names in the template's folder on this machine.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.at.names
    }

    /// Takes the messages since the last call.
    pub fn take_words(&mut self) -> Vec<Word> {
        std::mem::take(&mut self.words)
    }

    /// Returns true if the machine can start commands.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        (Phase::Running..=Phase::Stopped).contains(&self.at.phase)
    }

    /// Starts the command `name` as run number `run`.
    pub fn start_command(&mut self, run: u64, name: &str, vtime_ns: u64) {
        let folder = self.script.template.clone().unwrap_or_default();
        let Some(command) = self.at.names.iter().position(|known| known == name) else {
            // Everett lists the folder again after a restart. If the folder is on a disk, its files may have changed.
            let text = format!("command {name} is not in {folder} any more");
            self.finding(vtime_ns, property(name), text);
            return self.say_ended(run, false, false, vtime_ns);
        };
        let taken = |slot: &usize| self.at.runs.iter().any(|run| run.command == command && run.slot == *slot);
        let slot = (0..).find(|slot| !taken(slot)).unwrap_or_default();
        let test_run = TestRun { run, command, slot, killed: false };
        let mut service = test_command(&service_name(&test_run), &self.script, name);
        service.env.insert(SEED_VARIABLE.to_owned(), self.at.seed.unwrap_or_default().to_string());
        service.env.insert(ROUND_VARIABLE.to_owned(), run.to_string());
        self.at.runs.push(test_run);
        self.at.down.remove(&service.name);
        self.event(vtime_ns, What::Start { unit: self.unit(&test_run), round: run });
        self.request(Purpose::TestCommand(run), Operation::Start { services: vec![service] }, vtime_ns);
    }

    /// Kills all running commands.
    pub fn kill_commands(&mut self, vtime_ns: u64) {
        let running: Vec<TestRun> = self.at.runs.iter().filter(|run| !run.killed).copied().collect();
        for run in &mut self.at.runs {
            run.killed = true;
        }
        for run in running {
            let signal = Operation::Signal { service: service_name(&run), signal: signal::KILL };
            self.request(Purpose::StopDriver, signal, vtime_ns);
        }
    }

    /// Returns the number of the run that has this service name.
    pub(super) fn run_of(&self, service: &str) -> Option<u64> {
        self.at.runs.iter().find(|run| service_name(run) == service).map(|run| run.run)
    }

    /// Returns the displayed name of a command from its service name. The command may have ended: a child of it can
    /// still print.
    pub(super) fn unit_of_command(&self, service: &str) -> Option<String> {
        let (command, slot) = place_of(service)?;
        let name = self.at.names.get(command)?;
        Some(unit(name, slot))
    }

    pub(super) fn command_exited(&mut self, run: u64, exit: Exit, vtime_ns: u64) {
        let Some(ended) = self.take_run(run) else { return };
        self.goes_down(&service_name(&ended), vtime_ns);
        if !ended.killed {
            let unit = self.unit(&ended);
            self.event(vtime_ns, What::exit(&unit, exit));
            if !exit.success() {
                // The text leaves out the slot, so failures of parallel runs of a command are one finding.
                let text = format!("command {} ended with {exit}", self.name(&ended));
                self.finding(vtime_ns, self.property(&ended), text);
            }
        }
        self.say_ended(run, exit.success(), ended.killed, vtime_ns);
    }

    pub(super) fn command_refused(&mut self, run: u64, message: &str, vtime_ns: u64) {
        let Some(ended) = self.take_run(run) else { return };
        self.goes_down(&service_name(&ended), vtime_ns);
        let name = self.name(&ended);
        let text = format!("command {name}: {}", message.replace(&service_name(&ended), name));
        self.finding(vtime_ns, self.property(&ended), text);
        self.say_ended(run, false, ended.killed, vtime_ns);
    }

    fn say_ended(&mut self, run: u64, success: bool, killed: bool, vtime_ns: u64) {
        self.words.push(Word { vtime_ns, said: Said::Ended { run, success, killed } });
    }

    fn take_run(&mut self, run: u64) -> Option<TestRun> {
        let place = self.at.runs.iter().position(|other| other.run == run)?;
        Some(self.at.runs.remove(place))
    }

    fn name(&self, run: &TestRun) -> &str {
        self.at.names.get(run.command).map_or("", String::as_str)
    }

    fn unit(&self, run: &TestRun) -> String {
        unit(self.name(run), run.slot)
    }

    fn property(&self, run: &TestRun) -> &'static str {
        property(self.name(run))
    }
}

/// Returns the service name of a run.
fn service_name(run: &TestRun) -> String {
    service_at(run.command, run.slot)
}

fn service_at(command: usize, slot: usize) -> String {
    format!("{MARK}{command}.{slot}")
}

/// Returns the command's index and the slot from a service name, or `None` if the service is not a command.
pub(super) fn place_of(service: &str) -> Option<(usize, usize)> {
    let (command, slot) = service.strip_prefix(MARK)?.split_once('.')?;
    let (command, slot) = (command.parse().ok()?, slot.parse().ok()?);
    (service == service_at(command, slot)).then_some((command, slot))
}

/// Returns the displayed name of a run: the command's name, with `#2`, `#3` and so on for parallel runs.
fn unit(name: &str, slot: usize) -> String {
    if slot == 0 { name.to_owned() } else { format!("{name}#{}", slot.saturating_add(1)) }
}

/// Returns the property that a failed command violates. Commands at the end of the workload count as checks, and all
/// other commands count as drivers.
pub(crate) fn property(name: &str) -> &'static str {
    match Prefix::of(name) {
        Some(Prefix::Eventually | Prefix::Finally) => builtin::FAILED_CHECK,
        _ => builtin::DRIVER_EXIT,
    }
}

#[cfg(test)]
mod tests;
