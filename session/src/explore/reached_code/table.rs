//! Counts of the branches that reached each place and each function.
//!
//! The counts do not depend on the order in which branches are added.

use std::collections::{BTreeMap, BTreeSet};

use super::places::{File, Place};

/// Maximum number of different places. Further places are not counted: a hostile guest could execute any number of
/// different ones.
const PLACES_MAX: usize = 4 << 20;

/// Function of a file: the file's number and the function's first address.
pub(super) type FunctionKey = (File, u64);

/// Counts of the branches that reached something.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// Number of branches.
    pub(super) branches: u64,
    /// Lowest number of a branch.
    pub(super) first: u64,
    /// Number of branches without a finding.
    pub(super) passing: u64,
    /// Number of branches with each finding.
    pub(super) of_findings: BTreeMap<u32, u64>,
}

impl Counts {
    fn add(&mut self, branch: u64, findings: &BTreeSet<u32>) {
        self.first = if self.branches == 0 { branch } else { self.first.min(branch) };
        self.branches += 1;
        self.passing += u64::from(findings.is_empty());
        for finding in findings {
            *self.of_findings.entry(*finding).or_default() += 1;
        }
    }
}

/// A reached place.
#[derive(Debug, Clone, Default)]
pub(super) struct PlaceRow {
    /// Function that contains the place.
    pub(super) function: Option<FunctionKey>,
    pub(super) counts: Counts,
}

/// A reached function.
#[derive(Debug, Clone, Default)]
pub(super) struct FunctionRow {
    /// Number of reached places in the function.
    pub(super) places: u64,
    pub(super) counts: Counts,
}

/// Counts of all places and functions.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) places: BTreeMap<Place, PlaceRow>,
    pub(super) functions: BTreeMap<FunctionKey, FunctionRow>,
    /// Counts of all branches.
    pub(super) branches: Counts,
}

impl Table {
    /// Adds a branch that reached these places, in ascending order, and shows these findings. `function_of` returns the
    /// function that contains a place.
    pub(super) fn add(
        &mut self,
        branch: u64,
        places: &[Place],
        findings: &BTreeSet<u32>,
        function_of: &dyn Fn(Place) -> Option<FunctionKey>,
    ) {
        self.branches.add(branch, findings);
        let (mut functions, mut fresh) = (Vec::new(), Vec::new());
        let mut rows = self.places.iter_mut().peekable();
        for &place in places {
            while rows.next_if(|(at, _)| **at < place).is_some() {}
            match rows.next_if(|(at, _)| **at == place) {
                Some((_, row)) => {
                    row.counts.add(branch, findings);
                    functions.extend(row.function.filter(|function| functions.last() != Some(function)));
                }
                None => fresh.push(place),
            }
        }
        fresh.truncate(PLACES_MAX - self.places.len());
        for place in fresh {
            let function = function_of(place);
            let mut row = PlaceRow { function, counts: Counts::default() };
            row.counts.add(branch, findings);
            self.places.insert(place, row);
            if let Some(function) = function {
                self.functions.entry(function).or_default().places += 1;
                functions.push(function);
            }
        }
        functions.sort();
        functions.dedup();
        for function in functions {
            self.functions.entry(function).or_default().counts.add(branch, findings);
        }
    }

    /// Returns true if only failing branches have these counts. Says nothing unless some branch has no finding.
    pub(super) fn only_failing(&self, counts: &Counts) -> bool {
        self.branches.passing > 0 && counts.branches > 0 && counts.passing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_do_not_depend_on_the_order_of_branches() {
        let function_of = |(file, address): Place| (address >= 0x10).then_some((file, address & !0xf));
        let branches: [(u64, &[u64], &[u32]); 3] =
            [(0, &[1, 0x10, 0x11], &[]), (1, &[0x10, 0x20], &[1]), (2, &[0x11, 0x20, 0x21], &[1, 2])];
        let table = |order: [usize; 3]| {
            let mut table = Table::default();
            for (branch, places, findings) in order.map(|n| branches[n]) {
                let places: Vec<Place> = places.iter().map(|at| (7, *at)).collect();
                table.add(branch, &places, &findings.iter().copied().collect(), &function_of);
            }
            table
        };
        let (one, other) = (table([0, 1, 2]), table([2, 1, 0]));
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        let row = |start: u64| &one.functions[&(7, start)];
        let counts = |start: u64| (row(start).places, row(start).counts.branches, row(start).counts.first);
        assert_eq!((counts(0x10), counts(0x20)), ((2, 3, 0), (2, 2, 1)));
        assert!(one.only_failing(&row(0x20).counts) && !one.only_failing(&row(0x10).counts));
        assert_eq!(row(0x20).counts.of_findings, BTreeMap::from([(1, 2), (2, 1)]));
        assert_eq!((one.places.len(), one.functions.len(), one.branches.passing), (5, 2, 1));
    }

    #[test]
    fn nothing_is_only_failing_if_every_branch_fails() {
        let mut table = Table::default();
        table.add(3, &[(1, 1)], &BTreeSet::from([9]), &|_| None);
        let row = &table.places[&(1, 1)];
        assert!(!table.only_failing(&row.counts) && row.counts.first == 3);
    }
}
