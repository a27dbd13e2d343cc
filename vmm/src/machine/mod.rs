//! A machine: an engine, RAM, devices, disks, and the loop that runs them in vtime.
//!
//! - `config`: configuration of a machine
//! - `run`: the loop; `rerun`: repeats a run if the host changed something that the guest could see, e.g. the TSC;
//!   `bus`: passes accesses to devices; `guard`: bounds on guests that make no progress
//! - `digest`: digest of a machine; `streams`: its random streams
//! - `stop`: reasons for the end of a run; `slice`: when due events are dispatched in clock mode `branch`
//! - `journal`: everything that a CPU and its machine exchange, for comparing two runs
//! - `moment`: taking and restoring a moment of a machine
//! - `observers`: watchpoints and breakpoints
//! - `drives`: operations of Everett on disks: power loss, reset, replacement
//!
//! **Invariants.**
//! - Only [`State`], CPU, RAM and disks determine the further execution. Output, digests and the journal are for
//!   observers and have no effect.
//! - Every stop is between two instructions, unless the machine has ended.
//! - In clock mode `exit`, a stop directly follows an exit; in `branch`, an exit or a branch. Only observers such as a
//!   breakpoint can stop a machine elsewhere.

mod bus;
pub mod config;
mod digest;
mod drives;
mod guard;
pub mod journal;
mod moment;
mod observers;
mod rerun;
mod run;
mod slice;
pub mod stop;
mod streams;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod tests;

use everett_cpu::{CacheConfig, Code, CpuModel, CpuState, Edge, MissingInstruction};
use everett_snapshot::{PageImage, Pool, Tree};
use everett_streams::{Lineage, Owner, Purpose, Streams};
use serde::{Deserialize, Serialize};
use vm_memory::{Bytes, GuestAddress};

use crate::boot::{self, BootData, BootFiles, KERNEL_SEED_BYTES};
use crate::clock::{Clock, ClockMode, VTIME_MAX};
use crate::devices::interrupts::Interrupts;
use crate::devices::legacy::Legacy;
use crate::devices::power::Power;
use crate::devices::rtc::Rtc;
use crate::devices::uart::Uart;
use crate::digest::DigestCache;
use crate::disk::Disk;
use crate::engine::any::AnyEngine;
use crate::engine::soft::SoftEngine;
use crate::engine::{Engine as _, TscAnchor};
use crate::events::EventQueue;
use crate::layout::{EVENT_GSI, GENERATION_ID, PAGE, UART_GSI, VIRTIO_GSI, VIRTIO_SLOTS_MAX};
use crate::leak::Leak;
use crate::output::Output;
use crate::ram::{PageSet, Ram};
use crate::virtio::blk::Blk;
use crate::virtio::console::Console;
use crate::virtio::mmio::Transport;
use crate::virtio::net::Net;
use crate::virtio::rng::Rng;
use crate::virtio::{Cx, Device};
use guard::Guard;
use journal::Journal;
use observers::Observers;
use slice::Slice;

pub use crate::disk::{DiskMoment, DiskParts};
pub use config::{CardConfig, DiskConfig, MachineConfig, MachineError};
pub use guard::{ACCESSES_MAX, STORM_GAP, STORM_INTERRUPTS};
pub use moment::{Moment, MomentError, STATE_VERSION};
pub use rerun::TRIES_MAX;
pub use slice::LATE_NS;
pub use stop::{End, Stop, Until};

/// Slot of the virtio console.
pub const CONSOLE_SLOT: usize = 0;
/// Slot of the entropy source. The disks' slots follow, then those of the network cards.
pub const RNG_SLOT: usize = 1;

/// Devices and everything else that determines a machine's further execution, except CPU, RAM and disk contents.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(crate) clock: Clock,
    pub(crate) events: EventQueue,
    pub(crate) streams: Streams,
    pub(crate) interrupts: Interrupts,
    pub(crate) uart: Uart,
    pub(crate) rtc: Rtc,
    pub(crate) power: Power,
    pub(crate) virtio: Vec<Transport>,
    guard: Guard,
    /// True from the CPU's HLT until it takes an interrupt.
    halted: bool,
    end: Option<End>,
    /// Devices of an older PC, which machines in clock modes `exit` and `branch` have. `None` in mode `insn`.
    pub(crate) legacy: Option<Legacy>,
    /// Decides when due events are dispatched in clock mode `branch`. `None` in other modes.
    pub(crate) slice: Option<Slice>,
}

