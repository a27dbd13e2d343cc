//! The run directory: results that an exploration writes while it runs, and the summary that is computed from them.
//!
//! An exploration that was killed makes the same choices again when it is resumed. It uses the recorded results, and
//! runs the missing branches. The folder therefore stores results and no state of the search:
//!
//! ```text
//! run.json          identity and parameters of the exploration; written once, when the folder is complete
//! branches.bin      one record for each branch, in the order in which they ended, each with a checksum
//! findings/ID/…     evidence of a finding; each folder is complete or absent
//! end.json          how the run ended; present if it has ended and was not resumed since
//! lock              held by the process that writes
//! ```
//!
//! - `limits`: every bound by name; `problem`: errors; `version`: versions of the format; `names`: names of files
//! - `header`: description of the exploration; `comparison`: two of them compared; `difference`: the first that differs
//! - `record`, `hit`: the result of a branch, and its violations of properties; `final_phase`: the cost of what follows
//!   it; `end`: how the run ended
//! - `merge_input`: a record in the form that is merged, with points by number; `exact`: the digest of its parts that
//!   are compared; `digest`: digests of results
//! - `stored`: a record as bytes; `string_table`: texts of points by number
//! - `frame`: a record in the file; `scan`: the records of the file, and the tail that a crash left; `index`: the
//!   offset of each record
//! - `media`: the file itself; `bounded_list`: lists with a maximum length
//! - `folder`: files that are replaced atomically, and the lock; `evidence`: files of findings
//! - `journal`: the writer; `reading`: readers
//! - `merged`: the summary of the records, merged in the order of choices; [`branches`]: figures of each branch;
//!   `fault_kinds`: the kinds of faults on it
//!
//! Not here: the choice of the next branch ([`crate::search`]), running and judging branches, printing
//! (`everett-report`).
//!
//! **Invariants.**
//! - A run can be resumed after its writer was killed at any byte, and after a loss of power that left any of the
//!   sectors unwritten. A lost record costs one more run of its branch.
//! - A record is read exactly as it was written, or not at all. Damage that a crash cannot have caused is an error with
//!   its place. In a run that has ended this is all damage, because its records were synced before `end.json` was
//!   written.
//! - The first record with a point, in the order of the file, introduces it; later records name it by its number. So
//!   the file can be read up to any record without the rest.
//! - The merged summary is a function of the records in the order of choices. Host time is recorded, but never
//!   compared.
//! - Files are untrusted: memory and time are bounded for any bytes in them. Everett never writes through a link.

mod bounded_list;
pub mod branches;
mod comparison;
mod difference;
mod digest;
mod end;
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
mod problem;
mod reading;
mod record;
mod scan;
mod stored;
mod string_table;
mod version;

pub use difference::Difference;
pub use end::{Budget, EndReason, ExplorationEnd};
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
pub use problem::{Damage, RunError};
pub use reading::Reading;
pub use record::{HistoryCount, Record, RecordProblem};
pub use version::{SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};

#[cfg(test)]
pub(crate) mod tests;
