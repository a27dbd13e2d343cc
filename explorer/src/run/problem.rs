//! Errors of run directories.

use std::io;
use std::path::{Path, PathBuf};

use everett_input::causes::with_causes;

use super::difference::Difference;
use super::limits::{FILE_NAME_BYTES_MAX, FILES_MAX, FRAME_BYTES_MAX, HEADER_BYTES_MAX, RECORDS_MAX};
use super::names::END;
use super::one_line;
use super::record::RecordProblem;
use super::version::{SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use crate::coverage::limits::STATE_BYTES_MAX;
use crate::text::clip;

/// Maximum length of a JSON reader's message, in bytes.
const REASON_BYTES_MAX: usize = 200;

/// Damage of a record in the file.
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
    #[error("it is longer than {FRAME_BYTES_MAX} bytes")]
    TooLong,
    /// The record's digest does not match its contents.
    #[error("its digest does not match its contents")]
    Exact,
    /// The record is missing, although the run ended with more records.
    #[error("it is missing, although the run ended with more records")]
    Missing,
    /// The record has a text of a point that is above the bound for texts.
    #[error("it has a text of a point that is longer than {STATE_BYTES_MAX} bytes")]
    LongText,
    /// The record names a text by a number that no text has.
    #[error("it names a text by a number that no earlier text has")]
    StringRef,
    /// The record introduces a point that has a number already, or for which the dictionary has no room.
    #[error("it introduces a point that has a number already, or for which no number is left")]
    Again,
    /// The checksum is right, but the contents cannot be decoded: another program wrote them.
    #[error("{0}")]
    Text(String),
    /// The record's contents contradict each other or break a bound.
    #[error(transparent)]
    Record(RecordProblem),
}

/// Returns a JSON reader's message on one line of at most [`REASON_BYTES_MAX`] bytes.
pub(super) fn reason(error: &serde_json::Error) -> String {
    one_line(&clip(&error.to_string(), REASON_BYTES_MAX))
}

/// Error of a run directory.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A system call failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The action that failed, as a verb.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process writes to the run directory.
    #[error("{} is in use: another process explores there", .0.display())]
    Busy(PathBuf),
    /// The folder for a new run has a run already.
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
        /// The file.
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
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The run has an older format, which is read but not continued.
    #[error(
        "{}: its format version is {found}; an exploration continues only in a run of version {SCHEMA_VERSION}: name another \
         folder",
        path.display()
    )]
    OlderVersion {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The run is another exploration's.
    #[error(
        "{} belongs to another exploration: name another folder, or remove this one to start again",
        path.display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// The first difference between the explorations.
        source: Difference,
    },
    /// A durable record is damaged. A crash damages only records that are not durable yet, and these are cut off. All
    /// records of a run that has ended are durable.
    #[error(
        "{}: record {record} is damaged, and a crash cannot have done this: {}; to resume the run, truncate the \
         file to {offset} bytes and remove {END} if there is one",
        path.display(),
        with_causes(damage)
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The record, from 1.
        record: u64,
        /// Offset of the record in the file.
        offset: u64,
        /// The damage.
        damage: Damage,
    },
    /// The file has two records of one choice.
    #[error("{}: records {first} and {record} are both of choice {choice}", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The second record, from 1.
        record: u64,
        /// The choice.
        choice: u64,
        /// The first record, from 1.
        first: u64,
    },
    /// The file has more records than a run may have.
    #[error("{}: more than {RECORDS_MAX} records", .0.display())]
    TooMany(PathBuf),
    /// A record is invalid.
    #[error("the record of choice {choice} cannot be written")]
    Record {
        /// Its choice.
        choice: u64,
        /// The problem of the record.
        source: RecordProblem,
    },
    /// A record is too long.
    #[error("the record of choice {choice} has {bytes} bytes; the maximum is {FRAME_BYTES_MAX}")]
    RecordTooLong {
        /// Its choice.
        choice: u64,
        /// Its length.
        bytes: usize,
    },
    /// A record cannot be encoded.
    #[error("the record of choice {choice} cannot be written: {problem}")]
    Encode {
        /// Its choice.
        choice: u64,
        /// Description of the problem.
        problem: String,
    },
    /// An earlier sync failed.
    #[error("{}: an earlier sync failed, so nothing more is written", .0.display())]
    SyncFailed(PathBuf),
    /// Two runs of one branch had different results: something is not deterministic.
    #[error("the result of choice {choice} differs from the recorded one")]
    OtherResult {
        /// The choice.
        choice: u64,
    },
    /// The search made another choice than the recorded one: something is not deterministic.
    #[error("choice {choice} is {chosen} now, but {recorded} was recorded")]
    OtherChoice {
        /// The choice.
        choice: u64,
        /// The path that is chosen now.
        chosen: Box<crate::search::Path>,
        /// The path that was recorded.
        recorded: Box<crate::search::Path>,
    },
    /// A name is not valid for a file of a finding.
    #[error(
        "{0:?} is not a valid file name: use 1 to {FILE_NAME_BYTES_MAX} of a-z, 0-9, \"-\", \"_\" and \".\", and no \
         \".\" at the start"
    )]
    FileName(String),
    /// A finding has too many files, or two with one name.
    #[error("finding {0}: more than {FILES_MAX} files, or two with one name")]
    Files(u32),
}

impl RunError {
    /// Returns a function that wraps a system error with the action and the path.
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunError + use<> {
        let path = path.to_owned();
        move |source| RunError::Io { what, path, source }
    }
}
