//! From a world file and its image to machines that are about to execute their first instruction.

use std::path::PathBuf;
use std::sync::Arc;

use everett_protocol::{ROOT_DISK_SERIAL, Root};
use everett_vmm::boot::{DEFAULT_CMDLINE, EXIT_CMDLINE};
use everett_vmm::disk::{BLOCK, Disk, DiskError};
use everett_vmm::layout::PAGE;
use everett_vmm::machine::{CardConfig, DiskConfig, MachineConfig, MachineError};
use everett_vmm::virtio::blk::Latency;
use everett_vmm::virtio::net::Wire;
use everett_vmm::wire::{ConfigError, WireConfig};
use everett_vmm::world as vmm;

use super::agent_script::{Plan, WorldCheck, data_disk_serial, host_port, world_checks};
use super::machines::{BootFiles, EngineOptions};
use super::memory;
use super::timeline::{Faults, OtherPlan, SessionState, StateError, Timeline};
use super::watching::{Watched, Watching};
use crate::moments::Stored;
use crate::world_file::{Clock, CpuModel, Node, World};

/// Why a machine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The wire.
    #[error("the network: {0}")]
    Wire(#[from] ConfigError),
    /// The session of a stored moment.
    #[error(transparent)]
    Session(#[from] StateError),
    /// A stored moment of a timeline that has begun under another seed.
    #[error("the moment is of a timeline under seed {begun}, which cannot go on under seed {seed}")]
    Seed {
        /// The moment's.
        begun: u64,
        /// What was asked for.
        seed: u64,
    },
    /// A stored moment of a timeline under another fault plan.
    #[error("the moment cannot be gone on from: {0}")]
    Plan(#[from] OtherPlan),
    /// A stored moment of another number of nodes.
    #[error("the moment is of {there} nodes, the world has {here}")]
    Nodes {
        /// The moment's.
        there: usize,
        /// The world's.
        here: usize,
    },
    /// A stored moment whose parts do not belong together.
    #[error(
        "the moment's parts do not belong together: its machine has another digest than the one that was stored"
    )]
    Digest,
    /// A node whose image does not boot in so little memory.
    #[error(
        "{}: node \"{node}\": memory: {}M is too little for its kernel and initramfs; give it at least {}M",
        file.display(), bytes >> 20, least_bytes >> 20
    )]
    Memory {
        /// The world file.
        file: PathBuf,
        /// The node.
        node: String,
        /// What it has, in bytes.
        bytes: u64,
        /// What it needs, in bytes.
        least_bytes: u64,
    },
}

/// Everything that makes a timeline, but the seed: any number of equal ones can be started from it.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The world.
    pub world: World,
    /// The only node that is started, if not all are.
    pub only: Option<usize>,
    /// What all nodes boot from.
    pub files: BootFiles,
    /// Added to the kernel's command line after the world's.
    pub cmdline: String,
    /// How engines behave.
    pub options: EngineOptions,
    /// Where its timelines start: a stored moment of theirs, else power-on.
    pub from: Option<Arc<Stored>>,
    /// What is done to them.
    pub faults: Option<Faults>,
    /// What is watched of them.
    pub watching: Option<Arc<Watching>>,
}

impl Launcher {
    /// Watches these bytes in timelines that are started from here on, instead of those that were watched before.
    ///
    /// # Errors
    /// A node is missing or ambiguous, or there are too many places.
    pub fn watch(&mut self, watched: &[Watched]) -> anyhow::Result<()> {
        self.watching = Watching::new(watched, self.nodes(), &self.files.kernel)?;
        Ok(())
    }

    /// A timeline where this launcher's start, which begins under `seed` when it is ready.
    ///
    /// # Errors
    /// A file cannot be read or is not what it should be; the moment from which it starts is of another seed.
    pub fn start(&self, seed: u64) -> Result<Timeline, LaunchError> {
        let mut timeline = match &self.from {
            None => self.boot()?,
            Some(stored) => self.resume(stored)?,
        };
        self.set_out(&mut timeline, seed)?;
        Ok(timeline)
    }

