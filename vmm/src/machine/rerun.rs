//! Repetition of runs that the host disturbed, on an engine that notices disturbances only afterwards.
//!
//! Everything that was executed since the disturbance must be discarded, and so must the devices' reactions to it.
//! The unit of repetition is a run: it begins at a stop, where a moment can be taken, and its effects are invisible
//! outside before it ends. So the machine returns to the start of the run, discards the run's output, and runs again.
//! Runs are short: a world's round is a millisecond at most.
//!
//! **Invariant.** A run that does not end with a failure of the host was undisturbed from start to end.

use everett_input::causes::with_causes;

use super::journal::Mark;
use super::stop::End;
use super::{Machine, Moment};
use crate::engine::Engine;
use crate::output::Output;

/// Number of attempts at a run. If all are disturbed, the run fails. A busy host disturbs a run whenever its scheduler takes
/// the processor away for more than a tick, so a few in a row are no sign of a broken one.
pub const TRIES_MAX: u32 = 100;

/// State at the start of a run.
pub(super) struct Beginning {
    moment: Moment,
    output: Output,
    journal: Option<Mark>,
}

impl Machine {
    /// Returns the state at the start of a run, if the run may have to be repeated.
    pub(super) fn beginning(&mut self) -> Option<Beginning> {
        if !self.engine.capabilities().disturbed || self.state.end.is_some() {
            return None;
        }
        let pool = self.pool.clone();
        let moment = self.moment(&pool);
        let journal = self.journal.as_ref().map(super::journal::Journal::mark);
        Some(Beginning { moment, output: self.output.clone(), journal })
    }

    /// Returns the machine to the start of the run.
    pub(super) fn begin_again(&mut self, beginning: &Beginning) -> Result<(), End> {
        let journal = self.journal.take();
        let restored = self.restore(&beginning.moment);
        self.journal = journal;
        if let (Some(journal), Some(mark)) = (&mut self.journal, beginning.journal) {
            journal.go_back(mark);
        }
        self.output = beginning.output.clone();
        self.stats.disturbed += 1;
        // An error is not expected, because the moment was taken on this machine.
        restored.map_err(|error| End::Host(format!("a run cannot be repeated: {}", with_causes(&error))))
    }
}
