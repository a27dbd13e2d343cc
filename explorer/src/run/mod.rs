//! The run directory: what an exploration leaves behind while it goes on, and what is known of it from there.
//!
//! An exploration that is killed makes the same choices again when it is resumed, takes the results that were recorded, and runs
//! what is missing. So the folder keeps results and nothing else:
//!
//! ```text
//! run.json          what is explored; written once, first
//! branches.bin      a record a branch, in the order in which they ended, each with a checksum
//! findings/ID/…     evidence; a folder is there whole or not at all
//! end.json          how it ended; there if it did, and nobody went on with it since
//! lock              held by the process that writes
//! ```
//!
//! - `limits`: every bound by name; `problem`: what can be wrong; `text`: texts of others on one line
//! - `header` and `difference`: what is explored, and whether two explorations are one
//! - `record`, `hit`: what a branch came to, and what was found in it; `end`: how it all ended
//! - `brief`: a record as it is taken in, with points by number; `stored`: a record as bytes; `words`: texts of points by number
//! - `frame`: a record in the file; `scan`: the records of the file, and what a crash left behind them; `index`: where each record is
//! - `media`: the file itself; `bounded`: lists of it
//! - `folder`: files that are there whole or not at all, and the lock; `evidence`: what is kept of findings
//! - `journal`: the one who writes; `reading`: those who look
//! - `merged`: what is known once records were taken in, in the order of choices
//!
//! Not here: which branch is run next ([`crate::search`]), how one is run and judged, what is printed ([`crate::report`]).
//!
//! **Invariants.**
//! - Whatever byte the writer was killed at, and whichever sectors a loss of power left as they were, the folder can be resumed. A
//!   record that is lost costs one more run of its branch.
//! - A record that is read is, to the byte, one that was written. Damage that no crash explains is an error with its place. A crash
//!   explains none in a run that has ended: its records were made to last before `end.json` was written.
//! - A point is told by the first record that has it, in the order of the file, and named by its number in later ones. So the file
//!   up to any record is whole without what follows.
//! - What is merged is a function of the records in the order of choices. Host time is carried, never compared.
//! - Files are untrusted: whatever their bytes, memory and time are bounded. A file that is written to is no link.

mod bounded;
mod brief;
mod difference;
mod end;
mod evidence;
mod folder;
mod frame;
mod header;
mod hit;
mod index;
mod journal;
pub mod limits;
mod media;
mod merged;
mod problem;
mod reading;
mod record;
mod scan;
mod stored;
mod words;

pub use brief::Brief;
pub use difference::Difference;
pub use end::{End, Why};
pub(crate) use everett_input::text::one_line;
pub use header::{Header, SCHEMA_VERSION, StrategyName};
pub use hit::{Evidence, Hit};
pub use journal::{Cut, Journal};
pub use merged::{Commands, Cost, Finding, InSubtree, Merged, Seen, Stray, Tally, Totals};
pub use problem::{Damage, RunError};
pub use reading::Reading;
pub use record::{HistoryCount, Record, RecordProblem};

#[cfg(test)]
pub(crate) mod tests;
