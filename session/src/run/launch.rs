//! Machines and timelines of a world, made from its world file and image.

use std::path::PathBuf;
use std::sync::Arc;

use everett_protocol::{ROOT_DISK_SERIAL, Root};
use everett_streams::Seed;
use everett_vmm::boot::{DEFAULT_CMDLINE, EXIT_CMDLINE};
use everett_vmm::disk::{BLOCK, Disk, DiskError, SectorSize};
use everett_vmm::layout::PAGE;
use everett_vmm::machine::{CardConfig, DiskConfig, MachineConfig, MachineError};
use everett_vmm::virtio::blk::Latency;
use everett_vmm::virtio::net::Wire;
use everett_vmm::wire::{ConfigError, LinkConfig, LinkOverride, NO_LINK, WireConfig};
use everett_vmm::world as vmm;
use everett_world_file::{Clock, Filesystem, Node, World};

use crate::guest::agent_script::{AgentScript, WorldCheck, data_disk_serial, host_port, world_checks};
use crate::guest::containers::{self, NodeImage, VOLUMES_SERIAL};
use crate::machines::memory;
use crate::machines::{BootFiles, EngineOptions};
use crate::world::moments::Stored;
use crate::world::timeline::{Faults, OtherPlan, SessionState, StateError, Timeline};
use crate::world::watching::{Watched, Watching};

/// A timeline cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A disk cannot be opened or created.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A machine cannot be created or restored.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The configuration of the wire is invalid.
    #[error("the network")]
    Wire(#[from] ConfigError),
    /// The session of the stored moment, i.e. the state outside its world, is invalid.
    #[error(transparent)]
    Session(#[from] StateError),
    /// The stored moment's timeline has another seed.
    #[error("the moment's timeline began under seed {begun} and cannot continue under seed {seed}")]
    Seed {
        /// Seed of the moment's timeline.
        begun: Seed,
        /// Requested seed.
        seed: Seed,
    },
    /// The stored moment's timeline has another fault plan.
    #[error("the moment cannot be continued")]
    Plan(#[from] OtherPlan),
    /// The stored moment has another number of nodes than the world.
    #[error("the moment has {there} nodes, but the world has {here}")]
    Nodes {
        /// Number of nodes in the moment.
        there: usize,
        /// Number of nodes in the world.
        here: usize,
    },
    /// The restored machines have another digest than the stored moment.
    #[error(
        "the moment's parts do not belong together: the restored machines do not have the digest that was stored"
    )]
    Digest,
    /// A node has too little memory to boot its image.
    #[error(
        "{}: node \"{node}\": memory: {}M is too little for its kernel and initramfs; give it at least {}M",
        file.display(), bytes >> 20, least_bytes >> 20
    )]
    Memory {
        /// Path of the world file.
        file: PathBuf,
        /// Name of the node.
        node: String,
        /// Memory of the node in the world file, in bytes.
        bytes: u64,
        /// Least memory for the image, in bytes.
        least_bytes: u64,
    },
}

/// Everything that determines a timeline, except the seed. A launcher can start the same timeline any number of times.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The world.
    pub world: World,
    /// Index of the only node to start. `None` starts all nodes.
    pub only: Option<usize>,
    /// Files from which all nodes boot.
    pub files: BootFiles,
    /// Text that is added to the kernel's command line, after the text from the world file.
    pub cmdline: String,
    /// Settings of the engines.
    pub options: EngineOptions,
    /// Stored moment at which timelines start. `None` is power-on.
    pub from: Option<Arc<Stored>>,
    /// Faults in all timelines.
    pub faults: Option<Faults>,
    /// Watchpoints on all timelines.
    pub watching: Option<Arc<Watching>>,
}

impl Launcher {
    /// Returns a launcher of timelines that start at power-on, with all nodes, and without faults and watchpoints.
    #[must_use]
    pub fn new(world: World, files: BootFiles, options: EngineOptions) -> Launcher {
        let cmdline = String::new();
        Launcher { world, only: None, files, cmdline, options, from: None, faults: None, watching: None }
    }

