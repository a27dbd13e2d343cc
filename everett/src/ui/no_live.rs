//! Replacement for the live view in builds without the feature `view`.

use std::io;

use everett_explorer::coverage::Dictionary;
use everett_explorer::run::{Hit, MergeInput, Record};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_session::explore::expedition::{ExplorationProgress, Sight};

use super::exploration_facts::ExplorationFacts;

/// Live view of an exploration. The type has no values, because this build has no view.
pub(crate) enum Live {}

/// Returns false, because this build has no view.
pub(crate) const fn is_possible() -> bool {
    false
}

impl Live {
    pub(crate) fn begin(_: &ExplorationFacts<'_>, _: &Interrupt, _: Stopwatch) -> io::Result<Live> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn found(&mut self, _: &Record, _: &Hit) {
        match *self {}
    }

    pub(crate) fn branch(&mut self, _: &MergeInput, _: &Dictionary) {
        match *self {}
    }

    pub(crate) fn look(&mut self, _: &Sight<'_>) {
        match *self {}
    }

    pub(crate) fn at(&mut self, _: &ExplorationProgress) {
        match *self {}
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self {}
    }
}
