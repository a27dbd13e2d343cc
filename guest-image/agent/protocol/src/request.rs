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
    /// Number that the host chose for this request. The answer and the output of the request's command repeat it.
    pub id: u64,
    /// Operation to perform.
    pub op: Operation,
}

/// Operation that the host requests from the agent. All times are guest time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Mounts the root and sets the host name. The machine is then at its restart point. Allowed once. Before this, the
    /// host sends only `ping`, `exec`, `put_file` and `list`. Answered with [`crate::Reply::Done`].
    Mount(Mount),
    /// Joins the world by applying the settings that differ between two starts of the machine. Allowed once, after
    /// [`Operation::Mount`]. Answered with [`crate::Reply::Done`] or [`crate::Reply::Damaged`].
    Join(Box<Join>),
    /// Mixes bytes into the kernel's random number generator and reseeds it. All later random numbers then depend on
    /// the bytes. Answered with [`crate::Reply::Done`].
    Reseed {
        /// Entropy of [`crate::limits::ENTROPY_BYTES_MIN`] to [`crate::limits::ENTROPY_BYTES_MAX`] bytes.
        entropy: Bytes,
    },
    /// Starts services. A service that has exited can be started again. Allowed after the join. Answered when they are
    /// started. The agent sends [`crate::Message::Ready`] when all are ready, or [`crate::Message::NotReady`].
    Start {
        /// Services in the order in which the agent starts them.
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
    /// Gives the threads of a service's process group real-time priorities (`SCHED_FIFO`), in the order of their thread
    /// IDs. Answered with [`crate::Reply::Done`].
    Prioritize {
        /// Name of the service.
        service: String,
        /// Priorities of 1 to [`crate::limits::PRIORITY_MAX`]; higher ones run first. 0 makes an ordinary thread. If
        /// there are more threads than priorities, the list repeats. At most [`crate::limits::PRIORITIES_MAX`] entries.
        priorities: Vec<u8>,
    },
    /// Writes a file or a piece of one. Answered with [`crate::Reply::Done`].
    PutFile(PutFile),
    /// Lists the programs in a folder: regular files, or links to regular files, with any execute bit set. Answered
    /// with [`crate::Reply::Names`], which is empty if the folder does not exist.
    List {
        /// Path of the folder.
        path: String,
    },
    /// Sets `CLOCK_REALTIME`. Answered with [`crate::Reply::Done`].
    SetClock(WallClock),
    /// Writes the changes of the root filesystem to a block device, as a tar. Answered with [`crate::Reply::Packed`].
    Pack(Pack),
    /// Does nothing. The answer, [`crate::Reply::Done`], shows that the agent runs.
    Ping,
    /// Flushes all filesystems and powers off. The agent answers with [`crate::Reply::Done`] before the power goes off.
    PowerOff,
}

/// Configuration of a machine up to its restart point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Root filesystem. Its disk should be in the first slot. Otherwise the disks in earlier slots also get a driver.
    pub root: Root,
    /// Host name of the machine. The agent also writes it to `/etc/hostname`.
    pub hostname: String,
}

/// Configuration of a machine after its restart point. The agent applies the fields in their order. Before the join,
/// no data disk and no network card has a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Entropy, as in [`Operation::Reseed`].
    pub entropy: Bytes,
    /// Time to which the agent sets `CLOCK_REALTIME`.
    pub clock: WallClock,
    /// Data disks to mount.
    #[serde(default)]
    pub disks: Vec<DataDisk>,
    /// Entries of `/etc/hosts` in addition to `localhost`.
    #[serde(default)]
    pub hosts: Vec<HostEntry>,
    /// Name servers for `/etc/resolv.conf`.
    #[serde(default)]
    pub nameservers: Vec<IpAddr>,
    /// Network interfaces to bring up in addition to `lo`.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
}

/// Location of the root filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Root {
    /// No root disk. The machine stays in the initramfs.
    None,
    /// A virtio-blk device, mounted read-only. An overlay over it writes to a tmpfs.
    Disk {
        /// Serial number of the device, usually [`crate::ROOT_DISK_SERIAL`].
        serial: String,
        /// Filesystem of the device, for example `squashfs`.
        filesystem: String,
        /// Maximum size of the overlay's tmpfs, in bytes. If absent, the kernel's default applies (half of memory).
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
    /// Nanoseconds within the second, less than 10^9.
    #[serde(default)]
    pub nanoseconds: u32,
}

/// A line of `/etc/hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// Address of the host.
    pub address: IpAddr,
    /// Names of the host. The first is the canonical name.
    pub names: Vec<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Kernel name of the interface. The first card is `eth0`.
    pub name: String,
    /// Address of the interface.
    pub address: IpAddr,
    /// Length of the network prefix in bits.
    pub prefix: u8,
    /// Address of the gateway for packets to other networks. If absent, the interface has no default route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
}

