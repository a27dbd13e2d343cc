//! Findings. A hit is a violation of a property on a branch. Its signature is a hash that stands for the bug. All hits
//! of one property with the same signature are one finding.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::super::hit::Hit;
use super::super::limits::FINDINGS_MAX;
use super::super::record::Record;
use super::cost::Cost;
use crate::search::Path;

/// Finding, with all branches that hit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Number of the finding, from 1. Findings are numbered in the order in which the explorer chose the first branches
    /// that hit them.
    pub id: u32,
    /// Number of the first branch that hits the finding, in the order in which the explorer chose the branches.
    pub first: u64,
    /// Path of the branch `first`.
    pub path: Path,
    /// Hit on the branch `first`.
    pub hit: Hit,
    /// Cost of all branches of the exploration up to and including the branch `first`.
    pub cost: Cost,
    /// All branches with a hit of this finding.
    pub tally: Tally,
}

/// Branches and subtrees with a hit of a finding or property. A subtree is a branch that begins at the root moment (at
/// which all timelines begin), with all branches that extend it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of branches with a hit.
    pub branches: u64,
    /// Hits in each subtree, by the number of the subtree's first branch.
    pub subtrees: BTreeMap<u64, InSubtree>,
}

/// Hits within one subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InSubtree {
    /// Number of the subtree's branches that have a hit.
    pub branches: u64,
    /// Cost of the subtree up to and including its first branch with a hit.
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
    /// Index of each finding in `all`, by property and signature.
    places: BTreeMap<(String, String), usize>,
    properties: BTreeMap<String, Tally>,
    overflow: u64,
}

impl Findings {
    /// Adds the hits of a branch. `until` is the cost of the branch's subtree up to and including the branch. `cost` is
    /// the cost of the exploration up to and including the branch.
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
