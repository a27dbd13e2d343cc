//! The run loop: finds a block, executes it, and handles the reason why it ended.

use crate::code::{CacheConfig, Code, Known};
use crate::core::{Core, TscAnchor};
use crate::decode::cache::{Cache, Extent};
use crate::edges::{Edge, Edges};
use crate::exit::Exit;
use crate::failure::caught;
use crate::fetch::{Ended, find, find_past_breakpoints, guessed, not_fetched, stopped};
use crate::flags::bits;
use crate::mem::{Mem, Ram, Watchpoint, WatchpointHit};
use crate::model::{CpuModel, MissingInstruction};
use crate::op::{FAR_PAGE, slot};
use crate::state::{CpuState, Dead};
use crate::stop::Fault;

/// Conditions that end a run. The guest's actions can end the run earlier.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until {
    /// Absolute instruction count at which the run stops.
    pub icount: u64,
    /// True if the run stops at the first instruction boundary at which the CPU can take an external interrupt.
    pub window: bool,
    /// True if the run executes its first instruction even if a breakpoint is there ([`Cpu::set_breakpoints`]).
    pub passing: bool,
}

/// One vCPU.
#[derive(Debug)]
pub struct Cpu {
    core: Core,
    code: Code,
}

impl Cpu {
    /// Creates a CPU in the default state that runs on `ram` and has its own code caches.
    pub fn new(ram: Ram, caches: CacheConfig) -> Cpu {
        Cpu::sharing(ram, &Code::new(caches))
    }
    /// Creates a CPU in the default state that runs on `ram` and shares the caches of `code` with other CPUs. It has
    /// the code's model.
    pub fn sharing(ram: Ram, code: &Code) -> Cpu {
        let mut core = Core::new(Mem::new(ram, code.caches().tlb_entries));
        core.model = code.model();
        core.edges = code.caches().edges.then(|| Box::new(Edges::new()));
        core.branches = code.caches().branches;
        Cpu { core, code: code.clone() }
    }
    /// Returns the CPU's model.
    pub fn model(&self) -> CpuModel {
        self.core.model
    }
    /// Returns the number of retired instructions.
    pub fn icount(&self) -> u64 {
        self.core.icount
    }
    /// Returns the number of conditional branches, taken or not, that retired since [`Cpu::set_state`] was last called.
    /// It is zero unless [`CacheConfig::branches`] is set.
    pub fn branches(&self) -> u64 {
        self.core.regs[slot::BRANCHES as usize]
    }
    /// True if this CPU counts retired conditional branches.
    pub fn counts_branches(&self) -> bool {
        self.core.branches
    }
    /// Returns the architectural state as plain data.
    pub fn state(&self) -> CpuState {
        self.core.save_state()
    }
    /// Replaces the architectural state, including the instruction count.
    pub fn set_state(&mut self, state: &CpuState) {
        self.core.load_state(state);
    }
    /// Returns the branch edges that the guest executed for the first time since [`Cpu::forget_edges`], in execution
    /// order. Edges that an earlier call returned are left out. Empty unless [`CacheConfig::edges`] is set.
    pub fn take_edges(&mut self) -> Vec<Edge> {
        self.core.edges.as_mut().map_or_else(Vec::new, |edges| edges.take())
    }
    /// Forgets all recorded edges, so that each edge is new when the guest next executes it.
    pub fn forget_edges(&mut self) {
        self.core.stray();
        if let Some(edges) = &mut self.core.edges {
            edges.forget();
        }
    }
    /// Replaces all watchpoints, which the guest cannot observe. A run ends after an instruction, interrupt or
    /// exception that accesses watched bytes.
    pub fn set_watchpoints(&mut self, points: &[Watchpoint]) {
        self.core.mem.set_watchpoints(points);
    }
    /// Replaces all breakpoints, which the guest cannot observe. A run stops before an instruction at one of these linear
    /// addresses, in any address space. Code on pages without breakpoints is as fast as before.
    pub fn set_breakpoints(&mut self, addresses: &[u64]) {
        self.core.mem.set_breakpoints(addresses);
    }
    /// Makes runs end after an instruction, interrupt or exception that enters or leaves user mode (CPL 3).
    pub fn stop_at_mode_changes(&mut self, on: bool) {
        self.core.observed_user = on.then_some(self.core.cpl == 3);
    }
    /// Returns the accesses to watched bytes since the last call.
    pub fn take_hits(&mut self) -> Vec<WatchpointHit> {
        self.core.mem.take_hits()
    }
    /// Takes the first instruction since the last call that a program executed although the CPU's model lacks it.
    pub fn take_missing_instruction(&mut self) -> Option<MissingInstruction> {
        self.core.missing.take()
    }
    /// Sets the function that converts the instruction count to the TSC.
    pub fn set_tsc(&mut self, anchor: TscAnchor) {
        self.core.tsc = anchor;
    }
    /// Answers the request of the last [`Exit::Device`]. For a write, `value` has no meaning.
    pub fn complete(&mut self, value: u64) {
        self.core.mem.mmio.answer(value);
    }
    /// True if the CPU can take an external interrupt now.
    pub fn interruptible(&self) -> bool {
        self.core.interruptible() && !self.core.mem.mmio.in_progress()
    }
    /// Delivers an external interrupt.
    ///
    /// # Panics
    /// Panics if the CPU is not [`interruptible`](Cpu::interruptible).
    pub fn interrupt(&mut self, vector: u8) {
        assert!(self.interruptible(), "an interrupt was injected into a CPU that cannot take one");
        self.core.halted = false;
        caught(&mut self.core, |core| core.deliver_interrupt(vector));
    }
    /// Delivers an exception before the next instruction. The KVM engine uses this CPU to deliver exceptions that KVM
    /// has queued, or that the host's processor could not deliver. Before a page fault, the caller stores the faulting
    /// address in CR2.
    pub fn exception(&mut self, vector: u8, error: Option<u32>) {
        self.core.mem.fault_address = self.core.cr2;
        let rip = self.core.rip;
        let fault = Fault { vector, error, non_canonical: false };
        caught(&mut self.core, |core| core.deliver_fault(fault, rip));
    }
    /// Tells the CPU that something else, such as a device, wrote `len` bytes of RAM at `gpa`.
    pub fn memory_written(&mut self, gpa: u64, len: u64) {
        self.core.stray();
        self.core.mem.written_outside(gpa, len);
    }
    /// Returns the numbers of the pages written since the last call, in ascending order.
    pub fn take_dirty_pages(&mut self) -> Vec<u64> {
        self.core.mem.take_dirty()
    }
    /// Tells the CPU that the restore of a moment (a snapshot) replaced the contents of these pages. The CPU keeps its
    /// decoded code: blocks of a replaced page are found again if the page gets the same bytes back. Clears the list of
    /// written pages that [`Cpu::take_dirty_pages`] returns.
    ///
    /// # Panics
    /// Panics if a page number lies outside RAM.
    pub fn memory_replaced(&mut self, pages: &[u64]) {
        self.core.stray();
        self.core.mem.replaced(pages);
    }
    /// Returns the number of blocks decoded so far by all CPUs that share the code.
    pub fn blocks_decoded(&self) -> u64 {
        self.code.lock().cache.decoded()
    }
    /// Reads guest memory by linear address, without side effects. Returns the number of bytes read, which is less than
    /// the length of `buf` if an address is not mapped to RAM.
    pub fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buf.len() {
            let va = gva.wrapping_add(done as u64);
            let n = (4096 - (va & 0xfff)).min((buf.len() - done) as u64);
            match self.core.mem.peek(va) {
                Some(gpa) if self.core.mem.ram.contains(gpa, n) => {
                    self.core.mem.ram.read(gpa, &mut buf[done..done + n as usize]);
                    done += n as usize;
                }
                _ => break,
            }
        }
        done
    }
    /// Returns the number of blocks translated so far by all CPUs that share the code.
    pub fn blocks_translated(&self) -> u64 {
        self.code.lock().hot.as_ref().map_or(0, |hot| hot.made().0)
    }
    /// Returns the number of traces, i.e. of several blocks translated together, by all CPUs that share the code.
    pub fn traces_translated(&self) -> u64 {
        self.code.lock().hot.as_ref().map_or(0, |hot| hot.made().1)
    }
    /// Drops all TLB entries and decoded blocks. Tests verify with it that the guest cannot observe the caches.
    pub fn flush_caches(&mut self) {
        self.core.mem.flush_tlb();
        self.code.lock().cache.flush();
    }
    /// Plants a defect for tests of the determinism checks: stores to page tables leave stale TLB entries behind.
    #[doc(hidden)]
    pub fn leak_stale_translations(&mut self, on: bool) {
        self.core.mem.leak_stale_tlb = on;
    }

    /// Plants a defect for tests of panic containment: the first CPUID at this instruction count or later panics.
    #[doc(hidden)]
    pub fn leak_panic(&mut self, from: Option<u64>) {
        self.core.panics_from = from;
    }
    /// Returns the message of the panic that stopped this CPU for good. `None` if there was no panic.
    pub fn failure(&self) -> Option<&str> {
        self.core.failure.as_deref()
    }

    /// Runs until a condition of `until` holds, or until the guest causes an [`Exit`].
    pub fn run(&mut self, until: Until) -> Exit {
        let Cpu { core, code } = self;
        if core.failure.is_some() {
            return Exit::Failed;
        }
        let mut known = code.lock();
        let exit = caught(core, |core| run(core, &mut known, until));
        match exit.filter(|_| core.failure.is_none()) {
            Some(exit) => exit,
            None => {
                // The panic may have left the shared cache inconsistent.
                known.cache.flush();
                Exit::Failed
            }
        }
    }
}

