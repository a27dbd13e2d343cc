//! Executes single instructions on the soft CPU: those that KVM cannot execute, or would execute differently.
//!
//! Each instruction gets a CPU with empty caches, because KVM writes guest memory without notice.
#![allow(unsafe_code)]

use everett_cpu::{CacheConfig, Cpu, CpuState, Exit, Ram, Request, Until};

use crate::engine::TscAnchor;
use crate::engine::counting::INSTRUCTIONS_MAX;
use crate::engine::repeat::{INSTRUCTION_BYTES_MAX, repeats};
use crate::kvm::KvmError;

/// Small cache sizes: enough for some thousands of instructions, and quick to empty.
const CACHES: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1 << 12,
    translate_after: None,
    edges: false,
    branches: true,
};

/// An instruction in progress.
#[derive(Debug)]
pub(super) struct Bridge {
    cpu: Cpu,
    /// True if the instruction belongs to an exit. Then a repeated instruction that follows directly belongs to the
    /// same exit.
    exit: bool,
    /// True if the instruction waits for a device.
    asking: bool,
    /// Number of branches of the CPU that were already reported.
    counted: u64,
    /// The CPU's count of instructions at the last exit or branch.
    progress: u64,
    /// See [`Memory::limit`].
    limit: u64,
}

/// Progress of an instruction.
#[derive(Debug)]
pub(super) enum Step {
    /// It is finished: the CPU's state, the pages that it wrote, and the branches that retired. `endless` is true if it
    /// was given up instead, because it has more iterations than [`Memory::limit`] allows.
    Done { state: Box<CpuState>, written: Vec<u64>, branches: u64, endless: bool },
    /// It accesses a device.
    Device(Request),
    /// The soft CPU panicked with this message.
    Failed(String),
}

/// Guest memory for soft CPUs beside KVM.
#[derive(Debug)]
pub(super) struct Memory {
    ram: Ram,
    /// Reads through the guest's page tables, and executes nothing.
    reader: Cpu,
    /// A CPU that is kept for reuse. Making a new one takes a hundred microseconds, mostly for tables of the guest's
    /// pages.
    idle: Option<Cpu>,
    /// Maximum number of instructions, or iterations of a repeated one, that a CPU executes without an exit or a
    /// branch. As on the soft engine, the guest is ended when the limit is reached.
    limit: u64,
}

