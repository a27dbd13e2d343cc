//! Index of a timeline: all its entries, in the order in which they happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::{Entry, Happened, Kind};
use super::limits::{CONTENT_BYTES_MAX, CONTENT_ENTRY_BYTES, ENTRIES_MAX, ENTRY_BYTES_MAX};

/// Text about entries beyond the bound of the list.
pub(super) const UNLISTED: &str = "what happens is not listed";
/// Text about messages beyond the bound of the data.
pub(super) const UNKNOWN: &str = "the data of messages is not known";

/// Entries of a timeline, ascending by vtime.
#[derive(Debug, Default)]
pub struct Index {
    entries: Vec<Entry>,
    bytes: usize,
    /// Data of messages by the number of the frame, until the index is complete.
    data: BTreeMap<u64, Arc<[u8]>>,
    data_bytes: usize,
    /// Number of the first frame whose data is missing because there was too much data.
    unknown: Option<u64>,
    /// Vtime of the first message whose data is missing for this reason, in nanoseconds.
    unknown_ns: Option<u64>,
    /// Vtime from which entries are missing because there were too many, in nanoseconds.
    cut_ns: Option<u64>,
}

impl Index {
    /// Returns an empty index from which entries and data are missing.
    #[cfg(test)]
    pub(super) fn cut_at(cut_ns: Option<u64>, unknown_ns: Option<u64>) -> Index {
        Index { cut_ns, unknown_ns, ..Index::default() }
    }

    /// Adds an entry. Violations are those of the run's files, and are always added.
    pub(super) fn add(&mut self, entry: Entry) {
        let bytes = entry.bytes();
        if entry.kind() == Kind::Finding {
            self.entries.push(entry);
            return;
        }
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

    /// Adds the data of a frame that was sent. Data of frames after the first that does not fit is left out, and so is
    /// data of frames that no entry can have.
    pub(super) fn add_data(&mut self, frame: u64, data: &[u8]) {
        if self.cut_ns.is_some() {
            return;
        }
        let bytes = self.data_bytes.saturating_add(data.len()).saturating_add(CONTENT_ENTRY_BYTES);
        if self.unknown.is_some() || bytes > CONTENT_BYTES_MAX {
            self.unknown = Some(self.unknown.map_or(frame, |unknown| unknown.min(frame)));
            return;
        }
        self.data_bytes = bytes;
        // Frames without data share an empty slice.
        self.data.insert(frame, if data.is_empty() { Arc::default() } else { Arc::from(data) });
    }

    /// Completes the index: sorts the entries, and gives messages their data.
    pub(super) fn complete(&mut self) {
        // A violation follows the line that shows it.
        self.entries.sort_by_key(|entry| (entry.vtime_ns, entry.kind() == Kind::Finding));
        for entry in &mut self.entries {
            if let Happened::Message(message) = &mut entry.what {
                message.data = self.data.get(&message.step.frame).cloned();
                let is_cut = self.unknown.is_some_and(|unknown| message.step.frame >= unknown);
                if message.data.is_none() && is_cut && self.unknown_ns.is_none() {
                    self.unknown_ns = Some(entry.vtime_ns);
                }
            }
        }
        self.data.clear();
        if let Some(cut_ns) = self.cut_ns {
            self.entries.retain(|entry| entry.vtime_ns < cut_ns || entry.kind() == Kind::Finding);
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

    /// Returns the vtime of the first message whose data is missing because there was too much data, in nanoseconds.
    #[must_use]
    pub fn unknown_ns(&self) -> Option<u64> {
        self.unknown_ns
    }

    /// Returns the vtime up to which all entries and their data are known, in nanoseconds, of a timeline that ends at
    /// `end_ns`.
    #[must_use]
    pub fn known_until_ns(&self, end_ns: u64) -> u64 {
        let cuts = [self.cut_ns, self.unknown_ns].into_iter().flatten();
        cuts.map(|cut_ns| cut_ns.saturating_sub(1)).fold(end_ns, u64::min)
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
    use everett_vmm::wire::log::{FrameStep, FrameStepKind};
    use everett_vmm::wire::summary::Summary;

    use super::super::entry::{Hit, Message, StateChange};
    use super::*;

    fn message(vtime_ns: u64, frame: u64) -> Entry {
        let step = FrameStep {
            kind: FrameStepKind::Deliver,
            vtime: vtime_ns,
            sent_at: 1,
            from: 0,
            to: Some(1),
            frame,
            len: 60,
            flipped: false,
            summary: Summary::Other { ether_type: 0 },
        };
        Entry { vtime_ns, what: Happened::Message(Message { step, data: None }) }
    }

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
        let data_bytes = CONTENT_BYTES_MAX - 2 * CONTENT_ENTRY_BYTES - 1;
        let mut index = Index { data_bytes, ..Index::default() };
        index.add_data(1, b"");
        index.add_data(2, b"ab");
        index.add_data(3, b"a");
        [(5, 1), (6, 2), (7, 3)]
            .into_iter()
            .for_each(|(vtime_ns, frame)| index.add(message(vtime_ns, frame)));
        index.complete();
        let data = |n: usize| index.entries()[n].message().unwrap().data.as_deref();
        // The data of the third would have fitted, but what is missing is one part at the end.
        assert_eq!((data(0), data(1), data(2)), (Some(&[][..]), None, None));
        assert_eq!((index.unknown_ns(), index.known_until_ns(9)), (Some(6), 5));
    }

    #[test]
    fn frames_without_data_count() {
        let mut index = Index { data_bytes: CONTENT_BYTES_MAX - 3 * CONTENT_ENTRY_BYTES, ..Index::default() };
        (0..10).for_each(|frame| index.add_data(frame, b""));
        assert_eq!((index.data.len(), index.unknown), (3, Some(3)));
    }

    #[test]
    fn data_after_the_last_entry_is_not_kept() {
        let mut index = Index { cut_ns: Some(4), ..Index::default() };
        index.add_data(1, b"ab");
        assert_eq!((index.data.len(), index.unknown), (0, None));
    }

    #[test]
    fn violations_beyond_the_bound_are_kept() {
        let mut index = Index { bytes: ENTRY_BYTES_MAX, ..Index::default() };
        index.add(change(4, None));
        let hit = Hit { property: "p".to_owned(), node: None, text: String::new() };
        index.add(Entry { vtime_ns: 9, what: Happened::Hit(hit) });
        index.complete();
        assert_eq!((index.cut_ns(), index.entries().len(), index.known_until_ns(20)), (Some(4), 1, 3));
    }
}
