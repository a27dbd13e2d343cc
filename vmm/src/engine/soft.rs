//! The soft engine executes guests on Everett's own CPU (`everett-cpu`), which is software.
#![allow(unsafe_code)]

use std::sync::Arc;

use everett_cpu::{
    CacheConfig, Code, Cpu, CpuModel, CpuState, Edge, MissingInstruction, Ram, Request, Watchpoint,
    WatchpointHit,
};
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemoryMmap, MmapRegion};

use super::instants::Instants;
use super::lockstep::{Lockstep, Parting};
use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::clock::ClockMode;
use crate::ram;

/// Schedule of additional flushes of the CPU's caches. Tests use it to show that caches do not affect the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushSchedule {
    /// Half of the maximum random distance between flushes, in instructions. Must not be zero.
    pub interval: u64,
    /// Seed of the random distances.
    pub seed: u64,
}

/// Soft CPU on a machine's RAM.
#[derive(Debug)]
pub struct SoftEngine {
    cpu: Cpu,
    flushes: Option<Instants>,
    lockstep: Option<Box<Lockstep>>,
    /// Reason why lockstep (the comparison with a second CPU) ended: the CPUs differed, or the host had no memory for
    /// the second copy of RAM. If set, the engine executes nothing more.
    diverged: Option<&'static str>,
    ram: Ram,
    /// Owns the guest memory to which `cpu` points, so that it stays mapped.
    _memory: Arc<dyn std::any::Any + Send + Sync>,
}

impl SoftEngine {
    /// Creates a CPU of the model `v2` on guest memory that is one region from address 0.
    ///
    /// # Panics
    /// Panics if the memory is not one region from address 0. Machines always create one region.
    pub fn new<B>(memory: Arc<GuestMemoryMmap<B>>, caches: CacheConfig) -> SoftEngine
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        SoftEngine::sharing(memory, &Code::new(caches))
    }

    /// Creates a CPU of the code's model that shares decoded and translated code with other CPUs. The caller must run only one of them at a
    /// time.
    ///
    /// # Panics
    /// Panics if the memory is not one region from address 0. Machines always create one region.
    pub fn sharing<B>(memory: Arc<GuestMemoryMmap<B>>, code: &Code) -> SoftEngine
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        let (base, len) = ram::whole(&memory).expect("guest RAM is one region from 0");
        // SAFETY: the mapping is as long as the region and lives as long as `_memory`, which this engine owns. Devices
        // access guest memory only between two runs, on the thread that owns the machine.
        let ram = unsafe { Ram::new(base, len) };
        // SAFETY: as above. `ram` and the CPU's copy are used on one thread, and `ram` only while the CPU does not run.
        let cpu = Cpu::sharing(unsafe { ram.another() }, code);
        SoftEngine { cpu, flushes: None, lockstep: None, diverged: None, ram, _memory: memory }
    }

    /// Starts lockstep: a second CPU interprets everything as well, and the machine ends at the first difference
    /// between the two. If the host has no memory for a second copy of guest RAM, the machine ends at once. The guest's
    /// execution does not change.
    ///
    /// # Panics
    /// Panics if the CPU has already executed an instruction.
    pub fn run_in_lockstep(&mut self, caches: CacheConfig) {
        assert_eq!(self.cpu.icount(), 0, "lockstep must begin before the CPU executes anything");
        // SAFETY: the engine keeps the mapping alive for its own lockstep. Lockstep accesses the mapping only while
        // `cpu` does not run.
        match Lockstep::new(unsafe { self.ram.another() }, caches, self.cpu.model()) {
            Some(lockstep) => self.lockstep = Some(Box::new(lockstep)),
            None => self.diverged = Some("the host has no memory for a second machine in lockstep"),
        }
    }

    /// Flushes the CPU's caches at random instants. The guest's execution does not change.
    pub fn flush_at_random(&mut self, schedule: FlushSchedule) {
        self.flushes = Some(Instants::new(schedule.interval, schedule.seed, self.cpu.icount()));
    }

    /// Ends random flushes. The CPU then flushes its caches only when necessary.
    pub fn flush_when_needed(&mut self) {
        self.flushes = None;
    }

    /// Returns the number of blocks translated to host code so far.
    pub fn blocks_translated(&self) -> u64 {
        self.cpu.blocks_translated()
    }

    /// Returns the number of blocks decoded so far.
    pub fn blocks_decoded(&self) -> u64 {
        self.cpu.blocks_decoded()
    }

    /// Returns the number of conditional branches that retired since the state was last replaced. Valid only if the CPU
    /// counts branches.
    pub fn branches(&self) -> u64 {
        self.cpu.branches()
    }
    /// True if the CPU counts branches.
    pub fn counts_branches(&self) -> bool {
        self.cpu.counts_branches()
    }

    /// Plants a defect, for tests of the determinism checks: stores to page tables leave stale TLB entries behind.
    #[doc(hidden)]
    pub fn leak_stale_translations(&mut self, on: bool) {
        self.cpu.leak_stale_translations(on);
    }

    /// Plants a defect, for tests of panics: the CPU panics at its first CPUID instruction at or after instruction
    /// count `from`. `None` removes the defect.
    #[doc(hidden)]
    pub fn leak_panic(&mut self, from: Option<u64>) {
        self.cpu.leak_panic(from);
    }

    /// Plants the defect of [`SoftEngine::leak_panic`] in the interpreting CPU of lockstep. Does nothing without
    /// lockstep.
    #[doc(hidden)]
    pub fn leak_panic_in_lockstep(&mut self, from: Option<u64>) {
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.leak_panic(from);
        }
    }

    /// Returns the message of a panic of the CPU or of the interpreting CPU.
    fn panicked(&self) -> Option<&str> {
        let lockstep = self.lockstep.as_ref().and_then(|lockstep| lockstep.failure());
        self.cpu.failure().or(lockstep)
    }

    fn run_once(&mut self, until: &Until, icount: u64) -> Exit {
        let Until { window, passing, .. } = *until;
        if let Some(what) = self.diverged {
            return Exit::Unsupported(what);
        }
        if self.panicked().is_some() {
            return Exit::Failed;
        }
        let Some(lockstep) = &mut self.lockstep else {
            return self.cpu.run(everett_cpu::Until { icount, window, passing });
        };
        lockstep.begin();
        let start = self.cpu.icount();
        loop {
            let now = self.cpu.icount();
            let passing = passing && now == start;
            let piece = everett_cpu::Until { icount: lockstep.piece(now).min(icount), window, passing };
            let exit = self.cpu.run(piece);
            if exit == Exit::Failed {
                return exit;
            }
            match lockstep.follow(&self.cpu, piece, exit) {
                Ok(()) => {}
                Err(Parting::Differs(what)) => {
                    return Exit::Unsupported(diverged(&mut self.diverged, what));
                }
                Err(Parting::Failed) => return Exit::Failed,
            }
            if exit != Exit::Count || self.cpu.icount() >= icount {
                return exit;
            }
        }
    }
}

