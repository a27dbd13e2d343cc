//! The reader, which builds a history from its lines as they arrive.
//!
//! **Invariants.**
//! - An invalid line adds no constraint. If the completion of an operation is invalid, the operation's outcome is
//!   unknown. If an invocation is missing or cannot be parsed, its completion becomes an operation that may take effect
//!   at any time, or never. If an invocation can be parsed, but its operation or value is invalid, the reader omits the
//!   operation and ignores its completion.
//! - Memory is bounded. Beyond a bound no more lines are read, and the result is a history that ends early.

use std::collections::BTreeMap;

use super::error::{Problem, Problems, Wrong, short};
use super::limits::{HISTORY_BYTES_MAX, OPERATIONS_MAX, QUOTED_CHARS_MAX};
use super::line::{self, Event, EventKind, HistoryLine};
use super::operation::{Answer, Call, Description, Ending, Moment, Operation};
use super::shape::{self, Word};
use super::spec::Spec;
use super::values::{V, Values};

/// Approximate memory of an operation, or of a table entry without its texts, in bytes.
const ENTRY_BYTES: u64 = 160;

/// Bounds of a history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) operations: usize,
    pub(super) bytes: u64,
}

/// Operations that clients of a world invoked, in the order of lines.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) spec: Spec,
    pub(super) initial: V,
    pub(super) operations: Vec<Operation>,
    pub(super) values: Values,
    /// Keys by their numbers, which are assigned in the order of first appearance.
    keys: Vec<Option<String>>,
    /// Node and name of each process, by the process's number.
    processes: Vec<(String, String)>,
    /// Number of errors in the lines.
    pub(super) problems: u64,
}

impl History {
    /// Returns the number of keys. Keys are numbered from 0.
    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Returns the key with this number as JSON. Operations without a key share one key number, for which this function
    /// returns `None`.
    pub(super) fn key(&self, key: u32) -> Option<&str> {
        self.keys.get(key as usize)?.as_deref()
    }

    /// Returns a value as shortened JSON.
    pub(super) fn value(&self, v: V) -> String {
        short(self.values.text(v))
    }

    /// Describes a process by its name and node, shortened.
    pub(super) fn process(&self, process: u32) -> String {
        let (node, name) = self.process_of(process);
        format!("process {} of {}", short(name), short(node))
    }

    fn process_of(&self, process: u32) -> (&str, &str) {
        self.processes.get(process as usize).map_or(("", ""), |(node, name)| (node, name))
    }

    /// Describes an operation.
    pub(super) fn describe(&self, operation: &Operation) -> Description {
        let value = |v: V| self.value(v);
        let call = operation.call;
        let f = call.name();
        let what = match (call, operation.answer()) {
            (Call::Write(v) | Call::Enqueue(v) | Call::Add(v) | Call::Remove(v), _) => {
                format!("{f} of {}", value(v))
            }
            (Call::Cas(old, new), _) => format!("{f} from {} to {}", value(old), value(new)),
            (Call::Dequeue, Some(Answer::Value(v))) if *v == super::values::NULL => format!("{f} of nothing"),
            (_, Some(Answer::Value(v))) => format!("{f} of {}", value(*v)),
            (Call::Contains(v), Some(Answer::Holds(holds))) => {
                format!("{f} of {} with {holds}", value(v))
            }
            (_, Some(Answer::Members(members))) => format!("{f} of {}", self.list(members.iter().copied())),
            (Call::Contains(v), _) => format!("{f} of {}", value(v)),
            _ => f.to_owned(),
        };
        let (node, process) = self.process_of(operation.process);
        let (node, process) = (short(node), short(process));
        Description { process, node, f, what, invoked: operation.invoked, completed: operation.completed() }
    }

    /// Returns values as a shortened list.
    pub(super) fn list(&self, values: impl Iterator<Item = V>) -> String {
        let mut text = "[".to_owned();
        for (i, v) in values.enumerate() {
            if text.chars().count() > QUOTED_CHARS_MAX {
                text.push_str(", …");
                break;
            }
            text.push_str(if i == 0 { "" } else { ", " });
            text.push_str(&self.value(v));
        }
        text + "]"
    }
}

