//! Configuration of a machine.

use std::path::PathBuf;

use everett_cpu::CpuModel;
use everett_streams::BootSeed;

use super::MomentError;
use crate::boot::{BootError, DEFAULT_CMDLINE};
use crate::clock::{CPU_HZ_DEFAULT, ClockError, ClockMode};
use crate::disk::{Disk, DiskError};
use crate::kvm::KvmError;
use crate::layout::VIRTIO_SLOTS_MAX;
use crate::leak::Leak;
use crate::ram::RamError;
use crate::virtio::blk::Latency;
use crate::virtio::net::Wire;

/// Inputs that determine a machine's behaviour, except operations on it while it runs.
#[derive(Debug)]
pub struct MachineConfig {
    /// Name of the node. The node's random streams depend on it.
    pub name: String,
    /// Size of RAM in bytes: whole pages, 32 MiB to 3 GiB.
    pub memory_bytes: u64,
    /// Kind of event that advances vtime: retired instructions, retired branches or exits.
    pub clock: ClockMode,
    /// Speed of the CPU, in instructions per second of vtime.
    pub cpu_hz: u64,
    /// Model of the CPU.
    pub cpu: CpuModel,
    /// Boot seed. The keys of the machine's random streams come from this seed
    /// ([`Lineage::boot`](everett_streams::Lineage::boot)) until the streams are restarted, as at a fork.
    pub boot_seed: BootSeed,
    /// Time that the real-time clock shows at vtime 0, in seconds since 1970.
    pub epoch_unix_s: i64,
    /// Path of the kernel, an uncompressed `vmlinux`.
    pub kernel: PathBuf,
    /// Path of the initramfs, an uncompressed cpio archive.
    pub initramfs: Option<PathBuf>,
    /// Kernel command line.
    pub cmdline: String,
    /// Block devices. Their virtio-mmio slots come after those of the console and the entropy source.
    pub disks: Vec<DiskConfig>,
    /// Network cards. Their virtio-mmio slots come after those of the disks.
    pub cards: Vec<CardConfig>,
    /// Sources of nondeterminism that a test plants. None by default.
    pub leak: Leak,
}

/// Configuration of a block device.
#[derive(Debug)]
pub struct DiskConfig {
    /// The disk and its content.
    pub disk: Disk,
    /// Serial number that the guest reads (VIRTIO_BLK_T_GET_ID): at most 20 bytes.
    pub serial: String,
    /// True if the guest may not write.
    pub read_only: bool,
    /// Latency of requests.
    pub latency: Latency,
}

/// Configuration of a network card.
#[derive(Debug, Clone)]
pub struct CardConfig {
    /// Hardware address.
    pub mac: [u8; 6],
    /// Peer at the other end of the card's cable.
    pub wire: Wire,
}

impl MachineConfig {
    /// Creates a configuration with this kernel and these defaults: 256 MiB, 1 GHz, CPU model `v2`, boot seed 0, 2026-01-01,
    /// no disks, no card.
    pub fn new(kernel: impl Into<PathBuf>) -> MachineConfig {
        MachineConfig {
            name: "node".into(),
            memory_bytes: 256 << 20,
            clock: ClockMode::Insn,
            cpu_hz: CPU_HZ_DEFAULT,
            cpu: CpuModel::default(),
            boot_seed: BootSeed::default(),
            epoch_unix_s: 1_767_225_600,
            kernel: kernel.into(),
            initramfs: None,
            cmdline: DEFAULT_CMDLINE.into(),
            disks: Vec::new(),
            cards: Vec::new(),
            leak: Leak::default(),
        }
    }
}

/// Error of creating a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The host cannot provide the RAM.
    #[error(transparent)]
    Ram(#[from] RamError),
    /// The kernel, the initramfs or the command line is invalid.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The clock's parameters are invalid.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The host cannot provide the engine.
    #[error(transparent)]
    Engine(#[from] KvmError),
    /// The engine and the clock count different units.
    #[error("clock mode \"{clock}\" needs an engine that counts each {}; this one counts each {}", clock.unit(), engine.unit())]
    Mode {
        /// Mode of the clock.
        clock: ClockMode,
        /// Mode of the engine.
        engine: ClockMode,
    },
    /// The engine does not have the wanted CPU model.
    #[error("the machine needs a CPU of the model {cpu}; this engine has the model {engine}")]
    Cpu {
        /// Model of the configuration.
        cpu: CpuModel,
        /// Model of the engine.
        engine: CpuModel,
    },
    /// A disk is invalid.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The machine cannot start from this moment.
    #[error(transparent)]
    Moment(#[from] MomentError),
    /// The machine has more devices than slots.
    #[error("{devices} disks and network cards: at most {} fit", VIRTIO_SLOTS_MAX - 2)]
    Slots {
        /// Number of disks and network cards.
        devices: usize,
    },
}
