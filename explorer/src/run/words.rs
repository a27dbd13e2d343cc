//! Texts of points by number: many points share few texts, and each text is written once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::WORDS_MAX;
use super::problem::Damage;
use crate::coverage::limits::STATE_BYTES_MAX;
use crate::coverage::{Outcome, Point};
use crate::sdk::AssertionKind;

/// Texts in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Words {
    list: Vec<Arc<str>>,
    numbers: BTreeMap<Arc<str>, u32>,
}

/// A text of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// Number of a text that was written before.
    Old(u32),
    /// A text that is written here. It gets the next number, if there is room for one more.
    New(String),
}

/// A point, with its texts as words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NewPoint {
    State(Word),
    Phase(Word),
    Fault(Word, Word),
    FaultPair([Word; 2], Word),
    Order(Word, Word, bool),
    Value(Word, Word),
    Assertion(Word, AssertionKind, Outcome),
    Guidance(Word, Word, Option<i64>),
    Edge(Word, u32),
}

impl Words {
    /// Returns the number of texts.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Removes the texts from a number on: the record that introduced them was not written.
    pub(super) fn forget_from(&mut self, number: usize) {
        for word in self.list.drain(number.min(self.list.len())..) {
            self.numbers.remove(&word);
        }
    }

    /// Converts a point to its form in the file. New texts get numbers, so points must be converted in the order in
    /// which they are written.
    pub(super) fn introduce(&mut self, point: &Point) -> NewPoint {
        match point {
            Point::State { state } => NewPoint::State(self.word(state)),
            Point::Phase { phase } => NewPoint::Phase(self.word(phase)),
            Point::Fault { fault, phase } => NewPoint::Fault(self.word(fault), self.word(phase)),
            Point::FaultPair { faults: [a, b], phase } => {
                NewPoint::FaultPair([self.word(a), self.word(b)], self.word(phase))
            }
            Point::Order { first, then, across } => {
                NewPoint::Order(self.word(first), self.word(then), *across)
            }
            Point::Value { variable, value } => NewPoint::Value(self.word(variable), self.word(value)),
            Point::Assertion { name, kind, outcome } => NewPoint::Assertion(self.word(name), *kind, *outcome),
            Point::Guidance { name, value, rank } => {
                NewPoint::Guidance(self.word(name), self.word(value), *rank)
            }
            Point::Edge { module, edge } => NewPoint::Edge(self.word(module), *edge),
        }
    }

    /// Converts a point from its form in the file. New texts get numbers, so points must be converted in the order of
    /// the file.
    ///
    /// # Errors
    /// Returns an error if a text's number is not that of an earlier text, or if a text is too long.
    pub(super) fn read(&mut self, new_point: NewPoint) -> Result<Point, Damage> {
        Ok(match new_point {
            NewPoint::State(state) => Point::State { state: self.text(state)? },
            NewPoint::Phase(phase) => Point::Phase { phase: self.text(phase)? },
            NewPoint::Fault(fault, phase) => {
                Point::Fault { fault: self.text(fault)?, phase: self.text(phase)? }
            }
            NewPoint::FaultPair([a, b], phase) => {
                Point::FaultPair { faults: [self.text(a)?, self.text(b)?], phase: self.text(phase)? }
            }
            NewPoint::Order(first, then, across) => {
                Point::Order { first: self.text(first)?, then: self.text(then)?, across }
            }
            NewPoint::Value(variable, value) => {
                Point::Value { variable: self.text(variable)?, value: self.text(value)? }
            }
            NewPoint::Assertion(name, kind, outcome) => {
                Point::Assertion { name: self.text(name)?, kind, outcome }
            }
            NewPoint::Guidance(name, value, rank) => {
                Point::Guidance { name: self.text(name)?, value: self.text(value)?, rank }
            }
            NewPoint::Edge(module, edge) => Point::Edge { module: self.text(module)?, edge },
        })
    }

    fn word(&mut self, text: &str) -> Word {
        if let Some(&number) = self.numbers.get(text) {
            return Word::Old(number);
        }
        self.add(text);
        Word::New(text.to_owned())
    }

    fn text(&mut self, word: Word) -> Result<String, Damage> {
        match word {
            Word::Old(number) => {
                self.list.get(number as usize).map(|text| (**text).to_owned()).ok_or(Damage::Word)
            }
            // The bound is checked here, because each point that names the text gets a copy of it.
            Word::New(text) if text.len() > STATE_BYTES_MAX => Err(Damage::LongText),
            Word::New(text) => {
                self.add(&text);
                Ok(text)
            }
        }
    }

    fn add(&mut self, text: &str) {
        if let Ok(number) = u32::try_from(self.list.len())
            && self.list.len() < WORDS_MAX
            && !self.numbers.contains_key(text)
        {
            let text: Arc<str> = text.into();
            self.list.push(Arc::clone(&text));
            self.numbers.insert(text, number);
        }
    }
}
