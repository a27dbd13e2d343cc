//! Records of several lines: tracebacks, stack traces, panics and reports of sanitizers.
//!
//! A program prints such a record line by line, but it is one event with one cause. While a record is open, matches of its
//! lines wait; when it has ended, they are one hit for each property. The cause of that hit is in the record's last line
//! (Python) or in its head and its top frame, never in the line that an expression happened to match.
//!
//! `form` knows what the records of each language look like. A line that only looks like the head of a record, or a record
//! of a form that is not known, is judged as a single line.
//!
//! **Invariants.** What is open is a function of the lines and their times. Memory is bounded: of a record only the lines
//! with its cause and the lines that match are kept.

mod form;

use std::collections::{BTreeMap, BTreeSet};

use super::limits::{RECORD_LINES_MAX, RECORD_PAUSE_NS, RECORDS_MAX};
pub(super) use form::Cause;
use form::Form;

/// Where a record is printed. Lines of one output do not end a record of another one.
pub(super) type Output = (Option<u16>, String, bool);

/// A match of a property in a line of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// Index of the property's rule.
    pub(super) rule: usize,
    /// Virtual time of the line, in nanoseconds.
    pub(super) vtime_ns: u64,
    /// The line.
    pub(super) text: String,
}

/// A record that has ended, with matches in it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) node: Option<u16>,
    pub(super) matches: Vec<Match>,
    /// Cause; `None` for a single line.
    pub(super) cause: Option<Cause>,
    /// Virtual time of the record's first line, in nanoseconds.
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

/// The open records.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Output, Open>);

impl Records {
    /// Takes a line. Returns the record that it ends, without being part of it. [`Records::add`] tells whether the line is
    /// in an open record.
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

    /// Adds a match of the line that was taken last. Returns false if that line is in no record, or in
    /// one with too many matches.
    pub(super) fn add(&mut self, output: &Output, rule: usize, vtime_ns: u64, text: &str) -> bool {
        let Some(open) = self.0.get_mut(output).filter(|open| open.matches.len() < RECORD_LINES_MAX) else {
            return false;
        };
        open.matches.push(Match { rule, vtime_ns, text: text.to_owned() });
        true
    }

    /// Ends the record of an output if its last line was the last of the record.
    pub(super) fn end_if_whole(&mut self, output: &Output) -> Option<Ended> {
        let is_whole = self.0.get(output).is_some_and(|open| open.form.is_whole());
        if is_whole { self.end(output) } else { None }
    }

    /// Ends the records without a line for [`RECORD_PAUSE_NS`].
    pub(super) fn end_old(&mut self, now_ns: u64) -> Vec<Ended> {
        self.end_those(|_, open| now_ns.saturating_sub(open.last_ns) > RECORD_PAUSE_NS)
    }

    /// Ends the records of a node; without a node, all records.
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
            // One hit of each property; without a cause, each line is a hit.
            let mut had = BTreeSet::new();
            matches.retain(|one| had.insert(one.rule));
        }
        let ended = Ended { node: output.0, matches, cause, begun_ns };
        (!ended.matches.is_empty()).then_some(ended)
    }
}
