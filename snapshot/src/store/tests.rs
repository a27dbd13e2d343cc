//! Comparison of the store with a naive implementation.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Store with the same rules but without incremental bookkeeping: it computes distances and victims when they are
/// needed.
#[derive(Default)]
struct Naive {
    nodes: BTreeMap<u8, NaiveNode>,
    budget: u64,
}
struct NaiveNode {
    parent: Option<u8>,
    cost: u64,
    bytes: u64,
    pins: u32,
    present: bool,
}

impl Naive {
    fn distance(&self, key: u8) -> u64 {
        let node = &self.nodes[&key];
        let above = node.parent.filter(|parent| !self.nodes[parent].present);
        node.cost + above.map_or(0, |parent| self.distance(parent))
    }
    fn bytes(&self) -> u64 {
        self.nodes.values().filter(|node| node.present).map(|node| node.bytes).sum()
    }
    fn evict(&mut self, keep: Option<u8>) {
        while self.bytes() > self.budget {
            let candidates = self.nodes.iter().filter(|&(&key, node)| {
                node.present && node.pins == 0 && node.parent.is_some() && node.bytes > 0 && Some(key) != keep
            });
            let ratio = |key: u8| (self.distance(key) as f64) / self.nodes[&key].bytes as f64;
            let victim = candidates
                .map(|(&key, _)| key)
                .min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(a.cmp(&b)));
            let Some(victim) = victim else { return };
            self.nodes.get_mut(&victim).unwrap().present = false;
        }
    }
    fn derive(&mut self, key: u8) {
        if self.nodes[&key].present {
            return;
        }
        self.derive(self.nodes[&key].parent.unwrap());
        self.nodes.get_mut(&key).unwrap().present = true;
        self.evict(Some(key));
    }
    fn present(&self) -> Vec<u8> {
        self.nodes.iter().filter(|(_, node)| node.present).map(|(&key, _)| key).collect()
    }
}

/// A known key, by its distance from the newest known key. `None` is an unknown key. Most distances are small, so that
/// lineages get deep.
#[derive(Debug, Clone, Copy)]
struct Key(Option<u8>);