/// Records the first difference and returns its text. Leaks the text's memory, at most once per engine.
#[cold]
fn diverged(place: &mut Option<&'static str>, what: String) -> &'static str {
    place.get_or_insert_with(|| Box::leak(what.into_boxed_str()))
}

impl Engine for SoftEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: ClockMode::Insn, disturbed: false }
    }
    fn cpu_model(&self) -> CpuModel {
        self.cpu.model()
    }
    fn run(&mut self, until: Until) -> Exit {
        let mut until = until;
        let start = self.cpu.icount();
        let exit = loop {
            let Some(flushes) = &mut self.flushes else { break self.run_once(&until, until.icount) };
            let now = self.cpu.icount();
            until.passing &= now == start;
            if flushes.next() <= now {
                self.cpu.flush_caches();
                flushes.advance(now);
            }
            let stop = flushes.next().min(until.icount);
            let exit = self.run_once(&until, stop);
            if exit != Exit::Count || self.cpu.icount() >= until.icount {
                break exit;
            }
        };
        if let Exit::Device(Request::MmioWrite { .. } | Request::PioWrite { .. }) = exit {
            // The device returns nothing to a store, so the engine completes the access itself; the 0 is ignored. The
            // next run finishes the store's instruction.
            self.complete_read(0);
        }
        exit
    }
    fn icount(&self) -> u64 {
        self.cpu.icount()
    }
    fn failure(&self) -> Option<Failure> {
        self.panicked().map(|message| Failure::Engine(message.to_owned()))
    }
    fn complete_read(&mut self, value: u64) {
        self.cpu.complete(value);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.complete(value);
        }
    }
    fn interruptible(&self) -> bool {
        self.cpu.interruptible()
    }
    fn interrupt(&mut self, vector: u8) {
        self.cpu.interrupt(vector);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.interrupt(vector);
        }
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        self.cpu.set_tsc(anchor);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.set_tsc(anchor);
        }
    }
    fn state(&self) -> CpuState {
        self.cpu.state()
    }
    fn set_state(&mut self, state: &CpuState) {
        self.cpu.set_state(state);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.set_state(state);
        }
    }
    fn memory_written(&mut self, gpa: u64, len: u64) {
        self.cpu.memory_written(gpa, len);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.memory_written(gpa, len);
        }
    }
    fn memory_replaced(&mut self, pages: &[u64]) {
        self.cpu.memory_replaced(pages);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.memory_replaced(pages);
        }
    }
    fn take_dirty_pages(&mut self) -> Vec<u64> {
        let pages = self.cpu.take_dirty_pages();
        if let Some(lockstep) = &mut self.lockstep
            && let Err(what) = lockstep.dirty(&pages)
        {
            diverged(&mut self.diverged, what);
        }
        pages
    }
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        self.cpu.read_virtual(gva, buf)
    }
    fn set_watchpoints(&mut self, points: &[Watchpoint]) -> bool {
        self.cpu.set_watchpoints(points);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.set_watchpoints(points);
        }
        true
    }
    fn set_breakpoints(&mut self, addresses: &[u64]) -> bool {
        self.cpu.set_breakpoints(addresses);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.set_breakpoints(addresses);
        }
        true
    }
    fn stop_at_mode_changes(&mut self, on: bool) -> bool {
        self.cpu.stop_at_mode_changes(on);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.stop_at_mode_changes(on);
        }
        true
    }
    fn take_hits(&mut self) -> Vec<WatchpointHit> {
        let hits = self.cpu.take_hits();
        if let Some(lockstep) = &mut self.lockstep
            && let Err(what) = lockstep.hits(&hits)
        {
            diverged(&mut self.diverged, what);
        }
        hits
    }
    fn take_missing_instruction(&mut self) -> Option<MissingInstruction> {
        self.cpu.take_missing_instruction()
    }
    fn take_edges(&mut self) -> Vec<Edge> {
        let edges = self.cpu.take_edges();
        if let Some(lockstep) = &mut self.lockstep
            && let Err(what) = lockstep.edges(&edges)
        {
            diverged(&mut self.diverged, what);
        }
        edges
    }
    fn forget_edges(&mut self) {
        self.cpu.forget_edges();
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.forget_edges();
        }
    }
}
