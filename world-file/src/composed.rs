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
    /// Number of the signal that asks the service to end; that of its image, or SIGTERM, if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<i32>,
    /// Time in nanoseconds that the service has to end after the signal before it is killed; [`STOP_GRACE_NS`] if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_grace_ns: Option<u64>,
    /// True if the service has an init: a parent that reaps orphans and forwards signals.
    #[serde(skip_serializing_if = "is_false")]
    pub init: bool,
    /// Ports at which the service says that it serves. They change nothing in the world.
    #[serde(skip)]
    pub ports: Vec<Port>,
}

/// Default of [`Composed::stop_grace_ns`], that of the compose command.
pub const STOP_GRACE_NS: u64 = 10_000_000_000;

impl Composed {
    /// True if the service has a supervisor, because one of its keys needs it. Other services have none, so that their
    /// timelines are those of before these keys were supported.
    #[must_use]
    pub fn is_supervised(&self) -> bool {
        self.init || self.stop_signal.is_some() || self.stop_grace_ns.is_some()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
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
    /// True if this node's service is restarted after a restart of that node's service by Everett.
    #[serde(skip_serializing_if = "is_false")]
    pub restart: bool,
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
