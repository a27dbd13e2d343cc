//! Incremental hash of a set of numbered leaves (pages of memory, or blocks of a disk), most of which are absent.
//!
//! The hash is a sum. Each present leaf contributes a 512-bit term: the BLAKE3 hash of its number and the hash of its
//! content. The terms are added lane by lane (Bellare and Micciancio's AdHash, EUROCRYPT 1997). The cost of an update
//! is thus proportional to the change, and the order of changes does not matter. To return to an earlier set, it
//! suffices to restore the set's sum; a tree of hashes would have to be rebuilt.
//!
//! Two different sets collide by chance with probability 2^-512. An attacker who chooses the pages of a guest could in
//! principle construct two states with the same hash, but would gain nothing by it.

use everett_snapshot::PageHash;
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use super::Digest;

/// Number of 64-bit words of a sum.
const LANES: usize = 8;

/// Sum of the terms of all present leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafSum([u64; LANES]);

impl LeafSum {
    /// Returns the sum of the terms of these leaves.
    pub fn of(leaves: impl IntoIterator<Item = (u64, PageHash)>) -> LeafSum {
        let mut sum = LeafSum::default();
        leaves.into_iter().for_each(|(index, hash)| sum.add(index, hash));
        sum
    }
    pub(crate) fn add(&mut self, index: u64, hash: PageHash) {
        self.add_term(&term(index, hash));
    }
    pub(crate) fn remove(&mut self, index: u64, hash: PageHash) {
        self.remove_term(&term(index, hash));
    }
    fn add_term(&mut self, term: &Term) {
        for (lane, term) in self.0.iter_mut().zip(term) {
            *lane = lane.wrapping_add(*term);
        }
    }
    fn remove_term(&mut self, term: &Term) {
        for (lane, term) in self.0.iter_mut().zip(term) {
            *lane = lane.wrapping_sub(*term);
        }
    }
    /// Returns the sum as a [`Digest`].
    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for lane in self.0 {
            hasher.update(&lane.to_le_bytes());
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// Number that one leaf contributes to a sum.
type Term = [u64; LANES];

/// Returns the term that one leaf contributes: the first 64 bytes of the BLAKE3 hash of its number and hash.
fn term(index: u64, hash: PageHash) -> Term {
    let mut content = [0; 8 + 32];
    content[..8].copy_from_slice(&index.to_le_bytes());
    content[8..].copy_from_slice(&hash.0);
    let mut bytes = [0; 8 * LANES];
    blake3::Hasher::new().update(&content).finalize_xof().fill(&mut bytes);
    std::array::from_fn(|lane| u64::from_le_bytes(std::array::from_fn(|i| bytes[8 * lane + i])))
}

/// Sum of all leaves, with the hashes of the leaves that changed since the last moment was taken or restored. The
/// moment's image (its copy of the memory or disk) contains the hashes of all other leaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    sum: LeafSum,
    /// Leaves that were set since the last moment. Nothing iterates over the table, so its order cannot affect results.
    recent: HashTable<Recent>,
}

/// A leaf that was set since the last moment.
#[derive(Debug, Clone)]
struct Recent {
    index: u64,
    /// Hash of the leaf's content and the leaf's term, or `None` if the leaf is absent.
    leaf: Option<(PageHash, Term)>,
}

impl Recent {
    /// Returns the hash of a leaf's number for the table, which takes the position from the lower bits and a tag from
    /// the seven upper bits.
    fn place(index: u64) -> u64 {
        let product = u128::from(index) * 0x9e37_79b9_7f4a_7c15;
        product as u64 ^ (product >> 64) as u64
    }
}

impl Leaves {
    /// Sets the content hash of a leaf; `None` means absent. `stored` returns the leaf's hash in the last moment's image.
    pub(crate) fn set(
        &mut self,
        index: u64,
        leaf: Option<PageHash>,
        stored: impl FnOnce() -> Option<PageHash>,
    ) {
        let with_term = |hash| (hash, term(index, hash));
        let known = self.recent.find_mut(Recent::place(index), |recent| recent.index == index);
        let before = match &known {
            Some(recent) => recent.leaf,
            None => stored().map(with_term),
        };
        let now = match before {
            Some((hash, _)) if leaf == Some(hash) => before,
            _ => leaf.map(with_term),
        };
        if let Some((_, term)) = &before {
            self.sum.remove_term(term);
        }
        if let Some((_, term)) = &now {
            self.sum.add_term(term);
        }
        match known {
            Some(recent) => recent.leaf = now,
            None => {
                let recent = Recent { index, leaf: now };
                let place = |recent: &Recent| Recent::place(recent.index);
                self.recent.insert_unique(place(&recent), recent, place);
            }
        }
    }
    /// Returns the hash that the leaf was set to since the last moment. The outer `None` means that it was not set
    /// since then.
    pub(crate) fn recent(&self, index: u64) -> Option<Option<PageHash>> {
        let recent = self.recent.find(Recent::place(index), |recent| recent.index == index)?;
        Some(recent.leaf.map(|(hash, _)| hash))
    }
    /// Records that a moment with this sum was taken or restored. The moment's image contains the hashes of all leaves.
    pub(crate) fn moment(&mut self, sum: LeafSum) {
        self.sum = sum;
        self.recent.clear();
    }
    pub(crate) fn sum(&self) -> LeafSum {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The sum depends only on the present leaves, not on the history. Different sets have different sums.
        #[test]
        fn depends_on_content_only(
            steps in proptest::collection::vec((0u64..500, proptest::option::of(1u8..4), 0u8..9), 0..200)
        ) {
            let mut leaves = Leaves::default();
            let mut image = BTreeMap::new();
            let mut oracle = BTreeMap::new();
            let mut kept = None;
            for (index, leaf, act) in steps {
                let leaf = leaf.map(|byte| PageHash([byte; 32]));
                leaves.set(index, leaf, || image.get(&index).copied());
                match leaf {
                    Some(hash) => { oracle.insert(index, hash); }
                    None => { oracle.remove(&index); }
                }
                match act {
                    0 => {
                        image = oracle.clone();
                        let sum = leaves.sum();
                        leaves.moment(sum);
                        kept = Some((image.clone(), sum));
                    }
                    1 => if let Some((then, sum)) = &kept {
                        (image, oracle) = (then.clone(), then.clone());
                        leaves.moment(*sum);
                    }
                    _ => {}
                }
            }
            let mut fresh = Leaves::default();
            for (&index, &hash) in &oracle {
                fresh.set(index, Some(hash), || None);
            }
            prop_assert_eq!(leaves.sum(), fresh.sum());
            fresh.set(1999, Some(PageHash([9; 32])), || None);
            prop_assert_ne!(leaves.sum().digest(), fresh.sum().digest());
        }
    }

    #[test]
    fn the_number_of_a_leaf_matters() {
        let sum = |leaves: &[(u64, u8)]| {
            let mut sum = LeafSum::default();
            leaves.iter().for_each(|&(index, byte)| sum.add(index, PageHash([byte; 32])));
            sum.digest()
        };
        assert_ne!(sum(&[(1, 1), (2, 2)]), sum(&[(1, 2), (2, 1)]));
        assert_ne!(sum(&[(1, 1)]), sum(&[]));
    }
}
