//! Repeats runs that the host disturbed, for engines that notice a disturbance only afterwards.
//!
//! The machine must discard everything that it executed since the disturbance, including what its devices did. It
//! therefore repeats whole runs. A machine runs from one stop to the next, and takes a moment (a snapshot) before each
//! run. Nothing outside the machine sees a run's effects before the run ends. After a disturbance the machine returns
//! to the moment, discards the run's output, and runs again. Runs are short, because a world runs its machines in turns
//! of at most a millisecond of vtime.
//!
//! **Invariant.** If a run ends without a failure of the host, the host did not disturb it.

use everett_input::causes::with_causes;

use super::journal::Mark;
use super::stop::End;
use super::{Machine, Moment};
use crate::engine::Engine;
use crate::output::Output;

/// Number of attempts at a run. If the host disturbs all of them, the run fails. An engine that must keep the guest's
/// TSC at a fixed value slows the TSC down to one tick per millisecond, and a run that sees a tick is disturbed. A busy
/// host therefore disturbs a run whenever its scheduler takes the processor away for more than one tick. A few
/// disturbed attempts in a row are no sign of a broken host.
pub const TRIES_MAX: u32 = 100;

/// Machine, output and journal at the start of a run. The journal is a record of what the CPU and the machine exchange,
/// for comparisons of runs.
pub(super) struct Beginning {
    moment: Moment,
    output: Output,
    journal: Option<Mark>,
}

impl Machine {
    /// Returns the state at the start of a run. Returns `None` if the engine cannot be disturbed or the machine has
    /// ended.
    pub(super) fn beginning(&mut self) -> Option<Beginning> {
        if !self.engine.capabilities().disturbed || self.state.end.is_some() {
            return None;
        }
        let pool = self.pool.clone();
        let moment = self.moment(&pool);
        let journal = self.journal.as_ref().map(super::journal::Journal::mark);
        Some(Beginning { moment, output: self.output.clone(), journal })
    }

    /// Returns the machine to the start of the run and counts the disturbance.
    pub(super) fn begin_again(&mut self, beginning: &Beginning) -> Result<(), End> {
        let journal = self.journal.take();
        let restored = self.restore(&beginning.moment);
        self.journal = journal;
        if let (Some(journal), Some(mark)) = (&mut self.journal, beginning.journal) {
            journal.go_back(mark);
        }
        self.output = beginning.output.clone();
        self.stats.disturbed += 1;
        // No error is expected, because this machine took the moment.
        restored.map_err(|error| End::Host(format!("a run cannot be repeated: {}", with_causes(&error))))
    }
}
