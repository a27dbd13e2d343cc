//! The run directory: results that an exploration writes while it runs, and the summary that is computed from them.
//!
//! An exploration that was killed makes the same choices again when it is resumed. It uses the recorded results, and
//! runs only the missing branches. The folder therefore has results, but no state of the search:
//!
//! ```text
//! run.json          identity and parameters of the exploration; written once, when the folder is complete
//! branches.bin      one record for each branch, in the order in which branches ended, each with a checksum
//! findings/ID/…     evidence of a finding; each folder is complete or absent
//! end.json          how the run ended; present if the run has ended and was not resumed since
//! lock              locked by the process that writes
//! ```
//!
//! - `limits`: bounds
//! - `error`: errors of run directories
//! - `version`: versions of the format
//! - `names`: names of the files
//! - `header`: the contents of `run.json`
//! - `comparison`, `difference`: comparison of two headers, and their first difference
//! - `record`, `hit`: the result of a branch, and its violations of properties
//! - `final_phase`: the cost of a timeline from the branch's end to the end of the checks
//! - `end`: the contents of `end.json`
//! - `merge_input`: the parts of a record that are merged, with a number in place of each coverage point
//! - `exact`: the digest of the parts of a record that do not depend on the host
//! - `digest`: hasher with which digests are computed
//! - `stored`: encodes records as bytes, and decodes them
//! - `string_table`: numbers the texts of coverage points, so that the file contains each text once
//! - `frame`: the head with length and checksum that precedes each record in the file
//! - `scan`: reading of all records in the file, and of the tail that a crash left
//! - `index`: the offset of each record in the file
//! - `media`: reads, writes and syncs of `branches.bin`
//! - `bounded_list`: lists with a maximum length
//! - `folder`: atomic replacement of files, and the lock
//! - `evidence`: stores the files of a finding's evidence
//! - `journal`: writes a run directory
//! - `reading`: reads a run directory, even while another process writes to it
//! - `merged`: the summary of the records, merged in the order in which the explorer chose the branches
//! - [`branches`]: a short summary of each branch, for displays
//! - `fault_kinds`: the kinds of faults on each branch
//!
//! Not here: the choice of the next branch ([`crate::search`]), the execution and judgement of branches, and printing
//! (`everett-report`).
//!
//! **Invariants.**
//! - A run can be resumed after its writer was killed at any byte. It can also be resumed after a power loss that left
//!   some sectors unwritten. Each lost record means that its branch runs once more.
//! - A record is read exactly as it was written, or not at all. Damage that a crash cannot have caused is an error that
//!   names the position. In a run that has ended, all damage is an error, because the records were synced before
//!   `end.json` was written.
//! - For each coverage point, only the first record in the file with this point contains the point's texts. Later
//!   records refer to the point by its number. A reader can therefore stop after any record, because no record refers
//!   to a later one.
//! - The merged summary is a function of the records and of the order in which the explorer chose the branches. Host
//!   times are recorded, but never compared.
//! - Files are untrusted. Memory and time are bounded for any contents, and Everett never writes through a link.

mod bounded_list;
pub mod branches;
mod comparison;
mod difference;
mod digest;
mod end;
mod error;
mod evidence;
mod exact;
mod fault_kinds;
mod final_phase;
mod folder;
mod frame;
mod header;
mod hit;
mod index;
mod journal;
pub mod limits;
mod media;
mod merge_input;
mod merged;
mod names;
mod reading;
mod record;
mod scan;
mod stored;
mod string_table;
mod version;

pub use difference::Difference;
pub use end::{Budget, EndReason, ExplorationEnd};
pub use error::{Damage, RunError};
pub(crate) use everett_input::text::one_line;
pub use fault_kinds::{FaultKinds, KINDS_MAX};
pub use final_phase::{FinalPhase, Span};
pub use header::{Header, StrategyName};
pub use hit::{Evidence, Hit};
pub use journal::{Cut, Journal};
pub use merge_input::MergeInput;
pub use merged::{
    Commands, Cost, FinalPhases, Finding, InSubtree, LongestFinal, Merged, Seen, Stray, Tally, Totals,
};
pub use reading::Reading;
pub use record::{HistoryCount, Record, RecordProblem};
pub use version::{SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};

#[cfg(test)]
pub(crate) mod tests;
