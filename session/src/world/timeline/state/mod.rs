//! Stored state of a timeline. The state leaves out the world, the agent scripts, the fault plan, and the pending
//! events, which the timeline has reported but the caller has not taken.
//!
//! The agent is Everett's program in a guest. An agent script lists Everett's requests to the agent of one node. A
//! conversation is the exchange of messages between Everett and this agent.
//!
//! **Invariants.** A timeline restored from its state, in a world restored from its moment, continues as the same
//! timeline. A state from a file is checked before use. Arbitrary bytes give an error or a state that a timeline with
//! these scripts can have.

use std::collections::BTreeSet;
use std::sync::Arc;

use everett_explorer::plan::limits::LINES_MAX;
use everett_explorer::search::{Fork, Path};
use everett_input::causes::with_causes;
use everett_protocol::{self as protocol, Exec, Operation, Request};
use everett_streams::{BootSeed, Lineage, Owner, Seed, Streams};
use everett_vmm::Trail;
use everett_vmm::clock::VTIME_MAX;
use everett_vmm::divergence::trail::TRAIL_INTERVAL_NS;
use everett_vmm::world::World;
use serde::{Deserialize, Serialize};

use super::commands::Commands;
use super::director::Stage;
use super::faults::FaultProgress;
use super::quiet::{PERIODS_MAX, Period};
use super::reporting::Reporting;
use super::stored::{SESSION_BYTES_MAX, SESSION_VERSION, StateError};
use super::talk::TalkState;
use super::{Timeline, UNSENT_BYTES_MAX};
use crate::guest::agent_script::{AgentScript, HostCheck, WorldCheck};
use crate::world::conversation::Phase;
use crate::world::node::{NodeCourse, SessionOfNode};

/// State of a timeline without its world and its conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Course {
    /// Trail so far.
    pub trail: Trail,
    pub stage: Stage,
    /// Seed under which the timeline will begin. `None` once it has begun.
    pub begin_with: Option<Seed>,
    /// Seed under which the timeline has begun.
    pub begun: Option<Seed>,
    /// Forks that the timeline has taken.
    pub path: Path,
    /// Fork of the root moment with which the timeline will begin, if any.
    pub fork_with: Option<Fork>,
    /// Duration of the workload after *ready* (all services are up), in nanoseconds of vtime.
    pub duration_ns: Option<u64>,
    /// Command that runs on the first node once the timeline has begun. The node powers off after it.
    #[serde(with = "as_json")]
    pub command: Option<Exec>,
    /// Progress of the fault plan, if there is one.
    pub faults: Option<FaultProgress>,
    /// Commands of the test template. `None` without a template or before the timeline begins.
    pub commands: Option<Commands>,
    /// Random streams of the network endpoints from which Everett itself connects to nodes for checks.
    pub endpoint_streams: Streams,
    /// Quiet periods that programs requested: times in which no fault starts.
    pub quiet: Vec<Period>,
    /// Pending restarts of services whose dependencies have restarted: vtime in nanoseconds and index of the node. They
    /// are ordered by vtime, then by node. A node occurs at most once.
    pub restarts: Vec<(u64, u16)>,
}

impl Default for Course {
    fn default() -> Course {
        Course {
            trail: Trail::new(TRAIL_INTERVAL_NS),
            stage: Stage::Booting,
            begin_with: None,
            begun: None,
            path: Path::default(),
            fork_with: None,
            duration_ns: None,
            command: None,
            faults: None,
            commands: None,
            endpoint_streams: Streams::new(&Lineage::boot(BootSeed::default()), Owner::Endpoint),
            quiet: Vec::new(),
            restarts: Vec::new(),
        }
    }
}

impl Course {
    /// Returns the seed under which the timeline has begun or will begin.
    pub(super) fn seed(&self) -> Option<Seed> {
        self.begun.or(self.begin_with)
    }

