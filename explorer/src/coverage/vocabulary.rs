//! Which words of a family are told apart: the first so many that a timeline saw. All others are `other`.
//!
//! A family is a unit, with its templates, or a variable, with its values. What was seen first depends on the timeline alone,
//! so that a branch's points do not depend on which other branches ran. Two timelines may fold different words.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::FAMILIES_MAX;

/// What a word beyond the bound is called.
pub(super) const OTHER: &str = "other";

/// The words that were seen, by family.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Vocabulary {
    families: BTreeMap<String, BTreeSet<String>>,
}

impl Vocabulary {
    /// Whether a word is told apart from others, being seen now.
    pub(super) fn admits(&mut self, family: &str, word: &str, most: usize) -> bool {
        if !self.families.contains_key(family) {
            if self.families.len() >= FAMILIES_MAX {
                return false;
            }
            self.families.insert(family.to_owned(), BTreeSet::new());
        }
        let Some(words) = self.families.get_mut(family) else { return false };
        if words.contains(word) {
            return true;
        }
        if words.len() >= most {
            return false;
        }
        words.insert(word.to_owned())
    }
}
