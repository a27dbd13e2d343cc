//! Index of a timeline: all its entries, in the order in which they happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::{Entry, Happened, Kind};
use super::limits::{CONTENT_BYTES_MAX, ENTRIES_MAX, ENTRY_BYTES_MAX};

/// Entries of a timeline, ascending by vtime.
#[derive(Debug, Default)]
pub struct Index {
    entries: Vec<Entry>,
    bytes: usize,
    /// Data of messages by the number of the frame, until the index is complete.
    data: BTreeMap<u64, Arc<[u8]>>,
    data_bytes: usize,
    /// Vtime from which entries are missing because there were too many, in nanoseconds.
    cut_ns: Option<u64>,
}

impl Index {
    /// Adds an entry.
    pub(super) fn add(&mut self, entry: Entry) {
        let bytes = entry.bytes();
        if self.cut_ns.is_some()
            || self.entries.len() >= ENTRIES_MAX
            || self.bytes.saturating_add(bytes) > ENTRY_BYTES_MAX
        {
            // Messages can be reported later than events of the same vtime.
            let cut_ns = self.cut_ns.map_or(entry.vtime_ns, |cut_ns| cut_ns.min(entry.vtime_ns));
            self.cut_ns = Some(cut_ns);
            return;
        }
        self.bytes += bytes;
        self.entries.push(entry);
    }

    /// Adds the data of a frame that was sent.
    pub(super) fn add_data(&mut self, frame: u64, data: &[u8]) {
        if self.data_bytes.saturating_add(data.len()) <= CONTENT_BYTES_MAX {
            self.data_bytes += data.len();
            self.data.insert(frame, Arc::from(data));
        }
    }

    /// Completes the index: sorts the entries, and gives messages their data.
    pub(super) fn complete(&mut self) {
        // A violation follows the line that shows it.
        self.entries.sort_by_key(|entry| (entry.vtime_ns, entry.kind() == Kind::Finding));
        for entry in &mut self.entries {
            if let Happened::Message(message) = &mut entry.what {
                message.data = self.data.get(&message.step.frame).cloned();
            }
        }
        self.data.clear();
        if let Some(cut_ns) = self.cut_ns {
            self.entries.retain(|entry| entry.vtime_ns < cut_ns);
        }
    }

    /// Returns all entries.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the vtime from which entries are missing because there were too many, in nanoseconds.
    #[must_use]
    pub fn cut_ns(&self) -> Option<u64> {
        self.cut_ns
    }

    /// Returns the number of entries up to a vtime, inclusive.
    #[must_use]
    pub fn until(&self, vtime_ns: u64) -> usize {
        self.entries.partition_point(|entry| entry.vtime_ns <= vtime_ns)
    }

    /// Returns the first entry from `from` on that `wanted` accepts.
    pub fn next(&self, from: usize, mut wanted: impl FnMut(&Entry) -> bool) -> Option<usize> {
        (from..self.entries.len()).find(|n| wanted(&self.entries[*n]))
    }

    /// Returns the last entry before `before` that `wanted` accepts.
    pub fn last(&self, before: usize, mut wanted: impl FnMut(&Entry) -> bool) -> Option<usize> {
        (0..before.min(self.entries.len())).rev().find(|n| wanted(&self.entries[*n]))
    }

    /// Returns the last entries of a kind before `before`, at most `count`, in their order.
    #[must_use]
    pub fn last_of(&self, before: usize, kind: Kind, count: usize) -> Vec<usize> {
        let all = (0..before.min(self.entries.len())).rev();
        let mut found: Vec<usize> = all.filter(|n| self.entries[*n].is(kind)).take(count).collect();
        found.reverse();
        found
    }

    /// Returns the values of the state variables after the first `count` entries.
    #[must_use]
    pub fn state(&self, count: usize) -> BTreeMap<(Option<String>, String), String> {
        let mut state = BTreeMap::new();
        for entry in self.entries.iter().take(count) {
            if let Happened::State(change) = &entry.what {
                let key = (change.node.clone(), change.variable.clone());
                match &change.new {
                    Some(value) => state.insert(key, value.clone()),
                    None => state.remove(&key),
                };
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::StateChange;
    use super::*;

    fn change(vtime_ns: u64, new: Option<&str>) -> Entry {
        let new = new.map(str::to_owned);
        let change = StateChange { node: None, variable: "role".to_owned(), old: None, new };
        Entry { vtime_ns, what: Happened::State(change) }
    }

    #[test]
    fn entries_are_in_the_order_of_their_vtimes() {
        let mut index = Index::default();
        [change(5, Some("b")), change(3, Some("a")), change(9, None)]
            .into_iter()
            .for_each(|it| index.add(it));
        index.complete();
        assert_eq!(index.entries().iter().map(|entry| entry.vtime_ns).collect::<Vec<_>>(), [3, 5, 9]);
        assert_eq!((index.until(2), index.until(5), index.until(9)), (0, 2, 3));
        assert_eq!(index.next(1, |_| true), Some(1));
        assert_eq!(index.last(1, |_| true), Some(0));
        let role = |count| index.state(count).into_values().next();
        assert_eq!((role(1), role(2), role(3)), (Some("a".to_owned()), Some("b".to_owned()), None));
    }

    #[test]
    fn entries_beyond_the_bound_are_left_out() {
        let mut index = Index { bytes: ENTRY_BYTES_MAX, ..Index::default() };
        index.entries.push(change(1, None));
        index.entries.push(change(4, None));
        index.add(change(4, None));
        index.add(change(7, None));
        index.complete();
        assert_eq!((index.cut_ns(), index.entries().len()), (Some(4), 1));
    }

    #[test]
    fn data_beyond_the_bound_is_not_known() {
        let mut index = Index { data_bytes: CONTENT_BYTES_MAX - 1, ..Index::default() };
        index.add_data(1, b"ab");
        index.add_data(2, b"a");
        assert_eq!(index.data.keys().copied().collect::<Vec<_>>(), [2]);
    }
}
