//! Operation histories: the requests and results of clients, and the check whether a correct server could have given
//! these results.
//!
//! Drivers in guests write one JSON object per line: one when an operation starts, and one when it ends. Everett adds
//! the time and the node. A [`Reader`] reads the lines as they arrive, and [`check()`] determines for each key whether
//! the history is linearizable and whether acknowledged writes are lost.
//!
//! - [`limits`]: every bound by name; `line`: one line; `problem`: possible problems with a line
//! - `values`: JSON values as small numbers; `operation`: an operation; `shape`: conversion of names and values to an
//!   operation
//! - `reader`: builds a [`History`] from lines
//! - `spec`: names of models, and their initial values; `model`: the objects that servers implement, and the effect of
//!   each operation
//! - `partition`: the parts of a history that can be judged alone
//! - `search`, with `window`, `bits` and `cache`: the search for a valid order; `minimise`: the shortest prefix without
//!   one
//! - `lost`: acknowledged writes that later reads do not show
//! - `check`: runs all checks; `evidence` and `report`: the results; `cause`: identifies findings with
//!   the same cause
//!
//! Not here: the transport of lines from a guest, running the drivers, and the use of reports by explorations.
//!
//! **Invariants.**
//! - Lines are in the order in which the world wrote them. One operation precedes another if the line of its completion
//!   comes before the line of the other's invocation. Times are only reported, never compared.
//! - A report is a function of the lines, the model and the budget.
//! - A reported violation is proved by the lines that could be read. If the budget does not suffice, the verdict is
//!   unknown.
//! - Lines are untrusted. Memory is bounded for any bytes in them, and a line that cannot be read is reported as a
//!   problem with its place.

mod bits;
mod cache;
mod cause;
mod check;
mod evidence;
pub mod limits;
mod line;
mod lost;
mod minimise;
mod model;
mod operation;
mod partition;
mod problem;
mod reader;
mod report;
mod search;
mod shape;
mod spec;
mod values;
mod window;

pub use cause::ViolationGroup;
pub use check::{Budget, check};
pub use evidence::{Evidence, Limit, Verdict};
pub use line::HistoryLine;
pub use lost::{Loss, Lost};
pub use operation::{Description, Moment};
pub use problem::{Problem, Problems, Wrong};
pub use reader::{History, Reader};
pub use report::{KeyReport, Report};
pub use spec::Spec;

#[cfg(test)]
mod tests;
