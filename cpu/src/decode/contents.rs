//! Names for what pages of code hold: pages with the same bytes have the same number, whichever page of whichever memory it is.
//!
//! **Invariant.** A number stands for the same 4096 bytes for ever; it is not zero, and is not given twice.

use std::collections::BTreeMap;

/// So many contents are remembered. Pages keep their numbers when they are forgotten, but others with the same bytes get
/// another one.
const CONTENTS_MAX: usize = 1 << 16;

/// All contents that were seen lately.
#[derive(Debug, Default)]
pub(super) struct Contents {
    numbers: BTreeMap<[u8; 32], u64>,
    last: u64,
}

impl Contents {
    /// The number of a page's bytes.
    pub(super) fn number(&mut self, page: &[u8]) -> u64 {
        debug_assert_eq!(page.len(), 4096);
        let hash = *blake3::hash(page).as_bytes();
        if let Some(&number) = self.numbers.get(&hash) {
            return number;
        }
        if self.numbers.len() == CONTENTS_MAX {
            self.numbers.clear();
        }
        self.last += 1;
        self.numbers.insert(hash, self.last);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_given_to_other_bytes() {
        let mut contents = Contents::default();
        let mut page = vec![0u8; 4096];
        let mut first = 0;
        for n in 0..=CONTENTS_MAX as u64 {
            page[100..108].copy_from_slice(&n.to_le_bytes());
            let number = contents.number(&page);
            assert_eq!(number, n + 1);
            assert_eq!(contents.number(&page), number);
            first = if n == 0 { number } else { first };
        }
        // All but the last were forgotten.
        page[100..108].fill(0);
        assert!(contents.number(&page) > first);
    }
}
