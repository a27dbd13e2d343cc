//! Judging: finds the hits in the events of one timeline.

use std::collections::BTreeSet;

use everett_input::units::write_duration_ns;

use super::event::{Event, What};
use super::hit::{Hit, clipped, signature};
use super::kernel::trouble;
use super::limits::{LINE_BYTES_MAX, NAME_BYTES_MAX};
use super::properties::Properties;
use super::rule::{Form, Rule};
use super::state::{Calm, JudgeState};
use crate::coverage::text::head;
use crate::plan::problem::quoted;

/// Judge of a timeline, or of a piece of one.
#[derive(Debug)]
pub struct Judge<'a> {
    properties: &'a Properties,
    state: JudgeState,
    hits: Vec<Hit>,
    /// For each hit, the number of events observed up to and including its own.
    after: Vec<u64>,
    observed: u64,
}

impl<'a> Judge<'a> {
    /// Continues from a state.
    #[must_use]
    pub fn start(properties: &'a Properties, state: JudgeState) -> Judge<'a> {
        Judge { properties, state, hits: Vec::new(), after: Vec::new(), observed: 0 }
    }

    /// Judges the next event. Returns its hits.
    pub fn observe(&mut self, event: &Event<'_>) -> &[Hit] {
        let before = self.hits.len();
        self.observed = self.observed.saturating_add(1);
        let (now, node) = (event.vtime_ns, event.node);
        match event.what {
            What::Line { unit, text } => self.line(now, node, Some(unit), text),
            What::Console(text) => {
                self.trouble(now, node, text);
                self.line(now, node, None, text);
            }
            What::Found { property, text } => {
                if !self.excuses(node, property) {
                    self.hit(property, text, now, node);
                }
            }
            What::History { property, cause, text } => self.hit_as(property, cause, text, now, node),
            What::Asserted { name, text } => self.hit_as(name, name, text, now, node),
            What::StandsStill { until_ns } => {
                if let Some(node) = self.existing(node) {
                    self.state.excuses.stood_still(node, until_ns);
                }
            }
            What::DiskErrors { begins } => {
                if let Some(node) = self.existing(node) {
                    self.state.excuses.disk_errors(node, begins);
                }
            }
            What::BitRot => {
                if let Some(node) = self.existing(node) {
                    self.state.excuses.bits_rotted(node);
                }
            }
            What::Restarted => {
                if let Some(node) = self.existing(node) {
                    self.state.excuses.restarted(node);
                }
            }
        }
        self.hits.get(before..).unwrap_or_default()
    }

    /// Marks the end of all faults, at this vtime. From here on, each `eventually` property needs a matching line. If
    /// this is called again, because faults resumed and ended again, earlier matches no longer count.
    pub fn calm(&mut self, now_ns: u64) {
        self.state.calm = Some(Calm { since_ns: now_ns, came: BTreeSet::new() });
    }

    /// Ends the timeline, at this vtime. Returns a hit for each `eventually` property without a matching line since the
    /// last call of [`calm`](Judge::calm). Returns no hits if there was no call since the last end.
    pub fn end(&mut self, now_ns: u64) -> &[Hit] {
        let before = self.hits.len();
        let properties = self.properties;
        if let Some(Calm { since_ns, came }) = self.state.calm.take() {
            let missing = properties.rules().iter().filter(|rule| rule.form() == Form::Eventually);
            for rule in missing.filter(|rule| !came.contains(rule.name())) {
                let (expression, since) = (quoted(rule.expression()), write_duration_ns(since_ns));
                let text = format!("no line matched {expression} from {since} on, when faults had ended");
                self.hit(rule.name(), &text, now_ns, None);
            }
        }
        self.hits.get(before..).unwrap_or_default()
    }

    /// Returns true if a violation of this property that the caller reports is no hit: the world ignores the property, or
    /// a fault of the node explains the violation.
    #[must_use]
    pub fn excuses(&self, node: Option<u16>, property: &str) -> bool {
        let explained = node.is_some_and(|node| self.state.excuses.explain_found(node, property));
        explained || self.properties.ignores(head(property, NAME_BYTES_MAX))
    }

    /// Returns the hits so far. Each comes with the number of events observed up to and including its own.
    pub fn hits(&self) -> impl Iterator<Item = (u64, &Hit)> {
        self.after.iter().copied().zip(&self.hits)
    }

    /// Returns the current state, which a child inherits.
    #[must_use]
    pub fn state(&self) -> &JudgeState {
        &self.state
    }

    /// Returns all hits since the start, and the state that a child inherits.
    #[must_use]
    pub fn finish(self) -> (Vec<Hit>, JudgeState) {
        (self.hits, self.state)
    }

    /// Returns the node if the world has it. Events of other nodes are ignored: they excuse nothing and use no memory.
    fn existing(&self, node: Option<u16>) -> Option<u16> {
        node.filter(|node| usize::from(*node) < self.properties.world().len())
    }

    fn trouble(&mut self, now: u64, node: Option<u16>, text: &str) {
        let text = head(text, LINE_BYTES_MAX);
        if let Some(trouble) = trouble(text)
            && !node.is_some_and(|node| self.state.excuses.explain(node, trouble, now))
        {
            self.hit(trouble.name(), text, now, node);
        }
    }

    fn line(&mut self, now: u64, node: Option<u16>, unit: Option<&str>, text: &str) {
        let text = head(text, LINE_BYTES_MAX);
        let properties = self.properties;
        for rule in properties.rules() {
            if !self.waits_for(rule) || !rule.matches(node, unit, text) {
                continue;
            }
            match (rule.form(), &mut self.state.calm) {
                (Form::Never, _) => self.hit(rule.name(), text, now, node),
                (Form::Eventually, Some(calm)) => {
                    calm.came.insert(rule.name().to_owned());
                }
                (Form::Eventually, None) => {}
                (Form::Sometimes, _) => {
                    self.state.seen.insert(rule.name().to_owned());
                }
            }
        }
    }

    /// Returns false if a match would change nothing. Rules that have been matched already are skipped.
    fn waits_for(&self, rule: &Rule) -> bool {
        match rule.form() {
            Form::Never => true,
            Form::Eventually => self.state.calm.as_ref().is_some_and(|calm| !calm.came.contains(rule.name())),
            Form::Sometimes => !self.state.seen.contains(rule.name()),
        }
    }

    fn hit(&mut self, property: &str, text: &str, vtime_ns: u64, node: Option<u16>) {
        self.hit_as(property, text, text, vtime_ns, node);
    }

    /// Adds a hit whose signature is made from `cause` instead of its text.
    fn hit_as(&mut self, property: &str, cause: &str, text: &str, vtime_ns: u64, node: Option<u16>) {
        let property = head(property, NAME_BYTES_MAX);
        if self.properties.ignores(property) {
            return;
        }
        let signature = signature(property, cause, self.properties.world());
        if self.state.enters(property, &signature) {
            let property = property.to_owned();
            self.hits.push(Hit { property, signature, text: clipped(text), vtime_ns, node });
            self.after.push(self.observed);
        }
    }
}
