//! One line of a plan: parsed to an entry, and printed from an entry.
//!
//! - `json`: JSON values that keep duplicate fields
//! - `fields`: reads an object field by field, and collects all errors
//! - `values`: types of values
//! - `fault`: the fields of each fault
//!
//! Not here: checks against the world (`super::check`) and against other entries (`super::conflicts`).
//!
//! **Invariant.** [`write`](fn@write) prints each entry in exactly one form, with all of its fields. Parsing that form
//! gives the same entry.

mod fault;
mod fields;
mod json;
mod values;

use everett_fault::FaultKind;

use everett_input::text::quoted;
pub(super) use fields::Faulty;
use fields::{Fields, Value};
use json::Json;
use values::Ns;

use super::error::Problem;
use super::names::hint;
use super::{PlanEntry, What};

/// Value of the field `fault` in the line of a heal. A heal is an entry that ends all faults except permanent power
/// losses.
const HEAL: &str = "heal";
/// Value of the field `fault` in the line of a quiet period. A quiet period ends faults as a heal does, and no fault
/// starts during the period.
const QUIET: &str = "quiet";

/// Parses a line. The entry is valid only if no errors were added to `errors`. An invalid entry contains placeholders
/// for values that could not be read. Adds an error and returns `None` if the text is not a JSON object, or if the kind
/// of fault is unknown.
pub(super) fn read(text: &str, errors: &mut Faulty) -> Option<PlanEntry> {
    read_at(text, None, errors)
}

/// Like [`read`], but the field `at` may be missing if there is a `default_ns` for it.
pub(super) fn read_at(text: &str, default_ns: Option<u64>, errors: &mut Faulty) -> Option<PlanEntry> {
    let entries = match serde_json::from_str(text) {
        Ok(Json::Object(entries)) => entries,
        Ok(other) => {
            errors.add("", Problem::Type { expected: "an object", found: other.kind() });
            return None;
        }
        Err(error) => {
            errors.add("", Problem::NotJson(reason(&error)));
            return None;
        }
    };
    let mut fields = Fields::top(&entries, errors);
    let Ns(at_ns) = match default_ns {
        None => fields.take("at"),
        Some(default_ns) => fields.maybe("at").unwrap_or(Ns(default_ns)),
    };
    let for_ns = fields.maybe("for").map(|Ns(ns)| ns);
    let name: String = fields.take("fault");
    let what = match name.as_str() {
        HEAL => What::Heal,
        QUIET => What::Quiet,
        name => match FaultKind::named(name) {
            Some(kind) => What::Fault(fault::read(kind, &mut fields)),
            None => {
                if !fields.errors.has("fault") {
                    fields.errors.add("fault", no_fault(name));
                }
                return None;
            }
        },
    };
    fields.finish();
    Some(PlanEntry { at_ns, for_ns, what })
}

fn no_fault(name: &str) -> Problem {
    let known = FaultKind::ALL.into_iter().map(FaultKind::name).chain([HEAL, QUIET]);
    Problem::NoFault { name: quoted(name), hint: hint(name, known, "the faults are") }
}

/// Returns the message of a JSON error without its line number, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", error.column())
}

/// Returns the canonical line of an entry, without a line feed.
pub(super) fn write(entry: &PlanEntry) -> String {
    let mut fields = vec![("at", Ns(entry.at_ns).write())];
    fields.extend(entry.for_ns.map(|ns| ("for", Ns(ns).write())));
    fields.push(("fault", Json::Text(entry.what.name().to_owned())));
    if let What::Fault(fault) = &entry.what {
        fields.extend(fault::write(fault));
    }
    let object = Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    serde_json::to_string(&object).unwrap_or_default()
}

impl What {
    /// Returns the value of the field `fault`: the name of the fault, `heal` or `quiet`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            What::Fault(fault) => fault.kind().name(),
            What::Heal => HEAL,
            What::Quiet => QUIET,
        }
    }
}
