//! The type `Composer`, which decides when the commands of a test template start: the caller reports events, asks when
//! to call next, and receives the actions to perform.

use chacha20::ChaCha20Rng;

use super::limits::PARALLEL_MAX;
use super::prefix::Prefix;
use super::state::{ComposerState, Phase, Start, Stopping, Track};
use super::tally::Tally;
use super::template::Template;
use super::validate::UnreachableState;
use crate::plan::draw::numbers::below;

/// Action that the caller has to perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Start a command.
    Start(Start),
    /// Kill all running commands, and report the end of each command.
    KillAll,
    /// The timeline is over. The caller decides what happens to commands that still run. Commands of the workload may
    /// still run in two cases: they were not killed, because no `eventually_` command was to follow, or the kill took
    /// too long. A `finally_` or `eventually_` command may still run if it exceeded its time.
    Over,
}

/// Decides when the commands of a test template start on one timeline. The [module](super) documents the rules.
///
/// After every report, e.g. [`ended`](Composer::ended), and after every [`act`](Composer::act), the caller asks
/// [`due`](Composer::due) for a vtime, and at this vtime it calls [`act`](Composer::act). A vtime that is earlier than
/// the last reported vtime is treated as equal to it.
#[derive(Debug)]
pub struct Composer<'t> {
    pub(super) template: &'t Template,
    pub(super) state: ComposerState,
    pub(super) tally: Tally,
}

impl<'t> Composer<'t> {
    /// Starts a timeline on which all nodes are up.
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

    /// Continues a timeline from a stored state. The counts of commands start at 0.
    ///
    /// # Errors
    /// Returns an error if no timeline of this template can reach the state.
    pub fn go_on(template: &'t Template, state: ComposerState) -> Result<Composer<'t>, UnreachableState> {
        if !state.is_sound(template) {
            return Err(UnreachableState);
        }
        Ok(Composer { template, state, tally: Tally::new(template) })
    }

    /// Draws again how many parallel drivers may run at a time. If the workload was not stopped, also draws again which
    /// commands run after the workload. Without these draws, all timelines that continue from one moment would have the
    /// same values.
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

    /// Returns the state to store, and the counts of commands since [`begin`](Composer::begin) or
    /// [`go_on`](Composer::go_on).
    #[must_use]
    pub fn finish(self) -> (ComposerState, Tally) {
        (self.state, self.tally)
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> &ComposerState {
        &self.state
    }

    /// Returns the counts since [`begin`](Composer::begin) or [`go_on`](Composer::go_on).
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns true if faults may be injected, i.e. after the `first_` command, if the template has one, and before the
    /// workload is stopped.
    #[must_use]
    pub fn faults_allowed(&self) -> bool {
        self.state.phase == Phase::Driving
    }

    /// Returns true if the caller has stopped the workload.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !matches!(self.state.phase, Phase::First { .. } | Phase::Driving)
    }

    /// Returns true if [`act`](Composer::act) has returned [`Act::Over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.phase == Phase::Over { told: true }
    }

    /// Returns the vtime of the next call of [`act`](Composer::act), in nanoseconds. Returns `None` if nothing is due
    /// before the next report.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        let due_ns = match self.state.phase {
            Phase::First { .. } | Phase::Driving => self.start_due(),
            _ => self.ending_due(),
        };
        due_ns.map(|due_ns| due_ns.max(self.state.now_ns))
    }

    /// Returns the actions that the caller must perform at this vtime, in this order. Returns no actions if the call is
    /// too early.
    pub fn act(&mut self, now_ns: u64, rng: &mut ChaCha20Rng) -> Vec<Act> {
        self.pass(now_ns);
        let mut acts = Vec::new();
        // The loop terminates: the number of running commands is bounded, no run ends inside the loop, and phases never
        // go back.
        while self.due().is_some_and(|due_ns| due_ns <= self.state.now_ns) {
            match self.state.phase {
                Phase::First { .. } | Phase::Driving => acts.extend(self.start_step(rng).map(Act::Start)),
                _ => acts.extend(self.ending_step(rng)),
            }
        }
        acts
    }

    /// Records that a run, i.e. one execution of a command, has ended. Unknown runs are ignored, e.g. runs that were
    /// lost with their node.
    ///
    /// A killed run counts neither as succeeded nor as failed. The same holds for a run that fails while all runs are
    /// being killed, because the failure may be a reaction to the kill.
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

    /// Records that a node has lost power, and with it all runs on the node. The node is down until
    /// [`up`](Composer::up).
    pub fn lost(&mut self, node: u16, now_ns: u64) {
        self.pass(now_ns);
        self.down(node);
        self.remove(|run| run.node == node, true);
    }

    /// Records that no commands can be started on a node. Commands that already run there continue.
    pub fn down(&mut self, node: u16) {
        if self.template.uses(node) {
            self.state.down.insert(node);
        }
    }

    /// Records that commands can be started on a node again.
    pub fn up(&mut self, node: u16) {
        self.unblock(|state| {
            state.down.remove(&node);
        });
    }

    /// Stops the workload: no `first_` command, driver or `anytime_` command starts after this call. Returns which
    /// commands are to run before the timeline ends. If the running commands do not end by themselves in time, no
    /// `finally_` command runs. If they do not even end in time after they were killed, no `eventually_` command runs
    /// either.
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

    /// Removes the matching runs. `killed` is true if they were killed or lost with their node.
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

    /// Applies a change that may allow a waiting command to start, e.g. the end of a run. The command then starts after
    /// the random pause that was drawn for it. Without the pause, it would always start at the vtime of the change.
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
