//! Tests that the store evicts the same values as a simple implementation of its rules. The store is a cache for a tree
//! of keys. A caller can derive each evicted value again, at a known cost, from the value of its parent key.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A memory whose pages are one byte long: maps each page number to its byte.
#[derive(Debug, Clone, Default, PartialEq)]
struct Pages(BTreeMap<u8, u8>);

impl Pages {
    fn with(&self, writes: &[(u8, u8)]) -> Pages {
        let mut pages = self.clone();
        pages.0.extend(writes.iter().copied());
        pages
    }
}

impl Layered for Pages {
    fn bytes_beyond(&self, ancestor: &Pages) -> u64 {
        self.0.iter().filter(|&(page, content)| ancestor.0.get(page) != Some(content)).count() as u64
    }
}

/// A store with the same rules that computes everything anew whenever it is needed.
struct Naive {
    nodes: BTreeMap<u8, NaiveNode>,
    budget: u64,
}
struct NaiveNode {
    parent: Option<u8>,
    cost: u64,
    pages: Pages,
    present: bool,
}

impl Naive {
    fn new(budget: u64, root: Pages) -> Naive {
        let root = NaiveNode { parent: None, cost: 0, pages: root, present: true };
        Naive { nodes: BTreeMap::from([(0, root)]), budget }
    }
    fn above(&self, key: u8) -> Option<u8> {
        let parent = self.nodes[&key].parent?;
        if self.nodes[&parent].present { Some(parent) } else { self.above(parent) }
    }
    fn cost(&self, key: u8) -> u64 {
        let node = &self.nodes[&key];
        let above = node.parent.filter(|parent| !self.nodes[parent].present);
        node.cost + above.map_or(0, |parent| self.cost(parent))
    }
    fn present(&self) -> Vec<u8> {
        self.nodes.iter().filter(|(_, node)| node.present).map(|(&key, _)| key).collect()
    }
    fn bytes(&self) -> u64 {
        let beyond = |key: u8| {
            let above = self.above(key)?;
            Some(self.nodes[&key].pages.bytes_beyond(&self.nodes[&above].pages))
        };
        self.present().into_iter().filter_map(beyond).sum()
    }
    /// Returns the number of bytes by which evicting this value reduces [`bytes`](Naive::bytes).
    fn freed(&mut self, key: u8) -> u64 {
        let before = self.bytes();
        self.nodes.get_mut(&key).unwrap().present = false;
        let after = self.bytes();
        self.nodes.get_mut(&key).unwrap().present = true;
        before.saturating_sub(after)
    }
    fn put(&mut self, key: u8) {
        self.nodes.get_mut(&key).unwrap().present = true;
        while self.bytes() > self.budget {
            let mut best: Option<(f64, u8)> = None;
            for candidate in
                self.present().into_iter().filter(|&candidate| candidate != key && candidate != 0)
            {
                let freed = self.freed(candidate);
                let rank = self.cost(candidate) as f64 / freed as f64;
                if freed > 0 && best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, candidate));
                }
            }
            let Some((_, victim)) = best else { return };
            self.nodes.get_mut(&victim).unwrap().present = false;
        }
    }
    /// Returns the memory that the present values need: each different content of each page once, without the root's
    /// contents.
    fn needed(&self) -> u64 {
        let root = &self.nodes[&0].pages;
        let contents =
            |key: u8| self.nodes[&key].pages.0.iter().filter(|&(page, byte)| root.0.get(page) != Some(byte));
        self.present().into_iter().flat_map(contents).collect::<BTreeSet<_>>().len() as u64
    }
}

/// Refers to a key by its distance from the newest key. Most distances are small, so that the tree gets deep.
#[derive(Debug, Clone, Copy)]
struct Back(u8);

impl Back {
    fn of(self, naive: &Naive) -> u8 {
        let known: Vec<u8> = naive.nodes.keys().copied().collect();
        known[known.len() - 1 - usize::from(self.0) % known.len()]
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Inserts a new key with a value.
    Insert { parent: Back, cost: u64, writes: Vec<(u8, u8)> },
    /// Inserts the value of an existing key again, as a caller does after deriving it anew.
    Again(Back),
}

fn writes() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec((0u8..12, 0u8..30), 0..8)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || prop_oneof![0u8..4, 0u8..200].prop_map(Back);
    let step = prop_oneof![
        3 => (key(), 0u64..20, writes())
            .prop_map(|(parent, cost, writes)| Step::Insert { parent, cost, writes }),
        2 => key().prop_map(Step::Again),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    /// After each step, the same values are present as in the simple store, and they need no more memory than the store
    /// counts.
    #[test]
    fn equals_the_naive_store(budget in 0u64..60, root in writes(), steps in steps()) {
        let root = Pages::default().with(&root);
        let mut store: Store<u8, Pages> = Store::new(budget, 0, root.clone());
        let mut naive = Naive::new(budget, root);
        for (step, next) in steps.into_iter().zip(1..) {
            match step {
                Step::Insert { parent, cost, writes } => {
                    let parent = parent.of(&naive);
                    let pages = naive.nodes[&parent].pages.with(&writes);
                    store.insert(next, parent, cost, pages.clone()).unwrap();
                    naive.nodes.insert(next, NaiveNode { parent: Some(parent), cost, pages, present: false });
                    naive.put(next);
                }
                Step::Again(key) => {
                    let key = key.of(&naive);
                    let NaiveNode { parent, cost, pages, .. } = &naive.nodes[&key];
                    let wrong = store.insert(key, parent.unwrap_or(0), cost + 1, pages.clone());
                    prop_assert_eq!(wrong, Err(StoreError::Lineage(key)));
                    let Some(parent) = parent else { continue };
                    store.insert(key, *parent, *cost, pages.clone()).unwrap();
                    naive.put(key);
                }
            }
            let present: Vec<u8> = (0..=next).filter(|key| store.get(key).is_some()).collect();
            prop_assert_eq!(&present, &naive.present());
            prop_assert!(present.iter().all(|key| store.get(key) == Some(&naive.nodes[key].pages)));
            let stats = store.stats();
            prop_assert_eq!((stats.bytes, stats.known), (naive.bytes(), naive.nodes.len()));
            prop_assert_eq!(stats.present, present.len());
            prop_assert!(stats.bytes >= naive.needed(), "{} bytes counted of {}", stats.bytes, naive.needed());
        }
    }
}

/// A chain of 5,000 keys. The budget lets only the root and two more keys keep a value.
#[test]
fn long_chains() {
    let page = |key: u32| Pages(BTreeMap::from([((key % 200) as u8, (key / 200) as u8)]));
    let mut store: Store<u32, Pages> = Store::new(2, 0, Pages::default());
    for key in 1..5_000 {
        store.insert(key, key - 1, 1, page(key)).unwrap();
    }
    assert_eq!(store.stats().present, 3);
    store.insert(2_500, 2_499, 1, page(2_500)).unwrap();
    assert_eq!((store.stats().bytes, store.stats().known), (2, 5_000));
}

/// Returns a store with the keys "root", "parent" and "child". The child has written `rewritten` of its parent's 10
/// pages, and one more page.
fn family(budget: u64, rewritten: u8) -> Store<&'static str, Pages> {
    let mut store = Store::new(budget, "root", Pages::default());
    let parent = Pages((0..10).map(|page| (page, 1)).collect());
    let child = parent.with(&(0..rewritten).chain([20]).map(|page| (page, 2)).collect::<Vec<_>>());
    store.insert("parent", "root", 10, parent).unwrap();
    store.insert("child", "parent", 20, child).unwrap();
    store
}

