//! Bounds the number of distinct words. A word is a log template (a log line without its variable parts), or a value
//! that a rule of the world reads from log lines into a variable. A family is the words of one unit (a program that
//! writes log lines), or of one variable. In each family, the first words of a timeline are distinguished. If a family
//! has reached its bound, all other words become `other`.
//!
//! The timeline alone determines the order of its words, so the coverage points that a branch reaches do not depend on
//! other branches. Two timelines may distinguish different words.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::FAMILIES_MAX;

/// Replacement for all words beyond the bound.
pub(super) const OTHER: &str = "other";

/// Distinguished words, by family.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Vocabulary {
    families: BTreeMap<String, BTreeSet<String>>,
}

impl Vocabulary {
    /// True if the word is distinguished. A new word is added if the family has fewer than `most` words. A new family
    /// is added if there are fewer than [`FAMILIES_MAX`].
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
