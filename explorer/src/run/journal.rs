//! The one who writes to a run directory.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::end::End;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::Index;
use super::limits::{LINE_BYTES_MAX, SYNC_RECORDS};
use super::line;
use super::lines::Source;
use super::problem::RunError;
use super::record::Record;
use crate::search::Choice;

/// A run directory that is written to. Nobody else writes to it as long as this lives.
#[derive(Debug)]
pub struct Journal {
    run: PathBuf,
    index: Index,
    /// Records that may not last yet.
    unsynced: u64,
    /// A line could not be written: there may be a part of it.
    torn: bool,
    /// Released when it is closed, by the system if nobody else does it.
    _lock: File,
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
        if length(&source)? > 0 {
            return Err(RunError::Orphans(run.to_owned()));
        }
        let findings = run.join(folder::FINDINGS);
        fs::create_dir_all(&findings).map_err(RunError::io("create", &findings))?;
        folder::sync(run)?;
        if let Some(parent) = run.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            folder::sync(parent)?;
        }
        // From here on there is a run: all else that it needs is there.
        header.write(run)?;
        let index = Index::of(source, 0)?;
        Ok(Journal { run: run.to_owned(), index, unsynced: 0, torn: false, _lock: lock })
    }

    /// Go on with a run if it is this one; nothing is touched if it is not. A torn line and `end.json` are removed.
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
        let length = length(&source)?;
        let index = Index::of(source, length)?;
        folder::sweep(run)?;
        folder::sweep(&run.join(folder::FINDINGS))?;
        folder::remove(run, folder::END)?;
        let mut journal = Journal { run: run.to_owned(), index, unsynced: 0, torn: false, _lock: lock };
        if journal.index.length() < length {
            journal.cut()?;
            journal.sync()?;
        }
        Ok(journal)
    }

    /// Add a record; of one that is there, nothing. It is written within bounds: [`Record::bound`].
    ///
    /// # Errors
    /// It cannot be one, another is recorded of its choice, there is no room, or the system says no. Then nothing was added.
    pub fn append(&mut self, record: &Record) -> Result<(), RunError> {
        let choice = record.choice;
        record.check().map_err(|source| RunError::Record { choice, source })?;
        let mut bounded = record.clone();
        bounded.bound();
        if let Some(recorded) = self.index.get(choice)? {
            return if super::merged::same(&recorded, &bounded) {
                Ok(())
            } else {
                Err(RunError::OtherResult { choice })
            };
        }
        self.index.room()?;
        let path = self.index.source().path.clone();
        let line = line::encode(&bounded)
            .map_err(|damage| RunError::Json { path: path.clone(), problem: damage.to_string() })?;
        if line.len() > LINE_BYTES_MAX {
            return Err(RunError::LineTooLong { choice, bytes: line.len() });
        }
        if self.torn {
            self.cut()?;
        }
        if let Err(error) = self.index.source().file.write_all_at(&line, self.index.length()) {
            // A part of it may be there. If that cannot be removed now, then before the next one is written, or on resume.
            self.torn = true;
            let _ = self.cut();
            return Err(RunError::io("write", &path)(error));
        }
        self.index.add(choice, line.len())?;
        self.unsynced += 1;
        if self.unsynced >= SYNC_RECORDS { self.sync() } else { Ok(()) }
    }

    /// Make last what was written.
    ///
    /// # Errors
    /// The system says no.
    pub fn sync(&mut self) -> Result<(), RunError> {
        let source = self.index.source();
        source.file.sync_data().map_err(RunError::io("sync", &source.path))?;
        self.unsynced = 0;
        Ok(())
    }

    /// End the run: what was recorded lasts, and the end is told.
    ///
    /// # Errors
    /// The system says no.
    pub fn finish(mut self, end: &End) -> Result<(), RunError> {
        self.sync()?;
        folder::write(&self.run, folder::END, &folder::to_json(&self.run, folder::END, end)?)
    }

    /// The recorded result of a choice, if there is one.
    ///
    /// # Errors
    /// What is recorded is another branch, or the file was damaged since.
    pub fn recorded(&self, choice: &Choice) -> Result<Option<Record>, RunError> {
        let Some(record) = self.index.get(choice.number)? else { return Ok(None) };
        if record.is_of(choice) {
            return Ok(Some(record));
        }
        Err(RunError::OtherChoice {
            choice: choice.number,
            chosen: Box::new(choice.path.clone()),
            recorded: Box::new(record.path),
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

    /// Keep evidence of a finding, as files of these names: all of them, or none if this fails. Of a finding that has evidence
    /// nothing is changed.
    ///
    /// # Errors
    /// A name is none, there are too many, or the system says no.
    pub fn keep_evidence(&self, id: u32, files: &[(&str, &[u8])]) -> Result<(), RunError> {
        evidence::keep(&self.run, id, files)
    }

    /// As if the last line could not be written.
    #[cfg(test)]
    pub(super) fn pretend_torn(&mut self) {
        self.torn = true;
    }

    /// Cut off what is behind the last whole line.
    fn cut(&mut self) -> Result<(), RunError> {
        let source = self.index.source();
        source.file.set_len(self.index.length()).map_err(RunError::io("cut", &source.path))?;
        self.torn = false;
        Ok(())
    }
}

/// The file of records, for writing.
fn open(run: &Path, create: bool) -> Result<Source, RunError> {
    let path = run.join(folder::BRANCHES);
    let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(&path);
    let file = file.map_err(RunError::io("open", &path))?;
    Ok(Source { file: Arc::new(file), path })
}

/// How long a file is.
pub(super) fn length(source: &Source) -> Result<u64, RunError> {
    Ok(source.file.metadata().map_err(RunError::io("look at", &source.path))?.len())
}