impl Memory {
    /// # Safety
    /// The conditions of [`Ram::new`] must hold while the guest does not run. The CPUs made here must be dropped
    /// before the mapping, and must not run at the same time.
    pub(super) unsafe fn new(base: *mut u8, len: u64) -> Memory {
        // SAFETY: the caller guarantees the conditions.
        let ram = unsafe { Ram::new(base, len) };
        // SAFETY: as in `ram` below; this CPU never runs.
        let reader = Cpu::new(unsafe { ram.another() }, CACHES);
        Memory { ram, reader, idle: None, limit: INSTRUCTIONS_MAX }
    }
    /// Sets [`Memory::limit`].
    pub(super) fn give_up_after(&mut self, instructions: u64) {
        self.limit = instructions;
    }
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }
    pub(super) fn ram(&self) -> Ram {
        // SAFETY: the conditions of `Memory::new` hold, and an engine runs one CPU at a time, on its own thread.
        unsafe { self.ram.another() }
    }
    /// Returns a CPU in this state, whose caches are empty.
    pub(super) fn cpu(&mut self, state: &CpuState) -> Cpu {
        let mut cpu = self.idle.take().unwrap_or_else(|| Cpu::new(self.ram(), CACHES));
        cpu.flush_caches();
        cpu.set_state(&CpuState { icount: 0, ..state.clone() });
        cpu
    }
    /// Keeps a CPU for reuse. Its dirty pages must have been taken, and it must not have failed.
    pub(super) fn keep(&mut self, cpu: Cpu) {
        self.idle = Some(cpu);
    }
    /// Returns a bridge that executes the next instruction.
    pub(super) fn step(&mut self, state: &CpuState, tsc: TscAnchor) -> Bridge {
        let mut cpu = self.cpu(state);
        cpu.set_tsc(TscAnchor { icount: 0, ..tsc });
        Bridge { cpu, exit: false, asking: false, counted: 0, progress: 0, limit: self.limit }
    }
    /// Returns a bridge that executes the rest of a repeated instruction that belongs to an exit.
    pub(super) fn repeat(&mut self, state: &CpuState, tsc: TscAnchor) -> Bridge {
        Bridge { exit: true, ..self.step(state, tsc) }
    }
    /// True if the next instruction belongs to the exit before it, provided that no exception comes between.
    pub(super) fn repeats(&mut self, state: &CpuState) -> bool {
        self.reader.set_state(state);
        goes_on(&self.reader, state.rip)
    }
    /// Delivers an interrupt or an exception without executing an instruction. Returns the state after it, and the
    /// pages that were written.
    ///
    /// # Errors
    /// Returns an error if the soft CPU panicked.
    pub(super) fn deliver(
        &mut self,
        state: &CpuState,
        deliver: impl FnOnce(&mut Cpu),
    ) -> Result<(CpuState, Vec<u64>), KvmError> {
        let mut cpu = self.cpu(state);
        deliver(&mut cpu);
        if let Some(message) = cpu.failure() {
            return Err(KvmError::Panic(message.to_owned()));
        }
        let delivered = (cpu.state(), cpu.take_dirty_pages());
        self.keep(cpu);
        Ok(delivered)
    }
    /// Reads memory through the guest's page tables.
    pub(super) fn read_virtual(&mut self, state: &CpuState, gva: u64, buf: &mut [u8]) -> usize {
        self.reader.set_state(state);
        self.reader.read_virtual(gva, buf)
    }
}

impl Bridge {
    /// Returns a bridge for the current instruction of `cpu`, which waits for a device. `progress` is the CPU's count
    /// of instructions at its last branch.
    pub(super) fn asking(cpu: Cpu, progress: u64, limit: u64) -> Bridge {
        let counted = cpu.branches();
        Bridge { cpu, exit: true, asking: true, counted, progress, limit }
    }
    /// Continues the instruction.
    pub(super) fn go_on(&mut self) -> Step {
        loop {
            // An instruction that waits for a device is finished whatever the count says; otherwise one instruction
            // or iteration is executed.
            let icount = self.cpu.icount() + u64::from(!std::mem::take(&mut self.asking));
            match self.cpu.run(Until { icount, ..Until::default() }) {
                Exit::Device(request) => {
                    (self.exit, self.asking) = (true, true);
                    return Step::Device(request);
                }
                Exit::Count if self.exit => {
                    let state = self.cpu.state();
                    if state.exceptions != 0 || !goes_on(&self.cpu, state.rip) {
                        return self.done(false);
                    }
                    if state.icount - self.progress >= self.limit {
                        return self.done(true);
                    }
                }
                Exit::Failed => {
                    return Step::Failed(self.cpu.failure().unwrap_or_default().to_owned());
                }
                // A CPU that halted or died has a normal state.
                _ => return self.done(false),
            }
        }
    }
    /// Answers the device access.
    pub(super) fn complete(&mut self, value: u64) {
        self.cpu.complete(value);
    }
    /// Returns the CPU of an instruction that is done.
    pub(super) fn into_cpu(self) -> Cpu {
        self.cpu
    }
    fn done(&mut self, endless: bool) -> Step {
        let (state, written) = (Box::new(self.cpu.state()), self.cpu.take_dirty_pages());
        Step::Done { state, written, branches: self.cpu.branches() - self.counted, endless }
    }
}

fn goes_on(cpu: &Cpu, rip: u64) -> bool {
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let known = cpu.read_virtual(rip, &mut bytes);
    repeats(&bytes[..known])
}
