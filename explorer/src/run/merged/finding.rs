//! What was found: hits of one property with one signature are one finding.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::super::hit::Hit;
use super::super::limits::FINDINGS_MAX;
use super::super::record::Record;
use super::cost::Cost;
use crate::search::Path;

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// From 1, in the order of choices.
    pub id: u32,
    /// The choice that led there first.
    pub first: u64,
    /// Its path.
    pub path: Path,
    /// The first hit.
    pub hit: Hit,
    /// What all of the exploration had cost when that choice was taken in, with it.
    pub cost: Cost,
    /// Where it was hit.
    pub tally: Tally,
}

/// Where something was hit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many branches hit it.
    pub branches: u64,
    /// Those of each subtree, by the branch from the root moment that heads it.
    pub subtrees: BTreeMap<u64, InSubtree>,
}

/// Where something was hit within a subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InSubtree {
    /// How many branches hit it.
    pub branches: u64,
    /// What the subtree had cost when the first did, with it.
    pub until: Cost,
}

impl Tally {
    fn add(&mut self, subtree: u64, until: Cost) {
        self.branches += 1;
        self.subtrees.entry(subtree).or_insert(InSubtree { branches: 0, until }).branches += 1;
    }
}

/// All that was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    /// The place of each in `all`, by property and signature.
    places: BTreeMap<(String, String), usize>,
    properties: BTreeMap<String, Tally>,
    overflow: u64,
}

impl Findings {
    /// Take in what a branch found. Its subtree cost so much with it, and the exploration so much.
    pub(super) fn add(&mut self, record: Record, subtree: u64, until: Cost, cost: Cost) {
        let Record { choice, path, hits, .. } = record;
        let mut properties = BTreeSet::new();
        for hit in hits {
            let place = match self.places.entry((hit.property.clone(), hit.signature.clone())) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(_) if self.all.len() >= FINDINGS_MAX => {
                    self.overflow = self.overflow.saturating_add(1);
                    continue;
                }
                Entry::Vacant(entry) => *entry.insert(self.all.len()),
            };
            properties.insert(hit.property.clone());
            if place == self.all.len() {
                let id = u32::try_from(place + 1).unwrap_or(u32::MAX);
                let (path, tally) = (path.clone(), Tally::default());
                self.all.push(Finding { id, first: choice, path, hit, cost, tally });
            }
            if let Some(finding) = self.all.get_mut(place) {
                finding.tally.add(subtree, until);
            }
        }
        for property in properties {
            self.properties.entry(property).or_default().add(subtree, until);
        }
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.all
    }

    pub(super) fn properties(&self) -> &BTreeMap<String, Tally> {
        &self.properties
    }

    pub(super) fn overflow(&self) -> u64 {
        self.overflow
    }
}
