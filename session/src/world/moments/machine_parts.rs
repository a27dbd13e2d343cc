//! Parts of a machine in the file of a moment: its state, its memory and its disks.
//!
//! The name of each part has the number of its node, and the number of its disk if the part belongs to a disk. The file
//! sorts the names as text. Each number has two digits, so the parts are sorted by number.

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

/// Adds the parts of a node's machine to `parts`.
pub(super) fn put(parts: &mut MomentParts, node: usize, machine: &Moment) {
    parts.states.insert(machine_name(node), machine.state().into());
    parts.images.insert(memory_name(node), machine.memory().clone());
    for (disk, then) in machine.disks().iter().enumerate() {
        let DiskParts { blocks, state } = then.to_parts();
        parts.trees.insert(disk_name(node, disk), blocks);
        parts.states.insert(disk_name(node, disk), state.into());
    }
}

/// Removes the parts of a node's machine and returns the machine, or `None` if there is no such node. `version` is the
/// version of the machine's state.
///
/// # Errors
/// Returns an error if a part is missing or invalid.
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

/// Removes a state and returns it.
///
/// # Errors
/// Returns an error if there is no state with this name.
pub(super) fn state(parts: &mut MomentParts, name: &str) -> anyhow::Result<std::sync::Arc<[u8]>> {
    parts.states.remove(name).ok_or_else(|| anyhow!("there is no part \"{name}\""))
}
