//! Number of a finding or a branch on the command line.

use std::str::FromStr;

/// A finding, or a branch, of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// A finding, from 1.
    Finding(u32),
    /// A branch, from 0.
    Branch(u64),
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let id = match text.strip_prefix('b') {
            Some(number) => number.parse().ok().map(Id::Branch),
            None => text.parse().ok().map(Id::Finding),
        };
        id.ok_or_else(|| {
            format!("\"{text}\" is neither a finding's number, as in 1, nor a branch's, as in b17")
        })
    }
}