/// Open operation of a process.
#[derive(Debug, Clone)]
struct Open {
    line: u64,
    /// Index and name of the operation. `None` if the invocation was invalid; its completion is then ignored.
    operation: Option<(usize, Word)>,
}

/// Reader of a history.
#[derive(Debug, Clone)]
pub struct Reader {
    history: History,
    problems: Problems,
    bounds: Bounds,
    line: u64,
    /// Approximate memory of the tables and operations without the values, in bytes.
    bytes: u64,
    key_numbers: BTreeMap<Option<String>, u32>,
    process_numbers: BTreeMap<(String, String), u32>,
    /// Open operation of each process, by the process's number.
    open: Vec<Option<Open>>,
    /// True if a bound was reached. Further lines are not read.
    cut: bool,
}

impl Reader {
    /// Returns a reader that has read no lines.
    #[must_use]
    pub fn new(spec: Spec) -> Reader {
        Reader::bounded(spec, Bounds { operations: OPERATIONS_MAX, bytes: HISTORY_BYTES_MAX })
    }

    pub(super) fn bounded(spec: Spec, bounds: Bounds) -> Reader {
        let mut values = Values::new();
        let initial = values.number(spec.initial().to_string());
        Reader {
            history: History {
                spec,
                initial,
                operations: Vec::new(),
                values,
                keys: Vec::new(),
                processes: Vec::new(),
                problems: 0,
            },
            problems: Problems::default(),
            bounds,
            line: 0,
            bytes: 0,
            key_numbers: BTreeMap::new(),
            process_numbers: BTreeMap::new(),
            open: Vec::new(),
            cut: false,
        }
    }

    /// Reads the next line.
    pub fn push(&mut self, line: &HistoryLine) {
        self.line += 1;
        if self.cut {
            return;
        }
        if let Err(what) = self.event(line) {
            self.problem(line, what);
        }
    }

    /// Ends the history before this line. Call this instead of [`Reader::push`] for a line whose text was dropped,
    /// because the history became too large. All later lines are ignored.
    pub fn cut(&mut self, line: &HistoryLine) {
        self.line += 1;
        if !self.cut {
            self.cut = true;
            self.problem(line, Wrong::TooLarge);
        }
    }

    fn problem(&mut self, line: &HistoryLine, what: Wrong) {
        self.problems.add(Problem { line: self.line, vtime_ns: line.vtime_ns, what });
    }

    /// Ends the history. Operations that are still open have an unknown outcome.
    #[must_use]
    pub fn finish(mut self) -> (History, Problems) {
        self.history.problems = self.problems.count;
        (self.history, self.problems)
    }

    fn event(&mut self, line: &HistoryLine) -> Result<(), Wrong> {
        let event = line::read(&line.text)?;
        if self.bytes.saturating_add(self.history.values.bytes()) >= self.bounds.bytes {
            self.cut = true;
            return Err(Wrong::TooLarge);
        }
        let now = Moment { line: self.line, vtime_ns: line.vtime_ns };
        let client = (line.node.clone(), event.process.clone());
        match event.kind {
            EventKind::Invoke => self.invoke(client, event, now),
            _ => self.complete(client, event, now),
        }
    }

    fn invoke(&mut self, client: (String, String), event: Event, now: Moment) -> Result<(), Wrong> {
        let process = self.process(client);
        let name = &event.process;
        let still_open = match self.take_open(process) {
            Some(Open { line, operation: Some(_) }) => Err(Wrong::StillOpen { process: short(name), line }),
            _ => Ok(()),
        };
        let started = self.start(process, event, now);
        let operation = started.as_ref().ok().copied();
        if let Some(open) = self.open.get_mut(process as usize) {
            *open = Some(Open { line: now.line, operation });
        }
        // If the invocation itself is invalid, report that error instead of the operation that is still open.
        started.and(still_open)
    }

