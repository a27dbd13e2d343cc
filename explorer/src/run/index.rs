//! Where the record of each choice is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::unix::fs::FileExt;

use super::limits::RECORDS_MAX;
use super::line;
use super::lines::{Lines, Source};
use super::problem::RunError;
use super::record::Record;

/// Where a record is.
#[derive(Debug, Clone, Copy)]
struct Spot {
    offset: u64,
    /// With the line's end.
    bytes: u32,
    /// The line, from 1.
    line: u32,
}

/// Where the records of a file are, by choice.
#[derive(Debug)]
pub(super) struct Index {
    source: Source,
    spots: BTreeMap<u64, Spot>,
    /// Where whole lines end.
    length: u64,
}

impl Index {
    /// That of the first so many bytes of a file: all lines in it are read.
    pub(super) fn of(source: Source, length: u64) -> Result<Index, RunError> {
        let mut index = Index { source: source.clone(), spots: BTreeMap::new(), length: 0 };
        let mut lines = Lines::new(source, length);
        for line in &mut lines {
            let line = line?;
            let choice = line::choice(&line.bytes).map_err(|damage| RunError::Damaged {
                path: index.source.path.clone(),
                line: line.number,
                damage,
            })?;
            index.add(choice, line.bytes.len())?;
        }
        debug_assert_eq!(index.length, lines.end());
        Ok(index)
    }

    /// The line of a choice was added to the end.
    pub(super) fn add(&mut self, choice: u64, bytes: usize) -> Result<(), RunError> {
        self.room()?;
        let too_many = |_| RunError::TooMany(self.source.path.clone());
        let line = u32::try_from(self.spots.len() + 1).map_err(too_many)?;
        let bytes = u32::try_from(bytes).map_err(too_many)?;
        match self.spots.entry(choice) {
            Entry::Occupied(entry) => Err(RunError::Twice {
                path: self.source.path.clone(),
                line: line.into(),
                choice,
                first: entry.get().line.into(),
            }),
            Entry::Vacant(entry) => {
                entry.insert(Spot { offset: self.length, bytes, line });
                self.length += u64::from(bytes);
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
        let Some(spot) = self.spots.get(&choice) else { return Ok(None) };
        let path = &self.source.path;
        let mut bytes = vec![0; spot.bytes as usize];
        self.source.file.read_exact_at(&mut bytes, spot.offset).map_err(RunError::io("read", path))?;
        // Somebody may have touched the file since.
        let damaged = |damage| RunError::Damaged { path: path.clone(), line: spot.line.into(), damage };
        line::decode(&bytes).map(Some).map_err(damaged)
    }

    /// How many records there are.
    pub(super) fn len(&self) -> u64 {
        self.spots.len() as u64
    }

    /// Where whole lines end.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The file.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }
}
