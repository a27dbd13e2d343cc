//! The phases of a timeline after its workload: waiting for running commands, killing them, and running the `finally_`
//! or `eventually_` commands. The commands belong to a test template, a folder of executables. [`Composer`] decides
//! when each command starts.

use chacha20::ChaCha20Rng;

use super::limits::{FINISH_NS_MAX, KILL_NS_MAX, LAST_NS_MAX};
use super::prefix::Prefix;
use super::start::one;
use super::state::{Phase, Stopping};
use super::timeline::{Act, Composer};

impl Composer<'_> {
    /// Enters the phase that follows the workload.
    pub(super) fn end_workload(&mut self) {
        match self.state.ending {
            Stopping::Finally if !self.state.killed => {
                self.state.phase = Phase::Finishing { until_ns: self.in_ns(FINISH_NS_MAX) };
            }
            Stopping::Finally | Stopping::Eventually => self.end_without_finally(),
            Stopping::Nothing => self.state.phase = Phase::Over { told: false },
        }
    }

    /// Enters the phase that kills all commands before an `eventually_` command runs, if the template has one and a
    /// workload ran. Otherwise ends the timeline.
    fn end_without_finally(&mut self) {
        self.state.phase = if self.state.worked && self.template.has(Prefix::Eventually) {
            Phase::Killing { until_ns: self.in_ns(KILL_NS_MAX), told: false }
        } else {
            Phase::Over { told: false }
        };
    }

    fn in_ns(&self, ns: u64) -> u64 {
        self.state.now_ns.saturating_add(ns)
    }

    /// Returns the vtime of the next action or change of phase, in nanoseconds. Returns `None` before the workload's
    /// end, and after [`Composer`] returned [`Act::Over`].
    pub(super) fn ending_due(&self) -> Option<u64> {
        let idle = self.state.runs.is_empty();
        let (at_once, until_ns) = match self.state.phase {
            Phase::Finishing { until_ns } => (idle || self.state.killed, until_ns),
            Phase::Killing { until_ns, told } => (idle || !told, until_ns),
            Phase::Eventually { until_ns, started: false } => {
                (self.has_node(Prefix::Eventually).next().is_some(), until_ns)
            }
            Phase::Eventually { until_ns, started: true } => (idle, until_ns),
            Phase::Finally { until_ns, started } => {
                (idle && self.finally(started).is_none_or(|command| self.is_up(command)), until_ns)
            }
            Phase::Over { told: false } => (true, 0),
            Phase::Over { told: true } | Phase::First { .. } | Phase::Driving => return None,
        };
        Some(if at_once { self.state.now_ns } else { until_ns })
    }

    /// Performs the action or change of phase that is due now.
    pub(super) fn ending_step(&mut self, rng: &mut ChaCha20Rng) -> Option<Act> {
        let idle = self.state.runs.is_empty();
        let last_ns = self.in_ns(LAST_NS_MAX);
        match self.state.phase {
            Phase::Finishing { .. } => {
                if idle && !self.state.killed {
                    self.state.phase = Phase::Finally { until_ns: last_ns, started: 0 };
                } else {
                    self.end_without_finally();
                }
                None
            }
            Phase::Killing { .. } if idle => {
                self.state.phase = Phase::Eventually { until_ns: last_ns, started: false };
                None
            }
            Phase::Killing { until_ns, told: false } => {
                self.state.phase = Phase::Killing { until_ns, told: true };
                Some(Act::KillAll)
            }
            Phase::Eventually { until_ns, started: false } if until_ns > self.state.now_ns => {
                self.state.phase = Phase::Eventually { until_ns, started: true };
                let commands: Vec<usize> = self.has_node(Prefix::Eventually).collect();
                self.start(one(&commands, rng)?, rng).map(Act::Start)
            }
            Phase::Finally { until_ns, started } if idle && until_ns > self.state.now_ns => {
                let Some(command) = self.finally(started) else {
                    self.state.phase = Phase::Over { told: false };
                    return None;
                };
                self.state.phase = Phase::Finally { until_ns, started: started + 1 };
                self.start(command, rng).map(Act::Start)
            }
            // All commands of the phase have ended, or the phase has reached its time limit.
            Phase::Killing { .. } | Phase::Eventually { .. } | Phase::Finally { .. } => {
                self.state.phase = Phase::Over { told: false };
                None
            }
            Phase::Over { .. } => {
                self.state.phase = Phase::Over { told: true };
                Some(Act::Over)
            }
            Phase::First { .. } | Phase::Driving => None,
        }
    }

    /// Returns the number of the next `finally_` command if `started` of them were started, or `None` if all were.
    fn finally(&self, started: usize) -> Option<usize> {
        self.template.with(|prefix| prefix == Prefix::Finally).nth(started)
    }
}
