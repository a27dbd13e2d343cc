//! The run directory: what an exploration leaves behind while it goes on, and what is known of it from there.
//!
//! An exploration that is killed makes the same choices again when it is resumed, takes the results that were recorded, and runs
//! what is missing. So the folder keeps results and nothing else:
//!
//! ```text
//! run.json          what is explored; written once, first
//! branches.jsonl    a line a branch, in the order in which they ended, each with a checksum
//! findings/ID/…     evidence; a folder is there whole or not at all
//! end.json          how it ended; there if it did, and nobody went on with it since
//! lock              held by the process that writes
//! ```
//!
//! - `limits`: every bound by name; `problem`: what can be wrong; `text`: texts of others on one line
//! - `header` and `difference`: what is explored, and whether two explorations are one
//! - `record`, `hit`: what a branch came to, and what was found in it; `end`: how it all ended
//! - `line`: a record as a line; `lines`: the lines of the file; `index`: where each record is
//! - `folder`: files that are there whole or not at all, and the lock; `evidence`: what is kept of findings
//! - `journal`: the one who writes; `reading`: those who look
//! - `merged`: what is known once records were taken in, in the order of choices
//!
//! Not here: which branch is run next ([`crate::search`]), how one is run and judged, what is printed ([`crate::report`]).
//!
//! **Invariants.**
//! - Whatever byte the writer was killed at, the folder can be resumed. A record that is lost costs one more run of its branch.
//! - A record that is read is, to the byte, one that was written. Damage that no crash explains is an error with its line.
//! - What is merged is a function of the records in the order of choices. Host time is carried, never compared.
//! - Files are untrusted: whatever their bytes, memory is bounded.

mod difference;
mod end;
mod evidence;
mod folder;
mod header;
mod hit;
mod index;
mod journal;
pub mod limits;
mod line;
mod lines;
mod merged;
mod problem;
mod reading;
mod record;

pub use difference::Difference;
pub use end::{End, Why};
pub(crate) use everett_input::text::one_line;
pub use header::{Header, SCHEMA_VERSION, StrategyName};
pub use hit::{Evidence, Hit};
pub use journal::Journal;
pub use line::Damage;
pub use merged::{Commands, Cost, Finding, InSubtree, Merged, Seen, Stray, Tally, Totals};
pub use problem::RunError;
pub use reading::Reading;
pub use record::{HistoryCount, Record, RecordProblem};

#[cfg(test)]
pub(crate) mod tests;
