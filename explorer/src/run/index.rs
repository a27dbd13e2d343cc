//! Index of `branches.bin`, the file with one record (result) for each branch. The index has the offset of each record.
//! It also numbers the coverage points that the branches reached, and the texts that these points contain. A record
//! refers to earlier points and texts by their numbers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use everett_input::causes::with_causes;

use super::error::{Damage, RunError};
use super::frame::{self, HEAD_BYTES, Head};
use super::limits::{EVIDENCE_KEYS_MAX, RECORD_BYTES_MAX, RECORDS_MAX};
use super::media::Source;
use super::merge_input::MergeInput;
use super::record::Record;
use super::scan::{Frame, Scan, Tail};
use super::stored::{self, Heading};
use super::string_table::StringTable;
use crate::coverage::Dictionary;

/// Position of a record in the file.
#[derive(Debug, Clone, Copy)]
struct Spot {
    offset: u64,
    /// Length of the record in bytes, without the head that precedes each record in the file.
    bytes: u32,
    /// Number of the record in file order, from 1.
    number: u32,
}

/// Positions of a file's records, by the branch's number. Branches are numbered in the order in which they were chosen.
#[derive(Debug)]
pub(super) struct Index {
    source: Source,
    /// Format version of the run.
    version: u32,
    spots: BTreeMap<u64, Spot>,
    /// Offset at which the last whole record ends.
    length: u64,
    dictionary: Dictionary,
    strings: StringTable,
    /// For each finding, the lowest number of a recorded branch that shows the finding. The key is the violated
    /// property with the signature, a text that is the same for all violations by one bug.
    evidence: BTreeMap<(String, String), u64>,
}

/// Callback that receives each record in file order while the index is built, with the bytes after its heading. A
/// `Break` ends the reading of the file.
pub(super) type Visitor<'v> = &'v mut dyn FnMut(&Dictionary, Undecoded, &[u8]) -> ControlFlow<()>;

/// Record whose first part, the heading, is decoded. The rest has not been decoded yet.
#[derive(Debug)]
pub(super) struct Undecoded {
    heading: Heading,
    /// Number of points in the dictionary, including the new points of this record.
    points: usize,
    /// Format version of the run.
    version: u32,
    /// Length of the record in bytes, without the head that precedes each record in the file.
    pub(super) bytes: usize,
    number: u32,
    offset: u64,
}

impl Undecoded {
    /// Decodes the record from the bytes that follow its heading.
    pub(super) fn merge_input(self, rest: &[u8], path: &Path) -> Result<MergeInput, RunError> {
        let damaged = |damage| RunError::Damaged {
            path: path.to_owned(),
            record: self.number.into(),
            offset: self.offset,
            damage,
        };
        stored::merge_input(self.heading, rest, self.points, self.version).map_err(damaged)
    }
}

impl Index {
    /// Reads the first `length` bytes of a file. `version` is the format version of the run. Returns the index, and the
    /// tail after the last whole record. If the visitor ends the reading, the tail is empty.
    pub(super) fn of(
        source: Source,
        length: u64,
        version: u32,
        mut visitor: Option<Visitor<'_>>,
    ) -> Result<(Index, Tail), RunError> {
        let mut index = Index {
            source: source.clone(),
            version,
            spots: BTreeMap::new(),
            length: 0,
            dictionary: Dictionary::default(),
            strings: StringTable::default(),
            evidence: BTreeMap::new(),
        };
        let mut scan = Scan::new(source, length);
        loop {
            let frame = match scan.next()? {
                Ok(frame) => frame,
                Err(tail) => return Ok((index, tail)),
            };
            let (undecoded, rest) = index.take(&frame)?;
            if let Some(visitor) = &mut visitor
                && visitor(&index.dictionary, undecoded, rest).is_break()
            {
                return Ok((index, Tail { records: 0, bytes: 0, damage: None }));
            }
        }
    }

