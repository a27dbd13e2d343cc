//! Reads the JSON object in a line of a fault plan, field by field, so that all errors of the line are reported at
//! once.
//!
//! A value that cannot be read is replaced by a placeholder, an error is recorded, and reading continues. A line with
//! an error gives no entry of the plan, so no plan contains a placeholder.

use crate::plan::error::{Problem, bare, some_of};
use crate::plan::names::hint;

use super::json::Json;

/// Maximum number of errors that are recorded for one line.
const LINE_ERRORS_MAX: usize = crate::plan::limits::ERRORS_MAX + 1;

/// Errors of one line, each with the path of its field.
#[derive(Debug, Default)]
pub(in crate::plan) struct Faulty(Vec<(String, Problem)>);

impl Faulty {
    pub(in crate::plan) fn add(&mut self, field: impl Into<String>, what: Problem) {
        if self.0.len() < LINE_ERRORS_MAX {
            self.0.push((field.into(), what));
        }
    }

    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if this field, or a value inside it, has an error.
    pub(in crate::plan) fn has(&self, field: &str) -> bool {
        let inside = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
        self.0.iter().any(|(path, _)| path.strip_prefix(field).is_some_and(inside))
    }

    pub(in crate::plan) fn into_errors(self) -> Vec<(String, Problem)> {
        self.0
    }
}

/// Path of a value in its line, and the list to which the value's errors are added.
pub(super) struct FieldPath<'e> {
    pub(super) path: String,
    pub(super) errors: &'e mut Faulty,
}

impl FieldPath<'_> {
    pub(super) fn fail(&mut self, what: Problem) {
        self.errors.add(self.path.clone(), what);
    }

    pub(super) fn expected(&mut self, expected: &'static str, found: &Json) {
        self.fail(Problem::Type { expected, found: found.kind() });
    }

    pub(super) fn element(&mut self, index: usize) -> FieldPath<'_> {
        FieldPath { path: format!("{}[{index}]", self.path), errors: self.errors }
    }
}

/// Type of a value in a line.
pub(super) trait Value {
    /// Returns the placeholder for a value that cannot be read.
    fn stand_in() -> Self;
    /// Reads a value. If the value is invalid, reports an error and returns the placeholder.
    fn read(json: &Json, place: &mut FieldPath<'_>) -> Self;
    /// Returns the value as canonical JSON.
    fn write(&self) -> Json;
}

/// Fields of an object, and the names of the fields that have been read.
pub(super) struct Fields<'j, 'e> {
    entries: &'j [(String, Json)],
    /// Path of the object, followed by a dot. Empty for the line's outermost object.
    prefix: String,
    taken: Vec<&'static str>,
    pub(super) errors: &'e mut Faulty,
}

impl<'j, 'e> Fields<'j, 'e> {
    pub(super) fn top(entries: &'j [(String, Json)], errors: &'e mut Faulty) -> Fields<'j, 'e> {
        Fields { entries, prefix: String::new(), taken: Vec::new(), errors }
    }

    pub(super) fn inside(entries: &'j [(String, Json)], place: &'e mut FieldPath<'_>) -> Fields<'j, 'e> {
        let prefix = format!("{}.", place.path);
        Fields { entries, prefix, taken: Vec::new(), errors: place.errors }
    }

    /// Reads an optional field.
    pub(super) fn maybe<T: Value>(&mut self, name: &'static str) -> Option<T> {
        self.taken.push(name);
        let mut found = self.entries.iter().filter(|(field, _)| field == name);
        let (_, json) = found.next()?;
        let twice = found.next().is_some();
        let mut place = FieldPath { path: format!("{}{name}", self.prefix), errors: self.errors };
        if twice {
            place.fail(Problem::Twice);
            return Some(T::stand_in());
        }
        Some(T::read(json, &mut place))
    }

    /// Reads a required field. Reports an error if it is missing.
    pub(super) fn take<T: Value>(&mut self, name: &'static str) -> T {
        self.maybe(name).unwrap_or_else(|| {
            self.errors.add(format!("{}{name}", self.prefix), Problem::Missing);
            T::stand_in()
        })
    }

    /// Reads a field with a default.
    pub(super) fn take_or<T: Value>(&mut self, name: &'static str, default: T) -> T {
        self.maybe(name).unwrap_or(default)
    }

    /// Reports an unknown field for each field of the object that was not read.
    pub(super) fn finish(self) {
        let known = self.taken.iter().copied();
        for (field, _) in self.entries.iter().filter(|(field, _)| !self.taken.contains(&field.as_str())) {
            let what = hint(field, known.clone(), "the fields here are");
            self.errors.add(format!("{}{}", self.prefix, bare(field)), Problem::UnknownField(what));
        }
    }
}

/// Reads a string that must be one of `words`.
pub(super) fn word<T: Copy>(
    words: &[(&'static str, T)],
    json: &Json,
    place: &mut FieldPath<'_>,
) -> Option<T> {
    let Json::Text(text) = json else {
        place.expected("a string", json);
        return None;
    };
    let found = words.iter().find(|(word, _)| word == text);
    if found.is_none() {
        let words = some_of(words.iter().map(|(word, _)| *word));
        place.fail(Problem::NoneOf { found: everett_input::text::quoted(text), words });
    }
    found.map(|(_, value)| *value)
}
