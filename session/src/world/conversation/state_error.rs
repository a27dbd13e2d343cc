//! Errors of stored conversations.

/// Error of a stored state that does not fit the conversation.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The script has another number of drivers.
    #[error("the stored conversation has {stored} drivers, the world {planned}")]
    Drivers {
        /// Number of drivers in the state.
        stored: usize,
        /// Number of drivers in the script.
        planned: usize,
    },
    /// The state has a request or a command that this script does not have.
    #[error("the stored conversation asked for {what}, which the world does not have")]
    NotPlanned {
        /// The request or command.
        what: String,
    },
    /// A count is out of its bounds.
    #[error("the stored conversation has {count} {what}; at most {max} are possible")]
    TooMany {
        /// Name of the counted items.
        what: &'static str,
        /// The count.
        count: u64,
        /// The bound.
        max: u64,
    },
    /// Two parts of the state contradict each other.
    #[error("the stored conversation is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// A partial line is invalid.
    #[error("invalid partial line in the stored conversation")]
    Line(#[from] everett_protocol::Error),
    /// The list of test commands is invalid.
    #[error("invalid list of test commands in the stored conversation")]
    List(#[from] everett_protocol::check::Error),
}
