//! A set of page numbers. Adding a page takes constant time. Clearing takes time in proportion to the pages in the set,
//! not to the size of RAM.

/// Set of page numbers that remembers the order of insertion.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    bits: Vec<u64>,
    pages: Vec<u64>,
}

impl PageSet {
    /// Creates an empty set for page numbers below `pages`.
    pub fn new(pages: u64) -> PageSet {
        PageSet { bits: vec![0; pages.div_ceil(64) as usize], pages: Vec::new() }
    }
    /// Adds a page. The bound in [`PageSet::new`] is rounded up to a multiple of 64. Page numbers from there on are
    /// ignored.
    pub fn insert(&mut self, page: u64) {
        if let Some(word) = self.bits.get_mut((page / 64) as usize)
            && *word & 1 << (page % 64) == 0
        {
            *word |= 1 << (page % 64);
            self.pages.push(page);
        }
    }
    /// Returns the page numbers in the order of insertion.
    pub fn pages(&self) -> &[u64] {
        &self.pages
    }
    /// Removes all page numbers.
    pub fn clear(&mut self) {
        for page in self.pages.drain(..) {
            self.bits[(page / 64) as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_a_set(rounds in proptest::collection::vec(proptest::collection::vec(0u64..300, 0..60), 1..5)) {
            let mut set = PageSet::new(256);
            for round in rounds {
                let mut oracle = BTreeSet::new();
                for page in round {
                    set.insert(page);
                    if page < 256 { oracle.insert(page); }
                }
                let mut pages = set.pages().to_vec();
                pages.sort_unstable();
                prop_assert_eq!(pages, oracle.into_iter().collect::<Vec<_>>());
                set.clear();
                prop_assert!(set.pages().is_empty());
            }
        }
    }
}
