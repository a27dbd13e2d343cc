//! Finds the violations of properties, called hits, in the events of one timeline.

use std::collections::BTreeSet;

use everett_input::text::quoted;
use everett_input::units::write_duration_ns;

use super::event::{Event, What};
use super::hit::{PropertyHit, clipped, signature};
use super::kernel::trouble;
use super::limits::{NAME_BYTES_MAX, TEMPLATE_LINE_BYTES_MAX};
use super::properties::Properties;
use super::record::{Cause, Ended, Match, Output, Records};
use super::rule::{Form, Rule};
use super::state::{Calm, JudgeState};
use crate::text::head;

/// Finds the hits in a timeline, or in a piece of a timeline.
#[derive(Debug)]
pub struct Judge<'a> {
    properties: &'a Properties,
    state: JudgeState,
    hits: Vec<PropertyHit>,
    /// For each hit, the number of events that were observed when it was found, including the event that caused it.
    after: Vec<u64>,
    /// For each hit, the vtime of the first line that belongs to it, in nanoseconds. A hit may be found in a record of
    /// several lines, e.g. a stack trace.
    begun: Vec<u64>,
    observed: u64,
    records: Records,
}

impl<'a> Judge<'a> {
    /// Creates a judge that continues from a state.
    #[must_use]
    pub fn start(properties: &'a Properties, state: JudgeState) -> Judge<'a> {
        Judge {
            properties,
            state,
            hits: Vec::new(),
            after: Vec::new(),
            begun: Vec::new(),
            observed: 0,
            records: Records::default(),
        }
    }

    /// Judges the next event, and returns the hits that it causes.
    pub fn observe(&mut self, event: &Event<'_>) -> &[PropertyHit] {
        let before = self.hits.len();
        self.observed = self.observed.saturating_add(1);
        let (now, node) = (event.vtime_ns, event.node);
        let old = self.records.end_old(now);
        self.ended(old);
        match event.what {
            What::Line { unit, is_error, text } => self.printed(now, node, unit, is_error, text),
            What::Console(text) => {
                self.trouble(now, node, text);
                self.line(now, node, None, text, None);
            }
            What::Found { property, text } => {
                // A service of the node may have ended. Judge the node's open records of several lines first, because
                // they were printed before.
                let of_node = if node.is_some() { self.records.end_of(node) } else { Vec::new() };
                self.ended(of_node);
                if !self.excuses(node, property) {
                    self.hit(property, text, now, node);
                }
            }
            What::History { property, cause, text } => self.hit_as(property, cause, text, now, node),
            What::Asserted { name, text } => self.hit_as(name, name, text, now, node),
            What::Reached { name } => {
                if self.properties.notes_hit_of(name) {
                    self.state.seen.insert(name.to_owned());
                }
            }
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

    /// Marks the end of all faults, at this vtime. Each `eventually` property then needs a matching line. If faults
    /// resume and end again, the caller calls this again, and earlier matches are discarded.
    pub fn calm(&mut self, now_ns: u64) {
        self.state.calm = Some(Calm { since_ns: now_ns, came: BTreeSet::new() });
    }

    /// Ends the timeline, at this vtime. Returns a hit for each `eventually` property without a matching line since the
    /// last call of [`calm`](Judge::calm). Without such a call, returns no hits for `eventually` properties.
    pub fn end(&mut self, now_ns: u64) -> &[PropertyHit] {
        let before = self.hits.len();
        self.end_records();
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

    /// Ends all open records of several lines. The caller does this at the end of a timeline, and before branches
    /// continue the timeline. Later lines of an ended record are judged one by one.
    pub fn end_records(&mut self) {
        let open = self.records.end_of(None);
        self.ended(open);
    }

    /// Returns true if a violation that the caller found is not a hit. Either the world ignores the property, or a
    /// fault of the node explains the violation.
    #[must_use]
    pub fn excuses(&self, node: Option<u16>, property: &str) -> bool {
        let explained = node.is_some_and(|node| self.state.excuses.explain_found(node, property));
        explained || self.properties.ignores(head(property, NAME_BYTES_MAX))
    }

    /// Returns the hits so far. Each comes with the number of events that were observed when it was found, including
    /// the event that caused it.
    pub fn hits(&self) -> impl Iterator<Item = (u64, &PropertyHit)> {
        self.after.iter().copied().zip(&self.hits)
    }

    /// Returns the vtime of the first line that belongs to a hit, in nanoseconds. `hit` is the index of the hit.
    /// Returns `None` if there is no hit with this index.
    #[must_use]
    pub fn begun_ns(&self, hit: usize) -> Option<u64> {
        self.begun.get(hit).copied()
    }

    /// Returns the current state, which a child timeline inherits.
    #[must_use]
    pub fn state(&self) -> &JudgeState {
        &self.state
    }

    /// Returns all hits since the start, and the state that a child timeline inherits.
    #[must_use]
    pub fn finish(mut self) -> (Vec<PropertyHit>, JudgeState) {
        self.end_records();
        (self.hits, self.state)
    }

    /// Returns the node if the world has it. Some events of a node explain later violations: a standstill (the node
    /// runs slowly or not at all), disk errors and a restart. Such an event of an unknown node is ignored, so it
    /// explains nothing and uses no memory.
    fn existing(&self, node: Option<u16>) -> Option<u16> {
        node.filter(|node| usize::from(*node) < self.properties.world().len())
    }

    fn trouble(&mut self, now: u64, node: Option<u16>, text: &str) {
        let text = head(text, TEMPLATE_LINE_BYTES_MAX);
        if let Some(trouble) = trouble(text)
            && !node.is_some_and(|node| self.state.excuses.explain(node, trouble, now))
        {
            self.hit(trouble.name(), text, now, node);
        }
    }

    /// Judges a line of a program, which may belong to a record of several lines.
    fn printed(&mut self, now: u64, node: Option<u16>, unit: &str, is_error: bool, text: &str) {
        let text = head(text, TEMPLATE_LINE_BYTES_MAX);
        let is_judged = self.properties.rules().iter().any(Rule::takes_records);
        let output = is_judged.then(|| (node, unit.to_owned(), is_error));
        if let Some(output) = &output {
            let ended = self.records.line(output, now, text);
            self.ended(ended);
        }
        self.line(now, node, Some(unit), text, output.as_ref());
        if let Some(output) = &output {
            let ended = self.records.end_if_whole(output);
            self.ended(ended);
        }
    }

    /// Adds the hits of records that have ended.
    fn ended(&mut self, records: impl IntoIterator<Item = Ended>) {
        let properties = self.properties;
        for Ended { node, matches, cause, begun_ns } in records {
            for Match { rule, vtime_ns, text } in matches {
                let Some(rule) = properties.rules().get(rule) else { continue };
                let whole = match &cause {
                    None => Violation {
                        text: &text,
                        cause: &text,
                        place: None,
                        vtime_ns,
                        node,
                        begun_ns: vtime_ns,
                    },
                    Some(Cause { what, place }) => Violation {
                        text: what,
                        cause: what,
                        place: place.as_deref(),
                        vtime_ns,
                        node,
                        begun_ns,
                    },
                };
                self.violated(rule.name(), &whole);
            }
        }
    }

    /// Judges a line. If the line belongs to an open record of `output`, matches of `never` properties wait for the end
    /// of the record.
    fn line(&mut self, now: u64, node: Option<u16>, unit: Option<&str>, text: &str, output: Option<&Output>) {
        let text = head(text, TEMPLATE_LINE_BYTES_MAX);
        let properties = self.properties;
        for (index, rule) in properties.rules().iter().enumerate() {
            if !self.waits_for(rule) || !rule.matches(node, unit, text) {
                continue;
            }
            match (rule.form(), &mut self.state.calm) {
                (Form::Never, _) => {
                    if !output.is_some_and(|output| self.records.add(output, index, now, text)) {
                        self.hit(rule.name(), text, now, node);
                    }
                }
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

    /// Returns false if a match would change nothing. For a `sometimes` rule, only the first match on a path counts.
    /// For an `eventually` rule, only the first match after the end of all faults counts.
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

    /// Adds a hit. Its signature, the key by which violations are grouped, is computed from `cause`, not from `text`.
    fn hit_as(&mut self, property: &str, cause: &str, text: &str, vtime_ns: u64, node: Option<u16>) {
        self.violated(property, &Violation { text, cause, place: None, vtime_ns, node, begun_ns: vtime_ns });
    }

    fn violated(&mut self, property: &str, violation: &Violation<'_>) {
        let property = head(property, NAME_BYTES_MAX);
        if self.properties.ignores(property) {
            return;
        }
        let Violation { text, cause, place, vtime_ns, node, begun_ns } = *violation;
        let signature = signature(property, cause, place, self.properties.world());
        if self.state.enters(property, &signature) {
            let property = property.to_owned();
            let text = place.map_or_else(|| clipped(text), |place| clipped(&format!("{text}, in {place}")));
            self.hits.push(PropertyHit { property, signature, text, vtime_ns, node });
            self.after.push(self.observed);
            self.begun.push(begun_ns);
        }
    }
}

/// Violation of a property, before the check whether a hit with the same signature was reported.
struct Violation<'v> {
    text: &'v str,
    /// Text from which the signature is computed.
    cause: &'v str,
    place: Option<&'v str>,
    vtime_ns: u64,
    node: Option<u16>,
    begun_ns: u64,
}
