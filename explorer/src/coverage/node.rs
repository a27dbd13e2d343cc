//! The state of one node as coverage tracks it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::{KINDS_MAX, UNITS_MAX};
use super::value::{Ranks, Value};
use super::vocabulary::OTHER;
use crate::text::quoted;

/// Name of the kind of fault that switches a node off.
const OFF: &str = "power_loss";
/// Name of the kind of fault that pauses a node.
const PAUSED: &str = "pause";
/// Kinds of faults after which a node restarts with empty memory.
const RESTARTS: [&str; 2] = [OFF, "reset"];

/// Value of a variable of a node's state, and the rule for log lines that set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) value: Value,
    /// Index of the rule.
    pub(super) rule: usize,
}

/// State of a node as coverage tracks it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct NodeState {
    /// Variables that rules set.
    pub(super) variables: BTreeMap<String, Set>,
    /// Latest distinct template classes of each unit (program that logs), oldest first. A class is a log template (a
    /// log line with placeholders for numbers and names), or `other` for all templates beyond the maximum number of
    /// distinct templates.
    classes: BTreeMap<String, Vec<String>>,
    /// Units that failed and were not started again.
    failed: BTreeSet<String>,
    /// Number of active faults of each kind.
    faults: BTreeMap<String, u32>,
}

impl NodeState {
    /// Records the template class of a unit's line, and keeps the last `keep` distinct classes. Returns true if the
    /// state changed.
    pub(super) fn logged(&mut self, unit: &str, class: &str, keep: usize) -> bool {
        let full = self.classes.len() >= UNITS_MAX && !self.classes.contains_key(unit);
        let unit = if full { OTHER } else { unit };
        let classes = self.classes.entry(unit.to_owned()).or_default();
        if classes.last().is_some_and(|last| last == class) {
            return false;
        }
        classes.retain(|other| other != class);
        classes.push(class.to_owned());
        if classes.len() > keep {
            classes.remove(0);
        }
        true
    }

    pub(super) fn started(&mut self, unit: &str) {
        self.failed.remove(unit);
    }

    pub(super) fn exited(&mut self, unit: &str, success: bool) {
        if success {
            self.failed.remove(unit);
        } else if self.failed.len() < UNITS_MAX {
            self.failed.insert(unit.to_owned());
        }
    }

    /// Records the start of a fault. Returns true if the node loses its memory.
    pub(super) fn fault_begins(&mut self, kind: &str) -> bool {
        if self.faults.len() < KINDS_MAX || self.faults.contains_key(kind) {
            let count = self.faults.entry(kind.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        let restarts = RESTARTS.contains(&kind);
        if restarts {
            self.classes.clear();
            self.failed.clear();
        }
        restarts
    }

    /// Records the end of a fault. Ignores a fault that did not begin.
    pub(super) fn fault_ends(&mut self, kind: &str) {
        if let Some(count) = self.faults.get_mut(kind) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.faults.remove(kind);
            }
        }
    }

    /// Returns the kinds of active faults.
    pub(super) fn faults(&self) -> impl Iterator<Item = &str> {
        self.faults.keys().map(String::as_str)
    }

    /// Returns the variables with their values.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.variables.iter().map(|(name, set)| (name.as_str(), &set.value))
    }

    /// Prints the state as text. The text says whether the node is up, paused or down. The active faults are omitted,
    /// because they are part of the world's state.
    pub(super) fn write(&self, names: &dyn Fn(u16) -> String, ranks: &Ranks) -> String {
        let running = [(OFF, "down"), (PAUSED, "paused")];
        let running = running.iter().find(|(kind, _)| self.faults.contains_key(*kind));
        let mut text = running.map_or("up", |(_, word)| word).to_owned();
        for (name, value) in self.values() {
            text += &format!(" {name}={}", quoted(&value.write(name, names, ranks)));
        }
        for (unit, classes) in &self.classes {
            // The order of the latest classes is not part of the state.
            let mut classes: Vec<String> = classes.iter().map(|class| quoted(class)).collect();
            classes.sort_unstable();
            text += &format!(" {}:[{}]", quoted(unit), classes.join(", "));
        }
        for unit in &self.failed {
            text += &format!(" failed:{}", quoted(unit));
        }
        text
    }
}