    /// Adds an operation whose outcome is unknown for now.
    fn start(&mut self, process: u32, event: Event, invoked: Moment) -> Result<(usize, Word), Wrong> {
        let word = shape::word(self.history.spec.kind(), &event.f.ok_or(Wrong::Missing("f"))?)?;
        let call = shape::call(word, event.value, &mut self.history.values)?;
        let index = self.history.operations.len();
        if index >= self.bounds.operations {
            self.cut = true;
            return Err(Wrong::TooManyOperations);
        }
        let key = self.key(event.key);
        self.bytes = self.bytes.saturating_add(ENTRY_BYTES);
        self.history.operations.push(Operation { key, process, call, invoked, ending: Ending::Unknown });
        Ok((index, word))
    }

    fn complete(&mut self, client: (String, String), event: Event, now: Moment) -> Result<(), Wrong> {
        let process = self.process_numbers.get(&client).copied();
        let Some((process, open)) = process.and_then(|number| Some((number, self.take_open(number)?))) else {
            return Err(self.stray(client, event));
        };
        let Some((index, word)) = open.operation else { return Ok(()) };
        let Some(operation) = self.history.operations.get_mut(index) else { return Ok(()) };
        debug_assert_eq!(operation.process, process);
        let not_that = |field| Wrong::NotThatInvoked { field, line: open.line };
        if let Some(f) = &event.f
            && shape::word(self.history.spec.kind(), f)? != word
        {
            return Err(not_that("f"));
        }
        if event.key.is_some() && self.key_numbers.get(&event.key) != Some(&operation.key) {
            return Err(not_that("key"));
        }
        match event.kind {
            EventKind::Invoke | EventKind::Info => {}
            EventKind::Fail => operation.ending = Ending::Failed,
            EventKind::Ok => {
                let answer = shape::answer(operation.call, event.value, &mut self.history.values)?;
                if let Answer::Members(members) = &answer {
                    self.bytes = self.bytes.saturating_add(4 * members.len() as u64);
                }
                operation.ending = Ending::Ok(now, answer);
            }
        }
        Ok(())
    }

    /// Handles a completion without an invocation. The operation may have taken effect, because the line of its
    /// invocation may have been invalid. The operation may also not have taken effect, because the completion may be a
    /// duplicate.
    fn stray(&mut self, client: (String, String), event: Event) -> Wrong {
        let wrong = Wrong::NotInvoked { process: short(&event.process) };
        if matches!(event.kind, EventKind::Ok | EventKind::Info) {
            let process = self.process(client);
            // An operation that cannot be derived from its completion is omitted. The error is already reported.
            if let Err(Wrong::TooManyOperations) = self.start(process, event, Moment { line: 0, vtime_ns: 0 })
            {
                return Wrong::TooManyOperations;
            }
        }
        wrong
    }

    fn take_open(&mut self, process: u32) -> Option<Open> {
        self.open.get_mut(process as usize)?.take()
    }

    fn process(&mut self, client: (String, String)) -> u32 {
        if let Some(number) = self.process_numbers.get(&client) {
            return *number;
        }
        let number = count(self.history.processes.len());
        self.bytes = self.bytes.saturating_add(ENTRY_BYTES + 2 * (client.0.len() + client.1.len()) as u64);
        self.history.processes.push(client.clone());
        self.open.push(None);
        self.process_numbers.insert(client, number);
        number
    }

    fn key(&mut self, key: Option<String>) -> u32 {
        if let Some(number) = self.key_numbers.get(&key) {
            return *number;
        }
        let number = count(self.history.keys.len());
        self.bytes = self.bytes.saturating_add(ENTRY_BYTES + 2 * key.as_ref().map_or(0, String::len) as u64);
        self.history.keys.push(key.clone());
        self.key_numbers.insert(key, number);
        number
    }
}

/// Returns a table's length as a number. A history has less than 2^32 bytes, and tables have fewer entries than bytes.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
