//! The history of explorations: which runs of a world there were, and what each found.
//!
//! - [`run`]: an exploration as plain data; [`compare`]: its findings beside those of older runs
//! - [`store`]: the database, one SQLite file; `schema`: its tables, and the checks of a file that may be hostile
//!
//! Not here: run directories (`everett_explorer`), the place of the file, and what a command shows (`everett`). The
//! history is an index of run directories: a lost history loses no results, and each directory can be added again.

pub mod compare;
pub mod run;
mod schema;
pub mod store;

pub use compare::{Compared, Status};
pub use run::{Finding, Run};
pub use store::{History, HistoryError};
