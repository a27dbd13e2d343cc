//! A queue in memory (first in, first out) that is cheap to clone. Clones share their items until one of the clones
//! changes.
//!
//! Items are in reference-counted chunks. A clone increments two reference counts. After a clone, the first push copies
//! the last chunk, which is not full. The first change to the list of full chunks copies the list: a chunk joins the
//! list when it becomes full, and leaves it when all its items are removed.

use std::collections::VecDeque;
use std::sync::Arc;

/// Number of items per chunk.
const CHUNK: usize = 128;

/// Queue whose clones share unchanged items.
#[derive(Debug, Clone)]
pub(super) struct Fifo<T> {
    /// Full chunks.
    full: Arc<VecDeque<Arc<Vec<T>>>>,
    /// Last chunk. It is not full.
    open: Arc<Vec<T>>,
    /// Number of items removed from the front of the first chunk. If `full` is empty, the first chunk is `open`.
    gone: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Fifo<T> {
        Fifo { full: Arc::default(), open: Arc::default(), gone: 0 }
    }
}

impl<T: Clone> Fifo<T> {
    pub(super) fn len(&self) -> usize {
        self.full.len() * CHUNK + self.open.len() - self.gone
    }

    /// Adds an item at the end.
    pub(super) fn push(&mut self, item: T) {
        let open = Arc::make_mut(&mut self.open);
        open.push(item);
        if open.len() == CHUNK {
            Arc::make_mut(&mut self.full).push_back(std::mem::take(&mut self.open));
        }
    }

    /// Returns the first item, if any.
    pub(super) fn front(&self) -> Option<&T> {
        self.full.front().unwrap_or(&self.open).get(self.gone)
    }

    /// Removes the first item. A chunk is freed when all its items are removed.
    pub(super) fn drop_front(&mut self) {
        let Some(first) = self.full.front() else {
            self.gone = (self.gone + 1).min(self.open.len());
            if self.gone == self.open.len() {
                (self.open, self.gone) = (Arc::default(), 0);
            }
            return;
        };
        self.gone += 1;
        if self.gone == first.len() {
            Arc::make_mut(&mut self.full).pop_front();
            self.gone = 0;
        }
    }

    #[cfg(test)]
    pub(super) fn shares(&self, other: &Fifo<T>) -> bool {
        Arc::ptr_eq(&self.full, &other.full) && Arc::ptr_eq(&self.open, &other.open)
    }

    /// Iterates over all items except the first `start`. Does not visit the chunks of skipped items.
    pub(super) fn iter_from(&self, start: usize) -> impl Iterator<Item = &T> {
        let at = self.gone + start;
        let chunk = (at / CHUNK).min(self.full.len());
        let chunks = self.full.range(chunk..).chain([&self.open]);
        chunks.flat_map(|chunk| chunk.iter()).skip(at - chunk * CHUNK)
    }
}

impl<T: Clone> FromIterator<T> for Fifo<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Fifo<T> {
        let mut fifo = Fifo::default();
        items.into_iter().for_each(|item| fifo.push(item));
        fifo
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Arbitrary calls on three clones have the same results as on plain queues, and the clones do not affect each
        /// other.
        #[test]
        fn equals_a_queue(steps in proptest::collection::vec((0usize..3, 0usize..3, 0u8..5, 1usize..200), 0..60)) {
            let mut versions: [(Fifo<usize>, VecDeque<usize>); 3] = Default::default();
            for (number, (this, that, act, times)) in steps.into_iter().enumerate() {
                if act == 0 {
                    versions[that] = versions[this].clone();
                }
                let (fifo, oracle) = &mut versions[this];
                for i in 0..times {
                    if act < 3 {
                        fifo.push(1000 * number + i);
                        oracle.push_back(1000 * number + i);
                    } else {
                        fifo.drop_front();
                        oracle.pop_front();
                    }
                    prop_assert_eq!((fifo.front(), fifo.len()), (oracle.front(), oracle.len()));
                }
            }
            for (fifo, oracle) in &versions {
                for start in (0..oracle.len() + 200).step_by(61) {
                    prop_assert!(fifo.iter_from(start).eq(oracle.iter().skip(start)), "from {start}");
                }
                let copy: Fifo<usize> = fifo.iter_from(0).copied().collect();
                prop_assert!(copy.iter_from(0).eq(oracle));
            }
        }
    }

    /// A clone shares its chunks, and a change copies only one chunk.
    #[test]
    fn clones_share() {
        let mut fifo: Fifo<usize> = (0..10 * CHUNK + 5).collect();
        let then = fifo.clone();
        assert!(fifo.shares(&then));
        fifo.push(7);
        assert!(Arc::ptr_eq(&fifo.full, &then.full), "the list of chunks is copied when it changes");
        (0..CHUNK).for_each(|_| fifo.drop_front());
        assert_eq!((then.len(), fifo.len()), (10 * CHUNK + 5, 9 * CHUNK + 6));
        assert!(Arc::ptr_eq(&fifo.full[0], &then.full[1]));
    }
}
