//! Observer of a branch: places probes, and collects their hits.

use std::sync::Arc;

use super::Printing;
use crate::explore::path_runner::Watch;
use crate::probes::hit::{BranchHits, Entry, Hit};
use crate::probes::limits::{HIT_BYTES_MAX, HITS_MAX};
use crate::probes::stops::{SceneOfHit, Sink, Stops};
use crate::world::event::{Event, What};
use crate::world::timeline::Timeline;

/// Observer of a branch.
pub struct Observer<'p> {
    printing: &'p Printing<'p>,
    stops: Stops,
    collected: Collected<'p>,
}

/// Hits so far.
struct Collected<'p> {
    printing: &'p Printing<'p>,
    found: BranchHits,
    bytes: usize,
}

impl<'p> Observer<'p> {
    pub(super) fn new(printing: &'p Printing<'p>, branch: u64) -> Observer<'p> {
        let found = BranchHits { branch, ..BranchHits::default() };
        let stops = Stops::new(Arc::clone(&printing.probing));
        Observer { printing, stops, collected: Collected { printing, found, bytes: 0 } }
    }
}

impl Collected<'_> {
    fn is_full(&self) -> bool {
        self.found.entries.len() >= HITS_MAX || self.bytes >= HIT_BYTES_MAX
    }
}

impl Sink for Collected<'_> {
    fn hit(&mut self, hit: &SceneOfHit<'_>) {
        let Some(wanted) = self.printing.probing.probes.get(hit.probe) else { return };
        let probe = &wanted.probe;
        if probe.only_counts || self.printing.only_counts {
            return;
        }
        if self.is_full() {
            self.found.left_out += 1;
            return;
        }
        let (text, values) = hit.shown(probe);
        let mut stack = None;
        if probe.has_stack || self.printing.has_stack {
            match hit.stack() {
                Ok(read) => stack = read,
                Err(error) => {
                    self.found.problems.insert(everett_input::causes::with_causes(&error));
                }
            }
        }
        let bytes: usize = values.iter().map(|value| value.expression.len() + 64).sum();
        let frames = stack.as_ref().map_or(0, |stack| stack.user.len() + stack.kernel.len());
        self.bytes += size_of::<Hit>() + 2 * text.len() + bytes + frames * 256;
        self.found.entries.push(Entry::Hit(Hit {
            probe: hit.probe,
            vtime_ns: hit.vtime_ns,
            node: hit.node,
            pid: hit.pid,
            tid: hit.tid,
            thread: hit.thread(),
            text,
            values,
            stack,
        }));
    }
}

impl Watch for Observer<'_> {
    fn sets_breakpoints(&self) -> bool {
        true
    }

    fn begins(&mut self, timeline: &mut Timeline) -> anyhow::Result<()> {
        self.stops.begin(timeline)
    }

    fn breakpoint(&mut self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()> {
        self.stops.stopped(timeline, node, &mut self.collected)
    }

    fn event(&mut self, event: &Event) {
        let Collected { found, bytes, .. } = &mut self.collected;
        if !self.printing.with_logs {
            return;
        }
        let is_line = match &event.what {
            What::Line { .. } => true,
            What::Kernel { text } => everett_explorer::property::trouble(text).is_some(),
            _ => false,
        };
        if !is_line {
            return;
        }
        if *bytes >= HIT_BYTES_MAX {
            found.left_out += 1;
            return;
        }
        *bytes += event.bytes();
        found.entries.push(Entry::Event(event.clone()));
    }

    fn at(&mut self, _: u64) -> bool {
        !(self.printing.stop)()
    }
}

/// The observed branch, with its hits in the order of their vtimes.
impl From<Observer<'_>> for BranchHits {
    fn from(observer: Observer<'_>) -> BranchHits {
        let Stops { counts, placed, problems, .. } = observer.stops;
        let Collected { mut found, bytes, .. } = observer.collected;
        found.entries.sort_by_key(Entry::vtime_ns);
        found.problems.extend(problems);
        BranchHits { counts, placed, bytes, ..found }
    }
}
