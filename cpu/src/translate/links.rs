//! Direct jumps between translations.
//!
//! A block is identified by its *place*: the content number of its page, which stands for the page's bytes, and its
//! offset in that page. For a branch within a page, the target's place is known at translation. For a branch to another
//! page, the translation assumes the place to which the branch last led. The translated code checks that the target's
//! page still has the same contents. The translation at a place stays valid until all translations are dropped. The
//! jump is therefore patched once, as soon as both translations exist, and need not look the translation up again.

use std::collections::BTreeMap;

/// State of a place: translated, or awaited by jumps.
#[derive(Debug)]
pub(super) enum There {
    /// Address of the place's translation.
    Code(u64),
    /// The place has no translation yet. Addresses of the displacements of jumps that must lead to the place.
    Wanted(Vec<u64>),
}

/// Translations by place, and the jumps that wait for a translation.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<u64, There>);

impl Links {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    /// True if there are no translations and no waiting jumps.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns the address of the translation at a place, if there is one.
    pub(super) fn code(&self, place: u64) -> Option<u64> {
        match self.0.get(&place) {
            Some(&There::Code(code)) => Some(code),
            _ => None,
        }
    }
    /// Records the translation of the block at a place. Returns the place's state before.
    pub(super) fn is_at(&mut self, place: u64, code: u64) -> Option<There> {
        self.0.insert(place, There::Code(code))
    }
    /// Records that the jump whose displacement is at `at` waits for a translation of the block at `place`.
    pub(super) fn wants(&mut self, place: u64, at: u64) {
        if let There::Wanted(jumps) = self.0.entry(place).or_insert_with(|| There::Wanted(Vec::new())) {
            jumps.push(at);
        }
    }
}
