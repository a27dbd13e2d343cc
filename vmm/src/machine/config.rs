//! What a machine is made of.

use std::path::PathBuf;

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

/// Everything that a machine's behaviour depends on, besides what is done to it.
#[derive(Debug)]
pub struct MachineConfig {
    /// Names the node; its random streams are keyed by it.
    pub name: String,
    /// Bytes of RAM: whole pages, 32 MiB to 3 GiB.
    pub memory_bytes: u64,
    /// What moves vtime.
    pub clock: ClockMode,
    /// Instructions a second of vtime.
    pub cpu_hz: u64,
    /// The boot seed. All that is drawn for the machine follows [`Lineage::boot`](everett_streams::Lineage::boot) of it until
    /// streams restart.
    pub seed: u64,
    /// What the real-time clock shows at vtime 0, in seconds since 1970.
    pub epoch_unix_s: i64,
    /// `vmlinux`, uncompressed.
    pub kernel: PathBuf,
    /// cpio archive, uncompressed.
    pub initramfs: Option<PathBuf>,
    /// Kernel command line.
    pub cmdline: String,
    /// Block devices, in slot order after console and rng.
    pub disks: Vec<DiskConfig>,
    /// Network cards, after the disks.
    pub cards: Vec<CardConfig>,
    /// Planted leaks.
    pub leak: Leak,
}

/// A block device.
#[derive(Debug)]
pub struct DiskConfig {
    /// Its content.
    pub disk: Disk,
    /// What the guest knows it by (GET_ID): at most 20 bytes.
    pub serial: String,
    /// The guest may not write.
    pub read_only: bool,
    /// How long requests take.
    pub latency: Latency,
}

/// A network card.
#[derive(Debug, Clone)]
pub struct CardConfig {
    /// Hardware address.
    pub mac: [u8; 6],
    /// What is at the other end of its cable.
    pub wire: Wire,
}

impl MachineConfig {
    /// A machine with this kernel and defaults for the rest: 256 MiB, 1 GHz, seed 0, 2026-01-01, no disks, no card.
    pub fn new(kernel: impl Into<PathBuf>) -> MachineConfig {
        MachineConfig {
            name: "node".into(),
            memory_bytes: 256 << 20,
            clock: ClockMode::Insn,
            cpu_hz: CPU_HZ_DEFAULT,
            seed: 0,
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

/// Why a machine cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Memory.
    #[error(transparent)]
    Ram(#[from] RamError),
    /// Kernel, initramfs, command line.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// Clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The host's part of an engine.
    #[error(transparent)]
    Engine(#[from] KvmError),
    /// An engine that counts something else than the clock.
    #[error("clock mode \"{clock}\" needs an engine that counts each {}; this one counts each {}", clock.unit(), engine.unit())]
    Mode {
        /// The clock's.
        clock: ClockMode,
        /// The engine's.
        engine: ClockMode,
    },
    /// Disks.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The moment to start from.
    #[error(transparent)]
    Moment(#[from] MomentError),
    /// More devices than there are slots.
    #[error("{devices} disks and network cards: at most {} fit", VIRTIO_SLOTS_MAX - 2)]
    Slots {
        /// How many there are.
        devices: usize,
    },
}
