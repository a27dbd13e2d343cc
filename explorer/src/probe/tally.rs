//! Numbers about a probe.

use std::fmt;

use serde::Serialize;

/// Numbers about a probe in the branches that a process has run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// True if a program with the probe's place ran.
    pub is_placed: bool,
    /// Number of hits whose condition, if there is one, is true.
    pub hits: u64,
    /// Number of hits whose condition has no known value. They are not judged.
    pub undecided: u64,
    /// Number of hits with a value that could not be read. It is no evidence of a violation.
    pub unknown: u64,
    /// Number of hits with a value that was compared with no earlier one, because there are too many processes.
    pub unfollowed: u64,
    /// Number of hits that exceeded the bounds. They were judged, but are no events.
    pub left_out: u64,
}

/// Formats the numbers as words, without those that are 0.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_placed {
            return f.write_str("no program with this place ran");
        }
        write!(f, "{} {}", self.hits, if self.hits == 1 { "hit" } else { "hits" })?;
        for (count, what) in [
            (self.unknown, "with a value that cannot be read"),
            (self.undecided, "more whose condition has no known value"),
            (self.unfollowed, "compared with no earlier value, because there are too many processes"),
            (self.left_out, "without an event, because they exceed the bounds"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_0_are_left_out() {
        let mut tally = Tally::default();
        assert_eq!(tally.to_string(), "no program with this place ran");
        tally = Tally { is_placed: true, hits: 1, ..tally };
        assert_eq!(tally.to_string(), "1 hit");
        tally = Tally { hits: 5, unknown: 2, undecided: 3, ..tally };
        let text = "5 hits, 2 with a value that cannot be read, 3 more whose condition has no known value";
        assert_eq!(tally.to_string(), text);
    }
}
