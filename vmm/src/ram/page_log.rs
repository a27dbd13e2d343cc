//! Log of pages written through `vm-memory`: a bitmap with a summary. If no page was written, taking the log costs one
//! atomic operation. Otherwise it reads the summary (one word per 4096 pages of RAM) and the bitmap words that are not
//! zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use vm_memory::bitmap::{Bitmap, RefSlice, WithBitmapSlice};

use crate::layout::PAGE;

/// Log of written pages. Clones share the same log. Relaxed ordering suffices, because a machine belongs to one thread
/// at a time.
#[derive(Debug, Clone, Default)]
pub struct PageLog {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    any: AtomicBool,
    /// Summary of `pages`: bit i of word w is set if `pages[64 * w + i]` is not zero.
    summary: Vec<AtomicU64>,
    /// Written pages: bit i of word w is set if page 64 * w + i was written.
    pages: Vec<AtomicU64>,
    count: u64,
}

impl PageLog {
    /// Creates an empty log for `bytes` of memory.
    pub fn new(bytes: u64) -> PageLog {
        let count = bytes.div_ceil(PAGE);
        let words = |n: u64| (0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let pages = words(count);
        let summary = words(pages.len() as u64);
        PageLog { shared: Arc::new(Shared { any: AtomicBool::new(false), summary, pages, count }) }
    }

    /// True if a page was written since the last [`PageLog::take`].
    pub fn any(&self) -> bool {
        self.shared.any.load(Relaxed)
    }

    /// Takes the numbers of the pages written since the last call, in ascending order.
    pub fn take(&self) -> Vec<u64> {
        let mut taken = Vec::new();
        if !self.shared.any.swap(false, Relaxed) {
            return taken;
        }
        for (s, word) in self.shared.summary.iter().enumerate() {
            for w in bits(word.swap(0, Relaxed)) {
                let index = s as u64 * 64 + w;
                let pages = self.shared.pages[index as usize].swap(0, Relaxed);
                taken.extend(bits(pages).map(|p| index * 64 + p));
            }
        }
        taken
    }
}

/// Returns the indices of the set bits, in ascending order.
fn bits(mut word: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros();
            word &= word - 1;
            u64::from(bit)
        })
    })
}

impl<'a> WithBitmapSlice<'a> for PageLog {
    type S = RefSlice<'a, PageLog>;
}

impl Bitmap for PageLog {
    fn mark_dirty(&self, offset: usize, len: usize) {
        if len == 0 || self.shared.count == 0 {
            return;
        }
        let last = (offset as u64).saturating_add(len as u64 - 1) / PAGE;
        for page in offset as u64 / PAGE..=last.min(self.shared.count - 1) {
            self.shared.pages[(page / 64) as usize].fetch_or(1 << (page % 64), Relaxed);
            self.shared.summary[(page / 4096) as usize].fetch_or(1 << (page / 64 % 64), Relaxed);
        }
        self.shared.any.store(true, Relaxed);
    }

    fn dirty_at(&self, offset: usize) -> bool {
        let page = offset as u64 / PAGE;
        self.shared
            .pages
            .get((page / 64) as usize)
            .is_some_and(|word| word.load(Relaxed) & 1 << (page % 64) != 0)
    }

    fn slice_at(&self, offset: usize) -> RefSlice<'_, PageLog> {
        RefSlice::new(self, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_a_set_of_pages(writes in proptest::collection::vec((0usize..1 << 26, 0usize..20_000), 0..50)) {
            let log = PageLog::new(1 << 26);
            let mut oracle = BTreeSet::new();
            let written = writes.iter().any(|&(_, len)| len > 0);
            for (offset, len) in writes {
                log.slice_at(offset).mark_dirty(0, len);
                oracle.extend((offset..offset + len).step_by(4096).map(|b| b as u64 / PAGE));
                if len > 0 {
                    oracle.insert((offset + len - 1) as u64 / PAGE);
                }
            }
            oracle.retain(|&page| page < (1 << 26) / PAGE);
            prop_assert_eq!(log.any(), written);
            prop_assert_eq!(log.take(), oracle.into_iter().collect::<Vec<_>>());
            prop_assert!(log.take().is_empty());
        }
    }
}
