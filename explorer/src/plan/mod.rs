//! Fault plans: the faults of a world over time, as data that is drawn, written by hand or edited.
//!
//! A plan is JSON lines, one entry per line. Empty lines and lines that start with `#` are comments. `docs/faults.md`
//! is the user's page about it.
//!
//! - `limits`: bounds; `names`: names of a world that entries refer to
//! - `line`: one line, from text to an [`PlanEntry`] and back
//! - `check`: checks of a single entry; `quiet_periods` and `conflicts`: checks of entries against each other
//! - `problem`: errors
//! - `events`: starts, ends and heals in the order of execution, and a cursor into them
//! - [`draw`]: plans drawn from the world's streams
//!
//! Not here: applying faults, the catalogue of faults and the bounds of their values (`everett_fault`).
//!
//! **Invariants.**
//! - Every [`Plan`] passed all checks, whether it was parsed, drawn or built from entries. The executor may assume that
//!   every name exists, that no fault lasts into a quiet period, and that no node is switched off twice.
//! - Entries are in order of time. Entries with the same time keep the order in which they were given. An entry's index
//!   is its id.
//! - Parsing the output of [`Plan::write`] gives the same plan.

mod check;
mod conflicts;
pub mod draw;
mod events;
pub mod limits;
mod line;
pub(crate) mod names;
pub(crate) mod problem;
mod quiet_periods;

use everett_fault::Fault;
use serde::{Deserialize, Serialize};

use conflicts::HeldResources;
use line::Faulty;
use quiet_periods::QuietPeriods;

pub use events::{Cursor, Event, Events, Happening};
pub use names::{Names, NodeNames};
pub use problem::{PlanError, PlanErrors, Problem};

/// Entry of a plan: a fault, a heal or a quiet period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// Start, in nanoseconds of vtime after *ready*.
    pub at_ns: u64,
    /// Duration, in nanoseconds. If `None`, a lasting fault ends at the next heal or quiet period, or with the run.
    pub for_ns: Option<u64>,
    /// Content of the entry.
    pub what: What,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A fault starts.
    Fault(Fault),
    /// Everything heals.
    Heal,
    /// Everything heals, and no fault starts for the entry's duration.
    Quiet,
}

/// Fault plan of a world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    entries: Vec<PlanEntry>,
}

impl Plan {
    /// Reads a plan for a world with these names.
    ///
    /// # Errors
    /// Returns all errors of the plan, at most [`limits::ERRORS_MAX`].
    pub fn parse(text: &str, names: &Names) -> Result<Plan, PlanErrors> {
        let mut draft = Draft::default();
        if let Some(fits) = text.as_bytes().get(..limits::PLAN_BYTES_MAX)
            && text.len() > fits.len()
        {
            draft.fail(1 + fits.iter().filter(|b| **b == b'\n').count(), "", Problem::PlanTooLarge);
            return Err(PlanErrors::sorted(draft.errors));
        }
        for (i, text) in text.lines().enumerate() {
            // Errors are sorted by line and then cut, so those of later lines would not be reported.
            if draft.errors.len() > limits::ERRORS_MAX {
                break;
            }
            if i == limits::LINES_MAX {
                draft.fail(i + 1, "", Problem::TooManyLines);
                break;
            }
            let trimmed = text.trim_ascii();
            if text.len() > limits::PLAN_LINE_BYTES_MAX {
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

    /// Builds a plan from entries. In errors, an entry's position counts as its line.
    ///
    /// # Errors
    /// Returns all errors of the entries, at most [`limits::ERRORS_MAX`].
    pub fn new(entries: Vec<PlanEntry>, names: &Names) -> Result<Plan, PlanErrors> {
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

    /// Returns the entries in order. An entry's index is its id.
    #[must_use]
    pub fn entries(&self) -> &[PlanEntry] {
        &self.entries
    }

    /// Returns the plan as text in canonical form: one line per entry, with all of its fields.
    #[must_use]
    pub fn write(&self) -> String {
        self.entries.iter().map(|entry| line::write(entry) + "\n").collect()
    }

    /// Returns the events of the plan, in the order of execution.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::of(&self.entries)
    }
}

/// Plan under construction.
#[derive(Default)]
struct Draft {
    /// Entries that are valid by themselves, with their lines.
    entries: Vec<(usize, PlanEntry)>,
    /// Size of these entries in canonical form, in bytes.
    bytes: usize,
    errors: Vec<PlanError>,
    /// True if an invalid line may have been a heal or a quiet period. If so, the ends of other faults are unknown, and
    /// checks of entries against each other are skipped.
    healing_unclear: bool,
}

impl Draft {
    fn fail(&mut self, line: usize, field: impl Into<String>, what: Problem) {
        self.errors.push(PlanError { line, field: field.into(), what });
    }

    fn add(&mut self, line: usize, entry: Option<PlanEntry>, mut faulty: Faulty, names: &Names) {
        if let Some(entry) = &entry {
            check::entry(entry, names, &mut faulty);
            // An entry that is short enough as written can be too long in canonical form, which must be readable, too.
            if faulty.is_empty() {
                let before = self.bytes;
                let bytes = line::write(entry).len();
                self.bytes += bytes + 1;
                if bytes > limits::PLAN_LINE_BYTES_MAX {
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
            Some(PlanEntry { what: What::Fault(_), .. }) => {}
            _ => self.healing_unclear = true,
        }
    }

    fn finish(mut self, names: &Names) -> Result<Plan, PlanErrors> {
        self.entries.sort_by_key(|(_, entry)| entry.at_ns);
        if !self.healing_unclear {
            let periods = QuietPeriods::of(self.entries.iter().map(|(line, entry)| (*line, entry)));
            let mut held = HeldResources::default();
            for (line, entry) in &self.entries {
                if let What::Fault(fault) = &entry.what
                    && let Err((field, what)) = held.admit(*line, entry, fault, &periods, names)
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
