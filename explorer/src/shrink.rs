//! The fewest of many items that still show something: delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002).
//!
//! Whoever shrinks runs the sets of a round, at once or one after the other, and says which was the first that shows it. So the
//! result does not depend on how many ran at a time.
//!
//! **Invariants.** What is kept shows it. At the end it does not without any one of the items that are kept.

use std::collections::BTreeSet;

/// Items that are made fewer, by their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrink {
    kept: Vec<usize>,
    /// Into how many parts what is kept is cut; 0: whether nothing at all shows it is not known yet.
    parts: usize,
    /// Sets that do not show it.
    tried: BTreeSet<Vec<usize>>,
    over: bool,
}

impl Shrink {
    /// So many items, which show it together.
    #[must_use]
    pub fn new(items: usize) -> Shrink {
        Shrink { kept: (0..items).collect(), parts: 0, tried: BTreeSet::new(), over: items == 0 }
    }

    /// The items that are kept, in their order.
    #[must_use]
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// The sets that are to be tried next, the smaller ones first; none at the end.
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
        // Of two parts each is what the other leaves.
        let others = if parts.len() > 2 { others } else { Vec::new() };
        parts.into_iter().chain(others).filter(|set| !self.tried.contains(set)).collect()
    }

    /// All sets of the round were tried, or all before the first that shows it: this one, if there is one.
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
                // That nothing at all does not show it is known, or this is nothing at all.
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

    fn finer(&mut self) {
        match self.parts {
            parts if self.kept.len() <= parts.max(1) => self.over = true,
            0 => self.parts = 2,
            parts => self.parts = (2 * parts).min(self.kept.len()),
        }
    }

    /// Rounds of which everything is known are no rounds.
    fn skip(&mut self) {
        while !self.over && self.round().is_empty() {
            self.finer();
        }
    }

    /// What is kept in as many parts, as even as can be.
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

    /// What is kept at the end, and how many sets were tried.
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
        /// Where all of some items are needed, just these are kept.
        #[test]
        fn what_is_needed_is_kept(items in 0..80usize, needed in prop::collection::btree_set(0..80usize, 0..6)) {
            let needed: Vec<usize> = needed.into_iter().filter(|&item| item < items).collect();
            let (kept, tried) = shrink(items, |set| needed.iter().all(|item| set.contains(item)));
            prop_assert_eq!(&kept, &needed);
            prop_assert!(tried <= items * items + 3 * items + 1, "{} of {}", tried, items);
        }

        /// Whatever shows it: what is kept does, and does not without any one item.
        #[test]
        fn no_item_is_kept_in_vain(items in 1..12usize, shown in prop::collection::vec(any::<bool>(), 1 << 12)) {
            let bits = |set: &[usize]| set.iter().fold(0usize, |bits, item| bits | 1 << item);
            let all = bits(&(0..items).collect::<Vec<_>>());
            let shows = |set: &[usize]| bits(set) == all || shown[bits(set)];
            let (kept, _) = shrink(items, shows);
            prop_assert!(shows(&kept));
            for item in &kept {
                let fewer: Vec<usize> = kept.iter().copied().filter(|other| other != item).collect();
                prop_assert!(!shows(&fewer), "{:?} without {}", kept, item);
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