impl State {
    /// Returns the devices as after a power cycle. Moves the disks out of the configuration and returns them, too.
    fn new(config: &mut MachineConfig) -> Result<(State, Vec<Disk>), MachineError> {
        let devices = config.disks.len() + config.cards.len();
        if devices + 2 > VIRTIO_SLOTS_MAX {
            return Err(MachineError::Slots { devices });
        }
        let mut virtio = vec![Device::Console(Console::default()), Device::Rng(Rng::default())];
        let mut disks = Vec::new();
        for mut d in config.disks.drain(..) {
            if !d.read_only {
                // Moments contain the digest of a disk's base (its initial content) if the digest is known. The digest
                // of a writable disk's base is cheap, because the base is usually only zeroes. The base of a read-only
                // disk may be a large root image, so its digest is not computed here.
                d.disk.base_digest();
            }
            virtio.push(Device::Blk(Blk::new(disks.len(), &d.disk, &d.serial, d.read_only, d.latency)?));
            disks.push(d.disk);
        }
        virtio.extend(config.cards.iter().map(|card| Device::Net(Net::new(card.mac, card.wire))));
        let state = State {
            clock: Clock::new(config.clock, config.cpu_hz)?,
            events: EventQueue::default(),
            streams: Streams::new(&Lineage::boot(config.boot_seed), Owner::Node(&config.name)),
            interrupts: Interrupts::default(),
            uart: Uart::default(),
            rtc: Rtc::new(config.epoch_unix_s),
            power: Power::default(),
            virtio: virtio.into_iter().map(Transport::new).collect(),
            guard: Guard::default(),
            halted: false,
            end: None,
            legacy: (config.clock != ClockMode::Insn).then(Legacy::default),
            slice: (config.clock == ClockMode::Branch).then(Slice::default),
        };
        Ok((state, disks))
    }

    /// Returns the anchor from which the CPU computes the TSC.
    fn tsc(&self) -> TscAnchor {
        self.slice.as_ref().map_or_else(|| self.clock.tsc(), Slice::tsc)
    }
}

/// Function that creates an engine on a machine's RAM.
type MakeEngine<'e> = dyn FnOnce(&Ram) -> Result<AnyEngine, MachineError> + 'e;

/// A machine that runs.
pub struct Machine {
    name: String,
    pub(crate) engine: AnyEngine,
    pub(crate) ram: Ram,
    pub(crate) disks: Vec<Disk>,
    pub(crate) state: State,
    output: Output,
    /// Guest memory at the last moment that the machine took or was restored to.
    pub(crate) memory: PageImage,
    /// Pages that were written since the moment whose guest memory is `memory`.
    changed: PageSet,
    pub(crate) digest: DigestCache,
    journal: Option<Journal>,
    leak: Leak,
    /// The clock's count (see [`Machine::icount`]) at which the last run stopped at a breakpoint.
    stopped_at: Option<u64>,
    observers: Observers,
    stats: Stats,
    /// Stores the pages of the moments that `rerun` takes at the start of a run.
    pool: Pool,
}

/// Statistics for people. No decision in Everett depends on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of device accesses by MMIO.
    pub mmio: u64,
    /// Number of device accesses by port.
    pub pio: u64,
    /// Number of interrupts taken.
    pub interrupts: u64,
    /// Number of HLTs.
    pub halts: u64,
    /// Number of events dispatched.
    pub events: u64,
    /// Number of calls that made the engine execute.
    pub entries: u64,
    /// Number of runs that the machine repeated because the host had disturbed them.
    pub disturbed: u64,
}

impl Machine {
    /// Creates a machine on the soft engine.
    ///
    /// # Errors
    /// Returns an error under the same conditions as [`Machine::new`].
    pub fn soft(config: MachineConfig, caches: CacheConfig) -> Result<Machine, MachineError> {
        let code = Code::of_model(caches, config.cpu);
        Machine::new(config, |ram| Ok(SoftEngine::sharing(ram.shared(), &code)))
    }

