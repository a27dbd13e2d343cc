//! Operation histories: the requests and results of clients. The check decides if a correct server could have given
//! these results.
//!
//! Drivers, i.e. client programs in guests, print one JSON object per line: a line when an operation starts, and a line
//! when it ends. Everett adds the virtual time (vtime) and the node. A [`Reader`] reads the lines as they arrive.
//! [`check()`] then decides, for each key, if the history is linearizable and if acknowledged writes are lost.
//!
//! - [`limits`]: bounds of histories and of their check
//! - `line`: parses one line
//! - `error`: errors in lines
//! - `values`: gives each JSON value of a history a number
//! - `operation`: an operation's call, result and times
//! - `shape`: conversion of names and JSON values to operations
//! - `reader`: builds a [`History`] from lines
//! - `spec`: names of models, i.e. of kinds of objects such as a queue, and their initial values
//! - `model`: the objects that servers implement, and the effect of each operation
//! - `partition`: the parts of a history that can be judged independently
//! - `search`, with `window`, `bits` and `cache`: the search for a valid order
//! - `minimise`: the shortest prefix without a valid order
//! - `lost`: acknowledged writes that later reads do not show
//! - `judge`: runs all checks
//! - `evidence` and `report`: the results
//! - `cause`: the text that identifies violations with the same cause
//!
//! Not here: the transport of lines from a guest, the execution of drivers, and the use of reports by explorations.
//!
//! **Invariants.**
//! - Lines are in the order in which the world wrote them. One operation precedes another if the line of its completion
//!   comes before the line of the other's invocation. Vtimes are only reported, and never compared.
//! - A report is a function of the lines, the model and the budget.
//! - The valid lines prove each reported violation. If the budget is too small, the verdict is "unknown".
//! - Lines are untrusted. Memory is bounded for any contents, and an invalid line is reported with its position.

mod bits;
mod cache;
mod cause;
mod error;
mod evidence;
mod judge;
pub mod limits;
mod line;
mod lost;
mod minimise;
mod model;
mod operation;
mod partition;
mod reader;
mod report;
mod search;
mod shape;
mod spec;
mod values;
mod window;

pub use cause::ViolationGroup;
pub use error::{Problem, Problems, Wrong};
pub use evidence::{Evidence, Limit, Verdict};
pub use judge::{Budget, check};
pub use line::HistoryLine;
pub use lost::{Loss, Lost};
pub use operation::{Description, Moment};
pub use reader::{History, Reader};
pub use report::{KeyReport, Report};
pub use spec::Spec;

#[cfg(test)]
mod tests;
