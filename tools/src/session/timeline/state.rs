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
pub const SESSION_VERSION: u32 = 2;
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

/// Where a timeline is, besides its machine and its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Course {
    /// The digests so far.
    pub trail: Trail,
    /// What the control port has not taken yet, and when it is offered again.
    pub unsent: Vec<u8>,
    pub retry_at_ns: Option<u64>,
    /// The seed under which it begins when it is ready, until it does.
    pub begin_with: Option<u64>,
    /// When a machine that is not ready will not be any more.
    pub boot_until_ns: Option<u64>,
    /// How long the workload runs after *ready*, and whether that was over.
    pub duration_ns: Option<u64>,
    pub ended: bool,
    /// A command to run once the timeline has begun; the machine powers off after it.
    #[serde(with = "as_json")]
    pub command: Option<Exec>,
    /// The machine's end was told.
    pub end_reported: bool,
    /// The line with which the kernel panicked.
    pub last_words: Option<String>,
}

impl Default for Course {
    fn default() -> Course {
        Course {
            trail: Trail::new(TRAIL_INTERVAL_NS),
            unsent: Vec::new(),
            retry_at_ns: None,
            begin_with: None,
            boot_until_ns: None,
            duration_ns: None,
            ended: false,
            command: None,
            end_reported: false,
            last_words: None,
        }
    }
}

/// A command as JSON: the protocol's types leave out fields, which the stored form has no way to say.
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

/// A timeline, without its machine and its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    version: u32,
    node: String,
    conversation: ConversationState,
    course: Course,
}

impl SessionState {
    /// The seed under which the timeline has begun, or will.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.conversation.seed().or(self.course.begin_with)
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

    /// Whether the state is one that a timeline of `plan` could have. The conversation checks itself.
    fn check(&self, plan: &Plan) -> Result<(), StateError> {
        if self.version != SESSION_VERSION {
            return Err(StateError::Version(self.version));
        }
        if self.node != plan.node {
            return Err(StateError::Node { stored: self.node.clone(), node: plan.node.clone() });
        }
        let Course { trail, unsent, retry_at_ns, boot_until_ns, command, .. } = &self.course;
        let fail = |what| Err(StateError::Inconsistent(what));
        if trail.interval_ns() != TRAIL_INTERVAL_NS {
            return fail("its trail has points at other distances");
        }
        if !trail.points().is_sorted_by(|(a, _), (b, _)| a < b) {
            return fail("its trail goes back");
        }
        let last = trail.points().last().map(|&(at, _)| at);
        let times = [last, *retry_at_ns, *boot_until_ns];
        if times.into_iter().flatten().any(|at| at > VTIME_MAX) {
            return fail("it has a time beyond the end of time");
        }
        if unsent.len() > UNSENT_BYTES_MAX {
            return fail("more waits for the guest than ever does");
        }
        if unsent.is_empty() != retry_at_ns.is_none() {
            return fail("what waits for the guest has a time, and nothing else has");
        }
        if let Some(exec) = command {
            let request = Request { id: 0, op: Operation::Exec(exec.clone()) };
            protocol::check::request(&request).map_err(|error| StateError::Command(error.to_string()))?;
        }
        Ok(())
    }
}

impl Timeline {
    /// All of it but machine, plan and the events that wait.
    #[must_use]
    pub fn save(&self) -> SessionState {
        SessionState {
            version: SESSION_VERSION,
            node: self.conversation.plan().node.clone(),
            conversation: self.conversation.save(),
            course: self.course.clone(),
        }
    }

    /// Go on with another conversation on the same machine.
    #[cfg(test)]
    pub(in crate::session) fn restore_conversation(&mut self, conversation: ConversationState) {
        let state = SessionState { conversation, ..self.save() };
        self.restore(state).expect("a conversation of the plan");
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
        state.check(self.conversation.plan())?;
        self.conversation.restore(state.conversation)?;
        self.course = state.course;
        self.events.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
