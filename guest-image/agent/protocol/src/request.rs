//! Requests from the host to the agent.

use crate::message::is_false;
use crate::text::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One request. The agent answers it with one [`crate::Response`] that has the same `id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The host's number for this request; repeated in the answer and on the output of its command.
    pub id: u64,
    /// Operation to perform.
    pub op: Operation,
}

/// Operation of a request. All times are guest time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Mounts the root and sets the host name, which takes the machine to its restart point. Allowed once; before it
    /// only `ping`, `exec`, `put_file` and `list` are allowed. Answered with [`crate::Reply::Done`].
    Mount(Mount),
    /// Joins the world: applies everything that differs between two starts of the machine. Allowed once, after
    /// [`Operation::Mount`]. Answered with [`crate::Reply::Done`] or [`crate::Reply::Damaged`].
    Join(Box<Join>),
    /// Mixes bytes into the kernel's random number generator and reseeds it, so that all later random numbers depend on
    /// them. Answered with [`crate::Reply::Done`].
    Reseed {
        /// The bytes; [`crate::limits::ENTROPY_BYTES_MIN`] to [`crate::limits::ENTROPY_BYTES_MAX`] of them.
        entropy: Bytes,
    },
    /// Starts services, including ones that have exited. Allowed after the machine has joined. Answered when they are
    /// started; [`crate::Message::Ready`] follows when all services are ready, or [`crate::Message::NotReady`].
    Start {
        /// The services, in the order in which they are started.
        services: Vec<Service>,
    },
    /// Runs a command. Answered with [`crate::Reply::Exited`] when it has exited.
    Exec(Exec),
    /// Sends a signal to a service's process group. Answered with [`crate::Reply::Done`].
    Signal {
        /// Name of the service.
        service: String,
        /// Signal number: 9 is SIGKILL, 15 is SIGTERM.
        signal: i32,
    },
    /// Gives the threads of a service's process group real-time priorities (`SCHED_FIFO`), in order of their thread
    /// IDs. Answered with [`crate::Reply::Done`].
    Prioritize {
        /// Name of the service.
        service: String,
        /// Priorities, 1 to [`crate::limits::PRIORITY_MAX`], higher ones run first; 0 makes an ordinary thread. If
        /// there are more threads than priorities, the list repeats. At most [`crate::limits::PRIORITIES_MAX`] entries.
        priorities: Vec<u8>,
    },
    /// Writes a file or a piece of one. Answered with [`crate::Reply::Done`].
    PutFile(PutFile),
    /// Lists the programs in a folder: regular files, or links to regular files, with any execute bit set. Answered
    /// with [`crate::Reply::Names`], which is empty for a folder that does not exist.
    List {
        /// Path of the folder.
        path: String,
    },
    /// Sets `CLOCK_REALTIME`. Answered with [`crate::Reply::Done`].
    SetClock(WallClock),
    /// Writes the changes of the root filesystem as a tar to a block device. Answered with [`crate::Reply::Packed`].
    Pack(Pack),
    /// Does nothing. Answered with [`crate::Reply::Done`].
    Ping,
    /// Flushes all mounted filesystems and powers off. Answered with [`crate::Reply::Done`] before the power goes off.
    PowerOff,
}

/// Configuration of a machine up to its restart point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The root filesystem. Disks get drivers in the order of slots up to its disk, which should be in the first slot.
    pub root: Root,
    /// Host name of the machine; also written to `/etc/hostname`.
    pub hostname: String,
}

/// Configuration of a machine after its restart point. It is applied in the order of the fields. When this begins, no
/// data disk and no network card has a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Entropy, as in [`Operation::Reseed`].
    pub entropy: Bytes,
    /// Value to set `CLOCK_REALTIME` to.
    pub clock: WallClock,
    /// Disks to mount.
    #[serde(default)]
    pub disks: Vec<DataDisk>,
    /// Entries of `/etc/hosts` besides `localhost`.
    #[serde(default)]
    pub hosts: Vec<HostEntry>,
    /// Name servers for `/etc/resolv.conf`.
    #[serde(default)]
    pub nameservers: Vec<IpAddr>,
    /// Network interfaces to bring up besides `lo`.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
}

/// Location of the root filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Root {
    /// The machine stays in the initramfs.
    None,
    /// A virtio-blk device, mounted read-only under an overlay whose writable part is a tmpfs.
    Disk {
        /// Serial number of the device, usually [`crate::ROOT_DISK_SERIAL`].
        serial: String,
        /// Filesystem of the device, for example `squashfs`.
        filesystem: String,
        /// Maximum size of the writable part, in bytes; if absent, the kernel's default (half of memory).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writable_bytes: Option<u64>,
    },
}

/// A value of `CLOCK_REALTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WallClock {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, less than 1e9.
    #[serde(default)]
    pub nanoseconds: u32,
}

