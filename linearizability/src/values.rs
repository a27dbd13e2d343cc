//! Values in a history (the recorded operations of clients) as small numbers. Equal values have equal numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a value. Numbers are assigned in the order in which values first appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct V(pub(super) u32);

/// Number of JSON's null.
pub(super) const NULL: V = V(0);

/// Approximate memory of an entry without its text, in bytes.
const ENTRY_BYTES: u64 = 64;

/// Table with one item for each value that was looked up.
#[derive(Debug, Default)]
pub(super) struct ByValue<T> {
    /// Index of each value's item in `items`.
    places: BTreeMap<V, usize>,
    /// Items, in the order in which their values were first looked up.
    pub(super) items: Vec<T>,
}

impl<T: Default> ByValue<T> {
    /// Returns the item of a value, and adds a default item if the value is new.
    pub(super) fn of(&mut self, v: V) -> &mut T {
        let place = *self.places.entry(v).or_insert(self.items.len());
        if place == self.items.len() {
            self.items.push(T::default());
        }
        &mut self.items[place]
    }

    /// Returns the values with their items, in the order of the values' numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (V, &T)> {
        self.places.iter().filter_map(|(v, place)| Some((*v, self.items.get(*place)?)))
    }
}

/// Table of texts and their numbers. Each text is JSON in canonical form.
#[derive(Debug, Clone)]
pub(super) struct Values {
    numbers: BTreeMap<Arc<str>, V>,
    texts: Vec<Arc<str>>,
    bytes: u64,
}

impl Values {
    /// Returns a table that has only null.
    pub(super) fn new() -> Values {
        let mut values = Values { numbers: BTreeMap::new(), texts: Vec::new(), bytes: 0 };
        values.number(serde_json::Value::Null.to_string());
        values
    }

    /// Returns the number of a text, and adds the text if it is new.
    pub(super) fn number(&mut self, text: String) -> V {
        if let Some(v) = self.numbers.get(text.as_str()) {
            return *v;
        }
        // A history has less than 2^32 bytes, and fewer values than bytes.
        let v = V(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.bytes = self.bytes.saturating_add(text.len() as u64 + ENTRY_BYTES);
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, v);
        v
    }

    /// Returns the text of a number, or `?` for an unknown number.
    pub(super) fn text(&self, v: V) -> &str {
        self.texts.get(v.0 as usize).map_or("?", |text| text)
    }

    /// Returns the approximate memory of the table, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
