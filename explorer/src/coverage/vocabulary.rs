//! Bounded vocabularies: the first words of a family in a timeline are distinguished; all later words count as `other`.
//!
//! A family is a unit with its templates, or a variable with its values. The first words depend on the timeline alone,
//! so a branch's points do not depend on which other branches ran. Two timelines may fold different words.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::FAMILIES_MAX;

/// Name for all words beyond the bound.
pub(super) const OTHER: &str = "other";

/// Words that were seen, by family.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Vocabulary {
    families: BTreeMap<String, BTreeSet<String>>,
}

impl Vocabulary {
    /// True if a word is distinguished from others. Adds it if the family has fewer than `most` words.
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
