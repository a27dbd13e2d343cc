//! What can be wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

use super::difference::Difference;
use super::limits::{FILE_NAME_BYTES_MAX, FILES_MAX, HEADER_BYTES_MAX, LINE_BYTES_MAX, RECORDS_MAX};
use super::line::Damage;
use super::record::RecordProblem;

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
    /// A line that nobody wrote. A crash does not do that, unless to the last line, which is cut off then.
    #[error("{}: line {line} is damaged: {damage}; cut off there, the run can be resumed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Two lines of one choice.
    #[error("{}: line {line} is of choice {choice}, and so is line {first}", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The second line, from 1.
        line: u64,
        /// The choice.
        choice: u64,
        /// The first line, from 1.
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
    /// A record that no line holds.
    #[error("the record of choice {choice} takes {bytes} bytes, and a line has at most {LINE_BYTES_MAX}")]
    LineTooLong {
        /// Its choice.
        choice: u64,
        /// How long its line would be.
        bytes: usize,
    },
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
