//! Stored state of a conversation between Everett and a node's agent (Everett's program in the guest). The state lacks
//! the agent script, i.e. the requests to the agent, which come from the world file. It also lacks events and messages
//! that the owner, a timeline, has not taken.
//!
//! **Invariant.** A conversation that continues from a stored state sends the same requests as a conversation that was
//! never stored. A state is checked against the agent script before use.

use std::collections::{BTreeMap, BTreeSet};

use everett_protocol::{self as protocol, Exit, LineSplitter, Message, PartialLine, Reply, Response};
use everett_streams::Seed;
use everett_vmm::clock::VTIME_MAX;
use serde::{Deserialize, Serialize};

use super::asked::Asked;
use super::commands::{RUNS_MAX, TestRun, place_of};
use super::history::{HistoryLines, HistoryState};
use super::restarts::Restart;
use super::sdk::Packets;
use super::state_error::StateError;
use super::{AgentScript, COMMANDS_MAX, Conversation, PENDING_MAX, Phase, Purpose};

/// State of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct DriverState {
    /// Number of starts.
    pub(super) rounds: u64,
    pub(super) runs: bool,
}

/// State of a conversation, except bytes to send and the partial lines of the control, log and history ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConversationProgress {
    pub(super) phase: Phase,
    pub(super) next_id: u64,
    pub(super) pending: BTreeMap<u64, Purpose>,
    /// Names of commands by request number. A line of output has only the number.
    pub(super) commands: BTreeMap<u64, String>,
    pub(super) services_started: bool,
    pub(super) drivers: Vec<DriverState>,
    /// True if no more drivers start.
    pub(super) no_drivers: bool,
    /// Names of the files in the test template's folder.
    pub(super) names: Vec<String>,
    /// Running commands of the test template.
    pub(super) runs: Vec<TestRun>,
    /// Seed of the timeline. `None` until the timeline has begun on this node, i.e. during the boot.
    pub(super) seed: Option<Seed>,
    /// Vtime at which all services were ready, in nanoseconds.
    pub(super) ready_ns: Option<u64>,
    /// Vtime at which the node came to rest, in nanoseconds: see [`Conversation::rest_ns`].
    pub(super) rest_ns: u64,
    /// Exit status of the command that [`Conversation::command`] started.
    pub(super) command_exit: Option<Exit>,
    pub(super) powering_off: bool,
    pub(super) findings: u64,
    /// State of the reader of the SDK port, e.g. unfinished lines.
    pub(super) sdk: Packets,
    /// Reason for [`Phase::Broken`].
    pub(super) broken: Option<String>,
    /// Restarts in progress, by service name.
    pub(super) restarts: BTreeMap<String, Restart>,
    /// Services, drivers and test commands that are down for good. A new boot of the machine empties the set.
    pub(super) down: BTreeSet<String>,
}

impl ConversationProgress {
    pub(super) fn new(drivers: usize) -> ConversationProgress {
        ConversationProgress {
            phase: Phase::Booting,
            next_id: 1,
            pending: BTreeMap::new(),
            commands: BTreeMap::new(),
            services_started: false,
            drivers: vec![DriverState::default(); drivers],
            no_drivers: false,
            names: Vec::new(),
            runs: Vec::new(),
            seed: None,
            ready_ns: None,
            rest_ns: 0,
            command_exit: None,
            powering_off: false,
            findings: 0,
            sdk: Packets::default(),
            broken: None,
            restarts: BTreeMap::new(),
            down: BTreeSet::new(),
        }
    }

    pub(super) fn check(&self, script: &AgentScript) -> Result<(), StateError> {
        let (stored, of_world) = (self.drivers.len(), script.drivers.len());
        if stored != of_world {
            return Err(StateError::Drivers { stored, of_world });
        }
        bounded("requests", self.pending.len(), PENDING_MAX)?;
        bounded("commands", self.commands.len(), COMMANDS_MAX)?;
        let unknown = self.pending.values().find(|purpose| match purpose {
            Purpose::File(index) => *index >= script.files.len(),
            Purpose::Driver(index) => *index >= script.drivers.len(),
            Purpose::Check(index) => *index >= script.checks.len(),
            Purpose::Stop(unit) | Purpose::Again(unit) => !script.restartable.contains(unit),
            _ => false,
        });
        if let Some(purpose) = unknown {
            return Err(StateError::Unknown { what: format!("{purpose:?}") });
        }
        if let Some(unit) = self.restarts.keys().find(|unit| !script.restartable.contains(*unit)) {
            return Err(StateError::Unknown { what: format!("a restart of {unit}") });
        }
        if let Some(unit) = self.down.iter().find(|unit| !self.is_unit(unit, script)) {
            return Err(StateError::Unknown { what: format!("the unit {unit}") });
        }
        if self.restarts.values().any(|restart| restart.kill_ns > VTIME_MAX) {
            return Err(StateError::Inconsistent("a service is killed after the largest possible vtime"));
        }
        let asked = self.pending.last_key_value().map(|(id, _)| *id);
        let named = self.commands.last_key_value().map(|(id, _)| *id);
        let restarting = self.restarts.values().map(|restart| restart.request).max();
        if asked.max(named).max(restarting).is_some_and(|id| id >= self.next_id) {
            return Err(StateError::Inconsistent("a request has a number that was not assigned yet"));
        }
        if self.ready_ns.is_some_and(|at| at > VTIME_MAX) {
            return Err(StateError::Inconsistent("it was ready after the largest possible vtime"));
        }
        let working = self.phase >= Phase::Ready && self.phase <= Phase::Stopped;
        if working && self.ready_ns.is_none() {
            return Err(StateError::Inconsistent("it runs and was never ready"));
        }
        if working && self.phase > Phase::Ready && self.seed.is_none() {
            return Err(StateError::Inconsistent("it runs and has no seed"));
        }
        if self.phase <= Phase::Ready && self.seed.is_some() {
            return Err(StateError::Inconsistent("it has a seed before its beginning"));
        }
        self.sdk.check()?;
        self.check_commands(script)
    }

