//! The one who writes to a run directory.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::brief::Brief;
use super::end::End;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::Index;
use super::limits::SYNC_RECORDS;
use super::media::Source;
use super::problem::RunError;
use super::record::Record;
use super::scan::Tail;
use crate::coverage::Dictionary;
use crate::search::Choice;

/// A run directory that is written to. Nobody else writes to it as long as this lives.
#[derive(Debug)]
pub struct Journal {
    run: PathBuf,
    index: Index,
    /// How many bytes of the file last, whatever happens to the power.
    synced: u64,
    /// Records behind them.
    unsynced: u64,
    /// A record could not be written: there may be a part of it.
    torn: bool,
    /// The system could not make something last. What it says of that afterwards is not to be believed.
    sync_failed: bool,
    cut: Option<Cut>,
    /// Released when it is closed, by the system if nobody else does it.
    _lock: File,
}

/// What was cut off when a run was resumed: a crash or a loss of power had left it damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// The first record that is gone, from 1.
    pub record: u64,
    /// Whole records behind it, which are gone, too: what they say may depend on it.
    pub more: u64,
    /// All that is gone, in bytes.
    pub bytes: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, record, more, bytes } = self;
        write!(f, "{}: record {record} was not written to its end: cut off there, ", path.display())?;
        match more {
            0 => {}
            1 => f.write_str("with 1 whole record behind it, ")?,
            more => write!(f, "with {more} whole records behind it, ")?,
        }
        write!(f, "{bytes} bytes in all; what is missing is run again")
    }
}

