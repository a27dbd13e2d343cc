//! Facts about an exploration that its display shows.

use std::path::Path;

use everett_explorer::run::Header;
use everett_session::explore::expedition::Limits;

/// Facts about an exploration that its display shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExplorationFacts<'s> {
    /// Header of the run directory.
    pub header: &'s Header,
    /// Run directory, as the operator wrote it on the command line.
    pub run: &'s Path,
    /// Names of the declared `sometimes` properties.
    pub sometimes: &'s [String],
    /// Conditions that end the exploration.
    pub limits: &'s Limits,
}
