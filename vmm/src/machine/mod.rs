//! One machine: an engine, RAM, devices, disks, and the loop that joins them in vtime.
//!
//! - `config`: what a machine is made of
//! - `run`: the loop; `rerun`: runs that the host disturbed; `bus`: which device an access goes to; `guard`: bounds on guests that go nowhere
//! - `digest`: what a digest covers; `streams`: its random streams
//! - `stop`: when and why a run ends; `slice`: when what is due is looked at, in clock mode `branch`
//! - `journal`: the inputs that a CPU got, for comparing two runs
//! - `moment`: all of it taken at a stop and brought back
//! - `drives`: what the host does to disks: loss of power, reset, other disks
//!
//! **Invariants.** Only [`State`], CPU, RAM and disks decide what happens next; `Output`, digests and the journal are
//! observers. Every stop lies between two instructions, except when the machine has come to its end; in clock mode `exit` each
//! that is not an observer's lies behind an exit, in clock mode `branch` behind an exit or a branch.

mod bus;
pub mod config;
mod digest;
mod drives;
mod guard;
pub mod journal;
mod moment;
mod rerun;
mod run;
mod slice;
pub mod stop;
mod streams;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod tests;

use everett_cpu::{CacheConfig, CpuState, Edge, Watchpoint};
use everett_snapshot::{Image, Pool, Tree};
use everett_streams::{Lineage, Owner, Purpose, Streams};
use serde::{Deserialize, Serialize};
use vm_memory::{Bytes, GuestAddress};

use crate::boot::{self, BOOT_SEED_BYTES, BootData, BootFiles};
use crate::clock::{Clock, ClockMode, VTIME_MAX};
use crate::devices::interrupts::Interrupts;
use crate::devices::legacy::Legacy;
use crate::devices::power::Power;
use crate::devices::rtc::Rtc;
use crate::devices::uart::Uart;
use crate::digest::DigestCache;
use crate::disk::Disk;
use crate::engine::soft::SoftEngine;
use crate::engine::{Engine, TscAnchor};
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
use slice::Slice;

pub use crate::disk::{DiskMoment, DiskParts};
pub use config::{CardConfig, DiskConfig, MachineConfig, MachineError};
pub use guard::{ACCESSES_MAX, STORM_GAP, STORM_INTERRUPTS};
pub use moment::{Moment, MomentError, STATE_VERSION};
pub use rerun::TRIES_MAX;
pub use slice::LATE_NS;
pub use stop::{End, Stop, Until};

/// The slot of the console.
pub const CONSOLE_SLOT: usize = 0;
/// The slot of the entropy source. Disks follow, then network cards.
pub const RNG_SLOT: usize = 1;

/// Everything of a machine that decides what happens next, besides CPU, RAM and disk contents.
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
    /// HLT retired and no interrupt came since.
    halted: bool,
    end: Option<End>,
    /// Devices of an older PC; `None` in clock mode `insn`.
    pub(crate) legacy: Option<Legacy>,
    /// State of the rule on when due events are looked at; `None` outside of clock mode `branch`.
    pub(crate) slice: Option<Slice>,
}

impl State {
    /// Devices as a power cycle leaves them, and the contents of the disks, which are taken out of the configuration.
    fn new(config: &mut MachineConfig) -> Result<(State, Vec<Disk>), MachineError> {
        let devices = config.disks.len() + config.cards.len();
        if devices + 2 > VIRTIO_SLOTS_MAX {
            return Err(MachineError::Slots { devices });
        }
        let mut virtio = vec![Device::Console(Console::default()), Device::Rng(Rng::default())];
        let mut disks = Vec::new();
        for mut d in config.disks.drain(..) {
            if !d.read_only {
                // Moments name the base. To read that of a data disk costs nothing; a large root's is not read for it.
                d.disk.base_digest();
            }
            virtio.push(Device::Blk(Blk::new(disks.len(), &d.disk, &d.serial, d.read_only, d.latency)?));
            disks.push(d.disk);
        }
        virtio.extend(config.cards.iter().map(|card| Device::Net(Net::new(card.mac, card.wire))));
        let state = State {
            clock: Clock::new(config.clock, config.cpu_hz)?,
            events: EventQueue::default(),
            streams: Streams::new(&Lineage::boot(config.seed), Owner::Node(&config.name)),
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

    /// What the TSC shows from here on.
    fn tsc(&self) -> TscAnchor {
        self.slice.as_ref().map_or_else(|| self.clock.tsc(), Slice::tsc)
    }
}

/// One machine.
pub struct Machine<E: Engine> {
    name: String,
    pub(crate) engine: E,
    pub(crate) ram: Ram,
    pub(crate) disks: Vec<Disk>,
    pub(crate) state: State,
    output: Output,
    /// Guest memory at the last moment, taken or restored.
    pub(crate) memory: Image,
    /// Pages written since.
    changed: PageSet,
    pub(crate) digest: DigestCache,
    journal: Option<Journal>,
    leak: Leak,
    /// The count at which the last run stopped at a breakpoint.
    stopped_at: Option<u64>,
    stats: Stats,
    /// Where the pages of beginnings of runs are (`rerun`).
    pool: Pool,
}

/// Counts for people; nothing depends on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Device accesses by MMIO.
    pub mmio: u64,
    /// Device accesses by port.
    pub pio: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// HLTs.
    pub halts: u64,
    /// Events dispatched.
    pub events: u64,
    /// Times that the engine was entered.
    pub entries: u64,
    /// Runs that were made again, because the host disturbed them.
    pub disturbed: u64,
}

impl Machine<SoftEngine> {
    /// A machine on the soft engine.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn soft(config: MachineConfig, caches: CacheConfig) -> Result<Machine<SoftEngine>, MachineError> {
        Machine::new(config, |ram| Ok(SoftEngine::new(ram.shared(), caches)))
    }