impl Journal {
    /// Begin a run. The folder is made if it is not there.
    ///
    /// # Errors
    /// There is a run in it, somebody else is about to make one, or the system says no.
    pub fn create(run: &Path, header: &Header) -> Result<Journal, RunError> {
        fs::create_dir_all(run).map_err(RunError::io("create", run))?;
        let lock = folder::lock(run)?;
        let exists = |name| {
            let path = run.join(name);
            path.try_exists().map_err(RunError::io("look at", &path))
        };
        if exists(folder::HEADER)? {
            return Err(RunError::Exists(run.to_owned()));
        }
        folder::sweep(run)?;
        let source = open(run, true)?;
        if source.length()? > 0 {
            return Err(RunError::Orphans(run.to_owned()));
        }
        let findings = run.join(folder::FINDINGS);
        fs::create_dir_all(&findings).map_err(RunError::io("create", &findings))?;
        folder::check_is_folder(&findings)?;
        folder::sync(run)?;
        if let Some(parent) = run.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            folder::sync(parent)?;
        }
        // From here on there is a run: all else that it needs is there.
        header.write(run)?;
        let (index, _) = Index::of(source, 0, None)?;
        Ok(Journal::new(run, index, lock))
    }

    /// Go on with a run if it is this one; nothing is touched if it is not. What a crash left damaged at the end, and `end.json`,
    /// are removed. Nothing is cut off of a run that has ended: whatever is damaged there is an error.
    ///
    /// # Errors
    /// There is no run, it is another, somebody goes on with it, it is damaged, or the system says no.
    pub fn resume(run: &Path, header: &Header) -> Result<Journal, RunError> {
        // No lock is made where there is no run.
        let recorded = Header::read(run)?;
        let other = |source| RunError::Other { path: run.to_owned(), source };
        recorded.same_exploration(header).map_err(other)?;
        let lock = folder::lock(run)?;
        let source = open(run, false)?;
        let length = source.length()?;
        let ended: Option<End> = folder::read_end(run)?;
        let (index, Tail { records, bytes, damage }) = Index::of(source, length, None)?;
        if let Some(end) = &ended
            && (damage.is_some() || !index.has_first(end.branches))
        {
            // All records were made to last before the end was told: no crash cuts them off.
            return Err(index.damaged_end(damage));
        }
        let findings = run.join(folder::FINDINGS);
        folder::check_is_folder(&findings)?;
        folder::sweep(run)?;
        folder::sweep(&findings)?;
        folder::remove(run, folder::END)?;
        let mut journal = Journal::new(run, index, lock);
        if bytes > 0 {
            let (path, record) = (journal.index.source().path.clone(), journal.len() + 1);
            journal.cut = Some(Cut { path, record, more: records, bytes });
            journal.cut_off()?;
        }
        // What a writer that was killed has left need not last yet.
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

    /// Add a record, within bounds; of one that is there, nothing. What is kept as evidence of a hit is so only where it may be the
    /// first of its finding.
    ///
    /// # Errors
    /// It cannot be one, another is recorded of its choice, there is no room, or the system says no. Then nothing was added.
    pub fn append(&mut self, mut record: Record) -> Result<Brief, RunError> {
        let choice = record.choice;
        record.check().map_err(|source| RunError::Record { choice, source })?;
        record.bound();
        if let Some(recorded) = self.index.brief(choice)? {
            return match recorded.exact == super::merged::exact(&record) {
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
        let brief = written?;
        self.unsynced += 1;
        if self.unsynced >= SYNC_RECORDS {
            self.sync()?;
        }
        Ok(brief)
    }

    fn write(&mut self, record: &Record) -> Result<Brief, RunError> {
        let (brief, text) = self.index.encode(record)?;
        let frame = self.index.frame(record.choice, &text, self.synced)?;
        if self.torn {
            self.cut_off()?;
        }
        let source = self.index.source();
        if let Err(error) = source.file.write_all_at(&frame, self.index.length()) {
            // A part of it may be there. If that cannot be removed now, then before the next one is written, or on resume.
            let error = RunError::io("write", &source.path)(error);
            self.torn = true;
            let _ = self.cut_off();
            return Err(error);
        }
        self.index.written(&brief, text.len())?;
        Ok(brief)
    }

    /// Make last what was written.
    ///
    /// # Errors
    /// The system says no, or has said so before: then nothing more is written.
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

    /// End the run: what was recorded lasts, and the end is told.
    ///
    /// # Errors
    /// The system says no.
    pub fn finish(mut self, end: &End) -> Result<(), RunError> {
        if self.torn {
            self.cut_off()?;
        }
        self.sync()?;
        folder::write(&self.run, folder::END, &folder::to_json(&self.run, folder::END, end)?)
    }

    /// What is recorded of a choice, if it is, as it is taken in.
    ///
    /// # Errors
    /// What is recorded is another branch, or the file was damaged since.
    pub fn recorded(&self, choice: &Choice) -> Result<Option<Brief>, RunError> {
        let Some(brief) = self.index.brief(choice.number)? else { return Ok(None) };
        if brief.is_of(choice) {
            return Ok(Some(brief));
        }
        Err(RunError::OtherChoice {
            choice: choice.number,
            chosen: Box::new(choice.path.clone()),
            recorded: Box::new(brief.record.path),
        })
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.index.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The points that records name by number: those of [`Journal::append`] and [`Journal::recorded`].
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        self.index.dictionary()
    }

    /// What was cut off when it was resumed, if something was.
    #[must_use]
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Keep evidence of a finding, as files of these names: all of them, or none if this fails. Of a finding that has evidence
    /// nothing is changed.
    ///
    /// # Errors
    /// A name is none, there are too many, or the system says no.
    pub fn keep_evidence(&mut self, id: u32, files: &[(&str, &[u8])]) -> Result<(), RunError> {
        if self.unsynced > 0 {
            // The records that led there last at least as long.
            self.sync()?;
        }
        evidence::keep(&self.run, id, files)
    }

    /// Write to another file from here on.
    #[cfg(test)]
    pub(super) fn use_file(&mut self, file: Arc<dyn super::media::Media>) {
        self.index.use_file(file);
    }

    /// Cut off what is behind the last whole record.
    fn cut_off(&mut self) -> Result<(), RunError> {
        let source = self.index.source();
        source.file.set_len(self.index.length()).map_err(RunError::io("cut", &source.path))?;
        self.torn = false;
        Ok(())
    }
}

/// The file of records, for writing.
fn open(run: &Path, create: bool) -> Result<Source, RunError> {
    let path = run.join(folder::BRANCHES);
    let file = folder::open(&path, create)?;
    Ok(Source { file: Arc::new(file), path })
}
