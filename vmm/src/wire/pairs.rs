//! A set of directions, i.e. of pairs (sender, receiver).

use serde::{Deserialize, Serialize};

use super::config::PORTS_MAX;

/// Set of directions: bit `to` of word `from` is set for a direction in the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pairs(Vec<u64>);

impl Pairs {
    /// Returns the directions among `ports` ports for which `chosen(sender, receiver)` is true. Excludes directions
    /// from a port to itself.
    pub(super) fn choose(ports: usize, chosen: impl Fn(u8, u8) -> bool) -> Pairs {
        let row = |from: u8| {
            (0..ports as u8).filter(|&to| to != from && chosen(from, to)).fold(0, |row, to| row | 1 << to)
        };
        Pairs((0..ports as u8).map(row).collect())
    }

    pub(super) fn contains(&self, from: u8, to: u8) -> bool {
        self.0.get(usize::from(from)).is_some_and(|row| row >> (to % PORTS_MAX as u8) & 1 != 0)
    }

    /// True if all directions are between different ports below `ports`.
    pub(super) fn is_sound(&self, ports: usize) -> bool {
        let beyond = if ports < PORTS_MAX { u64::MAX << ports } else { 0 };
        self.0.len() == ports
            && self.0.iter().enumerate().all(|(from, row)| row & beyond == 0 && row >> from & 1 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_pairs_are_in() {
        for ports in [0, 1, 2, 63, 64] {
            let odd = Pairs::choose(ports, |from, to| (from + to) % 2 == 1);
            assert!(odd.is_sound(ports) && !odd.is_sound(ports + 1));
            for (from, to) in (0..64).flat_map(|from| (0..64).map(move |to| (from, to))) {
                let inside = usize::from(from) < ports && usize::from(to) < ports;
                assert_eq!(odd.contains(from, to), inside && (from + to) % 2 == 1, "{from} {to}");
            }
        }
        assert!(!Pairs::choose(3, |_, _| true).contains(2, 2));
        assert!(!Pairs(vec![1, 1]).is_sound(2), "a port never sends to itself");
        assert!(!Pairs(vec![4, 1]).is_sound(2), "there is no port 2");
    }
}