    /// Bring a timeline of this launcher back to where they start, without making a machine. Its engine keeps its caches.
    /// Returns false when they start at power-on: that takes a new machine.
    ///
    /// # Errors
    /// As [`Launcher::start`].
    pub fn start_again(&self, timeline: &mut Timeline, seed: u64) -> Result<bool, LaunchError> {
        let Some(stored) = &self.from else { return Ok(false) };
        self.go_to(timeline, &stored.moment, stored.session.clone())?;
        self.set_out(timeline, seed)?;
        Ok(true)
    }

    /// Bring a timeline of this launcher to a moment, without making a machine.
    ///
    /// # Errors
    /// It is a moment of another world.
    pub fn go_to(
        &self,
        timeline: &mut Timeline,
        moment: &vmm::WorldMoment,
        session: SessionState,
    ) -> Result<(), LaunchError> {
        timeline.world_mut().restore(moment).map_err(MachineError::from)?;
        timeline.restore(session)?;
        for node in 0..timeline.world().nodes().len() {
            self.options.apply(timeline.machine_mut(node));
        }
        Ok(())
    }

    fn set_out(&self, timeline: &mut Timeline, seed: u64) -> Result<(), LaunchError> {
        timeline.suffer(self.faults.clone().map(|faults| faults.on(self.options)))?;
        match timeline.seed() {
            None => {
                // It has not begun.
                let _ = timeline.begin(seed);
            }
            Some(begun) if begun == seed => {}
            Some(begun) => return Err(LaunchError::Seed { begun, seed }),
        }
        if let Some(stored) = &self.from {
            timeline.events_again(&stored.events);
            for (node, console) in stored.consoles.iter().enumerate() {
                timeline.machine_mut(node).output().console_again(console);
            }
        }
        Ok(())
    }

    /// A world that is switched on. It is the same for all seeds, and waits when it is ready.
    ///
    /// # Errors
    /// A file cannot be read or is not what it should be, or a node has too little memory for its image.
    pub fn boot(&self) -> Result<Timeline, LaunchError> {
        self.check_memory()?;
        let machines = self.nodes().map(|node| Ok(self.options.machine(self.config(node)?)?));
        let machines: Vec<_> = machines.collect::<Result<_, LaunchError>>()?;
        let world = vmm::World::new(machines, self.wire(), self.world.boot_seed)?;
        Ok(self.watched(Timeline::new(world, self.plans(), self.checks())))
    }

    /// A timeline that goes on where `stored` was.
    ///
    /// # Errors
    /// It was stored by something else than this launcher's world, or a file cannot be read.
    pub fn resume(&self, stored: &Stored) -> Result<Timeline, LaunchError> {
        let there = stored.moment.machines.iter();
        let nodes = self.nodes().count();
        if there.len() != nodes || stored.consoles.len() > nodes {
            return Err(LaunchError::Nodes { there: there.len(), here: nodes });
        }
        let machines = self
            .nodes()
            .zip(there)
            .map(|(node, then)| Ok(self.options.machine_at(self.config(node)?, then)?));
        let machines: Vec<_> = machines.collect::<Result<_, LaunchError>>()?;
        let world = vmm::World::from_moment(machines, &stored.moment).map_err(MachineError::from)?;
        let timeline = Timeline::resume(world, self.plans(), self.checks(), stored.session.clone())?;
        let mut timeline = self.watched(timeline);
        if timeline.digest() == stored.digest { Ok(timeline) } else { Err(LaunchError::Digest) }
    }

    fn check_memory(&self) -> Result<(), LaunchError> {
        let Some(least_bytes) = memory::least_bytes(&self.files) else { return Ok(()) };
        match self.nodes().find(|node| node.memory_bytes < least_bytes) {
            None => Ok(()),
            Some(node) => Err(LaunchError::Memory {
                file: self.world.file.clone(),
                node: node.name.clone(),
                bytes: node.memory_bytes,
                least_bytes,
            }),
        }
    }

    fn watched(&self, mut timeline: Timeline) -> Timeline {
        if let Some(watching) = &self.watching {
            timeline.watch(watching);
        }
        timeline
    }

