//! Set of small numbers, stored as bits.

/// Set of numbers below a bound.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Returns an empty set for numbers below `len`.
    pub(super) fn none(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)] }
    }

    pub(super) fn set(&mut self, i: usize, on: bool) {
        if let Some(word) = self.words.get_mut(i / 64) {
            let bit = 1 << (i % 64);
            if on { *word |= bit } else { *word &= !bit }
        }
    }

    pub(super) fn has(&self, i: usize) -> bool {
        self.words.get(i / 64).is_some_and(|word| word & (1 << (i % 64)) != 0)
    }

    /// Appends the words that contain the bits from `from` to `to`, each as two 32-bit halves.
    pub(super) fn halves(&self, from: usize, to: usize, out: &mut Vec<u32>) {
        for word in self.words.iter().take(to / 64 + 1).skip(from / 64) {
            #[expect(clippy::cast_possible_truncation, reason = "it is the lower half that is wanted")]
            out.extend([*word as u32, (*word >> 32) as u32]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_the_set_until_they_are_removed() {
        let mut bits = Bits::none(130);
        for i in [0, 63, 64, 129] {
            assert!(!bits.has(i));
            bits.set(i, true);
            assert!(bits.has(i));
        }
        bits.set(64, false);
        assert_eq!((0..200).filter(|i| bits.has(*i)).collect::<Vec<_>>(), [0, 63, 129]);
        // `set` ignores numbers beyond the last word.
        bits.set(500, true);
        assert!(!bits.has(500));
    }

    #[test]
    fn halves_cover_the_range() {
        let mut bits = Bits::none(192);
        bits.set(1, true);
        bits.set(96, true);
        bits.set(191, true);
        let halves = |from, to| {
            let mut out = Vec::new();
            bits.halves(from, to, &mut out);
            out
        };
        assert_eq!(halves(0, 191), [2, 0, 0, 1, 0, 1 << 31]);
        assert_eq!(halves(64, 127), [0, 1]);
        assert_eq!(halves(63, 64), [2, 0, 0, 1]);
    }
}