    /// Creates a machine on the soft engine from a moment.
    ///
    /// # Errors
    /// Returns an error under the same conditions as [`Machine::from_moment`].
    pub fn soft_from_moment(
        config: MachineConfig,
        moment: &Moment,
        caches: CacheConfig,
    ) -> Result<Machine, MachineError> {
        let code = Code::of_model(caches, config.cpu);
        Machine::from_moment(config, moment, |ram| Ok(SoftEngine::sharing(ram.shared(), &code)))
    }

    /// Creates a machine that is about to execute its kernel's first instruction. `engine` is called with the RAM and
    /// creates the engine.
    ///
    /// # Errors
    /// Returns an error if the configuration is out of bounds, a file is invalid, the engine cannot be created, or the
    /// engine and the clock count different units, or the engine does not have the CPU model.
    pub fn new<E: Into<AnyEngine>>(
        config: MachineConfig,
        engine: impl FnOnce(&Ram) -> Result<E, MachineError>,
    ) -> Result<Machine, MachineError> {
        Machine::powered_on(config, Box::new(|ram| engine(ram).map(Into::into)))
    }

    /// Body of [`Machine::new`], not generic so that it is compiled once.
    fn powered_on(mut config: MachineConfig, engine: Box<MakeEngine<'_>>) -> Result<Machine, MachineError> {
        let ram = Ram::new(config.memory_bytes)?;
        let memory = PageImage::zero(config.memory_bytes / PAGE);
        let (mut state, disks) = State::new(&mut config)?;
        let files = BootFiles {
            kernel: &config.kernel,
            initramfs: config.initramfs.as_deref(),
            cmdline: &config.cmdline,
        };
        let mut kernel_seed = [0; KERNEL_SEED_BYTES];
        let mut generation = [0; 16];
        state.streams.fill(Purpose::KernelSeed, &mut kernel_seed);
        state.streams.fill(Purpose::Generation, &mut generation);
        let acpi = crate::acpi::tables(state.virtio.len(), state.legacy.is_some());
        let data = BootData { acpi: &acpi, kernel_seed: &kernel_seed, generation: &generation };
        let cpu = boot::load(&ram, &files, &data)?;

        let engine = engine(&ram)?;
        let mut machine = Machine::assemble(config, engine, ram, memory, state, disks)?;
        machine.engine.set_state(&cpu);
        machine.engine.set_tsc(machine.state.tsc());
        machine.note_failure();
        Ok(machine)
    }

    /// Creates a machine from a moment. If the moment's memory is based on a file, guest memory maps the file, and only
    /// pages that the guest writes are copied. The configuration's kernel and initramfs are ignored.
    ///
    /// # Errors
    /// Returns an error if the moment belongs to a machine with a different configuration, or if the engine cannot be
    /// created.
    pub fn from_moment<E: Into<AnyEngine>>(
        config: MachineConfig,
        moment: &Moment,
        engine: impl FnOnce(&Ram) -> Result<E, MachineError>,
    ) -> Result<Machine, MachineError> {
        Machine::continued(config, moment, Box::new(|ram| engine(ram).map(Into::into)))
    }

    /// Body of [`Machine::from_moment`], not generic so that it is compiled once.
    fn continued(
        mut config: MachineConfig,
        moment: &Moment,
        engine: Box<MakeEngine<'_>>,
    ) -> Result<Machine, MachineError> {
        let base = moment.memory().base();
        let ram = match base.mapping() {
            Some((file, offset)) => Ram::on_file(config.memory_bytes, file, offset)?,
            None => Ram::new(config.memory_bytes)?,
        };
        let (state, disks) = State::new(&mut config)?;
        let (engine, memory) =
            (engine(&ram)?, PageImage::from_parts(base.clone(), moment.memory().pages(), &Tree::new()));
        let mut machine = Machine::assemble(config, engine, ram, memory, state, disks)?;
        machine.restore(moment)?;
        Ok(machine)
    }

