//! Reasons why a session with gdb ends early.

/// Reason why a session with gdb cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The timeline cannot move.
    #[error("the timeline cannot move")]
    Timeline(#[source] anyhow::Error),
    /// The engine sees no single instructions, so it has neither breakpoints nor watchpoints.
    #[error("this engine sees no single instructions; the soft engine does (--engine soft)")]
    Engine,
    /// The connection to gdb broke, or gdb sent what it must not send.
    #[error("the connection to gdb")]
    Connection(#[source] anyhow::Error),
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Error {
        Error::Timeline(error)
    }
}
