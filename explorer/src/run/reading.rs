//! Those who look at a run directory, while another process may be writing to it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::end::End;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::Index;
use super::journal::length;
use super::lines::Source;
use super::merged::Merged;
use super::problem::RunError;
use super::record::Record;

/// A run directory as it was when it was opened. Nothing in it is changed.
#[derive(Debug)]
pub struct Reading {
    run: PathBuf,
    header: Header,
    end: Option<End>,
    index: Index,
}

impl Reading {
    /// Look at a run directory. What follows the last whole line is ignored: somebody may be writing it.
    ///
    /// # Errors
    /// There is no run, it is damaged, or the system says no.
    pub fn open(run: &Path) -> Result<Reading, RunError> {
        let header = Header::read(run)?;
        // First the end, then what led there: who goes on with the run removes the one before adding to the other.
        let end = match folder::read(run, folder::END)? {
            Some(bytes) => Some(folder::from_json(run, folder::END, &bytes)?),
            None => None,
        };
        let path = run.join(folder::BRANCHES);
        let opened = everett_input::file::open(&path).map_err(io::Error::from);
        let (file, _) = opened.map_err(RunError::io("open", &path))?;
        let source = Source { file: Arc::new(file), path };
        let length = length(&source)?;
        let index = Index::of(source, length)?;
        Ok(Reading { run: run.to_owned(), header, end, index })
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
        let mut merged = Merged::default();
        for choice in 0..most {
            let Some(record) = self.get(choice)? else { break };
            merged.merge(record).map_err(|stray| RunError::Json {
                path: self.index.source().path.clone(),
                problem: stray.to_string(),
            })?;
        }
        Ok(merged)
    }

    /// The folder with the evidence of a finding, if any was kept.
    #[must_use]
    pub fn evidence_of(&self, id: u32) -> Option<PathBuf> {
        Some(evidence::place(&self.run, id)).filter(|place| place.is_dir())
    }
}
