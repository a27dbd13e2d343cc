//! Interchangeable nodes: one form for all orders in which they can stand.
//!
//! Nodes of a group are first sorted by a key that does not depend on their order: their own state, with themselves and
//! the other members of groups not told apart. Only those with equal keys can still be exchanged, and only if a value names
//! a node does it matter: then all such orders are written, and the least text is the form. That is exact, and the same as
//! the least of all permutations. With more than [`PERMUTATIONS_MAX`] orders (which takes more than six nodes that are
//! equal but for whom they name, or several such groups) those with equal keys stay in the order of their indices: two
//! states that are the same may then count as two, but two that differ never as one.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::PERMUTATIONS_MAX;
use super::world::World;

/// What a node is called in the state of node `own`, whatever the order of interchangeable ones.
pub(super) fn invariant_name(world: &World, own: u16, node: u16) -> String {
    match world.group(node) {
        _ if node == own => "^self".to_owned(),
        Some(group) => format!("^{group}"),
        None => world.name(node).to_owned(),
    }
}

/// What the node in a place is called: its name, or the place if nodes can be exchanged in it.
pub(super) fn slot_name(world: &World, slot: u16) -> String {
    match world.group(slot) {
        Some(_) => format!("^{}", usize::from(slot) + 1),
        None => world.name(slot).to_owned(),
    }
}

/// The least of the texts that `write` gives for the places that nodes can have. `keys` are their states as
/// [`invariant_name`] has them, `named` all nodes that values name.
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
    // By group and key: the nodes, and the places that they share.
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

/// Visit the places of nodes in all orders of all ties.
fn permute(ties: &[&(Vec<u16>, Vec<u16>)], slots: &mut [u16], visit: &mut dyn FnMut(&[u16])) {
    let Some(((members, places), others)) = ties.split_first() else { return visit(slots) };
    orders(&mut places.clone(), 0, &mut |places| {
        put(slots, members, places);
        permute(others, slots, visit);
    });
}

/// Visit all orders of what is from `fixed` on.
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
