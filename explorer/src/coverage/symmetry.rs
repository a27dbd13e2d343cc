//! Canonical text of a state: a text that is the same for all orders of interchangeable nodes.
//!
//! A group is a set of interchangeable nodes. First, the nodes of a group are sorted by a key that does not depend on
//! their order. The key is the node's own state. In this state, the node itself has the name `^self`, and each other
//! member of a group has the name of its group.
//!
//! Nodes with equal keys can still be exchanged. The exchange matters only if a value names a node. In that case the
//! text is printed for all orders of nodes with equal keys, and the lexicographically least text is the canonical form.
//! The result is exact: two states have the same text if and only if they differ only in the order of interchangeable
//! nodes.
//!
//! If there are more than [`PERMUTATIONS_MAX`] orders, nodes with equal keys stay in the order of their indices. Two
//! equivalent states may then have two texts, but two different states never have the same text. More than
//! [`PERMUTATIONS_MAX`] orders exist only for more than six nodes with equal keys, or for several sets of nodes with
//! equal keys.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::PERMUTATIONS_MAX;
use super::world::World;

/// Returns the name of `node` within the state of node `own`, independent of the order of interchangeable nodes.
pub(super) fn invariant_name(world: &World, own: u16, node: u16) -> String {
    match world.group(node) {
        _ if node == own => "^self".to_owned(),
        Some(group) => format!("^{group}"),
        None => world.name(node).to_owned(),
    }
}

/// Returns the name that a text uses for the node in a slot. A slot is a place in the text. An interchangeable node has
/// the name `^N`, where N is the slot's number, from 1. Any other node keeps its own name.
pub(super) fn slot_name(world: &World, slot: u16) -> String {
    match world.group(slot) {
        Some(_) => format!("^{}", usize::from(slot) + 1),
        None => world.name(slot).to_owned(),
    }
}

/// Returns the least text that `write` produces over all permitted assignments of nodes to slots, i.e. to places in the
/// text. `keys` contains the nodes' states, printed with [`invariant_name`]. `named` contains all nodes that occur in
/// values.
pub(super) fn least(
    world: &World,
    keys: &[String],
    named: &BTreeSet<u16>,
    write: impl Fn(&[u16]) -> String,
) -> String {
    let mut slots: Vec<u16> = (0u16..).zip(keys).map(|(index, _)| index).collect();
    let mut groups: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
    for node in &slots {
        if let Some(group) = world.group(*node) {
            groups.entry(group).or_default().push(*node);
        }
    }
    // Each entry contains nodes of one group with equal keys, and the slots that these nodes may fill in any order.
    let mut ties: Vec<(Vec<u16>, Vec<u16>)> = Vec::new();
    for places in groups.into_values() {
        let key = |node: &u16| keys.get(usize::from(*node));
        let mut members = places.clone();
        members.sort_by_key(|node| (key(node), *node));
        let mut places = places.into_iter();
        for equal in members.chunk_by(|a, b| key(a) == key(b)) {
            ties.push((equal.to_vec(), places.by_ref().take(equal.len()).collect()));
        }
    }
    for (members, places) in &ties {
        put(&mut slots, members, places);
    }
    let open: Vec<&(Vec<u16>, Vec<u16>)> = ties.iter().filter(|(members, _)| members.len() > 1).collect();
    let matter = named.iter().any(|node| world.group(*node).is_some());
    let orders = open.iter().flat_map(|(members, _)| 1..=members.len()).try_fold(1, usize::checked_mul);
    if !matter || orders.is_none_or(|orders| orders > PERMUTATIONS_MAX) {
        return write(&slots);
    }
    let mut least = write(&slots);
    permute(&open, &mut slots, &mut |slots| {
        let text = write(slots);
        if text < least {
            least = text;
        }
    });
    least
}

fn put(slots: &mut [u16], members: &[u16], places: &[u16]) {
    for (node, place) in members.iter().zip(places) {
        if let Some(slot) = slots.get_mut(usize::from(*node)) {
            *slot = *place;
        }
    }
}

/// Calls `visit` with each assignment of nodes to slots that permutes only nodes with equal keys. Each entry of `ties`
/// has one set of such nodes and their slots.
fn permute(ties: &[&(Vec<u16>, Vec<u16>)], slots: &mut [u16], visit: &mut dyn FnMut(&[u16])) {
    let Some(((members, places), others)) = ties.split_first() else { return visit(slots) };
    orders(&mut places.clone(), 0, &mut |places| {
        put(slots, members, places);
        permute(others, slots, visit);
    });
}

/// Calls `visit` for all orders of the items from index `fixed` on.
fn orders(items: &mut Vec<u16>, fixed: usize, visit: &mut dyn FnMut(&[u16])) {
    if fixed >= items.len() {
        return visit(items);
    }
    for index in fixed..items.len() {
        items.swap(fixed, index);
        orders(items, fixed + 1, visit);
        items.swap(fixed, index);
    }
}
