//! Where the record of each choice is, and what the points are that records name by number.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::brief::Brief;
use super::frame::{self, HEAD_BYTES, Head};
use super::limits::{EVIDENCE_KEYS_MAX, FRAME_BYTES_MAX, RECORDS_MAX};
use super::media::Source;
use super::problem::{Damage, RunError};
use super::record::Record;
use super::scan::{Frame, Scan, Tail};
use super::stored::{self, Heading};
use super::words::Words;
use crate::coverage::Dictionary;

/// Where a record is.
#[derive(Debug, Clone, Copy)]
struct Spot {
    offset: u64,
    /// Without the head.
    bytes: u32,
    /// From 1.
    number: u32,
}

/// Where the records of a file are, by choice.
#[derive(Debug)]
pub(super) struct Index {
    source: Source,
    spots: BTreeMap<u64, Spot>,
    /// Where whole records end.
    length: u64,
    dictionary: Dictionary,
    words: Words,
    /// By property and signature, the least choice among those that were recorded with evidence.
    evidence: BTreeMap<(String, String), u64>,
}

/// Takes records in the order of the file, while their places are put down.
pub(super) type Visitor<'v> = &'v mut dyn FnMut(&Dictionary, Brief) -> Result<(), RunError>;

impl Index {
    /// That of the first so many bytes of a file, all of which are read; and what is behind its whole records.
    pub(super) fn of(
        source: Source,
        length: u64,
        mut visitor: Option<Visitor<'_>>,
    ) -> Result<(Index, Tail), RunError> {
        let mut index = Index {
            source: source.clone(),
            spots: BTreeMap::new(),
            length: 0,
            dictionary: Dictionary::default(),
            words: Words::default(),
            evidence: BTreeMap::new(),
        };
        let mut scan = Scan::new(source, length);
        loop {
            let frame = match scan.next()? {
                Ok(frame) => frame,
                Err(tail) => return Ok((index, tail)),
            };
            let brief = index.take(&frame, visitor.is_some())?;
            if let (Some(visitor), Some(brief)) = (&mut visitor, brief) {
                visitor(&index.dictionary, brief)?;
            }
        }
    }

    fn take(&mut self, frame: &Frame, wanted: bool) -> Result<Option<Brief>, RunError> {
        let damaged = |source: &Source, damage| RunError::Damaged {
            path: source.path.clone(),
            record: frame.number.into(),
            offset: frame.offset,
            damage,
        };
        let (mut heading, rest) =
            stored::heading(&frame.text).map_err(|damage| damaged(&self.source, damage))?;
        self.learn(&mut heading).map_err(|damage| damaged(&self.source, damage))?;
        let choice = heading.choice;
        heading.hits.0.iter().for_each(|hit| self.put_down_evidence(hit.key(), choice));
        let brief = match wanted {
            true => Some(stored::brief(heading, rest, self.dictionary.len())),
            false => None,
        };
        self.add(choice, frame.text.len())?;
        brief.transpose().map_err(|damage| damaged(&self.source, damage))
    }

    /// Give the points that a record tells their numbers.
    fn learn(&mut self, heading: &mut Heading) -> Result<(), Damage> {
        if heading.told.0.is_empty() {
            return Ok(());
        }
        let mut entries = self.dictionary.write();
        for told in std::mem::take(&mut heading.told.0) {
            let point = self.words.read(told)?;
            entries.add(Arc::new(point)).ok_or(Damage::Again)?;
        }
        Ok(())
    }

    /// The bytes of a record within bounds and its brief. `false` if it has another result than the one that is recorded.
    pub(super) fn encode(&mut self, record: &Record) -> Result<(Brief, Vec<u8>), RunError> {
        let choice = record.choice;
        let before = self.dictionary.len();
        let mut brief =
            Brief::of(record, &self.dictionary).map_err(|source| RunError::Record { choice, source })?;
        for hit in &mut brief.record.hits {
            let key = (hit.property.clone(), hit.signature.clone());
            if self.evidence.get(&key).is_some_and(|least| *least < choice) {
                // It is not the first hit of its finding, whichever that is.
                hit.evidence = super::hit::Evidence::default();
            }
        }
        let entries = self.dictionary.read();
        let told = entries.from(before).map(|point| self.words.tell(point)).collect();
        drop(entries);
        let text = stored::encode(record, &brief, told)
            .map_err(|damage| RunError::Encode { choice, problem: damage.to_string() })?;
        Ok((brief, text))
    }

    /// As a frame at the end of the file, of which so many bytes last.
    pub(super) fn frame(&self, choice: u64, text: &[u8], synced: u64) -> Result<Vec<u8>, RunError> {
        let number =
            u32::try_from(self.spots.len() + 1).map_err(|_| RunError::TooMany(self.source.path.clone()))?;
        let too_long = RunError::RecordTooLong { choice, bytes: text.len() };
        if text.len() > FRAME_BYTES_MAX {
            return Err(too_long);
        }
        frame::encode(self.length, number, synced, text).ok_or(too_long)
    }

    /// How much is known: points, and texts of them.
    pub(super) fn known(&self) -> (usize, usize) {
        (self.dictionary.len(), self.words.len())
    }

    /// What was told since then was not written.
    pub(super) fn forget(&mut self, (points, words): (usize, usize)) {
        self.dictionary.write().forget_from(points);
        self.words.forget_from(words);
    }

    /// A record was written to the end.
    pub(super) fn written(&mut self, brief: &Brief, bytes: usize) -> Result<(), RunError> {
        let choice = brief.record.choice;
        self.add(choice, bytes)?;
        for hit in &brief.record.hits {
            self.put_down_evidence((hit.property.clone(), hit.signature.clone()), choice);
        }
        Ok(())
    }

    fn put_down_evidence(&mut self, key: (String, String), choice: u64) {
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

    /// Whether there is room for one more.
    pub(super) fn room(&self) -> Result<(), RunError> {
        if self.spots.len() < RECORDS_MAX { Ok(()) } else { Err(RunError::TooMany(self.source.path.clone())) }
    }

    /// The record of a choice, if there is one.
    pub(super) fn get(&self, choice: u64) -> Result<Option<Record>, RunError> {
        self.at(choice, |text| {
            stored::whole(text, self.dictionary.len(), |numbers| self.dictionary.delta(numbers))
        })
    }

    /// What is taken in of the record of a choice, if there is one.
    pub(super) fn brief(&self, choice: u64) -> Result<Option<Brief>, RunError> {
        self.at(choice, |text| {
            let (heading, rest) = stored::heading(text)?;
            stored::brief(heading, rest, self.dictionary.len())
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
        // Somebody may have touched the file since.
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

    /// True if the records of the first so many choices are there.
    pub(super) fn has_first(&self, choices: u64) -> bool {
        self.spots.range(..choices).count() as u64 == choices
    }

    /// How many records there are.
    pub(super) fn len(&self) -> u64 {
        self.spots.len() as u64
    }

    /// The error of a run whose records are not those with which it ended; `damage` is what is wrong behind the whole ones.
    pub(super) fn damaged_end(&self, damage: Option<Damage>) -> RunError {
        RunError::Damaged {
            path: self.source.path.clone(),
            record: self.len() + 1,
            offset: self.length,
            damage: damage.unwrap_or(Damage::Missing),
        }
    }

    /// Where whole records end.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The file.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// The points that records name by number.
    pub(super) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    #[cfg(test)]
    pub(super) fn use_file(&mut self, file: Arc<dyn super::media::Media>) {
        self.source.file = file;
    }
}
