//! Delta debugging: reduces a set of items that reproduces a finding to a smaller set that still reproduces the finding
//! (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
//!
//! The reduction goes in rounds. In each round, the caller gets sets of items and tries them, in parallel or one after
//! the other. It reports the first set, in the round's order, that reproduces the finding. The result therefore does
//! not depend on how many sets are tried in parallel.
//!
//! **Invariants.** The kept items reproduce the finding. At the end, removing any single item loses the finding.

use std::collections::BTreeSet;

/// State of a reduction. Items are named by their indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrink {
    kept: Vec<usize>,
    /// Number of parts into which the kept items are divided. 0 until the empty set has been tried.
    parts: usize,
    /// Sets that do not reproduce the finding.
    tried: BTreeSet<Vec<usize>>,
    over: bool,
}

impl Shrink {
    /// Starts a reduction of `items` items, which together reproduce the finding.
    #[must_use]
    pub fn new(items: usize) -> Shrink {
        Shrink { kept: (0..items).collect(), parts: 0, tried: BTreeSet::new(), over: items == 0 }
    }

    /// Returns the kept items, in ascending order.
    #[must_use]
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Returns the sets to try next: first the parts, then their complements. Returns no sets at the end of the
    /// reduction.
    #[must_use]
    pub fn round(&self) -> Vec<Vec<usize>> {
        if self.over {
            return Vec::new();
        }
        if self.parts == 0 {
            return vec![Vec::new()];
        }
        let parts = self.cut();
        let without =
            |part: &Vec<usize>| self.kept.iter().copied().filter(|item| !part.contains(item)).collect();
        let others: Vec<Vec<usize>> = parts.iter().map(without).collect();
        // With two parts, each part is the other's complement, so the complements would be the same sets again.
        let others = if parts.len() > 2 { others } else { Vec::new() };
        parts.into_iter().chain(others).filter(|set| !self.tried.contains(set)).collect()
    }

    /// Takes the result of a round: the index of the first set that reproduces the finding, or `None` if no set does.
    /// The caller must have tried all sets before that index.
    pub fn tell(&mut self, shows: Option<usize>) {
        let mut round = self.round();
        if round.is_empty() && !self.over {
            return self.finer();
        }
        match shows.filter(|&i| i < round.len()) {
            Some(i) => {
                let set = round.swap_remove(i);
                let parts =
                    if set.len() < self.kept.len().div_ceil(2) { 2 } else { self.parts.saturating_sub(1) };
                self.parts = parts.clamp(2, set.len().max(2));
                // The reduction ends with a single item, because the empty set was tried in the first round.
                self.over = set.len() <= 1;
                self.kept = set;
            }
            None => {
                self.tried.extend(round);
                self.finer();
            }
        }
        self.skip();
    }

    /// Doubles the number of parts. Ends the reduction if each part already has a single item.
    fn finer(&mut self) {
        match self.parts {
            parts if self.kept.len() <= parts.max(1) => self.over = true,
            0 => self.parts = 2,
            parts => self.parts = (2 * parts).min(self.kept.len()),
        }
    }

    /// Skips rounds whose sets have all been tried.
    fn skip(&mut self) {
        while !self.over && self.round().is_empty() {
            self.finer();
        }
    }

    /// Divides the kept items into `parts` parts of nearly equal size.
    fn cut(&self) -> Vec<Vec<usize>> {
        let (len, parts) = (self.kept.len(), self.parts.clamp(1, self.kept.len().max(1)));
        let at = |part: usize| len * part / parts;
        (0..parts).map(|part| self.kept.get(at(part)..at(part + 1)).unwrap_or_default().to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the kept items at the end, and the number of tried sets.
    fn shrink(items: usize, shows: impl Fn(&[usize]) -> bool) -> (Vec<usize>, usize) {
        let (mut shrink, mut tried) = (Shrink::new(items), 0);
        loop {
            let round = shrink.round();
            if round.is_empty() {
                return (shrink.kept().to_vec(), tried);
            }
            let first = round.iter().position(|set| shows(set));
            tried += first.map_or(round.len(), |i| i + 1);
            shrink.tell(first);
        }
    }

    proptest! {
        /// If the finding needs all of certain items, the reduction keeps exactly these items.
        #[test]
        fn needed_items_are_kept(items in 0..80usize, needed in prop::collection::btree_set(0..80usize, 0..6)) {
            let needed: Vec<usize> = needed.into_iter().filter(|&item| item < items).collect();
            let (kept, tried) = shrink(items, |set| needed.iter().all(|item| set.contains(item)));
            prop_assert_eq!(&kept, &needed);
            prop_assert!(tried <= items * items + 3 * items + 1, "{} runs for {} items", tried, items);
        }

        /// For any choice of reproducing sets, the kept items reproduce the finding, and removing any one item loses
        /// it.
        #[test]
        fn no_kept_item_can_be_removed(items in 1..12usize, shown in prop::collection::vec(any::<bool>(), 1 << 12)) {
            let bits = |set: &[usize]| set.iter().fold(0usize, |bits, item| bits | 1 << item);
            let all = bits(&(0..items).collect::<Vec<_>>());
            let shows = |set: &[usize]| bits(set) == all || shown[bits(set)];
            let (kept, _) = shrink(items, shows);
            prop_assert!(shows(&kept));
            for item in &kept {
                let fewer: Vec<usize> = kept.iter().copied().filter(|other| other != item).collect();
                prop_assert!(!shows(&fewer), "{:?} still shows the finding without {}", kept, item);
            }
        }
    }

    #[test]
    fn few_sets_are_tried_for_few_items() {
        let (kept, tried) = shrink(1_000, |set| set.contains(&613));
        assert_eq!(kept, [613]);
        assert!(tried < 60, "{tried}");
    }
}
