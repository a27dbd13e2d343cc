//! Collects the steps of the finding's timeline, i.e. events and messages up to the finding, from a replay.

use std::collections::VecDeque;

use everett_explorer::causality::result::{STEPS_MAX, TEXT_BYTES_MAX};
use everett_explorer::causality::{Step, StepKind};
use everett_vmm::wire::log::FrameStep;

use super::super::path_runner::Watch;
use super::super::setting::Setting;
use super::super::witness::{message_line, plain_line};
use super::{CausalityProgress, Onlooker};
use crate::world::event::{Event, What};

/// Maximum number of steps of a finding's timeline. Only the last steps of a longer timeline are kept.
const ALL_MAX: usize = 400_000;
/// Maximum number of listed steps within the interval of vtime in which the finding became likely.
pub(super) const WITHIN_MAX: usize = STEPS_MAX;
/// Maximum number of listed steps before this interval. The same maximum applies to the steps after it.
pub(super) const AROUND_MAX: usize = 4;

/// Steps of a timeline up to the finding, ordered by vtime.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    fn new(mut steps: Vec<Step>) -> Steps {
        steps.sort_by_key(|step| step.vtime_ns);
        Steps(steps)
    }

    /// Returns the vtimes of the steps up to `until_ns`, in nanoseconds.
    pub(super) fn times(&self, until_ns: u64) -> Vec<u64> {
        self.0.iter().map(|step| step.vtime_ns).take_while(|at| *at <= until_ns).collect()
    }

    /// Returns the steps before, within and after an interval of vtime. The interval includes its end, but not its
    /// beginning.
    pub(super) fn around(&self, from_ns: u64, to_ns: u64) -> (&[Step], &[Step], &[Step]) {
        let from = self.0.partition_point(|step| step.vtime_ns <= from_ns);
        let to = self.0.partition_point(|step| step.vtime_ns <= to_ns).max(from);
        let (before, rest) = self.0.split_at(from);
        let (within, after) = rest.split_at(to - from);
        (before, within, after)
    }
}

/// Returns the last `most` steps.
pub(super) fn last(steps: &[Step], most: usize) -> Vec<Step> {
    steps[steps.len().saturating_sub(most)..].to_vec()
}

/// Returns the first `most` steps.
pub(super) fn first(steps: &[Step], most: usize) -> Vec<Step> {
    steps[..steps.len().min(most)].to_vec()
}

/// Longest time between a message and a line of output that [`context`] returns for it, in nanoseconds of vtime.
const CONTEXT_NS: u64 = 100_000_000;
/// Maximum number of lines of output before a message that [`context`] returns. The same maximum applies to the lines
/// and faults after the message.
const CONTEXT_LINES: usize = 2;

/// Returns steps that may explain the first message of `within`: the last fault before it, the nearest lines of output
/// on its nodes, and the first faults after it. Returns nothing if `within` has a step that is not a message, because
/// that step needs no explanation.
pub(super) fn context(before: &[Step], within: &[Step], after: &[Step]) -> Vec<Step> {
    let is_message = |step: &&Step| matches!(step.kind, StepKind::Sent | StepKind::Message);
    let Some(message) = within.first().filter(|_| within.iter().all(|step| is_message(&step))) else {
        return Vec::new();
    };
    let nodes: Vec<&str> = message.text.split_whitespace().skip(2).step_by(2).take(2).collect();
    let is_near = |step: &&Step| step.vtime_ns.abs_diff(message.vtime_ns) <= CONTEXT_NS;
    let is_line = |step: &&Step| {
        let node = step.text.split_whitespace().nth(1).and_then(|place| place.split('/').next());
        step.kind == StepKind::Line && node.is_some_and(|node| nodes.contains(&node))
    };
    let is_fault = |step: &&Step| step.kind == StepKind::Fault;
    let lines = before.iter().rev().take_while(is_near).filter(is_line).take(CONTEXT_LINES);
    let mut all: Vec<Step> = before.iter().rev().find(is_fault).into_iter().chain(lines).cloned().collect();
    let next = after.iter().take_while(is_near).filter(|step| is_line(step) || is_fault(step));
    all.extend(next.take(CONTEXT_LINES).cloned());
    all.sort_by_key(|step| step.vtime_ns);
    all
}

/// Observer that collects the steps of a replay up to the finding.
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

    fn message(&mut self, step: &FrameStep) {
        let name = |port: u8| self.nodes.get(usize::from(port)).map_or("?", String::as_str);
        let line = message_line(step, &name);
        // The sending is a step of its own, because it can decide the finding: the wire makes its random draws for a
        // frame when the frame is sent.
        if step.sent_at < step.vtime {
            self.add(step.sent_at, StepKind::Sent, &line);
        }
        self.add(step.vtime, StepKind::Message, &line);
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        self.onlooker.at(&CausalityProgress::Replaying(vtime_ns));
        !(self.stop)()
    }
}

/// Returns the kind of step for an event, or `None` if the event is no step.
fn kind(what: &What) -> Option<StepKind> {
    match what {
        What::Line { .. }
        | What::Kernel { .. }
        | What::Start { .. }
        | What::Exit { .. }
        | What::Probe { .. }
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

    /// The context of a reset connection has three steps: the last power loss, and the node's nearest lines of output
    /// before and after the reset.
    #[test]
    fn messages_have_a_context_and_other_steps_have_none() {
        let step = |ms: u64, kind, text: &str| Step { vtime_ns: ms * 1_000_000, kind, text: text.to_owned() };
        let steps = [
            step(10, StepKind::Fault, "0.010 fault #0 power_loss"),
            step(890, StepKind::Line, "0.890 n1/redis | far"),
            step(990, StepKind::Line, "0.990 n2/redis | of another node"),
            step(995, StepKind::Line, "0.995 n1/kernel booted"),
            step(1_000, StepKind::Message, "1.000 DELIVER n1 > client TCP [RST]"),
            step(1_001, StepKind::Message, "1.001 DELIVER n1 > client TCP [RST]"),
            step(1_002, StepKind::Line, "1.002 n1/kernel mounted"),
            step(1_500, StepKind::Line, "1.500 n1/redis | far"),
        ];
        let texts = |within: std::ops::Range<usize>| -> Vec<String> {
            let context = context(&steps[..within.start], &steps[within.clone()], &steps[within.end..]);
            context.into_iter().map(|step| step.text[6..].trim().to_owned()).collect()
        };
        assert_eq!(texts(4..5), ["fault #0 power_loss", "n1/kernel booted", "n1/kernel mounted"]);
        assert_eq!(texts(3..4), Vec::<String>::new(), "a line explains itself");
        assert_eq!(texts(3..5), Vec::<String>::new());
        assert_eq!(texts(5..5), Vec::<String>::new());
    }
}
