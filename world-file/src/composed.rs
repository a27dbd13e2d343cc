//! Additions of a compose file to a node: names, order, mounts, limits.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

/// Properties of a node that a service of a compose file became.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Composed {
    /// Host name; the node's name if `None`.
    pub hostname: Option<String>,
    /// Lines of `/etc/hosts`, after those of the machine itself.
    pub hosts: Vec<HostNames>,
    /// Nodes that must be started or ready before this node's services start, at its first boot.
    pub after: Vec<After>,
    /// Volumes besides the image's: paths in the guest, in the order of their numbers on the disk of volumes.
    pub volumes: Vec<String>,
    /// Files and folders that come from the host. The files are among the node's.
    pub binds: Vec<Bind>,
    /// Filesystems in memory.
    pub tmpfs: Vec<Tmpfs>,
    /// Limits of processes (setrlimit(2)).
    pub ulimits: BTreeMap<String, Ulimit>,
    /// Settings of the kernel, by the name that sysctl(8) has for them.
    pub sysctls: BTreeMap<String, String>,
    /// Capabilities that programs get besides those of containers, without `CAP_`.
    pub cap_add: Vec<String>,
    /// Capabilities that programs do not get, without `CAP_`.
    pub cap_drop: Vec<String>,
    /// Ports at which the service says that it serves. They change nothing in the world.
    #[serde(skip)]
    pub ports: Vec<Port>,
}

/// A TCP port of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// True if clients from outside of the world reach it.
    pub is_published: bool,
}

/// Names of an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostNames {
    /// The address.
    pub of: HostOf,
    /// Its names.
    pub names: Vec<String>,
}

/// Address of a line in `/etc/hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostOf {
    /// Address of a node of the world.
    Node(String),
    /// Address that the compose file gives.
    Address(IpAddr),
}

/// A node that comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct After {
    /// Name of the node.
    pub node: String,
    /// True if its services must be ready, or have done their work; false if it is enough that they were started.
    pub ready: bool,
}

/// A file or folder in the guest whose content comes from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bind {
    /// Path in the guest where Everett puts the content.
    pub from: String,
    /// Path in the guest where programs find it.
    pub path: String,
    /// True if programs can change it. Changes are kept on the disk of volumes, and not on the host.
    pub writable: bool,
}

/// A filesystem in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tmpfs {
    /// Path in the guest.
    pub path: String,
    /// Options of tmpfs(5), separated by commas.
    pub options: String,
}

/// A limit of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ulimit {
    /// Soft limit; `None` if there is none.
    pub soft: Option<u64>,
    /// Hard limit; `None` if there is none.
    pub hard: Option<u64>,
}
