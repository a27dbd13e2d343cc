//! Verdicts on keys, and the evidence of violations.

use std::fmt;

use serde::Serialize;

use everett_input::units::write_duration_ns;

use super::operation::{Moment, Told};

/// Verdict on the history of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Steps.
    #[error("the search took more than {0} steps")]
    Steps(u64),
    /// Bytes of the cache of visited states.
    #[error("the search took more than {0} bytes")]
    Memory(u64),
}

/// Evidence that a key's history is not linearizable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The key as JSON, shortened; `None` if the object has no keys.
    pub key: Option<String>,
    /// The impossible operation: all operations that were acknowledged before it can be ordered, but not together with it.
    pub operation: Told,
    /// True if `operation` is known to be the first impossible one. If false, the search got stuck at `operation`, and an earlier
    /// operation may be the first.
    pub earliest: bool,
    /// True if the operation saw a value that is not the key's initial one, and that no operation on the key can have left.
    pub foreign: bool,
    /// Possible states of the object at the point where the operation does not fit and all others do. Each includes at most one
    /// operation of unknown outcome that no other operation requires. Empty if the states were not determined.
    pub possible: Vec<String>,
    /// True if the object has more possible states than `possible` lists.
    pub more: bool,
    /// The moment since which the object was in that state, if it has only one possible state.
    pub since: Option<Moment>,
    /// Number of operations before it that can be ordered.
    pub placed: usize,
    /// The last of these operations, in an order that is possible.
    pub order: Vec<Told>,
    /// State of the object after these operations.
    pub state: Option<String>,
    /// Operations that could have left the value that the operation saw, at any time.
    pub origins: Vec<Told>,
    /// Operations that were open at the same time.
    pub concurrent: Vec<Told>,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "key {key}: ")?;
        }
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

impl Evidence {
    /// Returns the whole evidence as lines of text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.to_string()];
        if !self.earliest {
            lines.push("an earlier operation may be the first that cannot be".to_owned());
        }
        let mut list = |title: String, operations: &[Told]| {
            if !operations.is_empty() {
                lines.push(title);
                lines.extend(operations.iter().map(|told| format!("  {told}")));
            }
        };
        let last = if self.placed > self.order.len() { ", the last of which are" } else { "" };
        list(format!("the {} operations before it can be in this order{last}:", self.placed), &self.order);
        list("what it saw may come from:".to_owned(), &self.origins);
        list("at the same time:".to_owned(), &self.concurrent);
        if let Some(state) = &self.state {
            lines.push(format!("after those before it: {state}"));
        }
        if self.earliest && self.origins.is_empty() {
            lines.extend(self.nothing_left_it());
        }
        lines
    }

    fn nothing_left_it(&self) -> Option<String> {
        matches!(self.operation.f, "read" | "dequeue").then(|| "nothing left behind what it saw".to_owned())
    }
}