    /// The nodes that are started, in the order of the world file.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let started = |(number, _): &(usize, _)| self.only.is_none_or(|only| only == *number);
        self.world.nodes.iter().enumerate().filter(started).map(|(_, node)| node)
    }

    /// What each node's agent is asked to do, for [`Timeline::resume`].
    #[must_use]
    pub fn plans(&self) -> Vec<Plan> {
        let root = match &self.files.root {
            None => Root::None,
            Some(_) => Root::Disk {
                serial: ROOT_DISK_SERIAL.to_owned(),
                filesystem: "squashfs".to_owned(),
                writable_bytes: None,
            },
        };
        self.nodes().map(|node| Plan::new(&self.world, node, root.clone())).collect()
    }

    /// The world's checks, in their order.
    #[must_use]
    pub fn checks(&self) -> Vec<WorldCheck> {
        world_checks(&self.world, &self.nodes().collect::<Vec<_>>())
    }

    /// The links between nodes. Their ports are the machines' own; the host has one behind them if it is to talk to them.
    fn wire(&self) -> WireConfig {
        let links = &self.world.links;
        // Links of nodes that are not started lead nowhere.
        let started = |name: &String| self.nodes().any(|node| node.name == *name);
        let others = links.others.iter().filter(|link| started(&link.from) && started(&link.to));
        let ports = if self.world.workload.has_host() { vec![host_port()] } else { Vec::new() };
        WireConfig { ports, link: links.usual.clone(), overrides: others.cloned().collect() }
    }

    /// Pages of all machines' memory and blocks of their disks: the most that a moment can have.
    #[must_use]
    pub fn pages_max(&self) -> u64 {
        let of_node = |node: &Node| {
            let disks = node.disks.iter().map(|disk| disk.size_bytes.div_ceil(BLOCK));
            disks.fold(node.memory_bytes / PAGE, u64::saturating_add)
        };
        self.nodes().map(of_node).fold(0, u64::saturating_add)
    }

    /// What a node's machine is made of.
    ///
    /// # Errors
    /// A disk's file cannot be read or is not what it should be.
    pub fn config(&self, node: &Node) -> Result<MachineConfig, LaunchError> {
        let CpuModel::V2 = self.world.cpu;
        let mut config = MachineConfig::new(&self.files.kernel);
        config.name.clone_from(&node.name);
        config.memory_bytes = node.memory_bytes;
        config.clock = self.world.clock.mode();
        config.seed = self.world.boot_seed;
        config.epoch_unix_s = i64::try_from(self.world.epoch_unix_s).unwrap_or(i64::MAX);
        config.initramfs.clone_from(&self.files.initramfs);
        let of_clock = match self.world.clock {
            Clock::Insn => "",
            Clock::Branch | Clock::Exit => EXIT_CMDLINE,
        };
        let parts = [DEFAULT_CMDLINE, of_clock, &self.world.image.cmdline, &self.cmdline];
        config.cmdline = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some((path, digest)) = &self.files.root {
            config.disks.push(DiskConfig {
                disk: Disk::open(path, Some(*digest))?,
                serial: ROOT_DISK_SERIAL.to_owned(),
                read_only: true,
                latency: Latency::default(),
            });
        }
        for (index, disk) in node.disks.iter().enumerate() {
            config.disks.push(DiskConfig {
                disk: Disk::zeroed(disk.size_bytes)?.with_sectors(disk.sector)?,
                serial: data_disk_serial(index),
                read_only: false,
                latency: disk.latency,
            });
        }
        config.cards.push(CardConfig { mac: self.mac(node), wire: Wire::Attached });
        Ok(config)
    }

    /// Locally administered, numbered as the node's address is.
    fn mac(&self, node: &Node) -> [u8; 6] {
        let index = self.world.nodes.iter().position(|other| other.name == node.name).unwrap_or(0);
        [0x02, 0x65, 0x76, 0, 0, u8::try_from(index + 1).unwrap_or(u8::MAX)]
    }
}
