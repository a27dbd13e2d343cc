//! Node settings that world files cannot express and compose files can: names, order, mounts, limits.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

/// Settings of a node that comes from a compose file's service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Composed {
    /// Host name. `None` means the node's name.
    pub hostname: Option<String>,
    /// Lines of `/etc/hosts` that follow the lines for `localhost`.
    pub hosts: Vec<HostNames>,
    /// Nodes that must be started or ready before this node's services start at its first boot.
    pub after: Vec<After>,
    /// Paths in the guest at which the compose file mounts volumes. The disk for volumes numbers its volumes: first the
    /// image's volumes, then these volumes in this order.
    pub volumes: Vec<String>,
    /// Files and folders whose content comes from the host. The contents are among the node's files.
    pub binds: Vec<Bind>,
    /// Filesystems in the guest's memory.
    pub tmpfs: Vec<Tmpfs>,
    /// Resource limits of processes (setrlimit(2)), by name.
    pub ulimits: BTreeMap<String, Ulimit>,
    /// Kernel settings, by the names that sysctl(8) uses.
    pub sysctls: BTreeMap<String, String>,
    /// Capabilities that programs get in addition to the usual capabilities of containers. The names have no `CAP_`.
    pub cap_add: Vec<String>,
    /// Capabilities that programs do not get. The names have no `CAP_`.
    pub cap_drop: Vec<String>,
    /// Number of the signal that asks the service to stop. `None` means the image's signal, or SIGTERM if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<i32>,
    /// Time from the signal until the service is killed, in nanoseconds. `None` means [`STOP_GRACE_NS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_grace_ns: Option<u64>,
    /// True if the service runs under an init, a parent process that reaps orphans. The init forwards no signals:
    /// Everett sends them to the service itself.
    #[serde(skip_serializing_if = "is_false")]
    pub init: bool,
    /// Ports that the compose file declares for the service. They do not affect the world.
    #[serde(skip)]
    pub ports: Vec<Port>,
}

/// Default of [`Composed::stop_grace_ns`], in nanoseconds. The compose command has the same default.
pub const STOP_GRACE_NS: u64 = 10_000_000_000;

impl Composed {
    /// True if `init`, `stop_signal` or `stop_grace_ns` is set. Then a supervisor, a program in the guest, starts the
    /// service. Other services have no supervisor, so that a world without these settings has the same timelines as
    /// before Everett supported them.
    #[must_use]
    pub fn is_supervised(&self) -> bool {
        self.init || self.stop_signal.is_some() || self.stop_grace_ns.is_some()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A TCP port that a compose file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Number of the port.
    pub number: u16,
    /// True if the compose file publishes the port to clients outside of the world.
    pub is_published: bool,
}

/// A line of `/etc/hosts`: an address and its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostNames {
    /// Address of the line.
    pub of: HostOf,
    /// Names of the address.
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

/// A node that must start first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct After {
    /// Name of the node that must start first.
    pub node: String,
    /// True if the services of `node` must be ready, or must have done their work. False if it is enough that they were
    /// started.
    pub ready: bool,
    /// True if Everett restarts the waiting service whenever it has restarted the service of `node`.
    #[serde(skip_serializing_if = "is_false")]
    pub restart: bool,
}

/// A file or folder in the guest whose content comes from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bind {
    /// Path in the guest to which Everett copies the content.
    pub from: String,
    /// Path in the guest at which programs see the content.
    pub path: String,
    /// True if programs may change the content. Changes go to the disk for volumes, never to the host.
    pub writable: bool,
}

/// A filesystem in the guest's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tmpfs {
    /// Path in the guest at which the filesystem is mounted.
    pub path: String,
    /// Options of tmpfs(5), separated by commas.
    pub options: String,
}

/// A resource limit of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ulimit {
    /// Soft limit. `None` means unlimited.
    pub soft: Option<u64>,
    /// Hard limit. `None` means unlimited.
    pub hard: Option<u64>,
}
