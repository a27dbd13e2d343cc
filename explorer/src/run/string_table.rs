//! Texts of coverage points, by number. Many points share few texts, so the file of records stores each text only once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::Damage;
use super::limits::STRINGS_MAX;
use crate::coverage::limits::STATE_BYTES_MAX;
use crate::coverage::{Outcome, Point};
use crate::sdk::AssertionKind;

/// Texts in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct StringTable {
    list: Vec<Arc<str>>,
    numbers: BTreeMap<Arc<str>, u32>,
}

/// Reference to a text of a point, as the file stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StringRef {
    /// Number of a text that was written earlier.
    Old(u32),
    /// Text that is written here for the first time. It gets the next number, if the table has room.
    New(String),
}

/// Point as the file stores it, with references in place of its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NewPoint {
    State(StringRef),
    Phase(StringRef),
    Fault(StringRef, StringRef),
    FaultPair([StringRef; 2], StringRef),
    Order(StringRef, StringRef, bool),
    Value(StringRef, StringRef),
    Assertion(StringRef, AssertionKind, Outcome),
    Guidance(StringRef, StringRef, Option<i64>),
    Edge(StringRef, u32),
}

impl StringTable {
    /// Returns the number of texts.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Removes the texts with this number and higher ones, because the record that introduced them was not written.
    pub(super) fn forget_from(&mut self, number: usize) {
        for text in self.list.drain(number.min(self.list.len())..) {
            self.numbers.remove(&text);
        }
    }

    /// Converts a point to the form in which the file stores it. New texts get numbers, so points must be converted in
    /// the order in which they are written.
    pub(super) fn introduce(&mut self, point: &Point) -> NewPoint {
        match point {
            Point::State { state } => NewPoint::State(self.refer(state)),
            Point::Phase { phase } => NewPoint::Phase(self.refer(phase)),
            Point::Fault { fault, phase } => NewPoint::Fault(self.refer(fault), self.refer(phase)),
            Point::FaultPair { faults: [a, b], phase } => {
                NewPoint::FaultPair([self.refer(a), self.refer(b)], self.refer(phase))
            }
            Point::Order { first, then, across } => {
                NewPoint::Order(self.refer(first), self.refer(then), *across)
            }
            Point::Value { variable, value } => NewPoint::Value(self.refer(variable), self.refer(value)),
            Point::Assertion { name, kind, outcome } => {
                NewPoint::Assertion(self.refer(name), *kind, *outcome)
            }
            Point::Guidance { name, value, rank } => {
                NewPoint::Guidance(self.refer(name), self.refer(value), *rank)
            }
            Point::Edge { module, edge } => NewPoint::Edge(self.refer(module), *edge),
        }
    }

    /// Converts a point from the form in which the file stores it. New texts get numbers, so points must be converted
    /// in file order.
    ///
    /// # Errors
    /// Returns an error if a text has an unknown number, or if a text is too long.
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

    fn refer(&mut self, text: &str) -> StringRef {
        if let Some(&number) = self.numbers.get(text) {
            return StringRef::Old(number);
        }
        self.add(text);
        StringRef::New(text.to_owned())
    }

    fn text(&mut self, reference: StringRef) -> Result<String, Damage> {
        match reference {
            StringRef::Old(number) => {
                self.list.get(number as usize).map(|text| (**text).to_owned()).ok_or(Damage::StringRef)
            }
            // Check the bound here, because each point that refers to the text gets its own copy.
            StringRef::New(text) if text.len() > STATE_BYTES_MAX => Err(Damage::LongText),
            StringRef::New(text) => {
                self.add(&text);
                Ok(text)
            }
        }
    }

    fn add(&mut self, text: &str) {
        if let Ok(number) = u32::try_from(self.list.len())
            && self.list.len() < STRINGS_MAX
            && !self.numbers.contains_key(text)
        {
            let text: Arc<str> = text.into();
            self.list.push(Arc::clone(&text));
            self.numbers.insert(text, number);
        }
    }
}