    /// Sets the watchpoints of later timelines, in place of earlier watchpoints.
    ///
    /// # Errors
    /// Returns an error if there are too many watchpoints, or if a watchpoint names an unknown node. A watchpoint
    /// without a node is an error if the launcher starts several nodes.
    pub fn watch(&mut self, watched: &[Watched]) -> anyhow::Result<()> {
        self.watching = Watching::new(watched, self.nodes(), &self.files.kernel)?;
        Ok(())
    }

    /// Starts a timeline at the launcher's moment, or at power-on without one. From the time when all services are
    /// ready, `seed` decides the timeline's random choices.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid, or if the moment's timeline has another seed or fault
    /// plan.
    pub fn start(&self, seed: Seed) -> Result<Timeline, LaunchError> {
        let mut timeline = match &self.from {
            None => self.boot()?,
            Some(stored) => self.resume(stored)?,
        };
        self.set_out(&mut timeline, seed)?;
        Ok(timeline)
    }

    /// Restores a timeline of this launcher to its start. The machines stay, so the engine keeps its caches.
    ///
    /// Returns false for a start at power-on, which needs new machines.
    ///
    /// # Errors
    /// See [`Launcher::start`].
    pub fn start_again(&self, timeline: &mut Timeline, seed: Seed) -> Result<bool, LaunchError> {
        let Some(stored) = &self.from else { return Ok(false) };
        self.go_to(timeline, &stored.moment, stored.session.clone())?;
        self.set_out(timeline, seed)?;
        Ok(true)
    }

    /// Restores a timeline of this launcher to a moment. The machines stay.
    ///
    /// # Errors
    /// Returns an error if the moment belongs to another world.
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

