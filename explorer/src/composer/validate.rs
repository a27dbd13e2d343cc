//! Checks a stored state of the composer, which decides when the commands of a test template start.

use super::limits::{
    ANYTIME_MAX, FINISH_NS_MAX, KILL_NS_MAX, LAST_NS_MAX, PARALLEL_MAX, PAUSE_NS_MAX, RUN_MAX,
};
use super::prefix::Prefix;
use super::state::{ComposerState, Phase, Stopping, Track};
use super::template::Template;

/// Error for a state that no timeline of the template can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored composer state does not fit this test template")]
pub struct UnreachableState;

impl ComposerState {
    /// Returns true if a timeline of this template can be in this state. The state of another template passes if it is
    /// also possible for this template.
    #[must_use]
    pub fn is_sound(&self, template: &Template) -> bool {
        self.is_drawn_soundly(template) && self.runs_exist(template) && self.phase_is_sound(template)
    }

    fn is_drawn_soundly(&self, template: &Template) -> bool {
        let ending = match self.ending {
            Stopping::Finally => template.has(Prefix::Finally),
            Stopping::Eventually => template.has(Prefix::Eventually),
            Stopping::Nothing => !template.has(Prefix::Finally) && !template.has(Prefix::Eventually),
        };
        let next = |track: Track| {
            self.next(track).is_none_or(|next| {
                self.phase == Phase::Driving
                    && template.prefix(next.command).is_some_and(|prefix| track.has(prefix))
                    && !self.spent.contains(&next.command)
                    && next.pause_ns <= PAUSE_NS_MAX
                    && next.at_ns <= self.now_ns.saturating_add(next.pause_ns)
            })
        };
        ending && (1..=PARALLEL_MAX).contains(&self.parallel) && Track::ALL.into_iter().all(next)
    }

    fn runs_exist(&self, template: &Template) -> bool {
        let singleton = |command: &usize| template.prefix(*command) == Some(Prefix::SingletonDriver);
        let rising = self.runs.is_sorted_by(|a, b| a.run < b.run);
        let known = self.runs.iter().all(|run| {
            run.run < self.next_run
                && template.command(run.command).is_some_and(|command| command.nodes().contains(&run.node))
                && (!singleton(&run.command) || self.spent.contains(&run.command))
        });
        let started = self.next_run > 0 || !self.worked && !self.killed;
        let worked = self.worked || self.spent.is_empty() && self.count(template, Prefix::is_driver) == 0;
        rising
            && known
            && started
            && worked
            && self.next_run <= RUN_MAX
            && self.spent.iter().all(singleton)
            && self.down.iter().all(|node| template.uses(*node))
    }

    fn phase_is_sound(&self, template: &Template) -> bool {
        let within = |until_ns: u64, ns| until_ns <= self.now_ns.saturating_add(ns);
        let is_idle = self.runs.is_empty();
        match self.phase {
            Phase::First { started: false } => template.has(Prefix::First) && self.next_run == 0,
            Phase::First { started: true } => self.is_alone(template, Prefix::First) && !self.worked,
            Phase::Driving => self.is_workload(template),
            Phase::Finishing { until_ns } => {
                self.ending == Stopping::Finally
                    && self.is_before_last(template)
                    && within(until_ns, FINISH_NS_MAX)
            }
            Phase::Killing { until_ns, .. } => {
                self.worked
                    && template.has(Prefix::Eventually)
                    && self.is_before_last(template)
                    && within(until_ns, KILL_NS_MAX)
            }
            Phase::Eventually { until_ns, started } => {
                self.worked
                    && template.has(Prefix::Eventually)
                    && (is_idle || started && self.is_alone(template, Prefix::Eventually))
                    && within(until_ns, LAST_NS_MAX)
            }
            Phase::Finally { until_ns, started } => {
                let last = started.checked_sub(1);
                let last = last.and_then(|last| template.with(|prefix| prefix == Prefix::Finally).nth(last));
                self.ending == Stopping::Finally
                    && (last.is_some() || started == 0)
                    && self.runs.len() <= 1
                    && self.runs.iter().all(|run| Some(run.command) == last)
                    && within(until_ns, LAST_NS_MAX)
            }
            Phase::Over { .. } => {
                self.is_before_last(template)
                    || self.is_alone(template, Prefix::Eventually)
                    || self.is_alone(template, Prefix::Finally)
            }
        }
    }

    /// Returns true if exactly one command runs, and the command has this prefix.
    fn is_alone(&self, template: &Template, prefix: Prefix) -> bool {
        self.runs.len() == 1 && self.count(template, |other| other == prefix) == 1
    }

    /// Returns true if the running commands can be those of a timeline whose workload has just been stopped: drivers
    /// and `anytime_` commands, or one `first_` command if the workload had not begun.
    fn is_before_last(&self, template: &Template) -> bool {
        self.is_workload(template) || self.is_alone(template, Prefix::First)
    }

    /// Returns true if the running commands may run at the same time in a workload.
    fn is_workload(&self, template: &Template) -> bool {
        let parallel = self.count(template, |prefix| prefix == Prefix::ParallelDriver);
        let alone = self.count(template, Prefix::is_alone);
        let anytime = self.count(template, |prefix| prefix == Prefix::Anytime);
        parallel + alone + anytime == self.runs.len()
            && parallel <= usize::from(PARALLEL_MAX)
            && anytime <= usize::from(ANYTIME_MAX)
            && alone <= 1
            && (alone == 0 || parallel == 0)
    }
}