/// A data disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataDisk {
    /// Serial number of the device.
    pub serial: String,
    /// Mount point. The agent creates the folder if it does not exist.
    pub path: String,
    /// Filesystem on the disk: `ext4`, or another one that the kernel's modules support.
    pub filesystem: String,
    /// True if the agent formats a blank disk (its first 64 KiB are zero) with the root's `mkfs.ext4` or `mkfs.xfs`.
    /// Blocks have 4 KiB. The UUID and the hash seed are derived from the serial number.
    #[serde(default)]
    pub format_blank: bool,
    /// Owner of the filesystem's root directory, as `user` or `user:group`. If absent, the owner stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A long-running program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Name of the service. No other service of the machine has the same name.
    pub name: String,
    /// Program and arguments. The agent searches `PATH` for a program without a slash.
    pub argv: Vec<String>,
    /// Environment variables in addition to the defaults (`PATH`, `HOME`, `LANG=C.UTF-8`).
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory; `/` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// User that runs the service, with that user's groups. If absent, root runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Readiness check. If absent, the service is ready as soon as it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Readiness>,
    /// Policy for starting the service again after its exit.
    #[serde(default)]
    pub restart: Restart,
    /// True if the agent passes the history port ([`crate::HISTORY_FD`]) to the service, but not to its probes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub history: bool,
}

/// Readiness check of a service, which the agent repeats until it succeeds or the time limit expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// Check that the agent performs in each attempt.
    pub check: ReadyCheck,
    /// Pause between two attempts, in milliseconds of guest time.
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

/// Check for a single readiness attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReadyCheck {
    /// Succeeds if the service accepts a TCP connection and its answer contains the expected text.
    Tcp {
        /// Address to connect to, usually 127.0.0.1.
        address: IpAddr,
        /// Port to connect to.
        port: u16,
        /// Text to send, at most [`crate::limits::READY_TEXT_BYTES_MAX`] bytes. If empty, the agent sends nothing.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        send: String,
        /// Text that the answer must contain, with the same bound. If empty, the agent only connects and sends nothing.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        expect: String,
    },
    /// Succeeds if a command exits with status 0. It runs with the service's environment, directory and user.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// Policy for starting a service again after its exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// The agent does not start the service again.
    #[default]
    Never,
    /// The agent starts the service again after a signal or an exit status except 0.
    OnFailure {
        /// Pause before the restart, in milliseconds of guest time.
        delay_ms: u64,
    },
    /// The agent starts the service again after every exit.
    Always {
        /// Pause before the restart, in milliseconds of guest time.
        delay_ms: u64,
    },
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Program and arguments. The agent searches `PATH` for a program without a slash.
    pub argv: Vec<String>,
    /// Environment variables in addition to the defaults (`PATH`, `HOME`, `LANG=C.UTF-8`).
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory; `/` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// User that runs the command. If absent, root runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Text on the command's standard input. If absent, the input is `/dev/null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Destination of the output.
    #[serde(default)]
    pub output: ExecOutput,
    /// Time after which the agent kills the process group, in milliseconds of guest time. If absent, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// True if the agent passes the history port to the command ([`crate::HISTORY_FD`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub history: bool,
}

/// Destination of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecOutput {
    /// The control port, as [`crate::Message::Output`]. The agent sends all output before the answer.
    #[default]
    Control,
    /// The log port, as for a service's output.
    Log,
}

/// File to write, or a piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutFile {
    /// Path of the file. The agent creates missing directories (mode 0755, owner root).
    pub path: String,
    /// Mode bits of the file, 0 to 0o7777.
    pub mode: u32,
    /// Owner, as `user` or `user:group`, by name or number. If absent, root owns the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// True if the agent appends the data to the file. Otherwise it creates or empties the file first.
    #[serde(default)]
    pub append: bool,
    /// Content to write, at most [`crate::limits::PUT_FILE_BYTES_MAX`] bytes.
    pub data: Bytes,
}

/// Request to pack the changes of the root filesystem since its mount.
///
/// The archive is a tar in the form of an overlay's upper folder (Linux, Documentation/filesystems/overlayfs.rst). A
/// character device 0/0 marks a removed entry. A folder with the attribute `trusted.overlay.opaque` hides the content
/// of the lower folder. The entries of each folder are in byte order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Serial number of the block device to write to, usually [`crate::OUT_DISK_SERIAL`].
    pub serial: String,
}

impl Exec {
    /// Returns a command with the defaults: user root, folder `/`, and empty standard input. Its output goes to the
    /// control port, and it has no time limit and no history port.
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
