//! What the host asks of the agent.

use crate::message::is_false;
use crate::text::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One request. The agent answers it with one [`crate::Response`] that has the same `id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The host's number for this request, in its answer and on the output of its command.
    pub id: u64,
    /// What to do.
    pub op: Operation,
}

/// What a request asks for. All times are the guest's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Mount the root and take a name: the machine's way to its restart point. Once, before anything but `ping`, `exec`,
    /// `put_file` and `list`. Answered with [`crate::Reply::Done`].
    Mount(Mount),
    /// Become part of the world: everything that differs from one start of the machine to the next. Once, after
    /// [`Operation::Mount`]. Answered with [`crate::Reply::Done`].
    Join(Box<Join>),
    /// Stir bytes into the kernel's random numbers, and have all that it gives from now on depend on them. Answered
    /// with [`crate::Reply::Done`].
    Reseed {
        /// The bytes, [`crate::limits::ENTROPY_BYTES_MIN`] to [`crate::limits::ENTROPY_BYTES_MAX`].
        entropy: Bytes,
    },
    /// Start services, or again one that has exited. Once the machine has joined. Answered when they are started;
    /// [`crate::Message::Ready`] follows when all services are ready, or [`crate::Message::NotReady`].
    Start {
        /// The services, started in this order.
        services: Vec<Service>,
    },
    /// Run a command. Answered with [`crate::Reply::Exited`] when it has exited.
    Exec(Exec),
    /// Send a signal to a service's process group. Answered with [`crate::Reply::Done`].
    Signal {
        /// The service's name.
        service: String,
        /// Number of the signal: 9 kills, 15 asks to end.
        signal: i32,
    },
    /// Give the threads of a service's process group real-time priorities (`SCHED_FIFO`), in the order of their numbers.
    /// Answered with [`crate::Reply::Done`].
    Prioritize {
        /// The service's name.
        service: String,
        /// 1 to [`crate::limits::PRIORITY_MAX`], higher ones first, or 0 for an ordinary thread; when there are more
        /// threads, from the first again. At most [`crate::limits::PRIORITIES_MAX`].
        priorities: Vec<u8>,
    },
    /// Write a file, or a piece of one. Answered with [`crate::Reply::Done`].
    PutFile(PutFile),
    /// Name the programs in a folder: the regular files, or links to such, that somebody may execute. Answered with
    /// [`crate::Reply::Names`]; there are none in a folder that does not exist.
    List {
        /// The folder's path.
        path: String,
    },
    /// Step `CLOCK_REALTIME`. Answered with [`crate::Reply::Done`].
    SetClock(WallClock),
    /// Write what has changed in the root filesystem as a tar to a block device. Answered with [`crate::Reply::Packed`].
    Pack(Pack),
    /// Answered with [`crate::Reply::Done`].
    Ping,
    /// Flush what is mounted and power off. Answered with [`crate::Reply::Done`] before the power goes.
    PowerOff,
}

/// What a machine is before its restart point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The root filesystem. Only its disk is given to a driver.
    pub root: Root,
    /// The machine's host name; also in `/etc/hostname`.
    pub hostname: String,
}

/// What a machine does after its restart point. It happens in the order of the fields, and before it no data disk and
/// no network card has a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// As in [`Operation::Reseed`].
    pub entropy: Bytes,
    /// `CLOCK_REALTIME` at this moment.
    pub clock: WallClock,
    /// Disks to mount.
    #[serde(default)]
    pub disks: Vec<DataDisk>,
    /// What `/etc/hosts` holds besides `localhost`.
    #[serde(default)]
    pub hosts: Vec<HostEntry>,
    /// What `/etc/resolv.conf` names.
    #[serde(default)]
    pub nameservers: Vec<IpAddr>,
    /// Network interfaces to bring up besides `lo`.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
}

/// Where the root filesystem is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Root {
    /// Stay in the initramfs.
    None,
    /// A virtio-blk device, mounted read-only under an overlay whose writable part is a tmpfs.
    Disk {
        /// The device's serial number, usually [`crate::ROOT_DISK_SERIAL`].
        serial: String,
        /// Its filesystem, for example `squashfs`.
        filesystem: String,
        /// Most bytes of the writable part; the kernel's own bound (half of memory) when absent.
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
    /// The address.
    pub address: IpAddr,
    /// Its names, the canonical one first.
    pub names: Vec<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// The kernel's name for it, `eth0` for the first.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Length of its network's prefix in bits.
    pub prefix: u8,
    /// Where packets for other networks go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
}

/// A disk for data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataDisk {
    /// The device's serial number.
    pub serial: String,
    /// Where it is mounted; made when it does not exist.
    pub path: String,
    /// Its filesystem: `ext4`, or any other that the kernel's modules know.
    pub filesystem: String,
    /// Make the filesystem first (with the root's own `mkfs.ext4` or `mkfs.xfs`) when the disk's first 64 KiB are zero.
    /// It has blocks of 4 KiB, and a UUID and a hash seed that are derived from the serial number.
    #[serde(default)]
    pub format_blank: bool,
    /// Who owns its root directory, as `user` or `user:group`; as the filesystem says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A program that runs until it is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name, unique in the machine.
    pub name: String,
    /// Program and arguments. A program without a slash is looked for in `PATH`.
    pub argv: Vec<String>,
    /// Its environment, besides the defaults (`PATH`, `HOME`, `LANG=C.UTF-8`).
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it starts; `/` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user it runs as, with that user's groups; root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it counts as ready; as soon as it is started when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Readiness>,
    /// What happens when it exits.
    #[serde(default)]
    pub restart: Restart,
    /// It gets the history port ([`crate::HISTORY_FD`]). What tries its readiness does not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub history: bool,
}

/// When a service counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// What is tried.
    pub check: ReadyCheck,
    /// Pause between tries, in milliseconds of guest time.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: u64,
    /// How long it may take from the service's start, in milliseconds of guest time.
    #[serde(default = "default_limit_ms")]
    pub limit_ms: u64,
}

fn default_interval_ms() -> u64 {
    10
}

fn default_limit_ms() -> u64 {
    60_000
}

/// How readiness is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReadyCheck {
    /// A TCP connection is accepted, and what is sent gets the answer that is expected.
    Tcp {
        /// Where; usually 127.0.0.1.
        address: IpAddr,
        /// The port.
        port: u16,
        /// What is sent, at most [`crate::limits::READY_TEXT_BYTES_MAX`] bytes. Nothing: the service speaks first.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        send: String,
        /// What the answer has in it, as long. Nothing: the connection is enough, and nothing is sent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        expect: String,
    },
    /// A command exits with 0. It runs with the service's environment, directory and user.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// What happens when a service exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// It stays down.
    #[default]
    Never,
    /// It is started again if it exited with anything but 0.
    OnFailure {
        /// Pause before, in milliseconds of guest time.
        delay_ms: u64,
    },
    /// It is started again.
    Always {
        /// Pause before, in milliseconds of guest time.
        delay_ms: u64,
    },
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Program and arguments. A program without a slash is looked for in `PATH`.
    pub argv: Vec<String>,
    /// Its environment, besides the defaults.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it starts; `/` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user it runs as; root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What it reads on its standard input; nothing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Where its output goes.
    #[serde(default)]
    pub output: ExecOutput,
    /// It is killed, with its process group, after so many milliseconds of guest time; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// It gets the history port ([`crate::HISTORY_FD`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub history: bool,
}

/// Where a command's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecOutput {
    /// As [`crate::Message::Output`] on the control port, all of it before the answer.
    #[default]
    Control,
    /// On the log port, like a service's.
    Log,
}

/// A file to write, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutFile {
    /// Its path; directories that are missing are made (0755, root's).
    pub path: String,
    /// Its mode bits, 0 to 0o7777.
    pub mode: u32,
    /// Its owner, as `user` or `user:group`, by name or number; root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// False: the file is made or emptied first. True: the data is added at its end.
    #[serde(default)]
    pub append: bool,
    /// The data, at most [`crate::limits::PUT_FILE_BYTES_MAX`].
    pub data: Bytes,
}

/// Pack what has changed in the root filesystem since it was mounted.
///
/// The archive is a tar in the form of an overlay's upper folder (Linux, Documentation/filesystems/overlayfs.rst): a
/// character device 0/0 stands for something that was removed, and a folder with the attribute
/// `trusted.overlay.opaque` hides what was in it. Names are in byte order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Serial number of the block device to write to, usually [`crate::OUT_DISK_SERIAL`].
    pub serial: String,
}

impl Exec {
    /// A command of root in `/`, with nothing on its standard input, its output on the control port, all the time it wants and
    /// no history port.
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