    /// A machine on the soft engine that is where `moment` was.
    ///
    /// # Errors
    /// As [`Machine::from_moment`].
    pub fn soft_from_moment(
        config: MachineConfig,
        moment: &Moment,
        caches: CacheConfig,
    ) -> Result<Machine<SoftEngine>, MachineError> {
        Machine::from_moment(config, moment, |ram| Ok(SoftEngine::new(ram.shared(), caches)))
    }
}

impl<E: Engine> Machine<E> {
    /// Make a machine that is about to execute its kernel's first instruction. `engine` gets the RAM.
    ///
    /// # Errors
    /// When the configuration is out of bounds, a file is not what it should be, or the engine cannot be made or counts something
    /// else than the clock.
    pub fn new(
        mut config: MachineConfig,
        engine: impl FnOnce(&Ram) -> Result<E, MachineError>,
    ) -> Result<Machine<E>, MachineError> {
        let ram = Ram::new(config.memory_bytes)?;
        let memory = Image::zero(config.memory_bytes / PAGE);
        let (mut state, disks) = State::new(&mut config)?;
        let files = BootFiles {
            kernel: &config.kernel,
            initramfs: config.initramfs.as_deref(),
            cmdline: &config.cmdline,
        };
        let mut seed = [0; BOOT_SEED_BYTES];
        let mut generation = [0; 16];
        state.streams.fill(Purpose::BootSeed, &mut seed);
        state.streams.fill(Purpose::Generation, &mut generation);
        let acpi = crate::acpi::tables(state.virtio.len(), state.legacy.is_some());
        let data = BootData { acpi: &acpi, seed: &seed, generation: &generation };
        let cpu = boot::load(&ram, &files, &data)?;

        let engine = engine(&ram)?;
        let mut machine = Machine::assemble(config, engine, ram, memory, state, disks)?;
        machine.engine.set_state(&cpu);
        machine.engine.set_tsc(machine.state.tsc());
        machine.note_failure();
        Ok(machine)
    }

    /// Make a machine that is where `moment` was. Its memory maps the base of the moment's, if that is a file: what the
    /// guest does not write is never copied. Kernel and initramfs of the configuration are not looked at.
    ///
    /// # Errors
    /// When the moment is none of a machine of this configuration, or the engine cannot be.
    pub fn from_moment(
        mut config: MachineConfig,
        moment: &Moment,
        engine: impl FnOnce(&Ram) -> Result<E, MachineError>,
    ) -> Result<Machine<E>, MachineError> {
        let base = moment.memory().base();
        let ram = match base.mapping() {
            Some((file, offset)) => Ram::on_file(config.memory_bytes, file, offset)?,
            None => Ram::new(config.memory_bytes)?,
        };
        let (state, disks) = State::new(&mut config)?;
        let (engine, memory) =
            (engine(&ram)?, Image::from_parts(base.clone(), moment.memory().pages(), &Tree::new()));
        let mut machine = Machine::assemble(config, engine, ram, memory, state, disks)?;
        machine.restore(moment)?;
        Ok(machine)
    }

