//! Verdicts on keys, and the evidence of violations.

use std::fmt;

use everett_input::units::write_duration_ns;

use super::operation::{Description, Moment};

/// Verdict on the history of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The history is linearizable.
    Fine,
    /// The history is not linearizable.
    Violation(Box<Evidence>),
    /// The search exceeded its budget.
    Unknown {
        /// The limit that was exceeded.
        why: Limit,
    },
}

/// Limit that a search exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Steps.
    Steps(u64),
    /// Bytes of the visited configurations and of the choices that are still to be tried.
    Memory(u64),
}

/// Evidence that a key's history is not linearizable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The key as JSON, shortened; `None` if the object has no keys.
    pub key: Option<String>,
    /// The impossible operation: all operations that were acknowledged before it can be ordered, but not together
    /// with it.
    pub operation: Description,
    /// True if `operation` is known to be the first impossible one. If false, the search got stuck at `operation`,
    /// and an earlier operation may be the first.
    pub earliest: bool,
    /// True if the operation saw a value that is not the key's initial one and that no operation on the key can have
    /// produced.
    pub foreign: bool,
    /// Possible states of the object at the point where all other operations fit and this one does not. Each includes
    /// at most one operation of unknown outcome that no other operation requires. Empty if the states were not
    /// determined.
    pub possible: Vec<String>,
    /// True if the object has more possible states than `possible` lists.
    pub more: bool,
    /// The moment since which the object was in its only possible state. `None` if it has several, or if the moment is
    /// unknown.
    pub since: Option<Moment>,
    /// Number of operations that were ordered before the impossible one.
    pub placed: usize,
    /// The last of these operations, in a valid order.
    pub order: Vec<Description>,
    /// State of the object after this order.
    pub state: Option<String>,
    /// Operations that could have produced the value that the operation saw, at any time.
    pub origins: Vec<Description>,
    /// Operations that were open at the same time.
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

/// Writes the key that a text is about, unless the object has no keys.
pub(super) fn write_key(f: &mut fmt::Formatter<'_>, key: Option<&str>) -> fmt::Result {
    key.map_or(Ok(()), |key| write!(f, "key {key}: "))
}

impl Evidence {
    /// Returns the whole evidence as lines of text.
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
