//! The hash of a set of numbered leaves (pages or blocks), most of which are absent, kept up as leaves change.
//!
//! It is a sum: each leaf that is there contributes a 512-bit term, which is blake3 of its number and its content's hash,
//! and the terms are added lane by lane (Bellare and Micciancio's AdHash, EUROCRYPT 1997). A change thus costs what
//! changed; the order of changes cannot show; and going back to an earlier set takes that set's sum and nothing else, which
//! a tree of hashes could not do. Two different sets that nobody made on purpose collide with probability 2^-512; somebody
//! who can choose the pages of a guest and wants two states to look alike could do it with work that is feasible in
//! principle, and would only have fooled himself.

use std::collections::BTreeMap;

use everett_snapshot::PageHash;
use serde::{Deserialize, Serialize};

use super::Digest;

/// Words of a sum.
const LANES: usize = 8;

/// The sum of the terms of all leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafSum([u64; LANES]);

impl LeafSum {
    /// The sum of these leaves.
    pub fn of(leaves: impl IntoIterator<Item = (u64, PageHash)>) -> LeafSum {
        let mut sum = LeafSum::default();
        leaves.into_iter().for_each(|(index, hash)| sum.add(index, hash));
        sum
    }
    pub(crate) fn add(&mut self, index: u64, hash: PageHash) {
        for (lane, term) in self.0.iter_mut().zip(term(index, hash)) {
            *lane = lane.wrapping_add(term);
        }
    }
    pub(crate) fn remove(&mut self, index: u64, hash: PageHash) {
        for (lane, term) in self.0.iter_mut().zip(term(index, hash)) {
            *lane = lane.wrapping_sub(term);
        }
    }
    /// The digest of the set.
    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for lane in self.0 {
            hasher.update(&lane.to_le_bytes());
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// What one leaf contributes.
fn term(index: u64, hash: PageHash) -> [u64; LANES] {
    let mut bytes = [0; 8 * LANES];
    blake3::Hasher::new().update(&index.to_le_bytes()).update(&hash.0).finalize_xof().fill(&mut bytes);
    std::array::from_fn(|lane| u64::from_le_bytes(std::array::from_fn(|i| bytes[8 * lane + i])))
}

/// The sum and what it needs to be kept up: the hashes of leaves that changed since the last moment. Those of all others
/// are in the moment's image.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    sum: LeafSum,
    recent: BTreeMap<u64, Option<PageHash>>,
}

impl Leaves {
    /// A leaf is now this (`None`: absent); `stored` is what the last moment's image has there.
    pub(crate) fn set(&mut self, index: u64, leaf: Option<PageHash>, stored: Option<PageHash>) {
        let before = self.recent.insert(index, leaf).unwrap_or(stored);
        if before != leaf {
            before.into_iter().for_each(|hash| self.sum.remove(index, hash));
            leaf.into_iter().for_each(|hash| self.sum.add(index, hash));
        }
    }
    /// What a leaf was last set to since the last moment, if it was.
    pub(crate) fn recent(&self, index: u64) -> Option<Option<PageHash>> {
        self.recent.get(&index).copied()
    }
    /// A moment was taken or restored: this is the sum there, and its image has all hashes.
    pub(crate) fn moment(&mut self, sum: LeafSum) {
        self.sum = sum;
        self.recent.clear();
    }
    /// The sum.
    pub(crate) fn sum(&self) -> LeafSum {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The sum is a function of the present leaves, whatever the history; and it tells different sets apart.
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
                leaves.set(index, leaf, image.get(&index).copied());
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
                fresh.set(index, Some(hash), None);
            }
            prop_assert_eq!(leaves.sum(), fresh.sum());
            fresh.set(1999, Some(PageHash([9; 32])), None);
            prop_assert_ne!(leaves.sum().digest(), fresh.sum().digest());
        }
    }

    #[test]
    fn where_a_leaf_is_matters() {
        let sum = |leaves: &[(u64, u8)]| {
            let mut sum = LeafSum::default();
            leaves.iter().for_each(|&(index, byte)| sum.add(index, PageHash([byte; 32])));
            sum.digest()
        };
        assert_ne!(sum(&[(1, 1), (2, 2)]), sum(&[(1, 2), (2, 1)]));
        assert_ne!(sum(&[(1, 1)]), sum(&[]));
    }
}