    /// Returns true if `name` is the service name of a service, a driver or a test command of this node. The agent runs
    /// all three as services.
    pub(super) fn is_unit(&self, name: &str, script: &AgentScript) -> bool {
        let is_command = || {
            let (command, slot) = place_of(name)?;
            Some(command < self.names.len() && slot < RUNS_MAX)
        };
        script.services.iter().any(|service| service.name == name)
            || script.drivers.iter().any(|driver| driver.service.name == name)
            || is_command().unwrap_or(false)
    }

    /// Checks the state of the test template's commands.
    fn check_commands(&self, script: &AgentScript) -> Result<(), StateError> {
        let fail = |what| Err(StateError::Inconsistent(what));
        bounded("test commands", self.runs.len(), RUNS_MAX)?;
        if script.template.is_none() && (!self.names.is_empty() || self.is_listing()) {
            return Err(StateError::Unknown { what: "a test template".to_owned() });
        }
        if self.phase < Phase::Ready && !self.names.is_empty() {
            return fail("its test commands are known before they are listed");
        }
        if self.phase < Phase::Running && !self.runs.is_empty() {
            return fail("a test command runs before its beginning");
        }
        if self.runs.iter().any(|run| run.command >= self.names.len() || run.slot >= RUNS_MAX) {
            return fail("a test command runs that is not in the list");
        }
        let reply = Reply::Names(self.names.clone());
        Ok(protocol::check::message(&Message::Response(Response { id: 0, reply }))?)
    }

    /// Returns true if the agent was asked for the list of test commands and has not answered yet.
    pub(super) fn is_listing(&self) -> bool {
        self.pending.values().any(|purpose| *purpose == Purpose::List)
    }
}

fn bounded(what: &'static str, count: usize, max: usize) -> Result<(), StateError> {
    if count > max {
        return Err(StateError::TooMany { what, count: count as u64, max: max as u64 });
    }
    Ok(())
}

/// Stored state of a conversation, without its agent script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationState {
    pub(super) progress: ConversationProgress,
    control: PartialLine,
    log: PartialLine,
    history: HistoryState,
    outgoing: Vec<u8>,
}

impl ConversationState {
    pub(crate) fn phase(&self) -> Phase {
        self.progress.phase
    }
}

impl Conversation {
    /// Returns the state to store. See the [module](self) for what it leaves out.
    #[must_use]
    pub fn save(&self) -> ConversationState {
        ConversationState {
            progress: self.at.clone(),
            control: self.control.partial(),
            log: self.log.partial(),
            history: self.history.save(),
            outgoing: self.outgoing.clone(),
        }
    }

    /// Creates a conversation that continues from `state`.
    ///
    /// # Errors
    /// Returns an error if the state does not fit the agent script.
    #[cfg(test)]
    pub(super) fn resume(script: AgentScript, state: ConversationState) -> Result<Conversation, StateError> {
        let mut conversation = Conversation::new(script);
        conversation.restore(state)?;
        Ok(conversation)
    }

    /// Continues from `state` in place of the current state. Events and messages that were not taken are dropped.
    ///
    /// # Errors
    /// Returns an error if the state does not fit the agent script. In this case nothing changes.
    pub fn restore(&mut self, state: ConversationState) -> Result<(), StateError> {
        let ConversationState { mut progress, control, log, history, outgoing } = state;
        if progress.phase <= Phase::Ready && progress.drivers.iter().all(|driver| driver.rounds == 0) {
            // Worlds with different workloads share a stored boot, so `state` can have another number of drivers. No
            // driver has started, so this conversation's drivers begin in their initial state.
            progress.drivers = vec![DriverState::default(); self.script.drivers.len()];
        }
        progress.check(&self.script)?;
        let (mut control_lines, mut log_lines) = (LineSplitter::control(), LineSplitter::log());
        control_lines.restore(control)?;
        log_lines.restore(log)?;
        self.history = HistoryLines::resume(history)?;
        (self.at, self.control, self.log, self.outgoing) = (progress, control_lines, log_lines, outgoing);
        self.events.clear();
        self.words.clear();
        self.quiets.clear();
        self.restarted.clear();
        self.refused_file = None;
        self.asked = Asked::default();
        Ok(())
    }

    /// Returns the agent script: all requests to this node.
    #[must_use]
    pub fn script(&self) -> &AgentScript {
        &self.script
    }
}

#[cfg(test)]
pub(crate) mod tests;
