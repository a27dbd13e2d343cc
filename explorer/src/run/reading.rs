//! The reader of a run directory. Another process may write to the directory at the same time.
//!
//! A run directory has one record, i.e. stored result, for each branch. Merging adds the records one by one to the
//! results of the whole exploration. A *choice* is the number of a branch, in the order in which the explorer chose the
//! branches. Records in the file may have another order.

use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use everett_input::causes::with_causes;

use super::branches::Branches;
use super::end::ExplorationEnd;
use super::error::RunError;
use super::evidence;
use super::folder;
use super::header::Header;
use super::index::{Index, Undecoded};
use super::media::Source;
use super::merge_input::MergeInput;
use super::merged::{Merged, Stray};
use super::names;
use super::record::Record;
use super::scan::Tail;
use crate::coverage::Dictionary;

/// Run directory, as it was when the reader opened it. A reader changes nothing in the directory.
#[derive(Debug)]
pub struct Reading {
    run: PathBuf,
    header: Header,
    end: Option<ExplorationEnd>,
    index: Index,
}

impl Reading {
    /// Opens a run directory. Bytes after the last whole record are ignored, because another process may be writing
    /// there. If the run has ended, it must have all branches that `end.json` counts.
    ///
    /// # Errors
    /// Returns an error if the folder has no run, if the run is damaged, or if a system call fails.
    pub fn open(run: &Path) -> Result<Reading, RunError> {
        let read = |source, length, header: &Header, _: Option<&ExplorationEnd>| {
            let (index, tail) = Index::of(source, length, header.schema_version, None)?;
            Ok((index, tail, ()))
        };
        Reading::with(run, read).map(|(reading, ())| reading)
    }

    /// Opens a run directory, and merges its records on a second thread while they are read. If the run has ended,
    /// merges the records that `end.json` counts. Otherwise merges records in the order of choices, and stops before
    /// the first branch without a record.
    ///
    /// # Errors
    /// See [`Reading::open`].
    pub fn open_merged(run: &Path) -> Result<(Reading, Merged), RunError> {
        Reading::open_taking(run, None).map(|(reading, merged, _)| (reading, merged))
    }

    /// Opens and merges a run like [`Reading::open_merged`], and also returns a summary of each merged branch.
    ///
    /// # Errors
    /// See [`Reading::open`].
    pub fn open_with_branches(run: &Path) -> Result<(Reading, Merged, Branches), RunError> {
        let (reading, merged, branches) = Reading::open_taking(run, Some(Branches::default()))?;
        Ok((reading, merged, branches.unwrap_or_default()))
    }

    fn open_taking(
        run: &Path,
        branches: Option<Branches>,
    ) -> Result<(Reading, Merged, Option<Branches>), RunError> {
        let (reading, (merged, branches)) = Reading::with(run, |source, length, header, end| {
            let mut taking = Taking { branches, ..Taking::new(end.map_or(u64::MAX, |end| end.branches)) };
            let path = source.path.clone();
            let (sender, receiver) = sync_channel::<Batch>(BATCHES_MAX);
            let (read, merged) = thread::scope(|scope| {
                let merging = thread::Builder::new().spawn_scoped(scope, || {
                    for Batch { dictionary, records, bytes } in receiver {
                        for (record, rest) in records {
                            let length = record.bytes;
                            let input = record.merge_input(bytes.get(rest).unwrap_or_default(), &path)?;
                            taking.take(&dictionary, input, length).map_err(|stray| strange(&path, stray))?;
                        }
                    }
                    Ok(taking)
                });
                let merging = merging.map_err(RunError::io("start a thread to read", &path))?;
                let mut batch = Batch::default();
                let mut send = |dictionary: &Dictionary, record, rest: &[u8]| {
                    batch.add(dictionary, record, rest);
                    if !batch.is_full() {
                        return ControlFlow::Continue(());
                    }
                    // The merging thread ends early only with an error, which `open_taking` returns below. So no
                    // more records are needed.
                    match sender.send(std::mem::take(&mut batch)) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                };
                let read = Index::of(source, length, header.schema_version, Some(&mut send));
                // The send fails only if the merging thread has ended with an error.
                let _ended = sender.send(batch);
                drop(sender);
                Ok((read, merging.join().unwrap_or_else(|panic| resume_unwind(panic))))
            })?;
            // If reading and merging both failed, report the record that could not be merged, because it comes earlier
            // in the file.
            let taking = merged?;
            let (index, tail) = read?;
            let merged = taking.finish(&index)?;
            Ok((index, tail, merged))
        })?;
        Ok((reading, merged, branches))
    }