/// Implements [`Cpu::run`].
fn run(core: &mut Core, code: &mut Known, until: Until) -> Exit {
    (core.limit, core.window) = (until.icount, until.window);
    let mut single = false;
    let mut passing = until.passing;
    loop {
        match core.dead {
            None => {}
            Some(Dead::Shutdown) => return Exit::Shutdown,
            Some(Dead::Unsupported(what)) => return Exit::Unsupported(what.reason()),
        }
        if let Some(request) = core.mem.mmio.pending {
            return Exit::Device(request);
        }
        let completing = core.mem.mmio.in_progress();
        if !completing {
            if core.mem.report_hits() {
                return Exit::Watchpoint;
            }
            if core.mode_has_changed() {
                return Exit::ModeChange;
            }
            if core.halted {
                return Exit::Halt;
            }
            if core.icount >= until.icount {
                return Exit::Count;
            }
            if until.window && core.interruptible() {
                return Exit::Window;
            }
            // If `single` is set, this instruction has passed the breakpoint check before, but has not executed yet.
            if !passing && !single && core.mem.has_breakpoint(core.rip) {
                return Exit::Breakpoint;
            }
        }
        passing = false;
        let alone = single
            || completing
            || core.shadow
            || core.rflags & (bits::TF | bits::RF) != 0
            || core.dr7 & 0xff != 0
            || core.mem.has_breakpoint(core.rip);
        let notes = core.edges.is_some() || core.branches;
        let ended = match core.mem.page_has_breakpoint(core.rip) {
            _ if alone => step(core, &mut code.cache, until.icount, single),
            true if notes => block_with_breakpoints::<true>(core, &mut code.cache),
            true => block_with_breakpoints::<false>(core, &mut code.cache),
            false if notes => blocks::<true>(core, code),
            false => blocks::<false>(core, code),
        };
        single = false;
        match ended {
            Ended::Check => {}
            Ended::Single => single = true,
            Ended::Exit(exit) => return exit,
        }
    }
}

