//! The observer of one branch: turns the branch's events, one after the other, into points of coverage.

use std::collections::BTreeSet;

use everett_log_template::template;
use serde::{Deserialize, Serialize};

use super::abstract_state::WorldState;
use super::abstraction::{Abstraction, Reset, RuleMatch};
use super::delta::Delta;
use super::limits::{NAME_BYTES_MAX, TEMPLATE_LINE_BYTES_MAX, VALUES_MAX};
use super::node::Set;
use super::observed::{Observed, ProcessChange, What, WireKind};
use super::order::{Before, Orders, Timelines, types_in};
use super::point::Point;
use super::sdk::Reported;
use super::types::{self, Types};
use super::value::{Ranks, Value};
use super::vocabulary::{OTHER, Vocabulary};
use crate::text::{clip, head};

/// Number of the rule of variables that probes set. No rule has it.
const OF_PROBE: usize = usize::MAX;

/// Observer state that a child branch inherits from its parent: a summary of all earlier events, as far as they affect
/// coverage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObserverState {
    world: WorldState,
    /// Latest phase of each node, i.e. the node's abstract state as text.
    phases: Vec<String>,
    /// State of the world, computed at the same time as `phases`.
    state: String,
    vocabulary: Vocabulary,
    types: Types,
    timelines: Timelines,
    reported: Reported,
}

/// Error for a stored state of a world with other nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the observer's state belongs to a world with other nodes")]
pub struct OtherWorld;

/// Turns the events of one branch into points of coverage.
#[derive(Debug)]
pub struct Observer<'a> {
    abstraction: &'a Abstraction,
    state: ObserverState,
    /// Points for SDK assertions that the branch's ancestors reached. The first event adds these points to `delta`, so
    /// that they also count as reached by this branch.
    inherited: Vec<Point>,
    delta: Delta,
    /// Orders that the branch has reached. An order is a pair of event types: an event of the first type happened
    /// before an event of the second type.
    orders: Orders,
    /// True if the world's state may have changed since it was last computed.
    changed: bool,
}

impl ObserverState {
    /// Returns the state before the first event.
    #[must_use]
    pub fn new(abstraction: &Abstraction) -> ObserverState {
        let nodes = abstraction.world().len();
        ObserverState {
            world: WorldState::new(nodes),
            phases: vec![String::new(); nodes],
            state: String::new(),
            vocabulary: Vocabulary::default(),
            types: Types::default(),
            timelines: Timelines::new(nodes),
            reported: Reported::default(),
        }
    }

    /// Returns the state of the world as text, in canonical form. Empty before the first event.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns the phase of a node as text. Empty before the first event, and for an unknown node.
    #[must_use]
    pub fn phase(&self, node: u16) -> &str {
        self.phases.get(usize::from(node)).map_or("", String::as_str)
    }

    /// Returns the variables that the rules of the world file have set, each with the node to which it belongs and its
    /// value as text. `name` returns the names of nodes. Global variables belong to no node.
    #[must_use]
    pub fn variables(&self, name: &dyn Fn(u16) -> String) -> Vec<(Option<u16>, &str, String)> {
        let of_nodes = (0u16..).zip(&self.world.nodes).flat_map(|(index, node)| {
            node.values().map(move |(variable, value)| (Some(index), variable, value.show(name)))
        });
        let globals = self.world.globals.iter();
        let globals = globals.map(|(variable, set)| (None, variable.as_str(), set.value.show(name)));
        of_nodes.chain(globals).collect()
    }
}

