//! Content numbers: they identify the bytes of pages of code. Pages with the same bytes have the same number, in the
//! memories of all CPUs that share the code cache.
//!
//! **Invariant.** A number always stands for the same 4096 bytes. It is never zero and never reused.

use std::collections::BTreeMap;

use crate::edges::page_name;

/// Maximum number of remembered page contents. At the maximum the table forgets all of them. Pages that have a number
/// keep it, but other pages with the same bytes then get new numbers.
const CONTENTS_MAX: usize = 1 << 16;

/// Numbers of recently seen page contents.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Numbers, by BLAKE3 digest of the contents.
    numbers: BTreeMap<[u8; 32], u64>,
    /// Names of contents ([`page_name`]), by their numbers. At most [`CONTENTS_MAX`], like the numbers.
    names: BTreeMap<u64, u64>,
    last: u64,
}

impl Contents {
    /// Returns the number for the 4096 bytes of a page.
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
    /// Returns the name of a page with this content number and these 4096 bytes ([`page_name`]).
    pub(super) fn name(&mut self, number: u64, page: &[u8]) -> u64 {
        if self.names.len() >= CONTENTS_MAX {
            self.names.clear();
        }
        *self.names.entry(number).or_insert_with(|| page_name(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_with_different_numbers_have_different_names() {
        let mut contents = Contents::default();
        let mut page = vec![0u8; 4096];
        for n in 0..3 {
            page[7] = n;
            let number = contents.number(&page);
            for _ in 0..2 {
                assert_eq!(contents.name(number, &page), page_name(&page));
            }
        }
    }

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
        // The table has forgotten all contents except the last.
        page[100..108].fill(0);
        assert!(contents.number(&page) > first);
    }
}
