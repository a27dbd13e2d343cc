//! What is kept of a timeline when its machine is stored: all but the machine, the plan, and events that nobody has
//! taken yet.
//!
//! **Invariants.** A timeline that goes on from its state, on a machine that goes on from its own, is the same timeline.
//! A state that comes from a file is checked before anything uses it: whatever its bytes, it is an error or a state that
//! a timeline of this plan could have.

use everett_protocol::{self as protocol, Exec, Operation, Request};
use everett_vmm::clock::VTIME_MAX;
use everett_vmm::digest::Trail;
use everett_vmm::digest::trail::TRAIL_INTERVAL_NS;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::Machine;
use serde::{Deserialize, Serialize};

use super::{Timeline, UNSENT_BYTES_MAX};
use crate::session::agent::Phase;
use crate::session::agent::state::{ConversationState, StateError as ConversationError};
use crate::session::plan::Plan;

/// The version of the stored form.
pub const SESSION_VERSION: u32 = 1;
/// Most bytes of a stored session. Trails are most of it: 35 MB for a day of vtime.
pub const SESSION_BYTES_MAX: usize = 256 << 20;

/// Why a session cannot go on from a state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// More bytes than any session has.
    #[error("a stored session of {bytes} bytes; at most {SESSION_BYTES_MAX} are read")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// It was written by another version.
    #[error("a stored session of version {0}; this version reads {SESSION_VERSION}")]
    Version(u32),
    /// The bytes are no session.
    #[error("the stored session is damaged")]
    Malformed(#[source] postcard::Error),
    /// There is more behind it.
    #[error("{0} bytes follow the stored session")]
    Trailing(usize),
    /// It is another node's.
    #[error("the stored session is of node {stored:?}, not {node:?}")]
    Node {
        /// In the state.
        stored: String,
        /// In the plan.
        node: String,
    },
    /// Parts of it cannot be true.
    #[error("the stored session is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The command that is to run.
    #[error("the stored session has a command that is none: {0}")]
    Command(String),
    /// The conversation.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
}

/// A timeline, without its machine and its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    version: u32,
    node: String,
    trail: Trail,
    conversation: ConversationState,
    unsent: Vec<u8>,
    retry_at_ns: Option<u64>,
    begin_with: Option<u64>,
    boot_until_ns: Option<u64>,
    duration_ns: Option<u64>,
    ended: bool,
    /// As JSON: the protocol's types leave out fields, which this form has no way to say.
    command: Option<String>,
    end_reported: bool,
    last_words: Option<String>,
}

impl SessionState {
    /// The seed under which the timeline has begun, or will.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.conversation.seed().or(self.begin_with)
    }

    /// Nanoseconds of vtime at *ready*, if it is past that.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.conversation.ready_ns()
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.conversation.phase()
    }

    /// The stored form.
    ///
    /// # Errors
    /// It would be longer than what is read back.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StateError> {
        let bytes = postcard::to_stdvec(self).map_err(StateError::Malformed)?;
        if bytes.len() > SESSION_BYTES_MAX {
            return Err(StateError::TooLong { bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// The state in its stored form.
    ///
    /// # Errors
    /// It is none, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<SessionState, StateError> {
        if bytes.len() > SESSION_BYTES_MAX {
            return Err(StateError::TooLong { bytes: bytes.len() });
        }
        // The version comes first, so that one of another is told from a damaged one.
        let (version, _) = postcard::take_from_bytes::<u32>(bytes).map_err(StateError::Malformed)?;
        if version != SESSION_VERSION {
            return Err(StateError::Version(version));
        }
        let (state, rest) =
            postcard::take_from_bytes::<SessionState>(bytes).map_err(StateError::Malformed)?;
        if rest.is_empty() { Ok(state) } else { Err(StateError::Trailing(rest.len())) }
    }

    /// The command that is to run, if the state is one that a timeline of `plan` could have. The conversation checks
    /// itself.
    fn check(&self, plan: &Plan) -> Result<Option<Exec>, StateError> {
        if self.version != SESSION_VERSION {
            return Err(StateError::Version(self.version));
        }
        if self.node != plan.node {
            return Err(StateError::Node { stored: self.node.clone(), node: plan.node.clone() });
        }
        let fail = |what| Err(StateError::Inconsistent(what));
        if self.trail.interval_ns() != TRAIL_INTERVAL_NS {
            return fail("its trail has points at other distances");
        }
        if !self.trail.points().is_sorted_by(|(a, _), (b, _)| a < b) {
            return fail("its trail goes back");
        }
        let last = self.trail.points().last().map(|&(at, _)| at);
        let times = [last, self.retry_at_ns, self.boot_until_ns];
        if times.into_iter().flatten().any(|at| at > VTIME_MAX) {
            return fail("it has a time beyond the end of time");
        }
        if self.unsent.len() > UNSENT_BYTES_MAX {
            return fail("more waits for the guest than ever does");
        }
        if self.unsent.is_empty() != self.retry_at_ns.is_none() {
            return fail("what waits for the guest has a time, and nothing else has");
        }
        let Some(text) = &self.command else { return Ok(None) };
        let exec: Exec =
            serde_json::from_str(text).map_err(|error| StateError::Command(error.to_string()))?;
        let request = Request { id: 0, op: Operation::Exec(exec.clone()) };
        protocol::check::request(&request).map_err(|error| StateError::Command(error.to_string()))?;
        Ok(Some(exec))
    }
}

impl Timeline {
    /// All of it but machine, plan and the events that wait.
    #[must_use]
    pub fn save(&self) -> SessionState {
        SessionState {
            version: SESSION_VERSION,
            node: self.conversation.plan().node.clone(),
            trail: self.trail.clone(),
            conversation: self.conversation.save(),
            unsent: self.unsent.clone(),
            retry_at_ns: self.retry_at_ns,
            begin_with: self.begin_with,
            boot_until_ns: self.boot_until_ns,
            duration_ns: self.duration_ns,
            ended: self.ended,
            // Plain data with string keys always has a JSON form.
            command: self.command.as_ref().map(|exec| serde_json::to_string(exec).unwrap_or_default()),
            end_reported: self.end_reported,
            last_words: self.last_words.clone(),
        }
    }

    /// A timeline that goes on where the one of `state` was, on a machine that is where its machine was.
    ///
    /// # Errors
    /// It is no state of a timeline with this plan.
    pub fn resume(
        machine: Machine<SoftEngine>,
        plan: Plan,
        state: SessionState,
    ) -> Result<Timeline, StateError> {
        let mut timeline = Timeline::new(machine, plan);
        timeline.restore(state)?;
        Ok(timeline)
    }

    /// Go on where the timeline of `state` was; the caller has brought the machine there. Events that wait are dropped.
    ///
    /// # Errors
    /// It is no state of a timeline with this plan; nothing has changed then.
    pub fn restore(&mut self, state: SessionState) -> Result<(), StateError> {
        let command = state.check(self.conversation.plan())?;
        let SessionState { trail, conversation, unsent, retry_at_ns, begin_with, boot_until_ns, .. } = state;
        self.conversation.restore(conversation)?;
        (self.trail, self.unsent, self.retry_at_ns) = (trail, unsent, retry_at_ns);
        (self.begin_with, self.boot_until_ns) = (begin_with, boot_until_ns);
        (self.duration_ns, self.ended) = (state.duration_ns, state.ended);
        (self.end_reported, self.last_words) = (state.end_reported, state.last_words);
        self.command = command;
        self.events.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
