//! Cache of the configurations that the search for a valid order of operations has visited.
//!
//! The search puts one operation after another into an order (it places them). A configuration is the set of placed
//! operations, regardless of their order, and the object's state after them. A hash identifies the placed acknowledged
//! operations and the state. The hash is long enough to make collisions infeasible, even deliberate ones.
//!
//! The placed operations of unknown outcome (the used ones) are not part of the hash. They are stored in full, so that
//! a configuration can be compared with one that used more of them. If a configuration led to no valid order, then no
//! valid order follows from a configuration with the same hash that used the same operations and further ones.

use std::collections::BTreeMap;

/// Approximate memory of a configuration's name, in bytes.
const NAME_BYTES: u64 = 64;
/// Approximate memory of an entry without the words in `used`, in bytes.
const ENTRY_BYTES: u64 = 32;

/// Name of a configuration: a hash of its acknowledged operations and its state.
pub(super) type Name = [u8; 32];

#[derive(Debug)]
struct Entry {
    used: Box<[u32]>,
    full: bool,
}

/// Visited configurations. The flag `full` of a configuration is true if the search could, from there, order all
/// acknowledged operations except the suspect. The suspect is the operation that the caller of the search takes for
/// the first impossible one.
#[derive(Debug, Default)]
pub(super) struct Cache {
    names: BTreeMap<Name, Vec<Entry>>,
    entry_bytes: u64,
    bytes: Vec<u8>,
}

impl Cache {
    /// Returns the name of a configuration. `words` identify its placed acknowledged operations and its state.
    pub(super) fn name(&mut self, words: &[u32]) -> Name {
        self.bytes.clear();
        for word in words {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        *blake3::hash(&self.bytes).as_bytes()
    }

    /// Looks up a configuration. If a stored entry shows that this configuration cannot lead to anything new, returns
    /// the entry's flag `full`. Otherwise returns `None`. Also returns the number of stored entries with this name.
    pub(super) fn known(&self, name: &Name, used: &[u32]) -> (Option<bool>, usize) {
        let Some(entries) = self.names.get(name) else { return (None, 0) };
        // An entry that is not full also rules out configurations with more used operations. A full entry does not,
        // because these configurations may lead to other possible states of the object.
        let says = |entry: &&Entry| *entry.used == *used || !entry.full && is_within(&entry.used, used);
        (entries.iter().find(says).map(|entry| entry.full), entries.len())
    }

    /// Adds a configuration. If it is already known, updates its flag.
    pub(super) fn put(&mut self, name: Name, used: &[u32], full: bool) {
        let entries = self.names.entry(name).or_default();
        match entries.iter_mut().find(|entry| *entry.used == *used) {
            Some(entry) => entry.full = full,
            None => {
                self.entry_bytes += ENTRY_BYTES + 4 * used.len() as u64;
                entries.push(Entry { used: used.into(), full });
            }
        }
    }

    /// Returns the approximate memory of the cache, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.names.len() as u64 * NAME_BYTES + self.entry_bytes
    }
}

fn is_within(some: &[u32], others: &[u32]) -> bool {
    some.iter().zip(others).all(|(some, others)| some & !others == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_that_have_used_more_are_known() {
        let mut cache = Cache::default();
        let (one, other) = (cache.name(&[1, 2]), cache.name(&[1, 3]));
        assert_ne!(one, other);
        assert_eq!(cache.known(&one, &[0b01, 0]), (None, 0));
        cache.put(one, &[0b01, 0], false);
        for (used, known) in
            [([0b01, 0], true), ([0b11, 0], true), ([0b01, 1], true), ([0b10, 0], false), ([0, 1], false)]
        {
            assert_eq!(cache.known(&one, &used).0.is_some(), known, "{used:?}");
        }
        assert_eq!(cache.known(&other, &[0b01, 0]), (None, 0));
        // A full entry matches only the same configuration.
        cache.put(one, &[0b01, 0], true);
        assert_eq!(cache.known(&one, &[0b01, 0]), (Some(true), 1));
        assert_eq!(cache.known(&one, &[0b11, 0]), (None, 1));
        assert_eq!(cache.bytes(), NAME_BYTES + ENTRY_BYTES + 8);
    }
}