    /// Adds a record. Returns the record, and the bytes after its heading.
    fn take<'f>(&mut self, frame: &'f Frame) -> Result<(Undecoded, &'f [u8]), RunError> {
        let (number, offset, bytes) = (frame.number, frame.offset, frame.text.len());
        let learned = stored::heading(&frame.text).and_then(|(mut heading, rest)| {
            self.learn(&mut heading)?;
            Ok((heading, rest))
        });
        let (heading, rest) = learned.map_err(|damage| RunError::Damaged {
            path: self.source.path.clone(),
            record: number.into(),
            offset,
            damage,
        })?;
        heading.hits.0.iter().for_each(|hit| self.note_evidence(hit.key(), heading.choice));
        self.add(heading.choice, bytes)?;
        let (points, version) = (self.dictionary.len(), self.version);
        Ok((Undecoded { heading, points, version, bytes, number, offset }, rest))
    }

    /// Assigns numbers to the points that a record introduces.
    fn learn(&mut self, heading: &mut Heading) -> Result<(), Damage> {
        if heading.points.0.is_empty() {
            return Ok(());
        }
        let mut entries = self.dictionary.write();
        for new_point in std::mem::take(&mut heading.points.0) {
            let point = self.strings.read(new_point)?;
            entries.add(Arc::new(point)).ok_or(Damage::Again)?;
        }
        Ok(())
    }

    /// Encodes a record that is within its bounds. Returns its [`MergeInput`] (the parts that the run's summary uses)
    /// and its bytes.
    pub(super) fn encode(&mut self, record: &Record) -> Result<(MergeInput, Vec<u8>), RunError> {
        let choice = record.choice;
        let before = self.dictionary.len();
        let mut input =
            MergeInput::of(record, &self.dictionary).map_err(|source| RunError::Record { choice, source })?;
        for hit in &mut input.record.hits {
            let key = (hit.property.clone(), hit.signature.clone());
            if self.evidence.get(&key).is_some_and(|least| *least < choice) {
                // The record of a branch with a lower number already has evidence of this finding.
                hit.evidence = super::hit::Evidence::default();
            }
        }
        let entries = self.dictionary.read();
        let new_points = entries.from(before).map(|point| self.strings.introduce(point)).collect();
        drop(entries);
        let text = stored::encode(record, &input, new_points)
            .map_err(|damage| RunError::Encode { choice, problem: with_causes(&damage) })?;
        Ok((input, text))
    }

    /// Wraps a record's bytes in a frame for the end of the file. `synced` is the number of durable bytes of the file.
    pub(super) fn frame(&self, choice: u64, text: &[u8], synced: u64) -> Result<Vec<u8>, RunError> {
        let number =
            u32::try_from(self.spots.len() + 1).map_err(|_| RunError::TooMany(self.source.path.clone()))?;
        let too_long = RunError::RecordTooLong { choice, bytes: text.len() };
        if text.len() > RECORD_BYTES_MAX {
            return Err(too_long);
        }
        frame::encode(self.length, number, synced, text).ok_or(too_long)
    }

    /// Returns the number of points in the dictionary, and the number of distinct texts in these points.
    pub(super) fn known(&self) -> (usize, usize) {
        (self.dictionary.len(), self.strings.len())
    }

    /// Removes the points and texts that were added since [`Index::known`] returned these numbers. The writer calls
    /// this if it could not write the record that introduced them.
    pub(super) fn forget(&mut self, (points, strings): (usize, usize)) {
        self.dictionary.write().forget_from(points);
        self.strings.forget_from(strings);
    }

    /// Indexes a record that was written to the end of the file.
    pub(super) fn written(&mut self, input: &MergeInput, bytes: usize) -> Result<(), RunError> {
        let choice = input.record.choice;
        self.add(choice, bytes)?;
        for hit in &input.record.hits {
            self.note_evidence((hit.property.clone(), hit.signature.clone()), choice);
        }
        Ok(())
    }

    fn note_evidence(&mut self, key: (String, String), choice: u64) {
        if self.evidence.len() < EVIDENCE_KEYS_MAX || self.evidence.contains_key(&key) {
            let least = self.evidence.entry(key).or_insert(choice);
            *least = choice.min(*least);
        }
    }

    fn add(&mut self, choice: u64, bytes: usize) -> Result<(), RunError> {
        self.room()?;
        let too_many = |_| RunError::TooMany(self.source.path.clone());
        let number = u32::try_from(self.spots.len() + 1).map_err(too_many)?;
        let bytes = u32::try_from(bytes).map_err(too_many)?;
        match self.spots.entry(choice) {
            Entry::Occupied(entry) => Err(RunError::Twice {
                path: self.source.path.clone(),
                record: number.into(),
                choice,
                first: entry.get().number.into(),
            }),
            Entry::Vacant(entry) => {
                entry.insert(Spot { offset: self.length, bytes, number });
                self.length += HEAD_BYTES as u64 + u64::from(bytes);
                Ok(())
            }
        }
    }

    /// Returns an error if the file has [`RECORDS_MAX`] records.
    pub(super) fn room(&self) -> Result<(), RunError> {
        if self.spots.len() < RECORDS_MAX { Ok(()) } else { Err(RunError::TooMany(self.source.path.clone())) }
    }

    /// Reads the record of a branch, given the branch's number. Returns `None` if the branch has no record.
    pub(super) fn get(&self, choice: u64) -> Result<Option<Record>, RunError> {
        self.at(choice, |text| {
            stored::whole(text, self.dictionary.len(), self.version, |numbers| self.dictionary.delta(numbers))
        })
    }

    /// Reads the [`MergeInput`] of a branch, given its number. Returns `None` if the branch has no record.
    pub(super) fn merge_input(&self, choice: u64) -> Result<Option<MergeInput>, RunError> {
        self.at(choice, |text| {
            let (heading, rest) = stored::heading(text)?;
            stored::merge_input(heading, rest, self.dictionary.len(), self.version)
        })
    }

    fn at<T>(
        &self,
        choice: u64,
        decode: impl FnOnce(&[u8]) -> Result<T, Damage>,
    ) -> Result<Option<T>, RunError> {
        let Some(spot) = self.spots.get(&choice) else { return Ok(None) };
        let mut bytes = vec![0; HEAD_BYTES + spot.bytes as usize];
        self.source.read_exact_at(&mut bytes, spot.offset)?;
        // Check the frame again, because another program may have changed the file since it was indexed.
        let whole = bytes.split_first_chunk::<HEAD_BYTES>().and_then(|(head, text)| {
            let fits = Head::parse(head)?.fits(spot.offset, text);
            fits.then_some(text)
        });
        let decoded = whole.ok_or(Damage::Sum).and_then(decode);
        decoded.map(Some).map_err(|damage| RunError::Damaged {
            path: self.source.path.clone(),
            record: spot.number.into(),
            offset: spot.offset,
            damage,
        })
    }

    /// True if each of the first `choices` branches, in the order in which they were chosen, has a record.
    pub(super) fn has_first(&self, choices: u64) -> bool {
        self.spots.range(..choices).count() as u64 == choices
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> u64 {
        self.spots.len() as u64
    }

    /// Returns the error for a run that has ended, but whose records are damaged or missing. `damage` is the damage
    /// after the last whole record.
    pub(super) fn damaged_end(&self, damage: Option<Damage>) -> RunError {
        RunError::Damaged {
            path: self.source.path.clone(),
            record: self.len() + 1,
            offset: self.length,
            damage: damage.unwrap_or(Damage::Missing),
        }
    }

    /// Returns the offset at which the last whole record ends.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the file.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the dictionary, which numbers the coverage points of the records.
    pub(super) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    #[cfg(test)]
    pub(super) fn use_file(&mut self, file: Arc<dyn super::media::Media>) {
        self.source.file = file;
    }
}