impl Key {
    fn of(self, naive: &Naive) -> u8 {
        let known: Vec<u8> = naive.nodes.keys().copied().collect();
        let back =
            self.0.and_then(|back| known.len().checked_sub(1 + usize::from(back) % known.len().max(1)));
        back.map_or(250, |at| known[at])
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert { parent: Option<Key>, cost: u64, bytes: u64 },
    Again(Key),
    Derive(Key),
    Pin(Key),
    Unpin(Key),
    Forget(Key),
    Budget(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || {
        prop_oneof![5 => (0u8..4).prop_map(Some), 5 => (0u8..200).prop_map(Some), 1 => Just(None)]
            .prop_map(Key)
    };
    let step = prop_oneof![
        6 => (proptest::option::weighted(0.95, key()), 0u64..20, 0u64..12)
            .prop_map(|(parent, cost, bytes)| Step::Insert { parent, cost, bytes }),
        1 => key().prop_map(Step::Again),
        3 => key().prop_map(Step::Derive),
        1 => key().prop_map(Step::Pin),
        1 => key().prop_map(Step::Unpin),
        1 => key().prop_map(Step::Forget),
        1 => (0u64..100).prop_map(Step::Budget),
    ];
    proptest::collection::vec(step, 1..150)
}

/// Derives a value that depends on the whole path, so that a wrong derivation is noticed.
fn derived(parent: u64, child: u8) -> u64 {
    parent.wrapping_mul(31).wrapping_add(u64::from(child))
}

proptest! {
    /// After each step the same values are present as in the naive store, and derived values are equal.
    #[test]
    fn equals_the_naive_store(steps in steps()) {
        let mut store: Store<u8, u64> = Store::new(40);
        let mut naive = Naive { budget: 40, ..Naive::default() };
        let mut values = BTreeMap::new();
        let mut next = 0u8;
        for step in steps {
            match step {
                Step::Insert { parent, cost, bytes } => {
                    let parent = parent.map(|parent| parent.of(&naive));
                    let known = parent.is_none_or(|parent| naive.nodes.contains_key(&parent));
                    let value = derived(parent.map_or(7, |parent| values.get(&parent).copied().unwrap_or(0)), next);
                    let result = store.insert(next, parent, cost, bytes, value);
                    prop_assert_eq!(result.is_ok(), known);
                    if known {
                        values.insert(next, value);
                        naive.nodes.insert(next, NaiveNode { parent, cost, bytes, pins: 0, present: true });
                        naive.evict(Some(next));
                    }
                    next += 1;
                }
                Step::Again(key) => {
                    let key = key.of(&naive);
                    let Some(node) = naive.nodes.get_mut(&key) else { continue };
                    prop_assert_eq!(store.insert(key, node.parent, node.cost + 1, 1, 0), Err(StoreError::Lineage(key)));
                    node.bytes += 3;
                    node.present = true;
                    store.insert(key, node.parent, node.cost, node.bytes, values[&key]).unwrap();
                    naive.evict(Some(key));
                }
                Step::Derive(key) => {
                    let key = key.of(&naive);
                    let mut derive = |_: &u8, parent: &u64, child: &u8| Ok::<_, ()>(derived(*parent, *child));
                    let found = store.get_or_derive(&key, &mut derive).copied();
                    if naive.nodes.contains_key(&key) {
                        prop_assert_eq!(found, Ok(values[&key]));
                        naive.derive(key);
                    } else {
                        prop_assert_eq!(found, Err(DeriveError::Unknown(key)));
                    }
                }
                Step::Pin(key) => {
                    let key = key.of(&naive);
                    let can = naive.nodes.get(&key).is_some_and(|node| node.present);
                    prop_assert_eq!(store.pin(&key).is_ok(), can);
                    if can { naive.nodes.get_mut(&key).unwrap().pins += 1; }
                }
                Step::Unpin(key) => {
                    let key = key.of(&naive);
                    let can = naive.nodes.get(&key).is_some_and(|node| node.pins > 0);
                    prop_assert_eq!(store.unpin(&key).is_ok(), can);
                    if can {
                        naive.nodes.get_mut(&key).unwrap().pins -= 1;
                        naive.evict(None);
                    }
                }
                Step::Forget(key) => {
                    let key = key.of(&naive);
                    let children = naive.nodes.values().any(|node| node.parent == Some(key));
                    let can = !children && naive.nodes.get(&key).is_some_and(|node| node.pins == 0);
                    prop_assert_eq!(store.forget(&key).is_ok(), can);
                    if can { naive.nodes.remove(&key); }
                }
                Step::Budget(budget) => {
                    naive.budget = budget;
                    store.set_budget(budget);
                    naive.evict(None);
                }
            }
            prop_assert_eq!(store.present().copied().collect::<Vec<_>>(), naive.present());
            let stats = store.stats();
            prop_assert_eq!((stats.bytes, stats.known), (naive.bytes(), naive.nodes.len()));
            prop_assert_eq!(stats.present, naive.present().len());
        }
    }
}

/// A chain of 50,000 keys: nothing recurses, and an evicted value is derived again from the root.
#[test]
fn long_chains() {
    let mut store: Store<u32, u32> = Store::new(10);
    store.insert(0, None, 0, 5, 0).unwrap();
    for key in 1..50_000 {
        store.insert(key, Some(key - 1), 1, 5, key).unwrap();
    }
    assert!(store.stats().present <= 2);
    let mut calls = 0;
    let mut derive = |parent: &u32, value: &u32, child: &u32| {
        assert_eq!((parent, *child), (value, parent + 1));
        calls += 1;
        Ok::<_, ()>(*child)
    };
    assert_eq!(store.get_or_derive(&30_000, &mut derive), Ok(&30_000));
    assert_eq!(calls, 30_000);
    assert!(store.stats().bytes <= 10, "derived values exceed the budget");
}

#[test]
fn values_with_the_cheapest_bytes_are_evicted_first() {
    let mut store: Store<&str, ()> = Store::new(100);
    store.insert("root", None, 0, 10, ()).unwrap();
    store.insert("dear", Some("root"), 1000, 30, ()).unwrap();
    store.insert("cheap", Some("root"), 10, 30, ()).unwrap();
    store.insert("cheap child", Some("cheap"), 20, 30, ()).unwrap();
    let present = |store: &Store<&'static str, ()>| store.present().copied().collect::<Vec<_>>();
    assert_eq!(present(&store), ["cheap", "cheap child", "dear", "root"]);
    store.set_budget(99);
    assert_eq!(present(&store), ["cheap child", "dear", "root"]);
    // With its parent evicted, the child now costs 30 to derive, more than "other", which costs 25 by itself.
    store.set_budget(100);
    store.insert("other", Some("root"), 25, 30, ()).unwrap();
    store.set_budget(80);
    assert_eq!(present(&store), ["cheap child", "dear", "root"]);
    store.set_budget(0);
    assert_eq!(present(&store), ["root"], "roots stay");
}

#[test]
fn errors_name_the_key() {
    let mut store: Store<u8, ()> = Store::new(0);
    store.insert(1, None, 0, 1, ()).unwrap();
    store.insert(2, Some(1), 1, 1, ()).unwrap();
    assert_eq!(
        store.forget(&1).unwrap_err().to_string(),
        "1 cannot be forgotten: others are derived from it"
    );
    assert_eq!(
        store.insert(3, Some(9), 1, 1, ()).unwrap_err().to_string(),
        "3 has the parent 9, which is not in the store"
    );
    store.insert(3, Some(2), 1, 1, ()).unwrap();
    assert!(store.get(&2).is_none(), "the value of key 2 was not evicted");
    let failed = store.get_or_derive(&2, &mut |_, (), _| Err::<(), _>("no")).unwrap_err();
    assert_eq!(failed, DeriveError::Failed { key: 2, source: "no" });
    assert_eq!(store.forget(&3), Ok(Some(())));
    assert_eq!(store.forget(&2), Ok(None));
}
