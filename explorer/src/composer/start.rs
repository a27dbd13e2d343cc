//! Chooses the commands that start before the workload's end. A command is an executable of the test template, which
//! the composer (see the parent module) starts.

use chacha20::ChaCha20Rng;

use super::limits::{ANYTIME_MAX, PATIENCE_NS, PAUSE_NS_MAX};
use super::prefix::Prefix;
use super::state::{Next, Phase, Start, Track};
use super::timeline::Composer;
use crate::plan::draw::numbers::below;

impl Composer<'_> {
    /// Returns the vtime at which the composer next draws a command at random or starts the drawn command, in
    /// nanoseconds. Returns `None` after the workload's end. Also returns `None` if no command can start until the
    /// caller reports an event, for example that a command has ended or that a node is up.
    pub(super) fn start_due(&self) -> Option<u64> {
        match self.state.phase {
            Phase::First { started: false } => self.has_node(Prefix::First).next().map(|_| self.state.now_ns),
            Phase::Driving => Track::ALL.into_iter().filter_map(|track| self.track_due(track)).min(),
            _ => None,
        }
    }

    /// Draws a command, or starts the command that was drawn, if this is due now.
    pub(super) fn start_step(&mut self, rng: &mut ChaCha20Rng) -> Option<Start> {
        if let Phase::First { started } = &mut self.state.phase {
            *started = true;
            let commands: Vec<usize> = self.has_node(Prefix::First).collect();
            return self.start(one(&commands, rng)?, rng);
        }
        let now_ns = self.state.now_ns;
        let is_due = |track: &Track| self.track_due(*track).is_some_and(|due_ns| due_ns <= now_ns);
        let track = Track::ALL.into_iter().find(is_due)?;
        let Some(next) = self.state.next(track) else {
            let commands: Vec<usize> = self.candidates(track).collect();
            let command = one(&commands, rng)?;
            let pause_ns = below(rng, PAUSE_NS_MAX + 1);
            let at_ns = now_ns.saturating_add(pause_ns);
            *self.state.next_mut(track) = Some(Next { command, at_ns, pause_ns });
            return None;
        };
        let mut command = next.command;
        if !self.may_start(track, command) {
            // The drawn command has waited for `PATIENCE_NS`. Start a command that can start now instead.
            let commands: Vec<usize> = self.startable(track).collect();
            command = one(&commands, rng)?;
        }
        *self.state.next_mut(track) = None;
        self.start(command, rng)
    }

    /// Returns the vtime at which a track (the drivers or the `anytime_` commands) next draws or starts a command, in
    /// nanoseconds. Returns `None` if it has no command that can be drawn or started.
    fn track_due(&self, track: Track) -> Option<u64> {
        match self.state.next(track) {
            None => self.candidates(track).next().map(|_| self.state.now_ns),
            Some(next) if self.may_start(track, next.command) => Some(next.at_ns),
            Some(next) => {
                let patience_ns = next.at_ns.saturating_add(PATIENCE_NS);
                self.startable(track).next().map(|_| patience_ns)
            }
        }
    }

    /// Returns the numbers of a track's commands that have at least one node that is up. Leaves out the singleton
    /// drivers (commands that start at most once) that were already started.
    fn candidates(&self, track: Track) -> impl Iterator<Item = usize> {
        let commands = self.template.with(move |prefix| track.has(prefix));
        commands.filter(|command| !self.state.spent.contains(command) && self.is_up(*command))
    }

    /// Returns the commands of a track that can start now.
    fn startable(&self, track: Track) -> impl Iterator<Item = usize> {
        self.candidates(track).filter(move |command| self.may_start(track, *command))
    }

    /// Returns true if a command of a track can start now: one of its nodes is up, and the running commands allow the
    /// start.
    pub(super) fn may_start(&self, track: Track, command: usize) -> bool {
        let Some(prefix) = self.template.prefix(command).filter(|prefix| track.has(*prefix)) else {
            return false;
        };
        let room = match prefix {
            Prefix::ParallelDriver => {
                let parallel = self.state.count(self.template, |other| other == prefix);
                let alone = self.state.count(self.template, Prefix::is_alone);
                alone == 0 && parallel < usize::from(self.state.parallel)
            }
            Prefix::SerialDriver | Prefix::SingletonDriver => {
                self.state.count(self.template, Prefix::is_driver) == 0
            }
            Prefix::Anytime => {
                self.state.count(self.template, |other| other == prefix) < usize::from(ANYTIME_MAX)
            }
            Prefix::First | Prefix::Eventually | Prefix::Finally | Prefix::Helper => false,
        };
        room && self.is_up(command)
    }

    /// Returns the numbers of the commands that have this prefix and at least one node that is up.
    pub(super) fn has_node(&self, prefix: Prefix) -> impl Iterator<Item = usize> {
        self.template.with(move |other| other == prefix).filter(|command| self.is_up(*command))
    }

    /// Returns true if one of the command's nodes is up.
    pub(super) fn is_up(&self, command: usize) -> bool {
        self.template
            .command(command)
            .is_some_and(|command| command.nodes().iter().any(|node| !self.state.down.contains(node)))
    }

    /// Starts a command on one of its nodes that are up, drawn at random. Returns `None` if none of them is up.
    pub(super) fn start(&mut self, number: usize, rng: &mut ChaCha20Rng) -> Option<Start> {
        let command = self.template.command(number)?;
        let nodes: Vec<u16> = command.nodes().difference(&self.state.down).copied().collect();
        let node = one(&nodes, rng)?;
        let start = Start { run: self.state.next_run, command: number, node };
        let prefix = command.prefix();
        self.tally.start(command);
        self.state.next_run += 1;
        self.state.runs.push(start);
        if prefix == Prefix::SingletonDriver {
            self.state.spent.insert(number);
        }
        let drives = self.template.with(Prefix::is_driver).next().is_some();
        self.state.worked |= prefix.is_driver() || prefix == Prefix::Anytime && !drives;
        Some(start)
    }
}

/// Draws one of the elements, with equal probabilities. Returns `None` if there are no elements.
pub(super) fn one<T: Copy>(of: &[T], rng: &mut ChaCha20Rng) -> Option<T> {
    of.get(below(rng, of.len() as u64) as usize).copied()
}