/// Executes blocks until one ends in a way that the run loop must handle. With `NOTES`, records edges and counts
/// conditional branches.
fn blocks<const NOTES: bool>(core: &mut Core, code: &mut Known) -> Ended {
    let Known { cache, hot } = code;
    let mut index = match find(cache, core, Extent::Block) {
        Ok(index) => index,
        Err(stop) => return not_fetched(core, stop),
    };
    loop {
        let block = cache.block(index);
        let count = u64::from(block.count);
        if count > core.limit - core.icount {
            return Ended::Single;
        }
        if let Some(hot) = hot
            && let Some(next) = hot.execute(cache, core, index)
        {
            match next {
                Ok(next) => index = next,
                Err(ended) => return ended,
            }
            continue;
        }
        let guess = cache.guess(cache.block(index));
        if let Err(ended) = interpret::<NOTES>(core, cache, index) {
            return ended;
        }
        if core.icount == core.limit {
            return Ended::Check;
        }
        index = match guessed(cache, core, guess) {
            Some(next) => next,
            None => match find(cache, core, Extent::Block) {
                Ok(next) => {
                    cache.follows(index, next);
                    next
                }
                Err(stop) => return not_fetched(core, stop),
            },
        };
    }
}

/// Interprets the block at RIP, which is on a page with breakpoints. If a breakpoint lies behind the block's first
/// instruction, or the run stops within the block, executes nothing: the caller then executes one instruction.
fn block_with_breakpoints<const NOTES: bool>(core: &mut Core, cache: &mut Cache) -> Ended {
    let index = match find_past_breakpoints(cache, core) {
        Ok(index) => index,
        Err(stop) => return not_fetched(core, stop),
    };
    let block = cache.block(index);
    if u64::from(block.count) > core.limit - core.icount
        || core.mem.has_breakpoint_behind(core.rip, u64::from(block.len))
    {
        return Ended::Single;
    }
    match interpret::<NOTES>(core, cache, index) {
        Ok(()) => Ended::Check,
        Err(ended) => ended,
    }
}

