//! Those who look at a run directory, while another process may be writing to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::brief::Brief;
use super::end::End;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::Index;
use super::media::Source;
use super::merged::{Merged, Stray};
use super::problem::RunError;
use super::record::Record;
use super::scan::Tail;
use crate::coverage::Dictionary;

/// A run directory as it was when it was opened. Nothing in it is changed.
#[derive(Debug)]
pub struct Reading {
    run: PathBuf,
    header: Header,
    end: Option<End>,
    index: Index,
}

impl Reading {
    /// Look at a run directory. What follows the last whole record is ignored, since somebody may be writing it; but the records
    /// with which a run has ended are all there.
    ///
    /// # Errors
    /// There is no run, it is damaged, or the system says no.
    pub fn open(run: &Path) -> Result<Reading, RunError> {
        let read = |source, length, _: Option<&End>| {
            let (index, tail) = Index::of(source, length, None)?;
            Ok((index, tail, ()))
        };
        Reading::with(run, read).map(|(reading, ())| reading)
    }

    /// Look at a run directory, and take its records in while they are read: all that its end counted, or all up to the first that is
    /// missing if it has not ended.
    ///
    /// # Errors
    /// See [`Reading::open`].
    pub fn open_merged(run: &Path) -> Result<(Reading, Merged), RunError> {
        Reading::with(run, |source, length, end| {
            let path = source.path.clone();
            let mut taking = Taking::new(end.map_or(u64::MAX, |end| end.branches));
            let (index, tail) = Index::of(
                source,
                length,
                Some(&mut |dictionary, brief| {
                    taking.take(dictionary, brief).map_err(|stray| strange(&path, stray))
                }),
            )?;
            let merged = taking.finish(&index)?;
            Ok((index, tail, merged))
        })
    }

    fn with<T>(
        run: &Path,
        read: impl FnOnce(Source, u64, Option<&End>) -> Result<(Index, Tail, T), RunError>,
    ) -> Result<(Reading, T), RunError> {
        let header = Header::read(run)?;
        // First the end, then what led there: who goes on with the run removes the one before adding to the other.
        let end = folder::read_end(run)?;
        let path = run.join(folder::BRANCHES);
        let opened = everett_input::file::open(&path).map_err(io::Error::from);
        let (file, _) = opened.map_err(RunError::io("open", &path))?;
        let source = Source { file: Arc::new(file), path };
        let length = source.length()?;
        let (index, tail, more) = read(source, length, end.as_ref())?;
        if end.as_ref().is_some_and(|end| !index.has_first(end.branches)) {
            // A writer that resumes a run that has ended adds records and removes none.
            return Err(index.damaged_end(tail.damage));
        }
        Ok((Reading { run: run.to_owned(), header, end, index }, more))
    }

    /// What is explored.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
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

    /// The record of a choice, if there is one.
    ///
    /// # Errors
    /// The file was damaged since, or the system says no.
    pub fn get(&self, choice: u64) -> Result<Option<Record>, RunError> {
        self.index.get(choice)
    }

    /// What is known after the records of the first choices, up to the first that is missing, and at most so many.
    ///
    /// # Errors
    /// A record is damaged, or the system says no.
    pub fn merged(&self, most: u64) -> Result<Merged, RunError> {
        Taking::new(most).finish(&self.index)
    }

    /// The folder with the evidence of a finding, if any was kept.
    #[must_use]
    pub fn evidence_of(&self, id: u32) -> Option<PathBuf> {
        Some(evidence::place(&self.run, id)).filter(|place| place.is_dir())
    }
}

/// Takes records in, in the order of choices, as far as they come nearly in that order: others are read again at the end.
struct Taking {
    most: u64,
    merged: Option<Merged>,
    /// Those that wait for an earlier one.
    waiting: BTreeMap<u64, Brief>,
}

/// The most records that wait for an earlier one.
const WAITING_MAX: usize = 1 << 10;

impl Taking {
    fn new(most: u64) -> Taking {
        Taking { most, merged: None, waiting: BTreeMap::new() }
    }

    fn take(&mut self, dictionary: &Dictionary, brief: Brief) -> Result<(), Stray> {
        let merged = self.merged.get_or_insert_with(|| Merged::new(dictionary.clone()));
        self.waiting.insert(brief.record().choice, brief);
        while merged.branches() < self.most
            && let Some(brief) = self.waiting.remove(&merged.branches())
        {
            merged.merge_brief(brief)?;
        }
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_last();
        }
        Ok(())
    }

    fn finish(mut self, index: &Index) -> Result<Merged, RunError> {
        let mut merged = self.merged.unwrap_or_else(|| Merged::new(index.dictionary().clone()));
        while merged.branches() < self.most {
            let next = merged.branches();
            let brief = match self.waiting.remove(&next) {
                Some(brief) => Some(brief),
                None => index.brief(next)?,
            };
            let Some(brief) = brief else { break };
            merged.merge_brief(brief).map_err(|stray| strange(&index.source().path, stray))?;
        }
        Ok(merged)
    }
}

fn strange(path: &Path, stray: Stray) -> RunError {
    RunError::Json { path: path.to_owned(), problem: stray.to_string() }
}
