//! The writer of a run directory.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::end::ExplorationEnd;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::Index;
use super::limits::SYNC_RECORDS;
use super::media::Source;
use super::merge_input::MergeInput;
use super::names;
use super::problem::RunError;
use super::record::Record;
use super::scan::Tail;
use super::version::SCHEMA_VERSION;
use crate::coverage::Dictionary;
use crate::search::Choice;

/// Run directory that is open for writing. It holds the lock, so no other process writes to the directory meanwhile.
#[derive(Debug)]
pub struct Journal {
    run: PathBuf,
    index: Index,
    /// Bytes of the file that are durable, i.e. survive a loss of power.
    synced: u64,
    /// Number of records after the durable ones.
    unsynced: u64,
    /// True if a write failed and may have left a part of a record after the last whole one.
    torn: bool,
    /// True if a sync failed. Later syncs may report success for data that is lost, so nothing more is written.
    sync_failed: bool,
    cut: Option<Cut>,
    /// The lock. It is released when the file is closed, at the latest by the system when the process ends.
    _lock: File,
}

/// Part of the file that was cut off when a run was resumed, because a crash or a loss of power had damaged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// The damaged record, from 1.
    pub record: u64,
    /// Number of whole records after it. They are cut off, too, because their contents may depend on the damaged one.
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
    /// Begins a run. The folder is created if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the folder has a run or records, if another process holds its lock, or if a system call
    /// fails.
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
        if let Some(parent) = run.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            folder::sync(parent)?;
        }
        // A folder with a header is a run, so the header is written last, when all other files that a run needs exist.
        header.write(run)?;
        let (index, _) = Index::of(source, 0, SCHEMA_VERSION, None)?;
        Ok(Journal::new(run, index, lock))
    }

    /// Resumes a run if it is the exploration of `header`; otherwise changes nothing. Removes `end.json`, and cuts off
    /// the damaged end that a crash left. From a run that has ended nothing is cut off: any damage in it is an error.
    ///
    /// # Errors
    /// Returns an error if the folder has no run, if the run is another exploration's, if another process holds its
    /// lock, if durable records are damaged, or if a system call fails.
    pub fn resume(run: &Path, header: &Header) -> Result<Journal, RunError> {
        // The header is read first, so that a folder without a run gets no lock file.
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
            // All records were synced before the end was written, so a crash cannot have damaged or removed one.
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
        // The records of a writer that was killed may not be durable yet.
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

    /// Adds a record, cut to its bounds. If the choice is recorded with the same result, nothing is added. The evidence
    /// of a hit is recorded only if no earlier choice with a hit of the same finding is recorded.
    ///
    /// # Errors
    /// Returns an error if the record is invalid or too long, if the choice is recorded with another result or its
    /// record is damaged, if the file is full, if a system call fails, or if an earlier sync failed. If only the sync
    /// after the record fails, the record stays in the file; after any other error nothing was added.
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
        if self.unsynced >= SYNC_RECORDS {
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
            // A part of the record may be in the file. If it cannot be removed now, it is removed before the next
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
    /// Returns an error if the sync fails, or if an earlier one failed. Nothing more is written after that.
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

    /// Ends the run: syncs the records and then writes `end.json`.
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

    /// Returns the [`MergeInput`] of a choice's record, if it is recorded.
    ///
    /// # Errors
    /// Returns an error if another branch is recorded for the choice, if the file was damaged since it was opened, or
    /// if it cannot be read.
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

    /// Returns the points that the results of [`Journal::append`] and [`Journal::recorded`] name by number.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        self.index.dictionary()
    }

    /// Returns the part of the file that was cut off on resume, if any.
    #[must_use]
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Stores evidence of a finding, as files with these names: all of them, or none if this fails. If evidence of the
    /// finding is stored already, it is not changed.
    ///
    /// # Errors
    /// Returns an error if a name is not valid, if there are too many files, or if a system call fails.
    pub fn keep_evidence(&mut self, id: u32, files: &[(&str, &[u8])]) -> Result<(), RunError> {
        if self.unsynced > 0 {
            // The records of the finding must be durable before its evidence is.
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
