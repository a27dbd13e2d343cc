//! Executes single instructions on the soft CPU, if KVM cannot execute them or would execute them differently.
//!
//! Each instruction starts with empty CPU caches, because KVM writes guest memory without notice.
#![allow(unsafe_code)]

use everett_cpu::{CacheConfig, Cpu, CpuState, Exit, Ram, Request, Traces, Until};

use crate::engine::TscAnchor;
use crate::engine::counting::INSTRUCTIONS_MAX;
use crate::engine::repeat::{INSTRUCTION_BYTES_MAX, repeats};
use crate::kvm::KvmError;

/// Cache sizes of the soft CPU: enough for some thousands of instructions, and quick to empty.
const CACHES: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1 << 12,
    translate_after: None,
    traces: Traces::EAGER,
    edges: false,
    branches: true,
};

/// An instruction that the soft CPU executes.
#[derive(Debug)]
pub(super) struct Bridge {
    cpu: Cpu,
    /// True if the instruction belongs to an exit, e.g. because it accesses a device. The bridge then goes on while RIP
    /// points at a repeated string instruction, because the remaining iterations belong to the same exit.
    exit: bool,
    /// True while the instruction waits for a device.
    asking: bool,
    /// Number of the CPU's branches that were already reported.
    counted: u64,
    /// The CPU's count of instructions at the last exit or branch.
    progress: u64,
    /// See [`Memory::limit`].
    limit: u64,
}

/// Result of executing an instruction.
#[derive(Debug)]
pub(super) enum Step {
    /// The instruction is finished or was stopped. Holds the CPU's state, the pages that the CPU wrote, and the number
    /// of branches that retired. `endless` is true if the instruction was stopped because it had more iterations than
    /// [`Memory::limit`] allows.
    Done { state: Box<CpuState>, written: Vec<u64>, branches: u64, endless: bool },
    /// The instruction accesses a device.
    Device(Request),
    /// The soft CPU panicked with this message.
    Failed(String),
}

/// Guest memory, with the soft CPUs that work on it while KVM does not run.
#[derive(Debug)]
pub(super) struct Memory {
    ram: Ram,
    /// CPU that only reads through the guest's page tables and executes nothing.
    reader: Cpu,
    /// CPU to use for the next instruction. Creating one takes a hundred microseconds, mostly for tables with an entry
    /// for each page of guest memory.
    idle: Option<Cpu>,
    /// Maximum number of instructions, or of iterations of a repeated instruction, that a CPU executes without an exit
    /// or branch. At this limit the guest is ended, as on the soft engine.
    limit: u64,
}

impl Memory {
    /// # Safety
    /// The conditions of [`Ram::new`] must hold whenever the guest does not run. Before the caller drops the mapping,
    /// it must drop all CPUs that it got from this object. It must not run two of these CPUs at the same time.
    pub(super) unsafe fn new(base: *mut u8, len: u64) -> Memory {
        // SAFETY: the caller guarantees the conditions.
        let ram = unsafe { Ram::new(base, len) };
        // SAFETY: as in the method `ram` below. This CPU never executes.
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
    /// Returns a CPU in this state with empty caches.
    pub(super) fn cpu(&mut self, state: &CpuState) -> Cpu {
        let mut cpu = self.idle.take().unwrap_or_else(|| Cpu::new(self.ram(), CACHES));
        cpu.flush_caches();
        cpu.set_state(&CpuState { icount: 0, ..state.clone() });
        cpu
    }
    /// Stores a CPU for reuse. The caller must have taken its dirty pages, and the CPU must not have failed.
    pub(super) fn keep(&mut self, cpu: Cpu) {
        self.idle = Some(cpu);
    }
    /// Returns a bridge that executes the next instruction.
    pub(super) fn step(&mut self, state: &CpuState, tsc: TscAnchor) -> Bridge {
        let mut cpu = self.cpu(state);
        cpu.set_tsc(TscAnchor { icount: 0, ..tsc });
        Bridge { cpu, exit: false, asking: false, counted: 0, progress: 0, limit: self.limit }
    }
    /// Returns a bridge that executes the remaining iterations of a repeated instruction, which belong to an exit.
    pub(super) fn repeat(&mut self, state: &CpuState, tsc: TscAnchor) -> Bridge {
        Bridge { exit: true, ..self.step(state, tsc) }
    }
    /// True if the next instruction belongs to the exit before it. Only valid if no exception came in between.
    pub(super) fn repeats(&mut self, state: &CpuState) -> bool {
        self.reader.set_state(state);
        goes_on(&self.reader, state.rip)
    }
    /// Delivers an interrupt or an exception and executes nothing else. Returns the state after the delivery, and the
    /// pages that the delivery wrote.
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
    /// Reads memory at a linear address, through the guest's page tables. Returns the number of bytes that were
    /// readable.
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
    /// Executes the instruction up to its end or its next device access.
    pub(super) fn go_on(&mut self) -> Step {
        loop {
            // Instruction count at which the CPU stops. If the current instruction waits for a device, the CPU finishes
            // it even at the present count. Otherwise the CPU may execute one more instruction or iteration.
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
                // The CPU has halted or died (of a triple fault, for example). Its state says so, so this is an
                // ordinary end.
                _ => return self.done(false),
            }
        }
    }
    /// Answers the device access with a value.
    pub(super) fn complete(&mut self, value: u64) {
        self.cpu.complete(value);
    }
    /// Returns the CPU after its instruction is finished.
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
