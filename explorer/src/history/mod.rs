//! Operation histories: what clients asked for and were told, and whether any correct server could have told them so.
//!
//! Drivers in guests write a JSON object a line, one when an operation starts and one when it is over; the host adds when
//! and from where. A [`Reader`] takes the lines as they come, and [`check`](mod@check) says for each key whether the history is
//! linearizable, and whether acknowledged writes are gone.
//!
//! - `limits`: every bound by name; `line`: one line; `problem`: what can be wrong with it
//! - `values`: JSON values as small numbers; `operation`: an operation; `shape`: from names and values to an operation
//! - `reader`: lines to a [`History`]
//! - `model`: the objects that servers stand for, and what each operation does to them
//! - `partition`: the parts of a history that can be judged alone
//! - `search`, with `window`, `bits` and `cache`: the search for an order; `minimise`: the shortest history without one
//! - `lost`: acknowledged writes that later reads do not show
//! - `check`: all of it; `evidence` and `report`: what it found, as data and as text; `gist`: which findings have one cause
//!
//! Not here: how lines get out of a guest, what runs the drivers, what a run does with a report.
//!
//! **Invariants.**
//! - The order of lines is the order of the world. One operation precedes another if its completion's line comes before
//!   the other's invocation's; times are only told, never compared.
//! - What a report says is a function of the lines, the model and the budget.
//! - A violation is a proof, as far as the lines could be read; what the budget did not suffice for is unknown.
//! - Lines are untrusted. Whatever their bytes, memory is bounded, and what cannot be read is a problem with its place.

mod bits;
mod cache;
mod check;
mod evidence;
mod gist;
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
mod values;
mod window;

pub use check::{Budget, check};
pub use evidence::{Evidence, Limit, Verdict};
pub use gist::Gist;
pub use line::Line;
pub use lost::{Loss, Lost};
pub use model::{ModelKind, NoInitial, NoModel, Spec};
pub use operation::{Moment, Told};
pub use problem::{Problem, Problems, Wrong};
pub use reader::{History, Reader};
pub use report::{KeyReport, Report};

#[cfg(test)]
mod tests;
