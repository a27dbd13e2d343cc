//! Runs that are made again, because the host disturbed them: on an engine that finds that out afterwards.
//!
//! What was executed before is worth nothing then, and what devices did in answer, as little. A run is the unit of that: it
//! begins at a stop, where a moment can be taken, and nobody has seen anything of it before it ends. So the machine goes back to
//! where the run began, takes back what it said, and goes on from there as if nothing had been. Runs are short: a world's round is
//! a millisecond at most.
//!
//! **Invariant.** A run that ends other than by the host's failure is one that nothing disturbed, from its beginning to its end.

use super::journal::Mark;
use super::stop::End;
use super::{Machine, Moment};
use crate::engine::Engine;
use crate::output::Output;

/// A run is begun so often, before its host counts as one that cannot do it.
pub const TRIES_MAX: u32 = 3;

/// Where a run began.
pub(super) struct Beginning {
    moment: Moment,
    output: Output,
    journal: Option<Mark>,
}

impl<E: Engine> Machine<E> {
    /// Where this run begins, if it may have to begin again.
    pub(super) fn beginning(&mut self) -> Option<Beginning> {
        if !self.engine.capabilities().disturbed || self.state.end.is_some() {
            return None;
        }
        let pool = self.pool.clone();
        let moment = self.moment(&pool);
        let journal = self.journal.as_ref().map(super::journal::Journal::mark);
        Some(Beginning { moment, output: self.output.clone(), journal })
    }

    /// Begin it again.
    pub(super) fn begin_again(&mut self, beginning: &Beginning) -> Result<(), End> {
        let journal = self.journal.take();
        let restored = self.restore(&beginning.moment);
        self.journal = journal;
        if let (Some(journal), Some(mark)) = (&mut self.journal, beginning.journal) {
            journal.go_back(mark);
        }
        self.output = beginning.output.clone();
        self.stats.disturbed += 1;
        // It is a moment of this machine.
        restored.map_err(|error| End::Host(format!("a run cannot be made again: {error}")))
    }
}
