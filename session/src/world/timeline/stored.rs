//! Version, bound and errors of stored timelines.

use crate::world::conversation::state_error::StateError as ConversationError;

/// Version of the stored form.
pub const SESSION_VERSION: u32 = 12;
/// Largest size of a stored session, in bytes. Trails are most of it: 35 MB for a day of vtime.
pub(super) const SESSION_BYTES_MAX: usize = 256 << 20;

/// Error of reading, writing or restoring a stored session.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The session is longer than [`SESSION_BYTES_MAX`].
    #[error("a stored session of {bytes} bytes; at most {SESSION_BYTES_MAX} are read")]
    TooLong {
        /// Length in bytes.
        bytes: usize,
    },
    /// The session was written by another version.
    #[error("a stored session of version {0}; this version reads {SESSION_VERSION}")]
    Version(u32),
    /// The bytes do not decode as a session.
    #[error("the stored session is damaged")]
    Malformed(#[source] postcard::Error),
    /// Bytes follow the session; their number.
    #[error("{0} bytes follow the stored session")]
    Trailing(usize),
    /// The session belongs to another world.
    #[error("the stored session is of the nodes {stored}, not {planned}")]
    Nodes {
        /// Names of the nodes in the state.
        stored: String,
        /// Names of the nodes in the scripts.
        planned: String,
    },
    /// The state contradicts itself or the scripts.
    #[error("the stored session is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The command to run is invalid.
    #[error("invalid command in the stored session: {0}")]
    Command(String),
    /// A conversation cannot be restored.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
}