    fn with<T>(
        run: &Path,
        read: impl FnOnce(Source, u64, &Header, Option<&ExplorationEnd>) -> Result<(Index, Tail, T), RunError>,
    ) -> Result<(Reading, T), RunError> {
        let header = Header::read(run)?;
        // Read `end.json` before the records. A writer that resumes the run removes `end.json` before it adds records.
        let end = folder::read_end(run)?;
        let path = run.join(names::BRANCHES);
        let opened = everett_input::file::open(&path).map_err(io::Error::from);
        let (file, _) = opened.map_err(RunError::io("open", &path))?;
        let source = Source { file: Arc::new(file), path };
        let length = source.length()?;
        let (index, tail, more) = read(source, length, &header, end.as_ref())?;
        if end.as_ref().is_some_and(|end| !index.has_first(end.branches)) {
            // If another process resumed the run in the meantime, it only added records. A missing record is therefore
            // damage.
            return Err(index.damaged_end(tail.damage));
        }
        Ok((Reading { run: run.to_owned(), header, end, index }, more))
    }

    /// Returns the header, which describes the exploration.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the end of the run, or `None` if the run has not ended.
    #[must_use]
    pub fn end(&self) -> Option<&ExplorationEnd> {
        self.end.as_ref()
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

    /// Reads the record of a branch, given the branch's number. Returns `None` if the branch has no record.
    ///
    /// # Errors
    /// Returns an error if the file was damaged since it was opened, or if a system call fails.
    pub fn get(&self, choice: u64) -> Result<Option<Record>, RunError> {
        self.index.get(choice)
    }

    /// Merges at most `most` records in the order of choices. Stops before the first branch without a record.
    ///
    /// # Errors
    /// Returns an error if a record is damaged, or if a system call fails.
    pub fn merged(&self, most: u64) -> Result<Merged, RunError> {
        Taking::new(most).finish(&self.index).map(|(merged, _)| merged)
    }

    /// Returns the folder with the evidence of a finding, or `None` if no evidence is stored.
    #[must_use]
    pub fn evidence_of(&self, id: u32) -> Option<PathBuf> {
        Some(evidence::place(&self.run, id)).filter(|place| place.is_dir())
    }
}

/// Records for the thread that merges them, in file order.
#[derive(Default)]
struct Batch {
    dictionary: Dictionary,
    /// Heading (decoded first part) of each record, and the range of `bytes` that contains the rest of the record.
    records: Vec<(Undecoded, Range<usize>)>,
    /// Bytes of all records after their headings. They share one allocation, because freeing memory that another thread
    /// allocated takes a lock.
    bytes: Vec<u8>,
}

impl Batch {
    fn add(&mut self, dictionary: &Dictionary, record: Undecoded, rest: &[u8]) {
        if self.records.is_empty() {
            self.dictionary = dictionary.clone();
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(rest);
        self.records.push((record, begin..self.bytes.len()));
    }

    fn is_full(&self) -> bool {
        self.records.len() >= BATCH_RECORDS || self.bytes.len() >= BATCH_BYTES
    }
}

/// Merges records in the order of choices while the file is read. If too many records wait for an earlier choice, the
/// records with the highest choices are dropped and read again at the end.
struct Taking {
    most: u64,
    merged: Option<Merged>,
    /// Records that wait for the record of an earlier choice, by choice, each with its length in the file. At most
    /// [`WAITING_MAX`].
    waiting: BTreeMap<u64, (MergeInput, usize)>,
    /// Total length that the waiting records have in the file, in bytes. At most [`WAITING_BYTES_MAX`].
    waiting_bytes: usize,
    /// Summaries of the merged branches, if the caller wants them.
    branches: Option<Branches>,
}

/// Maximum number of batches that wait for the merging thread.
const BATCHES_MAX: usize = 4;
/// Number of records in a full batch. Waking a thread takes as long as merging several records, so records are not sent
/// one by one.
const BATCH_RECORDS: usize = 64;
/// Length of the records in a full batch without their headings, in bytes. The last record may exceed it.
const BATCH_BYTES: usize = 256 << 10;
/// Maximum number of records that wait for the record of an earlier choice.
const WAITING_MAX: usize = 1 << 10;
/// Maximum total length that the waiting records have in the file, in bytes. A decoded record can be 25 times as large.
const WAITING_BYTES_MAX: usize = 4 << 20;

impl Taking {
    fn new(most: u64) -> Taking {
        Taking { most, merged: None, waiting: BTreeMap::new(), waiting_bytes: 0, branches: None }
    }

