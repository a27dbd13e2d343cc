//! The events of a timeline: what the caller tells, when it is to ask, and what it is to do.

use rand_chacha::ChaCha20Rng;

use super::limits::PARALLEL_MAX;
use super::prefix::Prefix;
use super::sound::Unsound;
use super::state::{ComposerState, Phase, Start, Stopping, Track};
use super::tally::Tally;
use super::template::Template;
use crate::plan::draw::numbers::below;

/// What the caller is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Start a command.
    Start(Start),
    /// Kill all commands that run, and tell of the end of each.
    KillAll,
    /// Nothing: the timeline is over. What still runs, because nothing follows on it or because it cannot be killed, is left to the
    /// caller.
    Over,
}

/// The composer of a timeline. See the module.
///
/// The caller asks [`due`](Composer::due) after everything it tells, and calls [`act`](Composer::act) at that time. Vtimes do not
/// go back: an earlier one than the last counts as the last.
#[derive(Debug)]
pub struct Composer<'t> {
    pub(super) template: &'t Template,
    pub(super) state: ComposerState,
    pub(super) tally: Tally,
}

impl<'t> Composer<'t> {
    /// The beginning of a timeline, with all nodes up.
    #[must_use]
    pub fn begin(template: &'t Template, now_ns: u64, rng: &mut ChaCha20Rng) -> Composer<'t> {
        let phase =
            if template.has(Prefix::First) { Phase::First { started: false } } else { Phase::Driving };
        let state = ComposerState {
            now_ns,
            phase,
            parallel: 1,
            ending: Stopping::Nothing,
            drivers: None,
            anytime: None,
            runs: Vec::new(),
            next_run: 0,
            spent: Default::default(),
            down: Default::default(),
            worked: false,
            killed: false,
        };
        let mut composer = Composer { template, state, tally: Tally::new(template) };
        composer.fork(rng);
        composer
    }

    /// Go on from a state. The tally starts at nothing.
    ///
    /// # Errors
    /// It is not one of this template's timelines.
    pub fn go_on(template: &'t Template, state: ComposerState) -> Result<Composer<'t>, Unsound> {
        if !state.is_sound(template) {
            return Err(Unsound);
        }
        Ok(Composer { template, state, tally: Tally::new(template) })
    }

    /// From here on this is a timeline of its own: draw anew what is drawn once a timeline, so that those which go on from one
    /// moment do not all have one bound and one ending.
    pub fn fork(&mut self, rng: &mut ChaCha20Rng) {
        self.state.parallel = 1 + below(rng, PARALLEL_MAX.into()) as u8;
        if self.is_stopped() {
            return;
        }
        self.state.ending = match (self.template.has(Prefix::Finally), self.template.has(Prefix::Eventually))
        {
            (true, true) if below(rng, 2) == 0 => Stopping::Finally,
            (_, true) => Stopping::Eventually,
            (true, false) => Stopping::Finally,
            (false, false) => Stopping::Nothing,
        };
    }

    /// What is to be stored, and what this piece of the timeline counted.
    #[must_use]
    pub fn finish(self) -> (ComposerState, Tally) {
        (self.state, self.tally)
    }

    /// The state so far.
    #[must_use]
    pub fn state(&self) -> &ComposerState {
        &self.state
    }

    /// What was counted so far in this piece of the timeline.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether faults may be injected: while drivers run, and neither before nor after.
    #[must_use]
    pub fn faults_allowed(&self) -> bool {
        self.state.phase == Phase::Driving
    }

    /// Whether the workload was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !matches!(self.state.phase, Phase::First { .. } | Phase::Driving)
    }

    /// Whether [`Act::Over`] was told.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.phase == Phase::Over { told: true }
    }