impl<'a> Observer<'a> {
    /// Returns an observer that continues from `state`.
    ///
    /// # Errors
    /// Returns an error if the state belongs to a world with other nodes.
    pub fn start(abstraction: &'a Abstraction, state: ObserverState) -> Result<Observer<'a>, OtherWorld> {
        let nodes = abstraction.world().len();
        let fits = state.world.nodes.len() == nodes && state.phases.len() == nodes;
        if !fits || !state.timelines.fit(nodes) {
            return Err(OtherWorld);
        }
        // Before the first event, the state is an empty text and must be computed.
        let changed = state.state.is_empty();
        let inherited: Vec<Point> = state.reported.points().collect();
        Ok(Observer {
            abstraction,
            state,
            inherited,
            delta: Delta::default(),
            orders: Orders::none(),
            changed,
        })
    }

    /// Processes the next event.
    pub fn observe(&mut self, event: &Observed) {
        let (now, node) = (event.vtime_ns, event.node);
        for point in std::mem::take(&mut self.inherited) {
            self.delta.reach(point, now);
        }
        if node.is_some_and(|node| !self.exists(node)) {
            return self.delta.ignore();
        }
        match &event.what {
            What::LogLine { unit, text } => self.line(now, node, unit, text),
            What::Console(text) => {
                self.rules(now, node, "kernel", text);
                self.typed_line(now, node, "kernel", text);
            }
            What::Wire { kind, from, to, message, summary } => {
                self.wire(now, *kind, (*from, *to), *message, summary);
            }
            What::Process { unit, change } => self.process(now, node, unit, *change),
            What::Disk(disk) => self.local(now, node, Some(types::disk(*disk))),
            What::Fault { kind, targets, begins } => self.fault(now, kind, targets, *begins),
            What::Sdk { name, details } => {
                self.rules(now, node, "sdk", &format!("{name} {details}"));
                self.local(now, node, Some(types::sdk(name)));
            }
            What::Assertion { name, kind, outcome } => {
                let new = self.state.reported.assertion(name, *kind, *outcome);
                new.into_iter().for_each(|point| self.delta.reach(point, now));
            }
            What::Guidance(guidance) => {
                let new = self.state.reported.guidance(guidance);
                new.into_iter().for_each(|point| self.delta.reach(point, now));
            }
            What::Variable { name, text, capture } => {
                let found = RuleMatch::of(name, *capture, text, self.abstraction.world());
                found.into_iter().for_each(|found| self.set(now, node, false, OF_PROBE, found));
            }
            What::Edge { module, edge } => {
                let module = clip(module, NAME_BYTES_MAX);
                self.delta.reach(Point::Edge { module, edge: *edge }, now);
            }
            What::History { f, kind, .. } => self.local(now, node, Some(types::history(f, kind))),
        }
        self.reached(now);
    }

    /// Ends the branch. Returns the points that the branch reached, and the state from which its children start.
    #[must_use]
    pub fn finish(self) -> (Delta, ObserverState) {
        (self.delta, self.state)
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> &ObserverState {
        &self.state
    }

    fn exists(&self, node: u16) -> bool {
        usize::from(node) < self.abstraction.world().len()
    }

    fn line(&mut self, now: u64, node: Option<u16>, unit: &str, text: &str) {
        let unit = clip(unit, NAME_BYTES_MAX);
        self.rules(now, node, &unit, text);
        let class = self.typed_line(now, node, &unit, text);
        let keep = self.abstraction.classes_kept();
        if keep > 0
            && let Some(node) = node.and_then(|node| self.state.world.nodes.get_mut(usize::from(node)))
        {
            self.changed |= node.logged(&unit, &class, keep);
        }
    }

    /// Records a log line as an event whose type is the line's template, i.e. its text without the variable parts.
    /// Returns the template. If the unit has too many different templates, returns `other` and the event has no type.
    fn typed_line(&mut self, now: u64, node: Option<u16>, unit: &str, text: &str) -> String {
        let class = template(&self.abstraction.world().mask(head(text, TEMPLATE_LINE_BYTES_MAX)));
        let family = format!("line {unit}");
        if self.state.vocabulary.admits(&family, &class, self.abstraction.vocabulary()) {
            self.local(now, node, Some(types::line(unit, &class)));
            class
        } else {
            // The class `other` stands for many different lines, so an order with such a line would mean nothing.
            self.local(now, node, None);
            OTHER.to_owned()
        }
    }

    fn rules(&mut self, now: u64, node: Option<u16>, unit: &str, text: &str) {
        let text = head(text, TEMPLATE_LINE_BYTES_MAX);
        for (index, rule) in self.abstraction.rules().iter().enumerate() {
            for found in rule.read(node, unit, text, self.abstraction.world()) {
                self.set(now, node.filter(|_| !rule.global()), rule.global(), index, found);
            }
        }
    }

    fn set(&mut self, now: u64, node: Option<u16>, global: bool, rule: usize, found: RuleMatch) {
        let RuleMatch { variable, mut value, open } = found;
        let node = node.and_then(|node| self.state.world.nodes.get_mut(usize::from(node)));
        let variables = match node {
            Some(node) => &mut node.variables,
            None if global => &mut self.state.world.globals,
            // A rule whose variables belong to nodes matched a line without a node.
            None => return,
        };
        if matches!(value, Value::Text(_)) {
            let text = value.write(&variable, &|_| "<node>".to_owned(), &Ranks::default());
            if open && !self.state.vocabulary.admits(&format!("value {variable}"), &text, VALUES_MAX) {
                value = Value::other();
            } else {
                self.delta.reach(Point::Value { variable: variable.clone(), value: text }, now);
            }
        }
        let set = Set { value, rule };
        if variables.get(&variable) != Some(&set) {
            variables.insert(variable, set);
            self.changed = true;
        }
    }

    /// Clears variables of a node at the event `reset`, e.g. the exit of a process. The rule that set a variable says
    /// which events clear it. If `unit` is given, only the variables of rules that read this unit's lines are cleared.
    fn reset(&mut self, node: u16, reset: Reset, unit: Option<&str>) {
        let rules = self.abstraction.rules();
        if let Some(node) = self.state.world.nodes.get_mut(usize::from(node)) {
            node.variables.retain(|_, set| {
                let rule = rules.get(set.rule);
                let is_of_memory = set.rule == OF_PROBE && reset == Reset::PowerLoss;
                !is_of_memory
                    && !rule.is_some_and(|r| r.resets_on(reset) && unit.is_none_or(|unit| r.is_about(unit)))
            });
        }
    }

    fn process(&mut self, now: u64, node: Option<u16>, unit: &str, change: ProcessChange) {
        let unit = clip(unit, NAME_BYTES_MAX);
        self.changed = true;
        if let Some(index) = node
            && let Some(node) = self.state.world.nodes.get_mut(usize::from(index))
        {
            match change {
                ProcessChange::Started => node.started(&unit),
                ProcessChange::Exited { success } => {
                    node.exited(&unit, success);
                    self.reset(index, Reset::Exit, Some(&unit));
                }
            }
        }
        self.local(now, node, Some(types::process(&unit, change)));
    }

    fn fault(&mut self, now: u64, kind: &str, targets: &[u16], begins: bool) {
        let kind = clip(kind, NAME_BYTES_MAX);
        self.changed = true;
        // A target that is listed twice is affected once.
        for target in targets.iter().copied().collect::<BTreeSet<u16>>() {
            let index = usize::from(target);
            let Some(node) = self.state.world.nodes.get_mut(index) else {
                self.delta.ignore();
                continue;
            };
            if begins {
                let before = self.state.phases.get(index).filter(|phase| !phase.is_empty()).cloned();
                if node.fault_begins(&kind) {
                    self.reset(target, Reset::PowerLoss, None);
                }
                // Before the first event, no phase is known. Take the phase of a node without observations.
                let fresh = || WorldState::new(1).phases().concat();
                let phase = before.unwrap_or_else(fresh);
                self.delta.reach(Point::Fault { fault: kind.clone(), phase: phase.clone() }, now);
                self.pairs(now, index, &phase);
            } else {
                node.fault_ends(&kind);
            }
            self.local(now, Some(target), Some(types::fault(&kind, begins)));
        }
    }

    /// Adds a point for each pair of faults that are active on a node.
    fn pairs(&mut self, now: u64, index: usize, phase: &str) {
        let Some(node) = self.state.world.nodes.get(index) else { return };
        let kinds: Vec<&str> = node.faults().collect();
        for (rank, first) in kinds.iter().enumerate() {
            for second in kinds.iter().skip(rank + 1) {
                let faults = [(*first).to_owned(), (*second).to_owned()];
                self.delta.reach(Point::FaultPair { faults, phase: phase.to_owned() }, now);
            }
        }
    }

    fn wire(&mut self, now: u64, kind: WireKind, ends: (u16, u16), message: Option<u64>, summary: &str) {
        let (from, to) = ends;
        if !self.exists(from) || !self.exists(to) {
            return self.delta.ignore();
        }
        let name = types::wire(kind, &self.abstraction.world().mask(head(summary, TEMPLATE_LINE_BYTES_MAX)));
        let number = self.state.types.number(name);
        let timelines = &mut self.state.timelines;
        let before = match kind {
            WireKind::Send => timelines.send(from, message, number),
            WireKind::Deliver | WireKind::Duplicate => timelines.receive(from, to, message, number),
            WireKind::Drop => timelines.lose(from, message),
            WireKind::Timeout => timelines.local(from, number),
        };
        self.order(now, before, number);
    }

    /// Records an event of one node.
    fn local(&mut self, now: u64, node: Option<u16>, name: Option<String>) {
        let Some(node) = node else { return };
        let number = name.and_then(|name| self.state.types.number(name));
        let before = self.state.timelines.local(node, number);
        self.order(now, before, number);
    }

    fn order(&mut self, now: u64, before: Before, then: Option<u32>) {
        let Some(then) = then else { return };
        let new = self.orders.insert(before, then);
        for (types, across) in [(new.own, false), (new.other, true)] {
            for first in types_in(types) {
                let name = |number| self.state.types.name(number).to_owned();
                self.delta.reach(Point::Order { first: name(first), then: name(then), across }, now);
            }
        }
    }

    /// If the last event may have changed the world's state, adds points for the new states.
    fn reached(&mut self, now: u64) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let phases = self.state.world.phases();
        for (index, phase) in phases.iter().enumerate() {
            if self.state.phases.get(index) != Some(phase) {
                self.delta.reach(Point::Phase { phase: phase.clone() }, now);
                self.pairs(now, index, phase);
            }
        }
        self.state.phases = phases;
        let state = self.state.world.canonical(self.abstraction.world());
        if state != self.state.state {
            self.delta.reach(Point::State { state: state.clone() }, now);
            self.state.state = state;
        }
    }
}
