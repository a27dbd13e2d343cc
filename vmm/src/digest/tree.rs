//! A two-level hash tree over numbered leaves, most of which are absent.

use std::collections::{BTreeMap, BTreeSet};

use super::Digest;

/// Leaves in a group. With 4 KiB pages: 1 MiB.
const GROUP: u64 = 256;

type Hash = [u8; 32];
/// What an absent leaf counts as. No content hashes to it that anyone could find.
const ABSENT: Hash = [0; 32];

#[derive(Debug)]
struct Group {
    leaves: Box<[Hash; GROUP as usize]>,
    hash: Hash,
}

/// Hashes of pages or blocks, by number.
#[derive(Debug, Default)]
pub(crate) struct HashTree {
    groups: BTreeMap<u64, Group>,
    stale: BTreeSet<u64>,
}

impl HashTree {
    /// Set or remove a leaf.
    pub(super) fn set(&mut self, index: u64, leaf: Option<Hash>) {
        let number = index / GROUP;
        if leaf.is_none() && !self.groups.contains_key(&number) {
            return;
        }
        let group = self
            .groups
            .entry(number)
            .or_insert_with(|| Group { leaves: Box::new([ABSENT; GROUP as usize]), hash: ABSENT });
        group.leaves[(index % GROUP) as usize] = leaf.unwrap_or(ABSENT);
        self.stale.insert(number);
    }

    /// The hash of all leaves and their numbers.
    pub(super) fn root(&mut self) -> Digest {
        for number in std::mem::take(&mut self.stale) {
            let Some(group) = self.groups.get_mut(&number) else { continue };
            if group.leaves.iter().all(|leaf| *leaf == ABSENT) {
                self.groups.remove(&number);
            } else {
                group.hash = *blake3::hash(group.leaves.as_flattened()).as_bytes();
            }
        }
        let mut hasher = blake3::Hasher::new();
        for (number, group) in &self.groups {
            hasher.update(&number.to_le_bytes()).update(&group.hash);
        }
        Digest(*hasher.finalize().as_bytes())
    }

    /// The numbers of leaves that differ, ascending.
    pub(super) fn differing(&self, other: &HashTree) -> Vec<u64> {
        let numbers: BTreeSet<u64> = self.groups.keys().chain(other.groups.keys()).copied().collect();
        let leaf = |tree: &HashTree, index: u64| {
            tree.groups.get(&(index / GROUP)).map_or(ABSENT, |group| group.leaves[(index % GROUP) as usize])
        };
        numbers
            .into_iter()
            .flat_map(|number| number * GROUP..(number + 1) * GROUP)
            .filter(|&index| leaf(self, index) != leaf(other, index))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The root is a function of the present leaves, whatever the history; and it tells different sets apart.
        #[test]
        fn depends_on_content_only(
            steps in proptest::collection::vec((0u64..2000, proptest::option::of(1u8..4), any::<bool>()), 0..200)
        ) {
            let mut tree = HashTree::default();
            let mut oracle = BTreeMap::new();
            for (index, leaf, look) in steps {
                tree.set(index, leaf.map(|byte| [byte; 32]));
                match leaf {
                    Some(byte) => { oracle.insert(index, byte); }
                    None => { oracle.remove(&index); }
                }
                if look { tree.root(); }
            }
            let mut fresh = HashTree::default();
            for (&index, &byte) in &oracle {
                fresh.set(index, Some([byte; 32]));
            }
            prop_assert_eq!(tree.root(), fresh.root());
            prop_assert!(tree.differing(&fresh).is_empty());
            fresh.set(1999, Some([9; 32]));
            prop_assert_ne!(tree.root(), fresh.root());
            prop_assert_eq!(tree.differing(&fresh), vec![1999]);
        }
    }
}
