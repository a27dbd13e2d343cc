//! The state of one node.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::{KINDS_MAX, UNITS_MAX};
use super::text::quoted;
use super::value::{Ranks, Value};
use super::vocabulary::OTHER;

/// Kinds of faults that switch a node off, stop it for a time, and start it anew.
const OFF: &str = "power_loss";
const PAUSED: &str = "pause";
const RESTARTS: [&str; 2] = [OFF, "reset"];

/// A variable's value and the rule that set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) value: Value,
    /// The rule's index.
    pub(super) rule: usize,
}

/// What a node is in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct NodeState {
    /// What rules set.
    pub(super) variables: BTreeMap<String, Set>,
    /// By unit, its last different template classes, the latest last.
    classes: BTreeMap<String, Vec<String>>,
    /// Units that ended as they should not, and did not start again.
    failed: BTreeSet<String>,
    /// How many faults of each kind are active on it.
    faults: BTreeMap<String, u32>,
}

impl NodeState {
    /// A unit's line was of this class; its last `keep` different ones stay. Whether that changes anything.
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

    /// A fault begins. Whether the node loses what it had in memory.
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

    /// A fault ends; one that did not begin is no matter.
    pub(super) fn fault_ends(&mut self, kind: &str) {
        if let Some(count) = self.faults.get_mut(kind) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.faults.remove(kind);
            }
        }
    }

    /// The kinds of faults that are active on it.
    pub(super) fn faults(&self) -> impl Iterator<Item = &str> {
        self.faults.keys().map(String::as_str)
    }

    /// The values of its variables.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.variables.iter().map(|(name, set)| (name.as_str(), &set.value))
    }

    /// The state as text. Faults are left out, but for whether the node runs: they are the world's.
    pub(super) fn write(&self, names: &dyn Fn(u16) -> String, ranks: &Ranks) -> String {
        let running = [(OFF, "down"), (PAUSED, "paused")];
        let running = running.iter().find(|(kind, _)| self.faults.contains_key(*kind));
        let mut text = running.map_or("up", |(_, word)| word).to_owned();
        for (name, value) in self.values() {
            text += &format!(" {name}={}", quoted(&value.write(name, names, ranks)));
        }
        for (unit, classes) in &self.classes {
            // In which order the last few came is not part of the state.
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
