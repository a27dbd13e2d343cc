//! What is evicted before what.

use std::cmp::Ordering;

/// A value's place in the queue: cost to derive it for each byte that it takes, exactly; then its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rank<K> {
    /// Cost of deriving it from the nearest ancestor that is there.
    pub(super) cost: u64,
    /// What it takes; not 0, as evicting such a value frees nothing.
    pub(super) bytes: u64,
    pub(super) key: K,
}

impl<K: Ord> Ord for Rank<K> {
    fn cmp(&self, other: &Rank<K>) -> Ordering {
        // a / b < c / d if and only if a * d < c * b; products of two u64 are exact here.
        let mine = u128::from(self.cost) * u128::from(other.bytes);
        let theirs = u128::from(other.cost) * u128::from(self.bytes);
        mine.cmp(&theirs).then_with(|| self.key.cmp(&other.key))
    }
}
impl<K: Ord> PartialOrd for Rank<K> {
    fn partial_cmp(&self, other: &Rank<K>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
