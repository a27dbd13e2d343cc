//! Verdicts, and why.

use std::fmt;

use serde::Serialize;

use everett_input::units::write_duration_ns;

use super::operation::{Moment, Told};

/// What is said of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There is an order in which all of it can have happened.
    Fine,
    /// There is none.
    Violation(Box<Evidence>),
    /// The search took more than it may.
    Unknown {
        /// What it took too much of.
        why: Limit,
    },
}

/// What a search took too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Steps.
    #[error("the search took more than {0} steps")]
    Steps(u64),
    /// Bytes for where it has been.
    #[error("the search took more than {0} bytes")]
    Memory(u64),
}

/// Why a key has no order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The key as JSON, `None` of what has none. Shortened.
    pub key: Option<String>,
    /// The operation that has no place: all that was acknowledged before it has an order, and with it there is none.
    pub operation: Told,
    /// True if that is so. If not, this is where the search got to, and an earlier operation may be the first.
    pub earliest: bool,
    /// It saw a value that no operation of its key can have left behind, and with which the key did not begin.
    pub foreign: bool,
    /// What the object could be where the operation has no place though everything else has an order; with at most one
    /// operation of unknown outcome that nothing else is in need of. Empty if that was not found out.
    pub possible: Vec<String>,
    /// There is more that it could be.
    pub more: bool,
    /// Since when it was so, if it could be only one thing.
    pub since: Option<Moment>,
    /// How many operations before it have an order.
    pub placed: usize,
    /// The last of them, in an order that they can have.
    pub order: Vec<Told>,
    /// What the object is after these.
    pub state: Option<String>,
    /// What could have left behind what the operation saw, at any time.
    pub origins: Vec<Told>,
    /// What was going on at the same time.
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
    /// The whole story, a line each.
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
