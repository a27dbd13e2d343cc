//! The history of explorations: the runs of each world, and their findings.
//!
//! - [`run`]: the data that the history stores for an exploration and its findings
//! - [`compare`]: compares the findings of a run with those of the previous run
//! - [`store`]: the database, one SQLite file
//! - `schema`: the tables of the database, and the checks of a file that may be malicious
//!
//! Not here: run directories (`everett_explorer`), the path of the file, and the output of commands (`everett`).
//!
//! The history is only an index of run directories. If it is lost, no results are lost, and each directory can be added
//! again.

pub mod compare;
pub mod run;
mod schema;
pub mod store;

pub use compare::{Compared, Status};
pub use run::{Finding, Run};
pub use store::{History, HistoryError};
