//! The journal: the writer of a run directory.
//!
//! A run directory stores an exploration. Its file `branches.bin` has one record for each branch that has ended: the
//! branch's place in the tree and its results.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everett_input::file::folder_of;

use super::end::ExplorationEnd;
use super::error::RunError;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::Index;
use super::limits::UNSYNCED_RECORDS_MAX;
use super::media::Source;
use super::merge_input::MergeInput;
use super::names;
use super::record::Record;
use super::scan::Tail;
use super::version::SCHEMA_VERSION;
use crate::coverage::Dictionary;
use crate::search::Choice;

/// Run directory that is open for writing. The journal holds the directory's lock, so no other process can write to it.
#[derive(Debug)]
pub struct Journal {
    run: PathBuf,
    index: Index,
    /// Number of bytes at the start of `branches.bin` that are durable, i.e. survive a power loss.
    synced: u64,
    /// Number of records that are not durable yet.
    unsynced: u64,
    /// True if a write failed and may have left part of a record at the end of the file.
    torn: bool,
    /// True if a sync failed. A later sync may report success although data is lost, so the journal writes nothing
    /// more.
    sync_failed: bool,
    cut: Option<Cut>,
    /// Lock file. The operating system releases the lock when the file is closed, e.g. at the end of the process.
    _lock: File,
}

/// Damaged end of `branches.bin` that [`Journal::resume`] cut off, after a crash or a power loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the damaged record, from 1.
    pub record: u64,
    /// Number of whole records after the damaged record. They are cut off as well, because their contents may depend on
    /// the damaged record.
    pub more: u64,
    /// Number of bytes that were cut off.
    pub bytes: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, record, more, bytes } = self;
        write!(f, "{}: record {record} is damaged; it ", path.display())?;
        match more {
            0 => f.write_str("was")?,
            1 => f.write_str("and 1 whole record after it were")?,
            more => write!(f, "and {more} whole records after it were")?,
        }
        write!(f, " cut off ({bytes} bytes); the missing branches are run again")
    }
}

impl Journal {
    /// Starts a run. Creates the folder if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the folder already has a run or records, if another process holds its lock, or if a system
    /// call fails.
    pub fn create(run: &Path, header: &Header) -> Result<Journal, RunError> {
        fs::create_dir_all(run).map_err(RunError::io("create", run))?;
        let lock = folder::lock(run)?;
        let exists = |name| {
            let path = run.join(name);
            path.try_exists().map_err(RunError::io("look at", &path))
        };
        if exists(names::HEADER)? {
            return Err(RunError::Exists(run.to_owned()));
        }
        folder::sweep(run)?;
        let source = open(run, true)?;
        if source.length()? > 0 {
            return Err(RunError::Orphans(run.to_owned()));
        }
        let findings = run.join(names::FINDINGS);
        fs::create_dir_all(&findings).map_err(RunError::io("create", &findings))?;
        folder::check_is_folder(&findings)?;
        folder::sync(run)?;
        folder::sync(folder_of(run))?;
        // A folder with a header is a run. Write the header last, when all other files of the run exist.
        header.write(run)?;
        let (index, _) = Index::of(source, 0, SCHEMA_VERSION, None)?;
        Ok(Journal::new(run, index, lock))
    }

    /// Resumes a run if it belongs to the exploration of `header`. Removes `end.json`, the file that marks a run as
    /// ended, and cuts off the damaged end that a crash left. In a run that has ended, any damage is an error.
    ///
    /// # Errors
    /// Returns an error and changes nothing if the folder has no run, or if the run belongs to another exploration.
    /// Also returns an error if another process holds the lock, if durable records are damaged, or if a system call
    /// fails.
    pub fn resume(run: &Path, header: &Header) -> Result<Journal, RunError> {
        // Read the header first, so that a folder without a run gets no lock file.
        let recorded = Header::read(run)?;
        if recorded.schema_version != SCHEMA_VERSION {
            return Err(RunError::OlderVersion {
                path: run.join(names::HEADER),
                found: recorded.schema_version,
            });
        }
        let other = |source| RunError::Other { path: run.to_owned(), source };
        recorded.same_exploration(header).map_err(other)?;
        let lock = folder::lock(run)?;
        let source = open(run, false)?;
        let length = source.length()?;
        let ended: Option<ExplorationEnd> = folder::read_end(run)?;
        let (index, Tail { records, bytes, damage }) = Index::of(source, length, SCHEMA_VERSION, None)?;
        if let Some(end) = &ended
            && (damage.is_some() || !index.has_first(end.branches))
        {
            // All records were durable before `end.json` was written, so a crash cannot have damaged or removed a
            // record.
            return Err(index.damaged_end(damage));
        }
        let findings = run.join(names::FINDINGS);
        folder::check_is_folder(&findings)?;
        folder::sweep(run)?;
        folder::sweep(&findings)?;
        folder::remove(run, names::END)?;
        let mut journal = Journal::new(run, index, lock);
        if bytes > 0 {
            let (path, record) = (journal.index.source().path.clone(), journal.len() + 1);
            journal.cut = Some(Cut { path, record, more: records, bytes });
            journal.cut_off()?;
        }
        // If the last writer was killed, its latest records may not be durable yet.
        journal.sync()?;
        Ok(journal)
    }

    fn new(run: &Path, index: Index, lock: File) -> Journal {
        let run = run.to_owned();
        Journal {
            run,
            index,
            synced: 0,
            unsynced: 0,
            torn: false,
            sync_failed: false,
            cut: None,
            _lock: lock,
        }
    }

