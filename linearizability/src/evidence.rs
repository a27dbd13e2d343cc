//! Verdicts on keys, and evidence of violations.

use std::fmt;

use everett_input::units::write_duration_ns;

use super::operation::{Description, Moment};

/// Verdict on the history of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The history is linearizable.
    Fine,
    /// The history is not linearizable.
    Violation(Box<Evidence>),
    /// The search exceeded its budget.
    Unknown {
        /// Limit that the search exceeded.
        why: Limit,
    },
}

/// Limit that a search exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Maximum number of search steps.
    Steps(u64),
    /// Maximum memory for the visited configurations and for the choices not yet tried, in bytes.
    Memory(u64),
}

/// Evidence that a key's history is not linearizable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The key, as shortened JSON. `None` if the object has no keys.
    pub key: Option<String>,
    /// The impossible operation. All operations that were acknowledged before it have a valid order, i.e. one in which
    /// each result is possible. But no valid order includes `operation` as well.
    pub operation: Description,
    /// True if `operation` is known to be the first impossible operation. If false, the search got stuck at
    /// `operation`, and an earlier operation may be the first impossible one.
    pub earliest: bool,
    /// True if the operation saw a value that is neither null nor the initial value of the key, and that no operation
    /// on the key can have written.
    pub foreign: bool,
    /// States that the object may have after all operations that were acknowledged before `operation`. In none of these
    /// states can `operation` happen. A state may also include the effect of one further operation whose outcome is
    /// unknown, because it may have taken effect. Empty if the search did not determine the states.
    pub possible: Vec<String>,
    /// True if `possible` lists only some of the possible states.
    pub more: bool,
    /// If only one state is possible: position in the history since which the object had this state. `None` if several
    /// states are possible, or if the position is unknown.
    pub since: Option<Moment>,
    /// Number of operations in the valid order before `operation`.
    pub placed: usize,
    /// Last operations of the valid order before `operation`.
    pub order: Vec<Description>,
    /// State of the object after the valid order. `None` if this order is not known.
    pub state: Option<String>,
    /// Operations that write the value that `operation` saw, including operations that were invoked too late to explain
    /// it.
    pub origins: Vec<Description>,
    /// Operations that were open at the same time as `operation`.
    pub concurrent: Vec<Description>,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(f, self.key.as_deref())?;
        write!(f, "{} cannot be", self.operation)?;
        for (i, possible) in self.possible.iter().enumerate() {
            write!(f, "{}{possible}", if i == 0 { ": " } else { ", or " })?;
        }
        if self.more {
            f.write_str(", or more")?;
        }
        if let Some(since) = &self.since {
            write!(f, " since {}", write_duration_ns(since.vtime_ns))?;
        }
        if self.possible.is_empty() {
            f.write_str(": nothing that came before allows it")?;
        }
        Ok(())
    }
}

/// Writes the key before a text about it. Writes nothing if the object has no keys.
pub(super) fn write_key(f: &mut fmt::Formatter<'_>, key: Option<&str>) -> fmt::Result {
    key.map_or(Ok(()), |key| write!(f, "key {key}: "))
}

impl Evidence {
    /// Returns the evidence as lines of text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.to_string()];
        if !self.earliest {
            lines.push("an earlier operation may be the first impossible one".to_owned());
        }
        let mut list = |title: String, operations: &[Description]| {
            if !operations.is_empty() {
                lines.push(title);
                lines.extend(operations.iter().map(|operation| format!("  {operation}")));
            }
        };
        let last = if self.placed > self.order.len() { " (the last ones)" } else { "" };
        list(format!("a valid order of the {} operations before it{last}:", self.placed), &self.order);
        list("operations that can have produced the value that it saw:".to_owned(), &self.origins);
        list("operations that were open at the same time:".to_owned(), &self.concurrent);
        if let Some(state) = &self.state {
            lines.push(format!("after the operations before it: {state}"));
        }
        if self.earliest && self.origins.is_empty() && matches!(self.operation.f, "read" | "dequeue") {
            lines.push("no operation can have produced the value that it saw".to_owned());
        }
        lines
    }
}