    /// A machine whose RAM has the content of `memory` and whose CPU has no state yet.
    fn assemble(
        config: MachineConfig,
        engine: E,
        ram: Ram,
        memory: Image,
        state: State,
        disks: Vec<Disk>,
    ) -> Result<Machine<E>, MachineError> {
        let (clock, counts) = (state.clock.mode(), engine.capabilities().clock);
        if clock != counts {
            return Err(MachineError::Mode { clock, engine: counts });
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
            stats: Stats::default(),
            pool: Pool::default(),
        })
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Nanoseconds of vtime.
    pub fn vtime(&self) -> u64 {
        self.state.clock.vtime(self.engine.icount())
    }
    /// The count of what the clock mode counts: instructions or branches retired, or exits finished.
    pub fn icount(&self) -> u64 {
        self.engine.icount()
    }
    /// How the machine came to its end, if it did.
    pub fn end(&self) -> Option<&End> {
        self.state.end.as_ref()
    }
    /// When something happens by itself next, in nanoseconds of vtime.
    pub fn next_event(&self) -> Option<u64> {
        self.state.events.next_vtime()
    }
    /// The CPU's registers.
    pub fn cpu(&self) -> CpuState {
        self.engine.state()
    }
    /// What moves its vtime.
    pub fn clock_mode(&self) -> ClockMode {
        self.state.clock.mode()
    }
    /// The engine, to look at.
    pub fn engine(&self) -> &E {
        &self.engine
    }
    /// The engine, for switches of its own.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }
    /// Devices, clock, timers and streams.
    pub fn state(&self) -> &State {
        &self.state
    }
    /// Guest RAM.
    pub fn ram(&self) -> &Ram {
        &self.ram
    }
    /// A disk's content, by its place in the configuration.
    pub fn disk(&self, index: usize) -> Option<&Disk> {
        self.disks.get(index)
    }
    /// Console, ports, frames and notes, for taking them out.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }
    /// Counts for people.
    pub fn stats(&self) -> Stats {
        self.stats
    }
    /// Read guest memory through the guest's page tables. Returns how many bytes could be read.
    pub fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        self.engine.read_virtual(gva, buf)
    }

    /// Have accesses to these bytes noted ([`NoteEvent::Access`](crate::output::NoteEvent::Access)), instead of those that were watched before. Nothing
    /// that the guest does changes. Returns whether the engine can.
    pub fn watch(&mut self, points: &[Watchpoint]) -> bool {
        self.engine.set_watchpoints(points)
    }
    /// Edges of code that were executed for the first time and not taken yet. None unless the engine was made to note them.
    pub fn take_edges(&mut self) -> Vec<Edge> {
        self.engine.take_edges()
    }

    /// Type on the serial console. Returns how many bytes were accepted.
    pub fn console_input(&mut self, bytes: &[u8]) -> usize {
        let taken = self.state.uart.input(bytes);
        self.state.interrupts.set_line(UART_GSI, self.state.uart.line());
        taken
    }

    /// Write to a console port, for the guest to read from now on. Returns how many bytes were accepted.
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

    /// Whether a program in the guest has a console port open.
    pub fn port_open(&self, port: usize) -> bool {
        match self.state.virtio.get(CONSOLE_SLOT).map(Transport::device) {
            Some(Device::Console(console)) => console.is_open(port),
            _ => false,
        }
    }

    /// A frame arrives at the card in `slot` at a vtime. Returns false when there is no such card or it is swamped.
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

    /// The battery-backed clock ran on while the machine was elsewhere: it shows so many seconds more.
    pub fn shift_clock(&mut self, seconds: u64) {
        self.state.rtc.shift(i64::try_from(seconds).unwrap_or(i64::MAX));
    }

    /// A frame arrives at the machine's first card at a vtime. Returns false when it has none, or is swamped.
    pub fn frame_arrives(&mut self, at: u64, frame: Vec<u8>) -> bool {
        let card = |transport: &Transport| matches!(transport.device(), Device::Net(_));
        self.state.virtio.iter().position(card).is_some_and(|slot| self.frame_input(slot, at, frame))
    }

    /// The address of the machine's first card.
    pub fn mac(&self) -> Option<[u8; 6]> {
        self.state.virtio.iter().find_map(|transport| match transport.device() {
            Device::Net(card) => Some(card.mac()),
            _ => None,
        })
    }

    /// When it next does something by itself, in nanoseconds of vtime, if it is idle. `None`: it executes.
    pub fn idle_until(&self) -> Option<u64> {
        let idle = self.state.halted
            && self.state.interrupts.lapic.pending().is_none()
            && self.engine.interruptible();
        idle.then(|| self.next_event().unwrap_or(VTIME_MAX))
    }

    /// From here on the CPU executes so many instructions a second.
    pub fn set_speed(&mut self, hz: u64) {
        self.state.clock.set_speed(self.engine.icount(), hz);
        self.engine.set_tsc(self.state.tsc());
    }

    /// Power loss or an outside reset: what a `Stop` of the guest's own would be, by the host.
    pub fn end_by_host(&mut self, end: End) {
        self.state.end = Some(end);
    }

    /// Time passes without the guest executing.
    pub fn stall(&mut self, ns: u64) {
        self.state.clock.stall(ns);
        self.engine.set_tsc(self.state.tsc());
    }

    /// The machine is a copy of another one from here on: a new generation ID, and the guest is told.
    pub fn new_generation(&mut self, id: [u8; 16]) {
        // The page is RAM by the layout.
        let _ = self.ram.memory().write_slice(&id, GuestAddress(GENERATION_ID));
        self.state.interrupts.pulse(EVENT_GSI);
    }

    /// Start or stop keeping a journal of the CPU's inputs.
    pub fn keep_journal(&mut self, on: bool) {
        self.journal = on.then(Journal::default);
    }
    /// The journal, if one is kept.
    pub fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// An event of a virtio device is due, or the host changed the device.
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