    fn set_out(&self, timeline: &mut Timeline, seed: Seed) -> Result<(), LaunchError> {
        timeline.apply_faults(self.faults.clone().map(|faults| faults.on(self.options)))?;
        match timeline.seed() {
            None => {
                // `begin` fails only if the timeline already has a seed.
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

    /// Starts the world at power-on. The timeline is the same for all seeds up to *ready*, when all services are up,
    /// and waits there for its seed.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid, or if a node has too little memory for its image.
    pub fn boot(&self) -> Result<Timeline, LaunchError> {
        self.check_memory()?;
        let machines = self.nodes().map(|node| Ok(self.options.machine(self.config(node)?)?));
        let machines: Vec<_> = machines.collect::<Result<_, LaunchError>>()?;
        let world = vmm::World::new(machines, self.wire(), self.world.boot_seed)?;
        let mut timeline = self.watched(Timeline::new(world, self.scripts(), self.checks()));
        timeline.limit_ends(self.world.start_limit);
        Ok(timeline)
    }

    /// Creates a timeline that continues at the moment `stored`.
    ///
    /// # Errors
    /// Returns an error if the moment belongs to another world, or if a file cannot be read.
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
        let timeline = Timeline::resume(world, self.scripts(), self.checks(), stored.session.clone())?;
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

    /// Returns the nodes to start, in the order of the world file.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let started = |(number, _): &(usize, _)| self.only.is_none_or(|only| only == *number);
        self.world.nodes.iter().enumerate().filter(started).map(|(_, node)| node)
    }

    /// Returns the agent script of each node: all requests to the node's agent (Everett's program in the guest).
    #[must_use]
    pub fn scripts(&self) -> Vec<AgentScript> {
        let script = |node: &Node| {
            let image = self.image(node);
            let root = if image.is_none() && self.files.root.is_none() {
                Root::None
            } else {
                Root::Disk {
                    serial: ROOT_DISK_SERIAL.to_owned(),
                    filesystem: "squashfs".to_owned(),
                    writable_bytes: None,
                }
            };
            AgentScript::new(&self.world, node, root, image)
        };
        self.nodes().map(script).collect()
    }

    /// Returns the container image of the node, if it has one.
    fn image(&self, node: &Node) -> Option<&NodeImage> {
        self.files.images.get(&node.name).map(AsRef::as_ref)
    }

    /// Returns the checks of the world, in the order of the world file.
    #[must_use]
    pub fn checks(&self) -> Vec<WorldCheck> {
        world_checks(&self.world, &self.nodes().collect::<Vec<_>>())
    }

    /// Returns the configuration of the wire. It has no ports for the nodes, because [`vmm::World::new`] adds these
    /// ports. It has a port for Everett if the workload has a check over the wire.
    fn wire(&self) -> WireConfig {
        let links = &self.world.links;
        // A link is left out if one of its nodes is not started.
        let started = |name: &String| self.nodes().any(|node| node.name == *name);
        let others = links.others.iter().filter(|link| started(&link.from) && started(&link.to));
        let ports = if self.world.workload.has_host() { vec![host_port()] } else { Vec::new() };
        let no_link = LinkConfig { queue_bytes: NO_LINK, ..links.usual.clone() };
        let apart = links.apart.iter().filter(|(a, b)| started(a) && started(b));
        let apart = apart.map(|(a, b)| LinkOverride {
            from: a.clone(),
            to: b.clone(),
            both_ways: true,
            link: no_link.clone(),
        });
        WireConfig { ports, link: links.usual.clone(), overrides: others.cloned().chain(apart).collect() }
    }

    /// Returns the maximum number of memory pages and disk blocks that a moment can have.
    #[must_use]
    pub fn pages_max(&self) -> u64 {
        let of_node = |node: &Node| {
            let disks = node.disks.iter().map(|disk| disk.size_bytes).chain(node.volumes_bytes);
            let disks = disks.map(|bytes| bytes.div_ceil(BLOCK));
            disks.fold(node.memory_bytes / PAGE, u64::saturating_add)
        };
        self.nodes().map(of_node).fold(0, u64::saturating_add)
    }

    /// Returns the configuration of the node's machine.
    ///
    /// # Errors
    /// Returns an error if a disk's file cannot be read or is invalid.
    pub fn config(&self, node: &Node) -> Result<MachineConfig, LaunchError> {
        let mut config = MachineConfig::new(&self.files.kernel);
        config.name.clone_from(&node.name);
        config.memory_bytes = node.memory_bytes;
        config.clock = self.world.clock.mode();
        config.cpu = self.world.cpu;
        config.boot_seed = self.world.boot_seed;
        config.epoch_unix_s = i64::try_from(self.world.epoch_unix_s).unwrap_or(i64::MAX);
        config.initramfs.clone_from(&self.files.initramfs);
        let of_clock = match self.world.clock {
            Clock::Insn => "",
            Clock::Branch | Clock::Exit => EXIT_CMDLINE,
        };
        let parts = [DEFAULT_CMDLINE, of_clock, &self.world.image.cmdline, &self.cmdline];
        config.cmdline = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let image = self.image(node);
        let root = match (image, &self.files.root) {
            (Some(image), _) => Some(image.open_disk()?),
            (None, Some((path, digest))) => Some(Disk::open(path, Some(*digest))?),
            (None, None) => None,
        };
        if let Some(disk) = root {
            config.disks.push(DiskConfig {
                disk,
                serial: ROOT_DISK_SERIAL.to_owned(),
                read_only: true,
                latency: Latency::default(),
            });
        }
        for (index, disk) in node.disks.iter().enumerate() {
            let serial = data_disk_serial(index);
            let blank = Disk::zeroed(disk.size_bytes)?;
            let is_formatted = image.is_some() && disk.filesystem == Filesystem::Ext4;
            let content = if is_formatted { containers::formatted(blank, &serial) } else { blank };
            config.disks.push(DiskConfig {
                disk: content.with_sectors(disk.sector)?,
                serial,
                read_only: false,
                latency: disk.latency,
            });
        }
        if let (Some(_), Some(bytes)) = (image, node.volumes_bytes) {
            let serial = VOLUMES_SERIAL.to_owned();
            config.disks.push(DiskConfig {
                disk: containers::formatted(Disk::zeroed(bytes)?, &serial)
                    .with_sectors(SectorSize::Bytes4096)?,
                serial,
                read_only: false,
                latency: Latency::default(),
            });
        }
        config.cards.push(CardConfig { mac: self.mac(node), wire: Wire::Attached });
        Ok(config)
    }

    /// Returns the node's MAC address. It is locally administered and ends with the same number as the node's IP
    /// address.
    fn mac(&self, node: &Node) -> [u8; 6] {
        let index = self.world.nodes.iter().position(|other| other.name == node.name).unwrap_or(0);
        [0x02, 0x65, 0x76, 0, 0, u8::try_from(index + 1).unwrap_or(u8::MAX)]
    }
}
