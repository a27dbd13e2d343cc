//! Errors of stored conversations. A conversation is Everett's dialogue with the agent, its program in a guest.

/// Error of a conversation's stored state that is invalid or does not fit the world.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The world has another number of drivers.
    #[error("the stored conversation has {stored} drivers, the world {of_world}")]
    Drivers {
        /// Number of drivers in the stored state.
        stored: usize,
        /// Number of drivers in the world.
        of_world: usize,
    },
    /// The state has a request, service or command that the world does not have.
    #[error("the stored conversation asked for {what}, which the world does not have")]
    Unknown {
        /// Name of the request, service or command.
        what: String,
    },
    /// The state has too many items of a kind.
    #[error("the stored conversation has {count} {what}; at most {max} are possible")]
    TooMany {
        /// Name of the items, in the plural.
        what: &'static str,
        /// Number of items in the state.
        count: u64,
        /// Maximum number of items.
        max: u64,
    },
    /// Two parts of the state contradict each other.
    #[error("the stored conversation is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The stored beginning of a line, whose rest had not arrived from the guest, is invalid.
    #[error("invalid partial line in the stored conversation")]
    Line(#[from] everett_protocol::Error),
    /// The list of test commands is invalid.
    #[error("invalid list of test commands in the stored conversation")]
    List(#[from] everett_protocol::check::Error),
}
