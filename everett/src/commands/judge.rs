//! Decides which events of a single run are findings. The rules are those of an exploration: properties, trouble in the
//! kernel's log, and the history of operations by clients.

use std::borrow::Cow;

use everett_explorer::plan::Plan;

use everett_session::explore::abstractions::Abstractions;
use everett_session::explore::verdict::judge_history;
use everett_session::explore::witness::{Inherited, Witness};
use everett_session::world::event::{Event, What};

/// Decides, while a run goes on, which of its events are findings.
pub(super) struct Judge<'l> {
    abstractions: &'l Abstractions,
    witness: Witness<'l>,
    /// Number of findings of `witness` (the observer that evaluates the run's events) that are already reported, by
    /// this judge or by the session.
    reported: usize,
    /// Number of findings that this judge reported. The session, i.e. the part of Everett that carries out the run,
    /// reports other findings itself, as events.
    findings: u64,
    /// Number of the session's findings that do not count, because the world ignores them or a fault explains them.
    excused: u64,
}

impl<'l> Judge<'l> {
    /// Creates the judge of a run under a fault plan.
    pub(super) fn new(abstractions: &'l Abstractions, plan: &'l Plan) -> anyhow::Result<Judge<'l>> {
        Ok(Judge {
            abstractions,
            witness: Witness::new(abstractions, plan, &Inherited::new(abstractions))?,
            reported: 0,
            findings: 0,
            excused: 0,
        })
    }

    /// Returns the number of findings that count. `own` is the number of the session's findings.
    pub(super) fn findings(&self, own: u64) -> u64 {
        own.saturating_sub(self.excused).saturating_add(self.findings)
    }

    /// Returns an event as the command reports it. A finding of the session does not count if the world ignores the
    /// property or if a fault explains the finding. Such a finding becomes an ordinary event ([`What::Effect`]).
    pub(super) fn worded<'e>(&self, event: &'e Event) -> Cow<'e, Event> {
        let What::Finding { text, .. } = &event.what else { return Cow::Borrowed(event) };
        if !self.witness.excuses(event) {
            return Cow::Borrowed(event);
        }
        let text = format!("{text} (no finding: the world ignores it, or a fault explains it)");
        Cow::Owned(Event { what: What::Effect { text }, ..event.clone() })
    }

    /// Judges an event. Returns the new findings that the session does not report itself.
    pub(super) fn hear(&mut self, event: &Event) -> Vec<Event> {
        self.excused += u64::from(self.witness.excuses(event));
        self.witness.hear(event);
        if matches!(event.what, What::End) {
            self.witness.calm(event.vtime_ns);
        }
        // The session has already reported its own findings.
        let reported = matches!(event.what, What::Finding { .. });
        let new = self.new_findings();
        if reported { Vec::new() } else { self.counted(new) }
    }

    /// Judges the end of the run. `whole` is true if its checks ran to their end.
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

#[cfg(test)]
mod tests {
    use everett_explorer::property::builtin::{FILE_SYSTEM_DAMAGED, SERVICE_EXIT};
    use everett_world_file as world_file;

    use super::*;

    /// Judges a run in which a fault flips a bit on the disk and the session then reports findings of these properties.
    /// Returns the number of findings that count, and the number of events that the command reports as findings.
    fn counted(explore: &str, properties: &[&str]) -> (u64, usize) {
        let world =
            "[[node]]\nname = \"a\"\ndisk = { path = \"/data\", size = \"64M\" }\n".to_owned() + explore;
        let world = world_file::parse(&world, std::path::Path::new("w.toml")).unwrap();
        let abstractions = Abstractions::new(&world).unwrap();
        let plan = "{\"at\":1,\"fault\":\"bit_rot\",\"node\":\"a\",\"bits\":1}\n";
        let plan = Plan::parse(plan, &abstractions.names).unwrap();
        let mut judge = Judge::new(&abstractions, &plan).unwrap();
        let event = |vtime_ns, what| Event { vtime_ns, node: "a".to_owned(), what };
        judge.hear(&event(1, What::Fault { id: 0, line: String::new() }));
        let mut told = 0;
        for property in properties {
            let event =
                event(100, What::Finding { property: (*property).to_owned(), text: "bad".to_owned() });
            told += usize::from(matches!(judge.worded(&event).what, What::Finding { .. }));
            assert_eq!(judge.hear(&event), [], "the session has reported it");
        }
        (judge.findings(properties.len() as u64), told)
    }

    #[test]
    fn findings_that_a_fault_explains_or_the_world_ignores_do_not_count() {
        let both = [FILE_SYSTEM_DAMAGED, SERVICE_EXIT, SERVICE_EXIT];
        assert_eq!(counted("", &both), (2, 2));
        assert_eq!(counted("[explore]\nignore = [\"service exit\"]\n", &both), (0, 0));
        assert_eq!(counted("[explore]\nignore = [\"kernel panic\"]\n", &both), (2, 2));
    }
}
