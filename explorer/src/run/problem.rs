//! What can be wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

use super::difference::Difference;
use super::folder::END;
use super::limits::{FILE_NAME_BYTES_MAX, FILES_MAX, FRAME_BYTES_MAX, HEADER_BYTES_MAX, RECORDS_MAX};
use super::one_line;
use super::record::RecordProblem;
use crate::coverage::limits::STATE_BYTES_MAX;
use crate::coverage::text::clip;

/// The most bytes of what a JSON reader says that are told.
const TOLD_BYTES_MAX: usize = 200;

/// What is wrong with a record in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file ends before it does.
    #[error("the file ends within it")]
    Short,
    /// It has another form.
    #[error("it does not have a record's form")]
    Form,
    /// It says something else than what was written.
    #[error("its checksum is not that of its bytes")]
    Sum,
    /// It has no end where records are over.
    #[error("it is longer than records are")]
    TooLong,
    /// Its digest is another one's.
    #[error("its digest is not that of what it says")]
    Exact,
    /// The run has ended, and had more records then.
    #[error("it is not there, and the run ended with more records")]
    Missing,
    /// A text of a point that is longer than those are.
    #[error("it tells a text of a point that is longer than {STATE_BYTES_MAX} bytes")]
    LongText,
    /// A text by number.
    #[error("it names a text that was not told before it")]
    Word,
    /// A point that has a number, or beyond the last number.
    #[error("it tells a point that has a number, or for which there is none")]
    Again,
    /// The bytes are as they were written, by something that is not this.
    #[error("{0}")]
    Text(String),
    /// What it says cannot be.
    #[error("{0}")]
    Record(RecordProblem),
}

/// What a JSON reader says, on one line and not too long.
pub(super) fn told(error: &serde_json::Error) -> String {
    one_line(&clip(&error.to_string(), TOLD_BYTES_MAX))
}

/// Why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system said no.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process writes to it.
    #[error("{} is in use: another process explores there", .0.display())]
    Busy(PathBuf),
    /// A new run needs a place of its own.
    #[error("{} has a run already: resume it, or name another folder", .0.display())]
    Exists(PathBuf),
    /// Records of which nobody knows what they are of.
    #[error(
        "{} has records and no run.json that says of what: name another folder, or remove this one to begin anew", .0.display()
    )]
    Orphans(PathBuf),
    /// There is nothing to resume or to read.
    #[error("{} has no run: there is no run.json in it", .0.display())]
    NoRun(PathBuf),
    /// A file in JSON that is none, or not the one that it should be.
    #[error("{}: {problem}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file that is too long.
    #[error("{} has more than {HEADER_BYTES_MAX} bytes", .0.display())]
    FileTooLong(PathBuf),
    /// Written by an Everett with another format.
    #[error("{}: its format is {found}, and this version knows {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// It is another exploration.
    #[error("{} is another exploration's: name another folder, or remove this one to begin anew", path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// What differs.
        source: Difference,
    },
    /// A record that nobody wrote. A crash does that only to records that do not last yet, and these are cut off. All records of a
    /// run that has ended last.
    #[error(
        "{}: record {record} is damaged, which no crash explains: {damage}; cut to {offset} bytes, and without {END}, the run can be \
         resumed",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The record, from 1.
        record: u64,
        /// Where it begins.
        offset: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Two records of one choice.
    #[error("{}: record {record} is of choice {choice}, and so is record {first}", path.display())]
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
    /// More records than a run has.
    #[error("{}: more than {RECORDS_MAX} records", .0.display())]
    TooMany(PathBuf),
    /// A record that cannot be one.
    #[error("the record of choice {choice} cannot be written")]
    Record {
        /// Its choice.
        choice: u64,
        /// What is wrong with it.
        source: RecordProblem,
    },
    /// A record that is too long.
    #[error("the record of choice {choice} takes {bytes} bytes, and one has at most {FRAME_BYTES_MAX}")]
    RecordTooLong {
        /// Its choice.
        choice: u64,
        /// How long it would be.
        bytes: usize,
    },
    /// A record that cannot be put into bytes.
    #[error("the record of choice {choice} cannot be written: {problem}")]
    Encode {
        /// Its choice.
        choice: u64,
        /// Why.
        problem: String,
    },
    /// Something could not be made to last before.
    #[error("{}: the disk has failed to keep what was written before; nothing more is written", .0.display())]
    SyncFailed(PathBuf),
    /// A branch that was run twice came to two things: something is not deterministic.
    #[error("choice {choice} has another result than the one that was recorded")]
    OtherResult {
        /// The choice.
        choice: u64,
    },
    /// The search chooses otherwise than the one that was recorded: something is not deterministic.
    #[error("choice {choice} is {chosen}, and {recorded} was recorded")]
    OtherChoice {
        /// The choice.
        choice: u64,
        /// The path that is chosen now.
        chosen: Box<crate::search::Path>,
        /// The path that was.
        recorded: Box<crate::search::Path>,
    },
    /// A name that no file of a finding has.
    #[error(
        "{0:?} is no name of a file: 1 to {FILE_NAME_BYTES_MAX} of a-z, 0-9, \"-\", \"_\" and \".\", which it does not begin with"
    )]
    FileName(String),
    /// More files than a finding has.
    #[error("finding {0}: more than {FILES_MAX} files, or two with one name")]
    Files(u32),
}

impl RunError {
    /// An error of the system's.
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunError + use<> {
        let path = path.to_owned();
        move |source| RunError::Io { what, path, source }
    }
}
