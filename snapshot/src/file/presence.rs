//! The set of nonzero pages of an image. An image is the content of a memory or a disk, and a base file stores one
//! image. Finding a page's position in the set takes constant time.

/// A bitmap, with the number of set bits before each word.
#[derive(Debug, Default)]
pub(super) struct Presence {
    words: Vec<u64>,
    before: Vec<u32>,
    pages: u64,
    present: u64,
}

impl Presence {
    /// Creates the set from page numbers below `pages`, in ascending order.
    pub(super) fn new(pages: u64, present: impl Iterator<Item = u64>) -> Presence {
        let mut words = vec![0u64; pages.div_ceil(64) as usize];
        for page in present {
            if let Some(word) = words.get_mut((page / 64) as usize) {
                *word |= 1 << (page % 64);
            }
        }
        Presence::of_words(pages, words)
    }

    fn of_words(pages: u64, words: Vec<u64>) -> Presence {
        let mut present = 0u64;
        let before = words.iter().map(|word| {
            let before = present as u32;
            present += u64::from(word.count_ones());
            before
        });
        let before = before.collect();
        Presence { words, before, pages, present }
    }

    /// Returns the size in bytes of a bitmap for `pages` pages.
    pub(super) fn bytes_for(pages: u64) -> usize {
        pages.div_ceil(8) as usize
    }

    /// Creates the set from a bitmap of [`Presence::bytes_for`] bytes. Returns `None` if the bitmap has a bit beyond
    /// the last page.
    pub(super) fn from_bytes(pages: u64, bytes: &[u8]) -> Option<Presence> {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let words: Vec<u64> = words.collect();
        if let Some(last) = words.last()
            && !pages.is_multiple_of(64)
            && last >> (pages % 64) != 0
        {
            return None;
        }
        Some(Presence::of_words(pages, words))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(Presence::bytes_for(self.pages));
        bytes
    }

    /// Returns the number of pages of the image, whether in the set or not.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }
    /// Returns the number of pages in the set.
    pub(super) fn present(&self) -> u64 {
        self.present
    }
    /// Returns how many pages in the set come before `page`. Returns `None` if `page` is not in the set.
    #[inline]
    pub(super) fn rank(&self, page: u64) -> Option<usize> {
        let at = (page / 64) as usize;
        let word = self.words.get(at)?;
        let bit = 1u64 << (page % 64);
        (word & bit != 0).then(|| self.before[at] as usize + (word & (bit - 1)).count_ones() as usize)
    }
    /// Iterates over the pages in the set from page number `from` on, in ascending order.
    pub(super) fn iter_from(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        let first = (from / 64) as usize;
        self.words.iter().enumerate().skip(first).flat_map(move |(at, &word)| {
            let mut left = if at == first { word & (u64::MAX << (from % 64)) } else { word };
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| u64::from(left.trailing_zeros()))?;
                left &= left - 1;
                Some(at as u64 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_a_set(
            pages in 1u64..400,
            present in proptest::collection::btree_set(0u64..400, 0..100),
            from in 0u64..450,
        ) {
            let present: BTreeSet<u64> = present.into_iter().filter(|&page| page < pages).collect();
            let made = Presence::new(pages, present.iter().copied());
            let bytes = made.to_bytes();
            prop_assert_eq!(bytes.len(), Presence::bytes_for(pages));
            for it in [made, Presence::from_bytes(pages, &bytes).unwrap()] {
                prop_assert_eq!(it.present(), present.len() as u64);
                prop_assert_eq!(it.iter_from(0).collect::<BTreeSet<_>>(), present.clone());
                prop_assert!(it.iter_from(from).eq(present.range(from..).copied()));
                for page in 0..450 {
                    let rank = present.contains(&page).then(|| present.range(..page).count());
                    prop_assert_eq!(it.rank(page), rank);
                }
            }
        }
    }

    #[test]
    fn bits_beyond_the_last_page_are_refused() {
        assert!(Presence::from_bytes(3, &[0b111]).is_some());
        assert!(Presence::from_bytes(3, &[0b1000]).is_none());
        assert!(Presence::from_bytes(0, &[]).is_some());
    }
}