    /// Adds a record, after cutting texts and lists in it that are too long. If the branch already has a record with
    /// the same result, adds nothing. A hit is a violation of a property on a branch. The evidence of a hit is dropped
    /// if the file already has a hit of the same finding on a branch with a lower number.
    ///
    /// # Errors
    /// Returns an error if the record is invalid or too long, or if the branch has a record that is damaged or has
    /// another result. Also returns an error if the file is full, if a system call fails, or if an earlier sync failed.
    /// If only the sync after the record fails, the record stays in the file. After any other error, nothing was added.
    pub fn append(&mut self, mut record: Record) -> Result<MergeInput, RunError> {
        let choice = record.choice;
        record.check().map_err(|source| RunError::Record { choice, source })?;
        record.bound();
        if let Some(recorded) = self.index.merge_input(choice)? {
            return match recorded.exact == super::exact::exact(&record) {
                true => Ok(recorded),
                false => Err(RunError::OtherResult { choice }),
            };
        }
        self.index.room()?;
        if self.sync_failed {
            return Err(RunError::SyncFailed(self.index.source().path.clone()));
        }
        let known = self.index.known();
        let written = self.write(&record);
        if written.is_err() {
            self.index.forget(known);
        }
        let input = written?;
        self.unsynced += 1;
        if self.unsynced >= UNSYNCED_RECORDS_MAX {
            self.sync()?;
        }
        Ok(input)
    }

    fn write(&mut self, record: &Record) -> Result<MergeInput, RunError> {
        let (input, text) = self.index.encode(record)?;
        let frame = self.index.frame(record.choice, &text, self.synced)?;
        if self.torn {
            self.cut_off()?;
        }
        let source = self.index.source();
        if let Err(error) = source.file.write_all_at(&frame, self.index.length()) {
            // Part of the record may be in the file. If the part cannot be removed now, it is removed before the next
            // write, at the end of the run, or when the run is resumed.
            let error = RunError::io("write", &source.path)(error);
            self.torn = true;
            let _ = self.cut_off();
            return Err(error);
        }
        self.index.written(&input, text.len())?;
        Ok(input)
    }

    /// Syncs the file, so that all records are durable.
    ///
    /// # Errors
    /// Returns an error if this sync or an earlier sync fails. The journal then writes nothing more.
    pub fn sync(&mut self) -> Result<(), RunError> {
        let source = self.index.source();
        if self.sync_failed {
            return Err(RunError::SyncFailed(source.path.clone()));
        }
        if let Err(error) = source.file.sync() {
            self.sync_failed = true;
            return Err(RunError::io("sync", &source.path)(error));
        }
        (self.synced, self.unsynced) = (self.index.length(), 0);
        Ok(())
    }

    /// Ends the run: makes all records durable, and then writes `end.json`.
    ///
    /// # Errors
    /// Returns an error if a system call fails, or if an earlier sync failed.
    pub fn finish(mut self, end: &ExplorationEnd) -> Result<(), RunError> {
        if self.torn {
            self.cut_off()?;
        }
        self.sync()?;
        folder::write(&self.run, names::END, &folder::to_json(&self.run, names::END, end)?)
    }

    /// Returns the [`MergeInput`] of a chosen branch, i.e. the parts of its record that are merged into the results of
    /// the exploration. Returns `None` if the branch has no record.
    ///
    /// # Errors
    /// Returns an error if the recorded branch has another path, if the file was damaged since it was opened, or if the
    /// file cannot be read.
    pub fn recorded(&self, choice: &Choice) -> Result<Option<MergeInput>, RunError> {
        let Some(input) = self.index.merge_input(choice.number)? else { return Ok(None) };
        if input.is_of(choice) {
            return Ok(Some(input));
        }
        Err(RunError::OtherChoice {
            choice: choice.number,
            chosen: Box::new(choice.path.clone()),
            recorded: Box::new(input.record.path),
        })
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.index.len()
    }

    /// True if the run has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the dictionary that numbers the coverage points in the results of [`Journal::append`] and
    /// [`Journal::recorded`].
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        self.index.dictionary()
    }

    /// Returns the part that was cut off the file on resume, if any.
    #[must_use]
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Stores evidence of a finding as files with these names. If an error occurs, stores none of them. If evidence of
    /// the finding is already stored, leaves it unchanged.
    ///
    /// # Errors
    /// Returns an error if a name is invalid, if there are too many files, if a system call fails, or if an earlier
    /// sync failed.
    pub fn keep_evidence(&mut self, id: u32, files: &[(&str, &[u8])]) -> Result<(), RunError> {
        if self.unsynced > 0 {
            // The records of the finding must be durable before the evidence.
            self.sync()?;
        }
        evidence::keep(&self.run, id, files)
    }

    /// Replaces the file to which records are written.
    #[cfg(test)]
    pub(super) fn use_file(&mut self, file: Arc<dyn super::media::Media>) {
        self.index.use_file(file);
    }

    /// Cuts off all bytes after the last whole record.
    fn cut_off(&mut self) -> Result<(), RunError> {
        let source = self.index.source();
        source.file.set_len(self.index.length()).map_err(RunError::io("cut", &source.path))?;
        self.torn = false;
        Ok(())
    }
}

/// Opens the file of records for writing.
fn open(run: &Path, create: bool) -> Result<Source, RunError> {
    let path = run.join(names::BRANCHES);
    let file = folder::open(&path, create)?;
    Ok(Source { file: Arc::new(file), path })
}