    /// The vtime at which [`act`](Composer::act) is to be called, in nanoseconds; at once if that has passed. `None`: not before
    /// something else was told.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        let due_ns = match self.state.phase {
            Phase::First { .. } | Phase::Driving => self.start_due(),
            _ => self.ending_due(),
        };
        due_ns.map(|due_ns| due_ns.max(self.state.now_ns))
    }

    /// What the caller is to do at this vtime, in this order. Called too early it is nothing.
    pub fn act(&mut self, now_ns: u64, rng: &mut ChaCha20Rng) -> Vec<Act> {
        self.pass(now_ns);
        let mut acts = Vec::new();
        // Nothing ends in here: bounds on what runs, and phases that only go forward, end the loop.
        while self.due().is_some_and(|due_ns| due_ns <= self.state.now_ns) {
            match self.state.phase {
                Phase::First { .. } | Phase::Driving => acts.extend(self.start_step(rng).map(Act::Start)),
                _ => acts.extend(self.ending_step(rng)),
            }
        }
        acts
    }

    /// A run has ended. Of runs that there are not, for one that was lost, nothing is taken.
    ///
    /// A run that somebody killed neither succeeded nor failed. Nor did one that fails when all are to be killed: that may be its
    /// answer.
    pub fn ended(&mut self, run: u64, now_ns: u64, exit_success: bool, killed: bool) {
        self.pass(now_ns);
        let killed = killed || !exit_success && matches!(self.state.phase, Phase::Killing { .. });
        if let Some(ended) = self.state.runs.iter().find(|other| other.run == run)
            && let Some(command) = self.template.command(ended.command).filter(|_| !killed)
        {
            self.tally.end(command, exit_success);
        }
        self.remove(|other| other.run == run, killed);
    }

    /// A node has lost its power, and with it all that ran there. It is down until [`up`](Composer::up).
    pub fn lost(&mut self, node: u16, now_ns: u64) {
        self.pass(now_ns);
        self.down(node);
        self.remove(|run| run.node == node, true);
    }

    /// A node gets no commands from here on; what runs there goes on.
    pub fn down(&mut self, node: u16) {
        if self.template.uses(node) {
            self.state.down.insert(node);
        }
    }

    /// A node gets commands again.
    pub fn up(&mut self, node: u16) {
        self.unblock(|state| {
            state.down.remove(&node);
        });
    }

    /// The workload is over: no driver starts from here on. Says how the timeline is to end; it ends otherwise if commands do not
    /// finish by themselves. Once stopped, a timeline stays so.
    pub fn stop(&mut self, now_ns: u64) -> Stopping {
        self.pass(now_ns);
        if !self.is_stopped() {
            self.state.drivers = None;
            self.state.anytime = None;
            self.end_workload();
        }
        match self.state.phase {
            Phase::Finishing { .. } | Phase::Finally { .. } => Stopping::Finally,
            Phase::Killing { .. } | Phase::Eventually { .. } => Stopping::Eventually,
            _ => Stopping::Nothing,
        }
    }

    fn pass(&mut self, now_ns: u64) {
        self.state.now_ns = self.state.now_ns.max(now_ns);
    }

    /// Take runs away, which ended by themselves or did not.
    fn remove(&mut self, which: impl Fn(&Start) -> bool, killed: bool) {
        self.unblock(|state| {
            let before = state.runs.len();
            state.runs.retain(|run| !which(run));
            if state.runs.len() == before {
                return;
            }
            state.killed |= killed;
            if let Phase::First { .. } = state.phase {
                state.phase = Phase::Driving;
            }
        });
    }

    /// A change by which something may come to be able to start that had to wait. It does not start at once, but after its pause:
    /// timelines differ in what follows on an end, too.
    fn unblock(&mut self, change: impl FnOnce(&mut ComposerState)) {
        let waits = Track::ALL
            .map(|track| self.state.next(track).is_some_and(|next| !self.may_start(track, next.command)));
        change(&mut self.state);
        let now_ns = self.state.now_ns;
        for (track, waited) in Track::ALL.into_iter().zip(waits) {
            let starts = self.state.next(track).is_some_and(|next| self.may_start(track, next.command));
            if let Some(next) = self.state.next_mut(track)
                && waited
                && starts
            {
                next.at_ns = next.at_ns.max(now_ns.saturating_add(next.pause_ns));
            }
        }
    }
}
