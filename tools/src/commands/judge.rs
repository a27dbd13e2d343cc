//! Judges a single run as an exploration judges its branches: properties, kernel troubles, the history.

use everett_explorer::plan::Plan;

use everett_session::event::{Event, What};
use everett_session::explore::abstractions::Abstractions;
use everett_session::explore::verdict::judge_history;
use everett_session::explore::witness::{Inherited, Witness};

/// Judge of a run in progress.
pub(super) struct Judge<'l> {
    abstractions: &'l Abstractions,
    witness: Witness<'l>,
    /// Number of findings that were already reported.
    reported: usize,
    /// Number of findings besides the session's own.
    pub(super) findings: u64,
}

impl<'l> Judge<'l> {
    /// Creates the judge of a run of this world under this plan.
    pub(super) fn new(abstractions: &'l Abstractions, plan: &'l Plan) -> anyhow::Result<Judge<'l>> {
        Ok(Judge {
            abstractions,
            witness: Witness::new(abstractions, plan, &Inherited::new(abstractions))?,
            reported: 0,
            findings: 0,
        })
    }

    /// Judges an event. Returns the new findings that the session does not report itself.
    pub(super) fn hear(&mut self, event: &Event) -> Vec<Event> {
        self.witness.hear(event);
        if matches!(event.what, What::End) {
            self.witness.calm(event.vtime_ns);
        }
        // The session's own findings are reported already.
        let reported = matches!(event.what, What::Finding { .. });
        let new = self.new_findings();
        if reported { Vec::new() } else { self.counted(new) }
    }

    /// Judges the end of the run; `whole` is true if its checks ran to their end.
    pub(super) fn over(&mut self, vtime_ns: u64, whole: bool) -> Vec<Event> {
        if whole {
            self.witness.over(vtime_ns);
        }
        judge_history(self.abstractions, &mut self.witness);
        let new = self.new_findings();
        self.counted(new)
    }

    fn counted(&mut self, new: Vec<Event>) -> Vec<Event> {
        self.findings += new.len() as u64;
        new
    }

    fn new_findings(&mut self) -> Vec<Event> {
        let found = self.witness.found();
        let new = found.get(self.reported..).unwrap_or_default().iter().map(|found| {
            let hit = &found.hit;
            let node = hit.node.and_then(|node| self.abstractions.name(node)).unwrap_or_default().to_owned();
            let what = What::Finding { property: hit.property.clone(), text: hit.text.clone() };
            Event { vtime_ns: hit.vtime_ns, node, what }
        });
        let new = new.collect();
        self.reported = found.len();
        new
    }
}