    /// Returns the vtime of the root moment, at which all nodes were ready, in nanoseconds.
    pub(super) fn root_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Booting => None,
            Stage::Ready { at } => Some(at),
            Stage::Running { root }
            | Stage::Stopping { root, .. }
            | Stage::Calm { root, .. }
            | Stage::Last { root }
            | Stage::Checking { root, .. }
            | Stage::Done { root } => Some(root),
        }
    }

    /// Returns the check that Everett makes over the wire at this stage, if there is one.
    fn talks<'c>(&self, checks: &'c [WorldCheck]) -> Option<&'c Arc<HostCheck>> {
        match self.stage {
            Stage::Checking { next, started: true, .. } => match checks.get(next) {
                Some(WorldCheck::Host(check)) => Some(check),
                _ => None,
            },
            _ => None,
        }
    }

    fn check(&self, checks: usize, nodes: usize, has_template: bool) -> Result<(), StateError> {
        let fail = |what| Err(StateError::Inconsistent(what));
        if self.quiet.len() > PERIODS_MAX {
            return fail("more quiet periods were asked for than the maximum");
        }
        let is_due = |&(at, node): &(u64, u16)| at <= VTIME_MAX && usize::from(node) < nodes;
        let due: BTreeSet<u16> = self.restarts.iter().map(|&(_, node)| node).collect();
        let is_once = due.len() == self.restarts.len();
        if !is_once || !self.restarts.iter().all(is_due) || !self.restarts.is_sorted() {
            return fail("restarts of services are due that this world cannot have");
        }
        if self.trail.interval_ns() != TRAIL_INTERVAL_NS {
            return fail("its trail has another interval than this version's");
        }
        if !self.trail.points().is_sorted_by(|(a, _), (b, _)| a < b) {
            return fail("its trail's vtimes do not increase");
        }
        let last = self.trail.points().last().map(|&(at, _)| at);
        let (due, next) = match self.stage {
            Stage::Stopping { until, .. } => (Some(until), 0),
            Stage::Calm { at, .. } => (Some(at), 0),
            Stage::Checking { at, next, .. } => (Some(at), next),
            _ => (None, 0),
        };
        if [last, self.root_ns(), due].into_iter().flatten().any(|at| at > VTIME_MAX) {
            return fail("a vtime is larger than the maximum");
        }
        if next > checks {
            return fail("it has done more checks than the world has");
        }
        let has_begun = !matches!(self.stage, Stage::Booting | Stage::Ready { .. });
        if has_begun != self.begun.is_some() || has_begun && self.begin_with.is_some() {
            return fail("its seeds contradict its stage");
        }
        if has_begun && self.fork_with.is_some() || !has_begun && !self.path.forks().is_empty() {
            return fail("it was forked before it began");
        }
        if self.path.forks().last().map(|fork| fork.vtime_ns).is_some_and(|at| at > VTIME_MAX) {
            return fail("a vtime is larger than the maximum");
        }
        if self.faults.as_ref().is_some_and(|faults| faults.active.len() > LINES_MAX) {
            return fail("more faults are active than a plan can have lines");
        }
        // An invalid test template ends the timeline when it begins, so in stage `Done` the commands may be missing.
        let has_commands = has_begun && has_template && !matches!(self.stage, Stage::Done { .. });
        if has_commands && self.commands.is_none() || self.commands.is_some() && !(has_begun && has_template)
        {
            return fail("it has test commands and the world has none, or the reverse");
        }
        if let Some(commands) = &self.commands {
            commands.check(nodes)?;
        }
        if let Some(exec) = &self.command {
            let request = Request { id: 0, op: Operation::Exec(exec.clone()) };
            protocol::check::request(&request).map_err(|error| StateError::Command(with_causes(&error)))?;
        }
        Ok(())
    }
}

/// Stores a command as JSON text. Postcard, the format of the stored state, needs all fields, but the protocol's types
/// leave out optional fields.
mod as_json {
    use everett_protocol::Exec;
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Error as _, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(command: &Option<Exec>, to: S) -> Result<S::Ok, S::Error> {
        let text = command.as_ref().map(serde_json::to_string).transpose();
        text.map_err(S::Error::custom)?.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Exec>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(D::Error::custom)
    }
}

/// Stored state of a timeline, without its world, agent scripts and fault plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    version: u32,
    nodes: Vec<SessionOfNode>,
    course: Course,
    /// Events that cannot be reported yet, because some nodes have not reached the events' vtime.
    reporting: Reporting,
    /// Connection of a running check that Everett makes over the wire.
    talk: Option<TalkState>,
}

impl SessionState {
    /// Returns the seed under which the timeline has begun or will begin.
    #[must_use]
    pub fn seed(&self) -> Option<Seed> {
        self.course.seed()
    }

    /// Returns the vtime of *ready* in nanoseconds, if the timeline has reached it.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.course.root_ns()
    }

    /// Returns true if Everett is connected to a node for a check.
    #[must_use]
    pub fn talks(&self) -> bool {
        self.talk.is_some()
    }

    /// Returns each node's name with the phase of its conversation.
    pub fn phases(&self) -> impl Iterator<Item = (&str, Phase)> {
        self.nodes.iter().map(|node| (&*node.node, node.conversation.phase()))
    }

    /// Returns the state in its stored form.
    ///
    /// # Errors
    /// Returns an error if the stored form is longer than [`SESSION_BYTES_MAX`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, StateError> {
        let bytes = postcard::to_stdvec(self).map_err(StateError::Malformed)?;
        if bytes.len() > SESSION_BYTES_MAX {
            return Err(StateError::TooLong { bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// Decodes a stored state.
    ///
    /// # Errors
    /// Returns an error if the bytes are not exactly one state of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<SessionState, StateError> {
        if bytes.len() > SESSION_BYTES_MAX {
            return Err(StateError::TooLong { bytes: bytes.len() });
        }
        // The version comes first, so a state of another version can be told from a damaged one.
        let (version, _) = postcard::take_from_bytes::<u32>(bytes).map_err(StateError::Malformed)?;
        if version != SESSION_VERSION {
            return Err(StateError::Version(version));
        }
        let (state, rest) =
            postcard::take_from_bytes::<SessionState>(bytes).map_err(StateError::Malformed)?;
        if rest.is_empty() { Ok(state) } else { Err(StateError::Trailing(rest.len())) }
    }

    /// Checks that a timeline with these agent scripts can have this state. Conversations are checked when they are
    /// restored.
    fn check<'p>(
        &self,
        scripts: impl Iterator<Item = &'p AgentScript>,
        checks: &[WorldCheck],
    ) -> Result<(), StateError> {
        if self.version != SESSION_VERSION {
            return Err(StateError::Version(self.version));
        }
        let scripts: Vec<&AgentScript> = scripts.collect();
        let of_world: Vec<&str> = scripts.iter().map(|script| &*script.node).collect();
        let stored: Vec<&str> = self.nodes.iter().map(|node| &*node.node).collect();
        if of_world != stored {
            return Err(StateError::Nodes { stored: stored.join(", "), of_world: of_world.join(", ") });
        }
        self.nodes.iter().try_for_each(|node| check_course(&node.course))?;
        if !self.reporting.is_of(self.nodes.len()) {
            return Err(StateError::Inconsistent("it has events of a node that the world does not have"));
        }
        let has_template = scripts.first().is_some_and(|script| script.template.is_some());
        self.course.check(checks.len(), self.nodes.len(), has_template)?;
        match (self.course.talks(checks), &self.talk) {
            (Some(check), Some(talk)) if talk.is_sound(check) => Ok(()),
            (None, None) => Ok(()),
            _ => Err(StateError::Inconsistent("the connection of a check contradicts its stage")),
        }
    }
}