#[test]
fn an_evicted_value_leaves_what_others_share_with_it() {
    let store = family(15, 4);
    assert_eq!(store.stats().bytes, 10 + 5);
    // 4 pages belong to the parent alone, and 5 to the child alone. Deriving the parent again costs 10 / 4 for each
    // page that its eviction frees. For the child this cost is 20 / 5, so the store evicts the parent.
    let store = family(14, 4);
    assert!(store.get(&"parent").is_none() && store.get(&"child").is_some());
    assert_eq!(store.stats().bytes, 11, "the child holds 6 pages of its parent");
    // Only 1 page belongs to the parent alone, so evicting the parent is not enough. The child stays, because the last
    // call added it.
    let store = family(10, 1);
    assert!(store.get(&"parent").is_none() && store.get(&"child").is_some());
    assert_eq!(store.stats().bytes, 11);
}

#[test]
fn a_value_that_others_share_is_not_evicted() {
    let mut store = family(25, 0);
    let other = store.get(&"parent").unwrap().with(&[(21, 3)]);
    store.insert("other", "parent", 20, other.clone()).unwrap();
    assert_eq!(store.stats().bytes, 10 + 1 + 1);
    // The parent costs least to derive. But as long as "child" and "other" share all of its pages, evicting the parent
    // would free nothing. The store therefore evicts "child" and "other" first.
    let dear = Pages((30..54).map(|page| (page, 4)).collect());
    store.insert("dear", "root", 1000, dear).unwrap();
    assert!(store.get(&"child").is_none() && store.get(&"other").is_none());
    assert!(store.get(&"parent").is_none(), "with nothing below it, the parent can go");
    // When the parent is derived again, the pages that it shares with the child count as the parent's again. Both
    // together then exceed the budget, so the store evicts the child.
    let mut store = family(14, 4);
    let parent = Pages((0..10).map(|page| (page, 1)).collect());
    store.insert("parent", "root", 10, parent).unwrap();
    assert!(store.get(&"parent").is_some() && store.get(&"child").is_none());
    assert_eq!(store.stats().bytes, 10);
}

#[test]
fn values_with_the_cheapest_bytes_are_evicted_first() {
    let pages = |from: u8| Pages((from..from + 30).map(|page| (page, 1)).collect());
    let mut store: Store<&str, Pages> = Store::new(90, "root", Pages::default());
    let present = |store: &Store<&'static str, Pages>| {
        ["cheap", "child", "dear", "other", "root"]
            .into_iter()
            .filter(|key| store.get(key).is_some())
            .collect::<Vec<_>>()
    };
    store.insert("dear", "root", 1000, pages(0)).unwrap();
    store.insert("cheap", "root", 10, pages(30)).unwrap();
    store.insert("child", "cheap", 20, pages(60)).unwrap();
    assert_eq!(present(&store), ["cheap", "child", "dear", "root"]);
    store.insert("other", "root", 25, pages(90)).unwrap();
    assert_eq!(present(&store), ["child", "dear", "other", "root"]);
    // After the eviction of its parent, the child costs 30 to derive. That is more than "other", which costs 25.
    store.insert("last", "root", 2000, pages(120)).unwrap();
    assert_eq!(present(&store), ["child", "dear", "root"]);
}

#[test]
fn errors_name_the_key() {
    let mut store: Store<u8, Pages> = Store::new(0, 1, Pages::default());
    let error = store.insert(3, 9, 1, Pages::default()).unwrap_err();
    assert_eq!(error.to_string(), "3 has the parent 9, which is not in the store");
    store.insert(3, 1, 1, Pages::default()).unwrap();
    let error = store.insert(3, 1, 2, Pages::default()).unwrap_err();
    assert_eq!(error.to_string(), "3 is in the store with another parent or another cost");
    let error = store.insert(1, 1, 0, Pages::default()).unwrap_err();
    assert_eq!(error.to_string(), "1 is in the store with another parent or another cost");
}
