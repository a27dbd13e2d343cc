//! Fault plans: the faults of a world over time, as data. Everett draws plans, and operators can write or edit them.
//!
//! A plan is a text of JSON lines, one entry per line. Empty lines and lines that start with `#` are comments. Times
//! count from *ready*, the time at which all services of the world are up. `docs/faults.md` is the user's page about
//! plans.
//!
//! - `limits`: bounds
//! - `names`: names of a world that entries refer to
//! - `line`: one line, parsed to a [`PlanEntry`] and printed from it
//! - `check`: checks of a single entry
//! - `quiet_periods` and `conflicts`: checks of entries against each other
//! - `error`: errors in a plan, with their messages
//! - `events`: starts, ends and heals in the order of execution, and a cursor into them
//! - [`draw`]: plans drawn from the world's random streams
//!
//! Not here: the application of faults, and the catalogue of faults with the bounds of their values (`everett_fault`).
//!
//! **Invariants.**
//! - Every [`Plan`] has passed all checks, whether it was parsed, drawn or built from entries. The code that applies a
//!   plan may assume that every name exists, that no fault lasts into a quiet period, and that no node is switched off
//!   twice.
//! - Entries are sorted by time. Entries with equal times keep their given order. An entry's index is its id.
//! - Parsing the output of [`Plan::write`] gives the same plan.

mod check;
mod conflicts;
pub mod draw;
pub(crate) mod error;
mod events;
pub mod limits;
mod line;
pub(crate) mod names;
mod quiet_periods;

use everett_fault::Fault;
use serde::{Deserialize, Serialize};

use conflicts::HeldResources;
use line::Faulty;
use quiet_periods::QuietPeriods;

pub use error::{PlanError, PlanErrors, Problem};
pub use events::{Cursor, Event, Events, Happening};
pub use names::{Names, NodeNames};

/// Entry of a plan: a fault, a heal or a quiet period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// Start of the entry, in nanoseconds of vtime after *ready*.
    pub at_ns: u64,
    /// Duration, in nanoseconds. If a lasting fault has no duration, it ends at the next heal or quiet period, or at
    /// the end of the timeline.
    pub for_ns: Option<u64>,
    /// Content of the entry.
    pub what: What,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A fault.
    Fault(Fault),
    /// A heal: all faults end, except permanent power losses.
    Heal,
    /// A quiet period: all faults end as at a heal, and no fault starts for the entry's duration.
    Quiet,
}

/// Fault plan of a world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    entries: Vec<PlanEntry>,
}

impl PlanEntry {
    /// Parses the line of one entry, such as `{"for": "2s", "fault": "partition", "links": "all"}`. Without `at`, the entry
    /// begins at 0. Nothing is checked against a world.
    ///
    /// # Errors
    /// Returns the first error of the line, without a number of the line.
    pub fn parse(text: &str) -> Result<PlanEntry, String> {
        let mut faulty = Faulty::default();
        if text.len() > limits::PLAN_LINE_BYTES_MAX {
            return Err(Problem::LineTooLong.to_string());
        }
        let entry = line::read_at(text.trim_ascii(), Some(0), &mut faulty);
        if let Some((field, what)) = faulty.into_errors().into_iter().next() {
            return Err(if field.is_empty() { what.to_string() } else { format!("{field}: {what}") });
        }
        entry.ok_or_else(|| Problem::NotJson(String::new()).to_string())
    }
}

impl Plan {
    /// Parses a plan for a world with these names.
    ///
    /// # Errors
    /// Returns the errors of the plan, at most [`limits::ERRORS_MAX`].
    pub fn parse(text: &str, names: &Names) -> Result<Plan, PlanErrors> {
        let mut draft = Draft::default();
        if let Some(fits) = text.as_bytes().get(..limits::PLAN_BYTES_MAX)
            && text.len() > fits.len()
        {
            draft.fail(1 + fits.iter().filter(|b| **b == b'\n').count(), "", Problem::PlanTooLarge);
            return Err(PlanErrors::sorted(draft.errors));
        }
        for (i, text) in text.lines().enumerate() {
            // Errors are sorted by line and then cut, so errors of later lines would not be reported anyway.
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

    /// Builds a plan from entries. An error gives the position of its entry (the first is 1) instead of a line number.
    ///
    /// # Errors
    /// Returns the errors of the entries, at most [`limits::ERRORS_MAX`].
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

    /// Returns the entries, sorted by time. An entry's index is its id.
    #[must_use]
    pub fn entries(&self) -> &[PlanEntry] {
        &self.entries
    }

    /// Prints the plan in canonical form: one line per entry, with all fields of the entry.
    #[must_use]
    pub fn write(&self) -> String {
        self.entries.iter().map(|entry| line::write(entry) + "\n").collect()
    }

    /// Returns the plan up to `at_ns`, with a heal there and nothing later, and the position after all of its events. Entries
    /// keep their ids.
    #[must_use]
    pub fn healed_at(&self, at_ns: u64) -> (Plan, Cursor) {
        let begun = self.entries.iter().filter(|entry| entry.at_ns < at_ns);
        let mut entries: Vec<PlanEntry> = begun.cloned().collect();
        for entry in &mut entries {
            entry.for_ns = entry.for_ns.map(|for_ns| for_ns.min(at_ns - entry.at_ns));
        }
        entries.push(PlanEntry { at_ns, for_ns: None, what: What::Heal });
        let plan = Plan { entries };
        let cursor = plan.events().end();
        (plan, cursor)
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
    /// Entries that are valid by themselves, with their line numbers.
    entries: Vec<(usize, PlanEntry)>,
    /// Size of the valid entries in canonical form, in bytes.
    bytes: usize,
    errors: Vec<PlanError>,
    /// True if an invalid line may have been a heal or a quiet period. The ends of other faults are then unknown, so
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
            // An entry whose text is short enough can be too long in canonical form. The canonical form must be
            // parsable, too.
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