/// A line of `/etc/hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// Address of the host.
    pub address: IpAddr,
    /// Names of the host, the canonical one first.
    pub names: Vec<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Kernel name of the interface; `eth0` is the first.
    pub name: String,
    /// Address of the interface.
    pub address: IpAddr,
    /// Length of the network prefix in bits.
    pub prefix: u8,
    /// Gateway for packets to other networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
}

/// A data disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataDisk {
    /// Serial number of the device.
    pub serial: String,
    /// Mount point; created if it does not exist.
    pub path: String,
    /// Filesystem: `ext4`, or any other that the kernel's modules support.
    pub filesystem: String,
    /// True if a blank disk (first 64 KiB are zero) is formatted first, with the root's own `mkfs.ext4` or `mkfs.xfs`.
    /// Blocks have 4 KiB; the UUID and the hash seed are derived from the serial number.
    #[serde(default)]
    pub format_blank: bool,
    /// Owner of the filesystem's root directory, as `user` or `user:group`; unchanged if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A long-running program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Name of the service, unique in the machine.
    pub name: String,
    /// Program and arguments. A program without a slash is searched in `PATH`.
    pub argv: Vec<String>,
    /// Environment, besides the defaults (`PATH`, `HOME`, `LANG=C.UTF-8`).
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory; `/` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// User to run as, with that user's groups; root if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Readiness check; if absent, the service is ready as soon as it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Readiness>,
    /// Restart policy.
    #[serde(default)]
    pub restart: Restart,
    /// True if the service gets the history port ([`crate::HISTORY_FD`]). Its readiness command never does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub history: bool,
}

/// Readiness check of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// The check that is repeated until it succeeds.
    pub check: ReadyCheck,
    /// Pause between attempts, in milliseconds of guest time.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: u64,
    /// Time limit from the service's start, in milliseconds of guest time.
    #[serde(default = "default_limit_ms")]
    pub limit_ms: u64,
}

fn default_interval_ms() -> u64 {
    10
}

fn default_limit_ms() -> u64 {
    60_000
}

/// A single readiness attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReadyCheck {
    /// A TCP connection is accepted and, if a text is expected, the answer contains it.
    Tcp {
        /// Address to connect to; usually 127.0.0.1.
        address: IpAddr,
        /// Port to connect to.
        port: u16,
        /// Text to send, at most [`crate::limits::READY_TEXT_BYTES_MAX`] bytes. If empty, the service speaks first.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        send: String,
        /// Text that the answer must contain, with the same bound. If empty, a connection suffices and nothing is sent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        expect: String,
    },
    /// A command exits with 0. It runs with the service's environment, directory and user.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// Restart policy of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// The service stays down.
    #[default]
    Never,
    /// The service is started again unless it exited with status 0.
    OnFailure {
        /// Pause before the restart, in milliseconds of guest time.
        delay_ms: u64,
    },
    /// The service is always started again.
    Always {
        /// Pause before the restart, in milliseconds of guest time.
        delay_ms: u64,
    },
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Program and arguments. A program without a slash is searched in `PATH`.
    pub argv: Vec<String>,
    /// Environment, besides the defaults.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory; `/` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// User to run as; root if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Text on the command's standard input; empty if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Destination of the output.
    #[serde(default)]
    pub output: ExecOutput,
    /// Time limit in milliseconds of guest time, after which the process group is killed; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// True if the command gets the history port ([`crate::HISTORY_FD`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub history: bool,
}

/// Destination of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecOutput {
    /// [`crate::Message::Output`] on the control port, all of it before the answer.
    #[default]
    Control,
    /// The log port, like a service's output.
    Log,
}

/// A file to write, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutFile {
    /// Path of the file; missing directories are created (mode 0755, owner root).
    pub path: String,
    /// Mode bits, 0 to 0o7777.
    pub mode: u32,
    /// Owner, as `user` or `user:group`, by name or number; root if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// True if the data is appended. Otherwise the file is created or emptied first.
    #[serde(default)]
    pub append: bool,
    /// The data, at most [`crate::limits::PUT_FILE_BYTES_MAX`] bytes.
    pub data: Bytes,
}

/// Packs the changes of the root filesystem since it was mounted.
///
/// The archive is a tar in the form of an overlay's upper folder (Linux, Documentation/filesystems/overlayfs.rst). A
/// character device 0/0 stands for a removed entry. A folder with the attribute `trusted.overlay.opaque` hides the
/// lower folder's content. Names are in byte order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Serial number of the block device to write to, usually [`crate::OUT_DISK_SERIAL`].
    pub serial: String,
}

impl Exec {
    /// Returns a command of root in `/` with empty standard input, output on the control port, no time limit and no
    /// history port.
    #[must_use]
    pub fn new(argv: Vec<String>) -> Exec {
        Exec {
            argv,
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            stdin: None,
            output: ExecOutput::Control,
            limit_ms: None,
            history: false,
        }
    }
}
