//! Records of several lines: tracebacks, stack traces, panics and reports of sanitizers.
//!
//! A program prints a record line by line, but the record is one event with one cause. While a record is open, the
//! matches of properties in its lines are delayed. When the record ends, these matches become one hit (violation) for
//! each property. The text of the hit is the cause that the record names. Python names the cause in the last line, and
//! other languages in the first line and the top frame of the stack.
//!
//! Module `form` knows the records of each language. If a record has an unknown form, each matching line is a hit. A
//! matching line that only looks like the beginning of a record is also a hit of its own.
//!
//! **Invariants.** The set of open records is a function of the lines and their times. Memory is bounded. For an open
//! record, only the lines that name its cause and the lines that match a property are stored.

mod form;

use std::collections::{BTreeMap, BTreeSet};

use super::limits::{RECORD_LINES_MAX, RECORD_PAUSE_NS, RECORDS_MAX};
pub(super) use form::Cause;
use form::Form;

/// Output that a record is printed to: the node, the name of the process, and true for standard error. Lines on one
/// output do not end a record on another output.
pub(super) type Output = (Option<u16>, String, bool);

/// Match of a property in a line of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// Index of the property's rule.
    pub(super) rule: usize,
    /// Vtime of the line, in nanoseconds.
    pub(super) vtime_ns: u64,
    /// Text of the line.
    pub(super) text: String,
}

/// Record that has ended, with the matches in its lines. There is at least one match.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) node: Option<u16>,
    pub(super) matches: Vec<Match>,
    /// Cause of the record. `None` if the lines turned out not to be a record.
    pub(super) cause: Option<Cause>,
    /// Vtime of the record's first line, in nanoseconds.
    pub(super) begun_ns: u64,
}

#[derive(Debug)]
struct Open {
    form: Form,
    lines: usize,
    begun_ns: u64,
    last_ns: u64,
    matches: Vec<Match>,
}

/// All open records, by the output to which they are printed.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Output, Open>);

impl Records {
    /// Processes a line. If the line does not belong to the open record of its output, ends this record, and returns it
    /// if a property matched in it. The line may then open another record. If a property matches in the line, the
    /// caller then calls [`Records::add`], which adds the match to the record that is open now.
    pub(super) fn line(&mut self, output: &Output, now_ns: u64, text: &str) -> Option<Ended> {
        let mut ended = None;
        if let Some(open) = self.0.get_mut(output) {
            if open.lines < RECORD_LINES_MAX && open.form.takes(text) {
                open.lines += 1;
                open.last_ns = now_ns;
                return None;
            }
            ended = self.end(output);
        }
        if self.0.len() < RECORDS_MAX
            && let Some(form) = Form::of(text)
        {
            let open = Open { form, lines: 1, begun_ns: now_ns, last_ns: now_ns, matches: Vec::new() };
            self.0.insert(output.clone(), open);
        }
        ended
    }

    /// Adds a match in the line that was processed last. Returns false if the line belongs to no record, or if the
    /// record has too many matches. The caller then treats the match as a hit of its own.
    pub(super) fn add(&mut self, output: &Output, rule: usize, vtime_ns: u64, text: &str) -> bool {
        let Some(open) = self.0.get_mut(output).filter(|open| open.matches.len() < RECORD_LINES_MAX) else {
            return false;
        };
        open.matches.push(Match { rule, vtime_ns, text: text.to_owned() });
        true
    }

    /// Ends the record of an output if the line that was processed last marked the record's end.
    pub(super) fn end_if_whole(&mut self, output: &Output) -> Option<Ended> {
        let is_whole = self.0.get(output).is_some_and(|open| open.form.is_whole());
        if is_whole { self.end(output) } else { None }
    }

    /// Ends the records that had no line for more than [`RECORD_PAUSE_NS`].
    pub(super) fn end_old(&mut self, now_ns: u64) -> Vec<Ended> {
        self.end_those(|_, open| now_ns.saturating_sub(open.last_ns) > RECORD_PAUSE_NS)
    }

    /// Ends the records of a node. Without a node, ends all records.
    pub(super) fn end_of(&mut self, node: Option<u16>) -> Vec<Ended> {
        self.end_those(|output, _| node.is_none() || output.0 == node)
    }

    fn end_those(&mut self, is_over: impl Fn(&Output, &Open) -> bool) -> Vec<Ended> {
        let over = self.0.iter().filter(|(output, open)| is_over(output, open));
        let over: Vec<Output> = over.map(|(output, _)| output.clone()).collect();
        over.iter().filter_map(|output| self.end(output)).collect()
    }

    fn end(&mut self, output: &Output) -> Option<Ended> {
        let Open { form, lines, begun_ns, mut matches, .. } = self.0.remove(output)?;
        let cause = form.cause().filter(|_| lines > 1);
        if cause.is_some() {
            // A record with a cause is one hit for each property. Without a cause, each matching line is a hit.
            let mut had = BTreeSet::new();
            matches.retain(|one| had.insert(one.rule));
        }
        let ended = Ended { node: output.0, matches, cause, begun_ns };
        (!ended.matches.is_empty()).then_some(ended)
    }
}
