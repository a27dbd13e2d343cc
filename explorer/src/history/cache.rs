//! The configurations that a search has been at.
//!
//! A configuration is what was put in order so far, in whatever order, and the state that it led to. What is acknowledged,
//! with the state, is kept as its hash, of which no two are the same: they are as long as what makes forging one hopeless.
//! What was used up of unknown outcome is kept as it is: where nothing came of a configuration, nothing comes of one that
//! has used up the same and more.

use std::collections::BTreeMap;

/// What a name takes, and an entry of it without its words, roughly.
const NAME_BYTES: u64 = 64;
const ENTRY_BYTES: u64 = 32;

/// The name of acknowledged operations with a state.
pub(super) type Name = [u8; 32];

#[derive(Debug)]
struct Entry {
    used: Box<[u32]>,
    full: bool,
}

/// Configurations, with whether all acknowledged operations but the suspect were put in order from there.
#[derive(Debug, Default)]
pub(super) struct Cache {
    names: BTreeMap<Name, Vec<Entry>>,
    entry_bytes: u64,
    bytes: Vec<u8>,
}

impl Cache {
    /// The name of what is given in words.
    pub(super) fn name(&mut self, words: &[u32]) -> Name {
        self.bytes.clear();
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        *blake3::hash(&self.bytes).as_bytes()
    }

    /// Whether nothing new comes of a configuration, and if so, whether it is full. And how many others it was compared
    /// with.
    pub(super) fn known(&self, name: &Name, used: &[u32]) -> (Option<bool>, usize) {
        let Some(entries) = self.names.get(name) else { return (None, 0) };
        // One that is full says nothing about whether those that have used up more are.
        let says = |entry: &&Entry| *entry.used == *used || !entry.full && is_within(&entry.used, used);
        (entries.iter().find(says).map(|entry| entry.full), entries.len())
    }

    /// Enter one, or that it is full.
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

    /// What it takes, roughly.
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
    fn what_has_used_up_more_is_known() {
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
        // A full one is known only as it is.
        cache.put(one, &[0b01, 0], true);
        assert_eq!(cache.known(&one, &[0b01, 0]), (Some(true), 1));
        assert_eq!(cache.known(&one, &[0b11, 0]), (None, 1));
        assert_eq!(cache.bytes(), NAME_BYTES + ENTRY_BYTES + 8);
    }
}