    /// Takes the next record of the file. `bytes` is the length of the record in the file.
    fn take(&mut self, dictionary: &Dictionary, input: MergeInput, bytes: usize) -> Result<(), Stray> {
        let merged = self.merged.get_or_insert_with(|| Merged::new(dictionary.clone()));
        self.waiting_bytes += bytes;
        if let Some((_, bytes)) = self.waiting.insert(input.record().choice, (input, bytes)) {
            self.waiting_bytes -= bytes;
        }
        while merged.branches() < self.most
            && let Some((input, bytes)) = self.waiting.remove(&merged.branches())
        {
            self.waiting_bytes -= bytes;
            add(&mut self.branches, merged, dictionary, input)?;
        }
        while self.waiting.len() > WAITING_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
            let Some((_, (_, bytes))) = self.waiting.pop_last() else { break };
            self.waiting_bytes -= bytes;
        }
        Ok(())
    }

    fn finish(mut self, index: &Index) -> Result<(Merged, Option<Branches>), RunError> {
        let mut merged = self.merged.unwrap_or_else(|| Merged::new(index.dictionary().clone()));
        while merged.branches() < self.most {
            let next = merged.branches();
            let input = match self.waiting.remove(&next) {
                Some((input, _)) => Some(input),
                None => index.merge_input(next)?,
            };
            let Some(input) = input else { break };
            add(&mut self.branches, &mut merged, index.dictionary(), input)
                .map_err(|stray| strange(&index.source().path, stray))?;
        }
        Ok((merged, self.branches))
    }
}

/// Merges a record, and adds the summary of its branch if the caller wants summaries.
fn add(
    branches: &mut Option<Branches>,
    merged: &mut Merged,
    dictionary: &Dictionary,
    input: MergeInput,
) -> Result<(), Stray> {
    match branches {
        Some(branches) => branches.merge(merged, dictionary, input),
        None => merged.merge_input(input).map(drop),
    }
}

fn strange(path: &Path, stray: Stray) -> RunError {
    RunError::Json { path: path.to_owned(), problem: with_causes(&stray) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ROOT_NS, record};
    use super::*;

    #[test]
    fn waiting_records_are_bounded_by_their_bytes() {
        let dictionary = Dictionary::default();
        let mut taking = Taking::new(u64::MAX);
        let mut take = |choice: u64, bytes| {
            let record = record(choice, None, &format!("{ROOT_NS}.{}", choice + 1));
            taking.take(&dictionary, MergeInput::new(record, &dictionary).unwrap(), bytes).unwrap();
            let merged = taking.merged.as_ref().map_or(0, Merged::branches);
            (merged, taking.waiting.keys().copied().collect::<Vec<_>>(), taking.waiting_bytes)
        };
        let part = WAITING_BYTES_MAX / 3;
        take(1, part);
        take(2, part);
        assert_eq!(take(5, part), (0, vec![1, 2, 5], 3 * part));
        assert_eq!(take(4, part), (0, vec![1, 2, 4], 3 * part), "the last one is read again");
        assert_eq!(take(3, usize::MAX - WAITING_BYTES_MAX), (0, vec![1, 2], 2 * part), "too long to wait");
        assert_eq!(take(0, usize::MAX - WAITING_BYTES_MAX), (3, vec![], 0), "the next one need not wait");
    }
}
