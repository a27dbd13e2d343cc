//! One timeline's events, one after the other, and what hits a property in them.

use std::collections::BTreeSet;

use crate::coverage::text::head;
use crate::plan::problem::quoted;
use crate::units::write_duration_ns;

use super::event::{Event, What};
use super::hit::{Hit, clipped, signature};
use super::kernel::trouble;
use super::limits::{LINE_BYTES_MAX, NAME_BYTES_MAX};
use super::properties::Properties;
use super::rule::{Form, Rule};
use super::state::{Calm, JudgeState};

/// What judges a timeline, or a piece of one.
#[derive(Debug)]
pub struct Judge<'a> {
    properties: &'a Properties,
    state: JudgeState,
    hits: Vec<Hit>,
    /// For each hit, how many events had come by then.
    after: Vec<u64>,
    observed: u64,
}

impl<'a> Judge<'a> {
    /// Go on from a state.
    #[must_use]
    pub fn start(properties: &'a Properties, state: JudgeState) -> Judge<'a> {
        Judge { properties, state, hits: Vec::new(), after: Vec::new(), observed: 0 }
    }

    /// The next event. Returns what it hits.
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
                if !node.is_some_and(|node| self.state.excuses.explain_found(node, property)) {
                    self.hit(property, text, now, node);
                }
            }
            What::History { property, cause, text } => self.hit_as(property, cause, text, now, node),
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

    /// Faults have ended for good, at this vtime: from here on, what must come eventually has to come. If they had ended before
    /// and went on, what came in between does not count.
    pub fn calm(&mut self, now_ns: u64) {
        self.state.calm = Some(Calm { since_ns: now_ns, came: BTreeSet::new() });
    }

    /// The timeline has ended, at this vtime: what had to come in its calm and did not is a hit. Without a calm, or once it was
    /// judged, nothing had to. Returns the hits.
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

    /// What was hit so far, each with how many events had come by then, its own included.
    pub fn hits(&self) -> impl Iterator<Item = (u64, &Hit)> {
        self.after.iter().copied().zip(&self.hits)
    }

    /// Where the timeline is: what was seen so far, and what a child inherits.
    #[must_use]
    pub fn state(&self) -> &JudgeState {
        &self.state
    }

    /// All that was hit since the start, and the state from which a child goes on.
    #[must_use]
    pub fn finish(self) -> (Vec<Hit>, JudgeState) {
        (self.hits, self.state)
    }

    /// What is of no node of the world excuses nothing, and takes no memory.
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

    /// Whether a line that matches would change anything: most are not looked at for what has come already.
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

    /// A hit whose signature is made of `cause` instead of its text.
    fn hit_as(&mut self, property: &str, cause: &str, text: &str, vtime_ns: u64, node: Option<u16>) {
        let property = head(property, NAME_BYTES_MAX);
        if self.properties.ignores(property) {
            return;
        }
        let signature = signature(property, cause, self.properties.world());
        if self.state.tells(property, &signature) {
            let property = property.to_owned();
            self.hits.push(Hit { property, signature, text: clipped(text), vtime_ns, node });
            self.after.push(self.observed);
        }
    }
}
