//! A machine's moment among the parts of a file: its state, its memory, and each of its disks.
//!
//! Parts are named, and names are ordered as text: there are fewer than a hundred nodes and disks.

use anyhow::{Context, anyhow};
use everett_snapshot::moment::MomentParts;
use everett_vmm::machine::{DiskParts, Moment};

fn machine_name(node: usize) -> String {
    format!("machine {node:02}")
}

fn memory_name(node: usize) -> String {
    format!("memory {node:02}")
}

fn disk_name(node: usize, disk: usize) -> String {
    format!("disk {node:02} {disk:02}")
}

/// Put the machine of a node there.
pub(super) fn put(parts: &mut MomentParts, node: usize, machine: &Moment) {
    parts.states.insert(machine_name(node), machine.state().into());
    parts.images.insert(memory_name(node), machine.memory().clone());
    for (disk, then) in machine.disks().iter().enumerate() {
        let DiskParts { blocks, state } = then.to_parts();
        parts.trees.insert(disk_name(node, disk), blocks);
        parts.states.insert(disk_name(node, disk), state.into());
    }
}

/// Take the machine of a node out of there, if it is there; its state is of this version.
///
/// # Errors
/// A part of it is missing, or none of a machine.
pub(super) fn take(parts: &mut MomentParts, node: usize, version: u32) -> anyhow::Result<Option<Moment>> {
    let Some(memory) = parts.images.remove(&memory_name(node)) else { return Ok(None) };
    let machine = state(parts, &machine_name(node))?;
    let mut disks = Vec::new();
    while let Some(blocks) = parts.trees.remove(&disk_name(node, disks.len())) {
        let state = state(parts, &disk_name(node, disks.len()))?.to_vec();
        disks.push(DiskParts { blocks, state });
    }
    Moment::from_parts(version, machine, memory, &disks).map(Some).context("a machine")
}

/// Take a state out of there.
///
/// # Errors
/// There is none of this name.
pub(super) fn state(parts: &mut MomentParts, name: &str) -> anyhow::Result<std::sync::Arc<[u8]>> {
    parts.states.remove(name).ok_or_else(|| anyhow!("there is no part \"{name}\""))
}