    /// Creates a machine with the RAM content `memory`. The caller must still set the CPU's registers.
    fn assemble(
        config: MachineConfig,
        engine: AnyEngine,
        ram: Ram,
        memory: PageImage,
        state: State,
        disks: Vec<Disk>,
    ) -> Result<Machine, MachineError> {
        let (clock, counts) = (state.clock.mode(), engine.capabilities().clock);
        if clock != counts {
            return Err(MachineError::Mode { clock, engine: counts });
        }
        let (cpu, has) = (config.cpu, engine.cpu_model());
        if cpu != has {
            return Err(MachineError::Cpu { cpu, engine: has });
        }
        Ok(Machine {
            name: config.name,
            engine,
            changed: PageSet::new(ram.len() / PAGE),
            ram,
            disks,
            state,
            output: Output::default(),
            memory,
            digest: DigestCache::default(),
            journal: None,
            leak: config.leak,
            stopped_at: None,
            observers: Observers::default(),
            stats: Stats::default(),
            pool: Pool::default(),
        })
    }

    /// Returns the node's name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns the vtime, in nanoseconds.
    pub fn vtime(&self) -> u64 {
        self.state.clock.vtime(self.engine.icount())
    }
    /// Returns the clock's count: retired instructions, exits or branches, by clock mode.
    pub fn icount(&self) -> u64 {
        self.engine.icount()
    }
    /// Returns the way in which the machine ended, or `None` while it can run.
    pub fn end(&self) -> Option<&End> {
        self.state.end.as_ref()
    }
    /// Returns the vtime of the next scheduled event, in nanoseconds.
    pub fn next_event(&self) -> Option<u64> {
        self.state.events.next_vtime()
    }
    /// Returns the CPU's registers.
    pub fn cpu(&self) -> CpuState {
        self.engine.state()
    }
    /// Returns the clock mode.
    pub fn clock_mode(&self) -> ClockMode {
        self.state.clock.mode()
    }
    /// Returns the engine, for queries.
    pub fn engine(&self) -> &AnyEngine {
        &self.engine
    }
    /// Returns the engine, to change its settings.
    pub fn engine_mut(&mut self) -> &mut AnyEngine {
        &mut self.engine
    }
    /// Returns the devices, clock, timers and random streams.
    pub fn state(&self) -> &State {
        &self.state
    }
    /// Returns the guest RAM.
    pub fn ram(&self) -> &Ram {
        &self.ram
    }
    /// Returns a disk by its index in the configuration.
    pub fn disk(&self, index: usize) -> Option<&Disk> {
        self.disks.get(index)
    }
    /// Returns the output (console, ports, frames and notes). Observers remove output with its `take_…` methods.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }
    /// Returns statistics for people.
    pub fn stats(&self) -> Stats {
        self.stats
    }
    /// Reads guest memory at a linear address, through the guest's page tables. Returns the number of bytes that were
    /// readable.
    pub fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        self.engine.read_virtual(gva, buf)
    }

    /// Returns the CPU's model.
    pub fn cpu_model(&self) -> CpuModel {
        self.engine.cpu_model()
    }

    /// Takes the first instruction since the last call that a program executed although the CPU's model lacks it.
    pub fn take_missing_instruction(&mut self) -> Option<MissingInstruction> {
        self.engine.take_missing_instruction()
    }

    /// Takes the branch edges that were executed for the first time since the last call. Empty unless the engine was
    /// created to record edges.
    pub fn take_edges(&mut self) -> Vec<Edge> {
        self.engine.take_edges()
    }

    /// Forgets the recorded branch edges, so that [`Machine::take_edges`] returns each again when the guest next executes
    /// it. The guest's execution does not change.
    pub fn forget_edges(&mut self) {
        self.engine.forget_edges();
    }

    /// Sends input to the serial console. Returns the number of bytes that the UART accepted.
    pub fn console_input(&mut self, bytes: &[u8]) -> usize {
        let taken = self.state.uart.input(bytes);
        self.state.interrupts.set_line(UART_GSI, self.state.uart.line());
        taken
    }

    /// Sends bytes to the guest through a console port. Returns the number of bytes that the port accepted.
    pub fn port_input(&mut self, port: usize, bytes: &[u8]) -> usize {
        let mut taken = 0;
        if let Some(Device::Console(console)) =
            self.state.virtio.get_mut(CONSOLE_SLOT).map(Transport::device_mut)
        {
            taken = console.input(port, bytes);
        }
        self.virtio_event(CONSOLE_SLOT, 0);
        taken
    }

    /// Delivers a frame to the card in `slot` at vtime `at`. Returns false if the slot has no card or the card refuses
    /// the frame.
    pub fn frame_input(&mut self, slot: usize, at: u64, frame: Vec<u8>) -> bool {
        let now = self.vtime();
        let State { virtio, events, streams, .. } = &mut self.state;
        let Some(Device::Net(card)) = virtio.get_mut(slot).map(Transport::device_mut) else { return false };
        let mut cx = Cx {
            now,
            slot: slot as u8,
            ram: &self.ram,
            disks: &mut self.disks,
            events,
            streams,
            output: &mut self.output,
        };
        card.deliver(at, frame, &mut cx)
    }

    /// Advances the real-time clock, which runs on a battery, by the seconds that passed while the machine was not
    /// running.
    pub fn shift_clock(&mut self, seconds: u64) {
        self.state.rtc.shift(i64::try_from(seconds).unwrap_or(i64::MAX));
    }

    /// Delivers a frame to the machine's first card at vtime `at`. Returns false if the machine has no card or the card
    /// refuses the frame.
    pub fn frame_arrives(&mut self, at: u64, frame: Vec<u8>) -> bool {
        let card = |transport: &Transport| matches!(transport.device(), Device::Net(_));
        self.state.virtio.iter().position(card).is_some_and(|slot| self.frame_input(slot, at, frame))
    }

    /// Returns the hardware address of the machine's first card.
    pub fn mac(&self) -> Option<[u8; 6]> {
        self.state.virtio.iter().find_map(|transport| match transport.device() {
            Device::Net(card) => Some(card.mac()),
            _ => None,
        })
    }

    /// Returns the vtime of the next scheduled event, in nanoseconds, or [`VTIME_MAX`] if there is none. Returns `None`
    /// unless the CPU is halted with interrupts on and no interrupt is pending.
    pub fn idle_until(&self) -> Option<u64> {
        let idle = self.state.halted
            && self.state.interrupts.lapic.pending().is_none()
            && self.engine.interruptible();
        idle.then(|| self.next_event().unwrap_or(VTIME_MAX))
    }

    /// Sets the CPU's speed from now on, in instructions per second of vtime.
    pub fn set_speed(&mut self, hz: u64) {
        self.state.clock.set_speed(self.engine.icount(), hz);
        self.engine.set_tsc(self.state.tsc());
    }

    /// Ends the machine from outside. `end` says how, for example by a power loss.
    pub fn end_by_host(&mut self, end: End) {
        self.state.end = Some(end);
    }

    /// Advances vtime by `ns` while the guest executes nothing.
    pub fn stall(&mut self, ns: u64) {
        self.state.clock.stall(ns);
        self.engine.set_tsc(self.state.tsc());
    }

    /// Sets a new VM generation ID and notifies the guest. The ID tells the guest that it now runs in a copy of its
    /// machine.
    pub fn new_generation(&mut self, id: [u8; 16]) {
        // The memory layout puts the page into RAM, so the write succeeds.
        let _ = self.ram.memory().write_slice(&id, GuestAddress(GENERATION_ID));
        self.state.interrupts.pulse(EVENT_GSI);
    }

    /// Starts an empty journal of what the CPU and the machine exchange, or stops and drops the journal.
    pub fn keep_journal(&mut self, on: bool) {
        self.journal = on.then(Journal::default);
    }
    /// Returns the journal, if [`Machine::keep_journal`] started one.
    pub fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// Handles a due event of a virtio device, or makes the device process input that Everett added.
    fn virtio_event(&mut self, slot: usize, token: u64) {
        self.with_virtio(slot, |transport, cx| transport.event(token, cx));
    }

    fn with_virtio<T>(
        &mut self,
        slot: usize,
        act: impl FnOnce(&mut Transport, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let now = self.vtime();
        let State { virtio, events, streams, interrupts, .. } = &mut self.state;
        let transport = virtio.get_mut(slot)?;
        let mut cx = Cx {
            now,
            slot: slot as u8,
            ram: &self.ram,
            disks: &mut self.disks,
            events,
            streams,
            output: &mut self.output,
        };
        let value = act(transport, &mut cx);
        interrupts.set_line(VIRTIO_GSI[slot], transport.line());
        Some(value)
    }
}
