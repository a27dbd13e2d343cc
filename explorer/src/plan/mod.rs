//! Fault plans: what is done to a world when, as data that is drawn, written by hand or edited.
//!
//! A plan is JSON lines, one entry a line; empty lines and lines that start with `#` are comments. `docs/faults.md` is the
//! user's page about it.
//!
//! - `limits`: every bound by name; `names`: what of a world can be named
//! - `line`: one line, from text to an [`Entry`] and back
//! - `check`: whether an entry is possible in a world; `calm` and `board`: whether entries go together
//! - `problem`: what can be wrong
//! - `events`: a plan as starts and ends in exact order, and a place in it
//! - [`draw`]: plans drawn from the world's streams
//!
//! Not here: how faults are done, the catalogue of faults and the bounds of their values (`everett_fault`).
//!
//! **Invariants.**
//! - Every [`Plan`] passed all checks, however it came to be: of one that was parsed, drawn or put together, the executor
//!   may assume that every name exists, that nothing lasts into a quiet period, and that no node is switched off twice.
//! - A plan is in the order of time, entries of one time in the order in which they were given. An entry's place in it is
//!   its id.
//! - What [`Plan::write`] gives is parsed as the same plan.

mod board;
mod calm;
mod check;
pub mod draw;
mod events;
pub mod limits;
mod line;
pub(crate) mod names;
pub(crate) mod problem;

use everett_fault::Fault;
use serde::{Deserialize, Serialize};

use board::Board;
use calm::Calm;
use line::Faulty;

pub use events::{Cursor, Event, Events, Happening};
pub use names::{Names, NodeNames};
pub use problem::{PlanError, PlanErrors, Problem};

/// What is done, when and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in nanoseconds of vtime after *ready*.
    pub at_ns: u64,
    /// For how long, in nanoseconds. `None` of what lasts: until the next heal or quiet period, else the end of the run.
    pub for_ns: Option<u64>,
    /// What.
    pub what: What,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// Something is done to the world.
    Fault(Fault),
    /// Everything heals.
    Heal,
    /// Everything heals, and nothing is done for the entry's time.
    Quiet,
}

/// A fault plan for a world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    entries: Vec<Entry>,
}

impl Plan {
    /// Read a plan for the world with these names.
    ///
    /// # Errors
    /// All that is wrong with it, up to a bound.
    pub fn parse(text: &str, names: &Names) -> Result<Plan, PlanErrors> {
        let mut draft = Draft::default();
        if let Some(fits) = text.as_bytes().get(..limits::PLAN_BYTES_MAX)
            && text.len() > fits.len()
        {
            draft.fail(1 + fits.iter().filter(|b| **b == b'\n').count(), "", Problem::PlanTooLarge);
            return Err(PlanErrors::sorted(draft.errors));
        }
        for (i, text) in text.lines().enumerate() {
            // Errors are told in the order of lines: those beyond the bound would not be.
            if draft.errors.len() > limits::ERRORS_MAX {
                break;
            }
            if i == limits::LINES_MAX {
                draft.fail(i + 1, "", Problem::TooManyLines);
                break;
            }
            let trimmed = text.trim_ascii();
            if text.len() > limits::LINE_BYTES_MAX {
                draft.fail(i + 1, "", Problem::LineTooLong);
                draft.healing_unclear = true;
            } else if !trimmed.is_empty() && !trimmed.starts_with('#') {
                let mut faulty = Faulty::default();
                let entry = line::read(trimmed, &mut faulty);
                draft.add(i + 1, entry, faulty, names);
            }
        }
        draft.finish(names)
    }

    /// A plan from entries. In errors, an entry's place counts as its line.
    ///
    /// # Errors
    /// All that is wrong with them, up to a bound.
    pub fn new(entries: Vec<Entry>, names: &Names) -> Result<Plan, PlanErrors> {
        let mut draft = Draft::default();
        for (i, entry) in entries.into_iter().enumerate() {
            if draft.errors.len() > limits::ERRORS_MAX {
                break;
            }
            if i == limits::LINES_MAX {
                draft.fail(i + 1, "", Problem::TooManyLines);
                break;
            }
            draft.add(i + 1, Some(entry), Faulty::default(), names);
        }
        draft.finish(names)
    }

    /// The entries in order. An entry's index is its id.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The plan as text, in canonical form: one line an entry, with all of its fields.
    #[must_use]
    pub fn write(&self) -> String {
        self.entries.iter().map(|entry| line::write(entry) + "\n").collect()
    }

    /// What an executor does, in exact order.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::of(&self.entries)
    }
}

/// A plan that is being put together.
#[derive(Default)]
struct Draft {
    /// Entries that are right by themselves, with their lines.
    entries: Vec<(usize, Entry)>,
    /// Bytes of these in canonical form.
    bytes: usize,
    errors: Vec<PlanError>,
    /// A line that cannot be used may have been a heal, without which nothing can be said about how long others last.
    healing_unclear: bool,
}

impl Draft {
    fn fail(&mut self, line: usize, field: impl Into<String>, what: Problem) {
        self.errors.push(PlanError { line, field: field.into(), what });
    }

    fn add(&mut self, line: usize, entry: Option<Entry>, mut faulty: Faulty, names: &Names) {
        if let Some(entry) = &entry {
            check::entry(entry, names, &mut faulty);
            // What was short enough as it was written may not be so in canonical form, and could not be read back.
            if faulty.is_empty() {
                let before = self.bytes;
                let bytes = line::write(entry).len();
                self.bytes += bytes + 1;
                if bytes > limits::LINE_BYTES_MAX {
                    faulty.add("", Problem::LineTooLong);
                } else if before <= limits::PLAN_BYTES_MAX && self.bytes > limits::PLAN_BYTES_MAX {
                    faulty.add("", Problem::PlanTooLarge);
                }
            }
        }
        let good = faulty.is_empty();
        for (field, what) in faulty.into_errors() {
            self.fail(line, field, what);
        }
        match entry {
            Some(entry) if good => self.entries.push((line, entry)),
            Some(Entry { what: What::Fault(_), .. }) => {}
            _ => self.healing_unclear = true,
        }
    }

    fn finish(mut self, names: &Names) -> Result<Plan, PlanErrors> {
        self.entries.sort_by_key(|(_, entry)| entry.at_ns);
        if !self.healing_unclear {
            let calm = Calm::of(self.entries.iter().map(|(line, entry)| (*line, entry)));
            let mut board = Board::default();
            for (line, entry) in &self.entries {
                if let What::Fault(fault) = &entry.what
                    && let Err((field, what)) = board.admit(*line, entry, fault, &calm, names)
                {
                    self.errors.push(PlanError { line: *line, field: field.to_owned(), what });
                }
            }
        }
        if !self.errors.is_empty() {
            return Err(PlanErrors::sorted(self.errors));
        }
        Ok(Plan { entries: self.entries.into_iter().map(|(_, entry)| entry).collect() })
    }
}

#[cfg(test)]
mod tests;
