//! Number of a finding or of a branch on the command line.

pub(super) use everett_session::explore::id::Id;