/// Interprets a block. With `NOTES`, records edges and counts conditional branches.
#[inline(always)]
fn interpret<const NOTES: bool>(core: &mut Core, cache: &Cache, index: usize) -> Result<(), Ended> {
    let block = cache.block(index);
    let rip = core.rip;
    core.regs[slot::PAGE as usize] = rip & !0xfff;
    core.regs[slot::PAGE_FAR as usize] = (rip & !0xfff).wrapping_add(FAR_PAGE);
    core.rip = rip.wrapping_add(u64::from(block.len));
    if NOTES {
        core.arrive(cache.named(index));
    }
    for op in cache.ops(block) {
        if let Err(stop) = (op.run)(core, op) {
            return Err(stopped(core, op, stop));
        }
    }
    if NOTES {
        core.retire(&cache.ops(block)[usize::from(block.count) - 1], cache.named(index));
    }
    core.icount += u64::from(block.count);
    Ok(())
}

/// Executes one instruction, with the rules for breakpoints, the trap flag and the interrupt shadow. `single` is true
/// if the attempt to execute a block returned [`Ended::Single`].
fn step(core: &mut Core, cache: &mut Cache, limit: u64, single: bool) -> Ended {
    let shadow = std::mem::take(&mut core.shadow);
    let trap = core.rflags & bits::TF != 0;
    let resume = core.rflags & bits::RF != 0;
    if core.dr7 & 0xff != 0 && !resume && core.instruction_breakpoint() {
        return Ended::Check;
    }
    core.mem.mmio.rewind();
    // If `one` is set, a repeated instruction (REP) executes only one iteration. Then the CPU can check for traps and
    // breakpoints after each iteration, and an iteration may store to the instruction's own code.
    let watched = core.dr7 & 0xff != 0;
    let one = single
        || shadow
        || trap
        || watched
        || core.mem.mmio.in_progress()
        || core.mem.has_breakpoint(core.rip);
    core.limit = if one { core.icount + 1 } else { limit };
    core.mem.single = one;
    core.rflags &= !bits::RF;
    let before = core.icount;
    core.mem.take_watch_hits();
    let hits = core.mem.hits();
    core.mem.attribute_accesses_to(core.rip);
    let ended = step_fetched(cache, core);
    core.mem.single = false;
    core.limit = limit;
    if core.mem.mmio.pending.is_some() || matches!(ended, Ended::Single) {
        core.mem.keep_hits(hits);
        core.shadow = shadow;
        core.rflags |= if resume { bits::RF } else { 0 };
        return ended;
    }
    core.mem.mmio.clear();
    if core.icount > before {
        let hits = core.mem.take_watch_hits();
        core.debug_trap(trap, hits);
    }
    ended
}

fn step_fetched(cache: &mut Cache, core: &mut Core) -> Ended {
    let index = match find(cache, core, Extent::Single) {
        Ok(index) => index,
        Err(stop) => return not_fetched(core, stop),
    };
    let block = cache.block(index);
    let rip = core.rip;
    core.regs[slot::PAGE as usize] = rip & !0xfff;
    core.regs[slot::PAGE_FAR as usize] = (rip & !0xfff).wrapping_add(FAR_PAGE);
    core.rip = rip.wrapping_add(u64::from(block.len));
    let op = &cache.ops(block)[0];
    core.arrive(cache.named(index));
    match (op.run)(core, op) {
        Ok(()) => {
            core.icount += 1;
            core.retire(op, cache.named(index));
            Ended::Check
        }
        Err(stop) => stopped(core, op, stop),
    }
}
