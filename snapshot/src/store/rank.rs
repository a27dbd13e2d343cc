//! Order in which a store evicts values. Each value was derived from the value of its parent in a tree. An evicted
//! value can be derived again.

use std::cmp::Ordering;

/// Position of a value in the eviction queue. Values are ordered by the cost of deriving them again, divided by the
/// bytes that their eviction frees, and then by key. The comparison is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rank<K> {
    /// Cost of deriving the value from that of its nearest ancestor whose value is not evicted.
    pub(super) cost: u64,
    /// Bytes that evicting the value frees. Never 0.
    pub(super) bytes: u64,
    pub(super) key: K,
}

impl<K: Ord> Ord for Rank<K> {
    fn cmp(&self, other: &Rank<K>) -> Ordering {
        // a / b < c / d if and only if a * d < c * b. Products of two u64 are exact in u128.
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
