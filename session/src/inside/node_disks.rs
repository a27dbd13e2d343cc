//! Disks of a node, with the names by which the operator can select them.

use everett_protocol::ROOT_DISK_SERIAL;
use everett_vmm::Machine;
use everett_world_file::Node;

use crate::guest::agent_script::data_disk_serial;
use crate::guest::containers::VOLUMES_SERIAL;

/// Disk of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDisk {
    /// Index among the machine's disks.
    pub index: usize,
    /// Serial number, as the guest reads it.
    pub serial: String,
    /// Name: `root`, `volumes`, or the path at which a data disk is mounted.
    pub name: String,
    /// True if the disk has the node's root file system.
    pub is_root: bool,
}

/// Returns the disks of a node in the order of the machine's configuration.
#[must_use]
pub fn node_disks(node: &Node, machine: &Machine) -> Vec<NodeDisk> {
    let serials = (0..machine.disks().len()).filter_map(|index| Some((index, machine.disk_serial(index)?)));
    let name = |serial: &str| match serial {
        ROOT_DISK_SERIAL => "root".to_owned(),
        VOLUMES_SERIAL => "volumes".to_owned(),
        _ => {
            let place = (0..node.disks.len()).find(|index| data_disk_serial(*index) == serial);
            place.map_or_else(|| serial.to_owned(), |index| node.disks[index].guest_path.clone())
        }
    };
    let disk = |(index, serial): (usize, String)| NodeDisk {
        index,
        name: name(&serial),
        is_root: serial == ROOT_DISK_SERIAL,
        serial,
    };
    serials.map(disk).collect()
}
