//! Steps of the finding's timeline, from its replay.

use std::collections::VecDeque;

use everett_explorer::causality::result::{STEPS_MAX, TEXT_BYTES_MAX};
use everett_explorer::causality::{Step, StepKind};
use everett_vmm::wire::log::Step as WireStep;

use super::super::path_runner::Watch;
use super::super::setting::Setting;
use super::super::witness::{message_line, plain_line};
use super::{Onlooker, Progress};
use crate::event::{Event, What};

/// Maximum number of steps of a timeline; the last ones are kept.
const ALL_MAX: usize = 400_000;
/// Maximum number of steps within the interval that are named.
pub(super) const WITHIN_MAX: usize = STEPS_MAX;
/// Number of steps before and after it that are named.
pub(super) const AROUND_MAX: usize = 4;

/// Steps of a timeline up to the finding, in the order of vtime.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    fn new(mut steps: Vec<Step>) -> Steps {
        steps.sort_by_key(|step| step.vtime_ns);
        Steps(steps)
    }

    /// Returns the vtimes of the steps up to a vtime, in nanoseconds.
    pub(super) fn times(&self, until_ns: u64) -> Vec<u64> {
        self.0.iter().map(|step| step.vtime_ns).take_while(|at| *at <= until_ns).collect()
    }

    /// Returns the steps before, within and after an interval of vtime. Its end belongs to it.
    pub(super) fn around(&self, from_ns: u64, to_ns: u64) -> (&[Step], &[Step], &[Step]) {
        let from = self.0.partition_point(|step| step.vtime_ns <= from_ns);
        let to = self.0.partition_point(|step| step.vtime_ns <= to_ns).max(from);
        let (before, rest) = self.0.split_at(from);
        let (within, after) = rest.split_at(to - from);
        (before, within, after)
    }
}

/// Returns the last steps of these.
pub(super) fn last(steps: &[Step], most: usize) -> Vec<Step> {
    steps[steps.len().saturating_sub(most)..].to_vec()
}

/// Returns the first steps of these.
pub(super) fn first(steps: &[Step], most: usize) -> Vec<Step> {
    steps[..steps.len().min(most)].to_vec()
}

/// Watch that keeps the steps of a replay up to the finding.
pub(super) struct Recorder<'r> {
    nodes: Vec<String>,
    root_ns: u64,
    found_ns: u64,
    steps: VecDeque<Step>,
    stop: &'r dyn Fn() -> bool,
    onlooker: &'r mut dyn Onlooker,
}

impl<'r> Recorder<'r> {
    pub(super) fn new(
        setting: &Setting,
        found_ns: u64,
        stop: &'r dyn Fn() -> bool,
        onlooker: &'r mut dyn Onlooker,
    ) -> Recorder<'r> {
        let nodes = setting.launcher.world.nodes.iter().map(|node| node.name.clone()).collect();
        Recorder { nodes, root_ns: setting.root_ns, found_ns, steps: VecDeque::new(), stop, onlooker }
    }

    pub(super) fn steps(self) -> Steps {
        Steps::new(self.steps.into())
    }

    fn add(&mut self, vtime_ns: u64, kind: StepKind, text: &str) {
        if vtime_ns <= self.root_ns || vtime_ns > self.found_ns {
            return;
        }
        if self.steps.len() >= ALL_MAX {
            self.steps.pop_front();
        }
        let text = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        self.steps.push_back(Step { vtime_ns, kind, text });
    }
}

impl Watch for Recorder<'_> {
    fn event(&mut self, event: &Event) {
        let Some(kind) = kind(&event.what) else { return };
        let line = plain_line(event, self.nodes.len() > 1);
        self.add(event.vtime_ns, kind, &line);
    }

    fn message(&mut self, step: &WireStep) {
        let name = |port: u8| self.nodes.get(usize::from(port)).map_or("?", String::as_str);
        let line = message_line(step, &name);
        // What the wire draws for a frame, it draws when the frame is sent.
        if step.sent_at < step.vtime {
            self.add(step.sent_at, StepKind::Sent, &line);
        }
        self.add(step.vtime, StepKind::Message, &line);
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        self.onlooker.at(&Progress::Replaying(vtime_ns));
        !(self.stop)()
    }
}

/// Returns the kind of the step that an event is; `None` for events that are no steps.
fn kind(what: &What) -> Option<StepKind> {
    match what {
        What::Line { .. }
        | What::Kernel { .. }
        | What::Start { .. }
        | What::Exit { .. }
        | What::Sdk { .. } => Some(StepKind::Line),
        What::History { .. } => Some(StepKind::Operation),
        What::Fault { .. } | What::Healed { .. } | What::Effect { .. } | What::Loss(_) => {
            Some(StepKind::Fault)
        }
        What::Hello { .. }
        | What::Mounted
        | What::Ready
        | What::Begin { .. }
        | What::Access { .. }
        | What::Edge { .. }
        | What::Finding { .. }
        | What::Fork { .. }
        | What::End => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_around_an_interval() {
        let step = |vtime_ns| Step { vtime_ns, kind: StepKind::Line, text: String::new() };
        let steps = Steps::new([5, 1, 3, 3, 9].map(step).to_vec());
        let times = |steps: &[Step]| steps.iter().map(|step| step.vtime_ns).collect::<Vec<_>>();
        let (before, within, after) = steps.around(1, 5);
        assert_eq!((times(before), times(within), times(after)), (vec![1], vec![3, 3, 5], vec![9]));
        assert_eq!((times(&last(within, 2)), times(&first(within, 9))), (vec![3, 5], vec![3, 3, 5]));
        assert_eq!(steps.times(4), [1, 3, 3]);
        let (before, within, after) = steps.around(10, 10);
        assert_eq!((before.len(), within.len(), after.len()), (5, 0, 0));
    }
}
