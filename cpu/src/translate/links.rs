//! Jumps from one translation to another whose end is known when they are made.
//!
//! A block is known by its *place*: what its page holds, and the offset there. A branch within a page leads to a place that its
//! own translation can name; so does one to another page, once that is found to hold what it did before. What is translated at a
//! place is right for as long as there are translations. So such a jump is made once, when both ends are there, and nothing
//! is asked any more when it is taken.

use std::collections::BTreeMap;

/// What is at a place.
#[derive(Debug)]
enum There {
    /// The address of its translation.
    Code(u64),
    /// None yet. Where the displacements of the jumps lie that would lead to it.
    Wanted(Vec<u64>),
}

/// Translations by their places, and the jumps that wait for one.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<u64, There>);

impl Links {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The translation at a place.
    pub(super) fn code(&self, place: u64) -> Option<u64> {
        match self.0.get(&place) {
            Some(&There::Code(code)) => Some(code),
            _ => None,
        }
    }
    /// The block at a place is translated now. The displacements of jumps that waited for it.
    pub(super) fn is_at(&mut self, place: u64, code: u64) -> Vec<u64> {
        match self.0.insert(place, There::Code(code)) {
            Some(There::Wanted(jumps)) => jumps,
            _ => Vec::new(),
        }
    }
    /// A jump waits for the block at a place, which is not translated.
    pub(super) fn wants(&mut self, place: u64, at: u64) {
        if let There::Wanted(jumps) = self.0.entry(place).or_insert_with(|| There::Wanted(Vec::new())) {
            jumps.push(at);
        }
    }
}
