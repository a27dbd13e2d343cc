//! Findings: hits of one property with the same signature are one finding.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::super::hit::Hit;
use super::super::limits::FINDINGS_MAX;
use super::super::record::Record;
use super::cost::Cost;
use crate::search::Path;

/// A property violation that was found, with all of its hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Number from 1, in the order of choices.
    pub id: u32,
    /// First choice whose branch hit it.
    pub first: u64,
    /// Path of that branch.
    pub path: Path,
    /// The hit on that branch.
    pub hit: Hit,
    /// Cost of the whole exploration up to and including that branch.
    pub cost: Cost,
    /// Branches that hit it.
    pub tally: Tally,
}

/// Branches and subtrees that hit a finding or property.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of branches that hit it.
    pub branches: u64,
    /// Hits in each subtree, by the subtree's first branch, which starts at the root moment.
    pub subtrees: BTreeMap<u64, InSubtree>,
}

/// Hits within a subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InSubtree {
    /// Number of branches of the subtree that hit it.
    pub branches: u64,
    /// Cost of the subtree up to and including the first hit.
    pub until: Cost,
}

impl Tally {
    fn add(&mut self, subtree: u64, until: Cost) {
        self.branches += 1;
        self.subtrees.entry(subtree).or_insert(InSubtree { branches: 0, until }).branches += 1;
    }
}

/// All findings.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    /// Index in `all`, by property and signature.
    places: BTreeMap<(String, String), usize>,
    properties: BTreeMap<String, Tally>,
    overflow: u64,
}

impl Findings {
    /// Adds the hits of a branch. `until` is the cost of its subtree and `cost` that of the exploration, both
    /// including the branch.
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

    /// Returns the id of the finding with this property and signature.
    pub(super) fn id_of(&self, key: &(String, String)) -> Option<u32> {
        self.all.get(*self.places.get(key)?).map(|finding| finding.id)
    }

    pub(super) fn properties(&self) -> &BTreeMap<String, Tally> {
        &self.properties
    }

    pub(super) fn overflow(&self) -> u64 {
        self.overflow
    }
}
