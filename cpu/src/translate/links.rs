//! Direct jumps between translations.
//!
//! A block is identified by its *place*: the content number of its page, and its offset there. For a branch within a
//! page, the target's place is known at translation. For a branch to another page, the place of the last target is
//! used, and a check at run time finds whether that page still has the same contents. The translation at a place stays
//! valid as long as any translation does. So the jump is patched once, as soon as both ends exist, and needs no further
//! check.

use std::collections::BTreeMap;

/// State of a place.
#[derive(Debug)]
enum There {
    /// Address of the translation.
    Code(u64),
    /// Not translated yet. Addresses of the displacements of jumps that must lead there.
    Wanted(Vec<u64>),
}

/// Translations by place, and the jumps that wait for one.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<u64, There>);

impl Links {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    /// True if there are no links.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns the address of the translation at a place.
    pub(super) fn code(&self, place: u64) -> Option<u64> {
        match self.0.get(&place) {
            Some(&There::Code(code)) => Some(code),
            _ => None,
        }
    }
    /// Notes that the block at a place is now translated. Returns the addresses of the displacements of jumps that
    /// waited for it.
    pub(super) fn is_at(&mut self, place: u64, code: u64) -> Vec<u64> {
        match self.0.insert(place, There::Code(code)) {
            Some(There::Wanted(jumps)) => jumps,
            _ => Vec::new(),
        }
    }
    /// Notes that the jump with its displacement at `at` waits for the block at a place, which is not translated.
    pub(super) fn wants(&mut self, place: u64, at: u64) {
        if let There::Wanted(jumps) = self.0.entry(place).or_insert_with(|| There::Wanted(Vec::new())) {
            jumps.push(at);
        }
    }
}
