//! Number of a finding or of a branch.

use std::str::FromStr;

use everett_input::text::quoted;

/// Finding or branch of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// Number of a finding, from 1.
    Finding(u32),
    /// Number of a branch, from 0. The operator writes it as in `b17`.
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
            format!("{} is neither a finding's number, as in 1, nor a branch's, as in b17", quoted(text))
        })
    }
}
