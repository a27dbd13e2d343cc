//! Errors of run directories, in which explorations store their results.

use std::io;
use std::path::{Path, PathBuf};

use everett_input::causes::with_causes;

use super::difference::Difference;
use super::limits::{FILE_NAME_BYTES_MAX, FILES_MAX, HEADER_BYTES_MAX, RECORD_BYTES_MAX, RECORDS_MAX};
use super::names::END;
use super::one_line;
use super::record::RecordProblem;
use super::version::{SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use crate::coverage::limits::STATE_BYTES_MAX;
use crate::text::clip;

/// Maximum length of a JSON error's message, in bytes.
const REASON_BYTES_MAX: usize = 200;

/// Damage to a record in `branches.bin`, the file of branches' results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file ends within the record.
    #[error("the file ends within it")]
    Short,
    /// The record is malformed.
    #[error("it is malformed")]
    Form,
    /// The checksum does not match the record's bytes.
    #[error("its checksum does not match its bytes")]
    Sum,
    /// The record's length is above the bound for records.
    #[error("it is longer than {RECORD_BYTES_MAX} bytes")]
    TooLong,
    /// The record's digest does not match its contents.
    #[error("its digest does not match its contents")]
    Exact,
    /// The record is missing, although the run ended with more records.
    #[error("it is missing, although the run ended with more records")]
    Missing,
    /// A text of a coverage point in the record is too long.
    #[error("it has a text of a point that is longer than {STATE_BYTES_MAX} bytes")]
    LongText,
    /// The record refers to a text by a number that no text has.
    #[error("it names a text by a number that no earlier text has")]
    StringRef,
    /// The record contains the definition of a coverage point, but the point cannot get a number. Either it has a
    /// number already, or all numbers are in use.
    #[error("it introduces a point that has a number already, or for which no number is left")]
    Again,
    /// The checksum is right, but the contents cannot be decoded. Another program must have written them.
    #[error("{0}")]
    Text(String),
    /// The record's contents contradict each other or exceed a bound.
    #[error(transparent)]
    Record(RecordProblem),
}

/// Returns a JSON error's message on one line of at most [`REASON_BYTES_MAX`] bytes.
pub(super) fn reason(error: &serde_json::Error) -> String {
    one_line(&clip(&error.to_string(), REASON_BYTES_MAX))
}

/// Error of a run directory.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A system call failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// Action that failed, as a verb.
        what: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another process writes to the run directory.
    #[error("{} is in use: another process explores there", .0.display())]
    Busy(PathBuf),
    /// The folder for a new run already has a run.
    #[error("{} has a run already: resume it, or name another folder", .0.display())]
    Exists(PathBuf),
    /// The folder has records, but no `run.json` that identifies their exploration.
    #[error("{} has records, but no run.json: name another folder, or remove this one to start again", .0.display())]
    Orphans(PathBuf),
    /// The folder has no run to resume or to read.
    #[error("{} has no run: there is no run.json in it", .0.display())]
    NoRun(PathBuf),
    /// A JSON file cannot be parsed, or has an unexpected value.
    #[error("{}: {problem}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// A file is too long.
    #[error("{} has more than {HEADER_BYTES_MAX} bytes", .0.display())]
    FileTooLong(PathBuf),
    /// The run was written by a version of Everett with another format.
    #[error(
        "{}: its format version is {found}; this version of Everett reads versions {SCHEMA_VERSION_OLDEST} to {SCHEMA_VERSION}",
        path.display()
    )]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Format version of the run.
        found: u32,
    },
    /// The run has an older format. Everett can read the run, but cannot continue it.
    #[error(
        "{}: its format version is {found}; an exploration continues only in a run of version {SCHEMA_VERSION}: name another \
         folder",
        path.display()
    )]
    OlderVersion {
        /// Path of the file.
        path: PathBuf,
        /// Format version of the run.
        found: u32,
    },
    /// The run belongs to another exploration.
    #[error(
        "{} belongs to another exploration: name another folder, or remove this one to start again",
        path.display()
    )]
    Other {
        /// Path of the folder.
        path: PathBuf,
        /// First difference between the explorations.
        source: Difference,
    },
    /// A durable record is damaged, i.e. a record that was synced to disk. A crash can damage only records that are not
    /// durable yet, and a resume cuts these off. In a run that has ended, all records are durable.
    #[error(
        "{}: record {record} is damaged, and a crash cannot have done this: {}; to resume the run, truncate the \
         file to {offset} bytes and remove {END} if there is one",
        path.display(),
        with_causes(damage)
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Number of the record, from 1.
        record: u64,
        /// Offset of the record in the file, in bytes.
        offset: u64,
        /// Kind of damage.
        damage: Damage,
    },
    /// The file has two records of the same branch.
    #[error("{}: records {first} and {record} are both of choice {choice}", path.display())]
    Twice {
        /// Path of the file.
        path: PathBuf,
        /// Number of the second record, from 1.
        record: u64,
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
        /// Number of the first record, from 1.
        first: u64,
    },
    /// The file has more records than a run may have.
    #[error("{}: more than {RECORDS_MAX} records", .0.display())]
    TooMany(PathBuf),
    /// A record that was to be written is invalid.
    #[error("the record of choice {choice} cannot be written")]
    Record {
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
        /// Problem with the record.
        source: RecordProblem,
    },
    /// A record that was to be written is too long.
    #[error("the record of choice {choice} has {bytes} bytes; the maximum is {RECORD_BYTES_MAX}")]
    RecordTooLong {
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
        /// Length of the record, in bytes.
        bytes: usize,
    },
    /// A record cannot be encoded.
    #[error("the record of choice {choice} cannot be written: {problem}")]
    Encode {
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
        /// Description of the problem.
        problem: String,
    },
    /// An earlier sync failed.
    #[error("{}: an earlier sync failed, so nothing more is written", .0.display())]
    SyncFailed(PathBuf),
    /// Two runs of one branch had different results, so something is not deterministic.
    #[error("the result of choice {choice} differs from the recorded one")]
    OtherResult {
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
    },
    /// The search chose another branch than the recorded one, so something is not deterministic.
    #[error("choice {choice} is {chosen} now, but {recorded} was recorded")]
    OtherChoice {
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
        /// Path of the branch that the search chose now.
        chosen: Box<crate::search::Path>,
        /// Path of the recorded branch with the same number.
        recorded: Box<crate::search::Path>,
    },
    /// The name of a finding's file is invalid.
    #[error(
        "{0:?} is not a valid file name: use 1 to {FILE_NAME_BYTES_MAX} of a-z, 0-9, \"-\", \"_\" and \".\", and no \
         \".\" at the start"
    )]
    FileName(String),
    /// A finding has too many files, or two files with the same name.
    #[error("finding {0}: more than {FILES_MAX} files, or two with one name")]
    Files(u32),
}

impl RunError {
    /// Returns a function that adds the action and the path to an error of the operating system.
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunError + use<> {
        let path = path.to_owned();
        move |source| RunError::Io { what, path, source }
    }
}
