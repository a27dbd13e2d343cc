//! Version, bound and errors of the stored state of a timeline. Here this state is called a session.

use crate::world::conversation::state_error::StateError as ConversationError;

/// Version of the stored form.
pub const SESSION_VERSION: u32 = 12;
/// Maximum size of a stored session, in bytes. Most of it is the trail, with 35 MB for a day of vtime.
pub(super) const SESSION_BYTES_MAX: usize = 256 << 20;

/// Error of a session that cannot be written, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The session is longer than [`SESSION_BYTES_MAX`].
    #[error("a stored session of {bytes} bytes; at most {SESSION_BYTES_MAX} are read")]
    TooLong {
        /// Length in bytes.
        bytes: usize,
    },
    /// Another version wrote the session.
    #[error("a stored session of version {0}; this version reads {SESSION_VERSION}")]
    Version(u32),
    /// The bytes do not decode as a session.
    #[error("the stored session is damaged")]
    Malformed(#[source] postcard::Error),
    /// This number of bytes follows the session.
    #[error("{0} bytes follow the stored session")]
    Trailing(usize),
    /// The session belongs to a world with other nodes.
    #[error("the stored session is of the nodes {stored}, not {of_world}")]
    Nodes {
        /// Names of the nodes in the session.
        stored: String,
        /// Names of the nodes in the world.
        of_world: String,
    },
    /// The state contradicts itself or the world's agent scripts (the requests to Everett's program in each guest).
    #[error("the stored session is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The command of [`Timeline::command_when_ready`](super::Timeline::command_when_ready) is invalid.
    #[error("invalid command in the stored session: {0}")]
    Command(String),
    /// The state of a conversation (messages between Everett and its program in a guest) is invalid.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
}