fn check_course(course: &NodeCourse) -> Result<(), StateError> {
    let NodeCourse { unsent, retry_at_ns, boot_until_ns, .. } = course;
    let fail = |what| Err(StateError::Inconsistent(what));
    if [*retry_at_ns, *boot_until_ns].into_iter().flatten().any(|at| at > VTIME_MAX) {
        return fail("a vtime is larger than the maximum");
    }
    if unsent.len() > UNSENT_BYTES_MAX {
        return fail("more bytes wait for the guest than the maximum");
    }
    if unsent.is_empty() != retry_at_ns.is_none() {
        return fail("it has unsent bytes and no time to send them, or the reverse");
    }
    Ok(())
}

impl Timeline {
    /// Returns the state of the timeline. See the [module](self) for what it leaves out.
    #[must_use]
    pub fn save(&mut self) -> SessionState {
        let talk = self.save_talk();
        let nodes = self.nodes.iter().map(|session| SessionOfNode {
            node: session.conversation.script().node.clone(),
            conversation: session.conversation.save(),
            course: session.course.clone(),
        });
        let reporting = self.reporting.from(self.all_reported_before());
        SessionState {
            version: SESSION_VERSION,
            nodes: nodes.collect(),
            course: self.course.clone(),
            reporting,
            talk,
        }
    }

    /// Puts the first node's conversation into the given state and lets the timeline begin.
    #[cfg(test)]
    pub(crate) fn begun_with(&mut self, conversation: crate::world::conversation::state::ConversationState) {
        let mut state = self.save();
        state.nodes[0].conversation = conversation;
        (state.course.begun, state.course.begin_with) = (state.course.begin_with, None);
        state.course.stage = Stage::Running { root: 1 };
        self.restore(state).expect("a conversation of the script");
    }

    /// Replaces the first node's conversation.
    #[cfg(test)]
    pub(crate) fn with_conversation(&mut self, conversation: crate::world::conversation::Conversation) {
        self.nodes[0].conversation = conversation;
    }

    /// Creates a timeline that continues from `state`. The caller has restored `world` to the same point.
    ///
    /// # Errors
    /// Returns an error if a timeline with these agent scripts cannot have this state.
    pub fn resume(
        world: World,
        scripts: Vec<AgentScript>,
        checks: Vec<WorldCheck>,
        state: SessionState,
    ) -> Result<Timeline, StateError> {
        let mut timeline = Timeline::new(world, scripts, checks);
        timeline.restore(state)?;
        Ok(timeline)
    }

    /// Continues from `state`. The caller has restored the world to the same point. Pending events are dropped.
    ///
    /// # Errors
    /// Returns an error if a timeline with these agent scripts cannot have this state. If a node's conversation
    /// cannot be restored, the conversations of the nodes before it are replaced already.
    pub fn restore(&mut self, state: SessionState) -> Result<(), StateError> {
        state.check(self.nodes.iter().map(|session| session.conversation.script()), &self.checks)?;
        for (session, then) in self.nodes.iter_mut().zip(state.nodes) {
            session.conversation.restore(then.conversation)?;
            session.course = then.course;
        }
        self.course = state.course;
        let commands = self.course.commands.as_ref();
        self.composing = commands.map(|commands| commands.check(self.nodes.len())).transpose()?;
        self.reporting = state.reporting;
        self.talk = None;
        if let (Some(check), Some(talk)) = (self.course.talks(&self.checks).cloned(), state.talk)
            && !self.talk_again(&check, &talk)
        {
            return Err(StateError::Inconsistent("the check's connection cannot be in this state"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
