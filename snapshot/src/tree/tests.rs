//! Tests that trees (persistent maps from page numbers to pages) contain the same entries as ordered maps after the
//! same changes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::page::{PAGE, Pool};

/// Page numbers: dense small ones, sparser larger ones, and arbitrary ones.
fn indices() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..40, 2 => 0u64..5000, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn entries() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![2 => Just(None), 5 => (0u8..6).prop_map(Some)]
}

/// Returns [`Entry::Zero`] for byte 0, otherwise a page filled with the byte.
fn entry(pool: &Pool, byte: u8) -> Entry {
    pool.intern(&[byte; PAGE]).map_or(Entry::Zero, Entry::Page)
}
fn byte(entry: &Entry) -> u8 {
    match entry {
        Entry::Zero => 0,
        Entry::Page(page) => page.bytes()[0],
    }
}
fn apply(pool: &Pool, tree: &mut Tree, oracle: &mut BTreeMap<u64, u8>, index: u64, value: Option<u8>) {
    match value {
        Some(value) => {
            tree.set(index, entry(pool, value));
            oracle.insert(index, value);
        }
        None => {
            tree.remove(index);
            oracle.remove(&index);
        }
    }
}
fn content(tree: &Tree) -> Vec<(u64, u8)> {
    tree.iter().map(|(index, entry)| (index, byte(entry))).collect()
}

fn no_node_is_empty(node: &Node) -> bool {
    match node {
        Node::Inner(children) => {
            let mut there = children.iter().flatten().peekable();
            there.peek().is_some() && there.all(|child| no_node_is_empty(child))
        }
        Node::Leaf { present, .. } => *present != 0,
    }
}

proptest! {
    /// A change to one of several versions of a tree affects no other version. `diff` reports exactly the differences
    /// between the maps.
    #[test]
    fn equals_a_map_and_versions_are_independent(
        steps in proptest::collection::vec((0usize..4, 0usize..4, indices(), entries(), 0u8..8), 0..250),
    ) {
        let pool = Pool::default();
        let mut versions: [(Tree, BTreeMap<u64, u8>); 4] = Default::default();
        for (this, that, index, value, act) in steps {
            if act == 0 {
                versions[that] = versions[this].clone();
                prop_assert!(versions[that].0.ptr_eq(&versions[this].0));
            }
            let (tree, oracle) = &mut versions[this];
            apply(&pool, tree, oracle, index, value);
            prop_assert_eq!(tree.get(index).map(byte), oracle.get(&index).copied());
        }
        for (tree, oracle) in &versions {
            prop_assert!(tree.root.iter().all(|root| no_node_is_empty(root)));
            prop_assert_eq!(content(tree), oracle.iter().map(|(&i, &b)| (i, b)).collect::<Vec<_>>());
            prop_assert_eq!(tree.len(), oracle.len() as u64);
            prop_assert!(oracle.iter().all(|(&i, &b)| tree.get(i).map(byte) == Some(b)));
            for (other, other_oracle) in &versions {
                let mut found = Vec::new();
                tree.diff(other, |index, mine, theirs| found.push((index, mine.map(byte), theirs.map(byte))));
                let keys: std::collections::BTreeSet<u64> = oracle.keys().chain(other_oracle.keys()).copied().collect();
                let expected: Vec<_> = keys
                    .into_iter()
                    .map(|i| (i, oracle.get(&i).copied(), other_oracle.get(&i).copied()))
                    .filter(|(_, mine, theirs)| mine != theirs)
                    .collect();
                prop_assert_eq!(found, expected);
            }
        }
        drop(versions);
        prop_assert_eq!(pool.stats().pages, 0);
    }
}

/// When one of two versions changes, nodes outside the path to the change stay shared (equal pointers).
#[test]
fn changes_copy_only_their_path() {
    let pool = Pool::default();
    let mut tree: Tree = (0..4096).map(|index| (index, entry(&pool, 1))).collect();
    let other = tree.clone();
    tree.set(5, entry(&pool, 2));
    let (Some(a), Some(b)) = (&tree.root, &other.root) else { panic!("no roots") };
    let (Node::Inner(a), Node::Inner(b)) = (&**a, &**b) else { panic!("leaves") };
    let shared = a
        .iter()
        .zip(b)
        .filter(|(a, b)| a.as_ref().unwrap().as_ref() as *const Node == b.as_ref().unwrap().as_ref());
    assert_eq!(shared.count(), 7);
    // The path to the entry is no longer shared, so its nodes are changed in place.
    let before = Arc::as_ptr(tree.root.as_ref().unwrap());
    tree.set(6, entry(&pool, 3));
    assert_eq!(Arc::as_ptr(tree.root.as_ref().unwrap()), before);
}

#[test]
fn the_height_follows_the_numbers() {
    let pool = Pool::default();
    let mut tree = Tree::new();
    for (index, height) in [(0, 1), (7, 1), (8, 2), (65_535, 6), ((1 << 32) - 1, 11), (u64::MAX, 22)] {
        tree.set(index, entry(&pool, 1));
        assert_eq!(tree.height, height, "after {index}");
    }
    for index in [0, 7, 8, 65_535, (1 << 32) - 1, u64::MAX] {
        tree.remove(index);
        tree.remove(index);
    }
    assert!(tree.is_empty() && tree.root.is_none() && tree.height == 0);
}
