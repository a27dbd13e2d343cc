//! The soft CPU for one instruction: what KVM cannot execute, and what it would execute otherwise than the model.
//!
//! Each instruction gets a CPU of its own, for KVM writes guest memory without telling.
#![allow(unsafe_code)]

use everett_cpu::{CacheConfig, Cpu, CpuState, Exit as CpuExit, Ram, Request, Until};

use crate::engine::TscAnchor;
use crate::engine::repeat::{INSTRUCTION_BYTES_MAX, repeats};
use crate::kvm::KvmError;

/// For one instruction there is nothing to cache.
const CACHES: CacheConfig =
    CacheConfig { tlb_entries: 16, block_entries: 16, translate_after: None, edges: false, branches: true };

/// Iterations of a repeated instruction. More are somebody's mischief, and take seconds.
const ITERATIONS_MAX: u64 = 1 << 26;

/// An instruction under way.
#[derive(Debug)]
pub(super) struct Bridge {
    cpu: Cpu,
    /// It belongs to an exit, and so does what is left of a repeated instruction that comes next.
    exit: bool,
    /// It waits for a device.
    asking: bool,
    /// Branches of the CPU's that were told already.
    counted: u64,
}

/// How far it got.
#[derive(Debug)]
pub(super) enum Step {
    /// It is done. The pages that it wrote, how it left the CPU, and the branches that retired.
    Done { state: Box<CpuState>, written: Vec<u64>, branches: u64 },
    /// It wants a device.
    Device(Request),
    /// It does not end.
    Endless,
    /// The CPU has panicked, with this message.
    Failed(String),
}

/// Guest memory, for soft CPUs beside KVM.
#[derive(Debug)]
pub(super) struct Memory(Ram);

impl Memory {
    /// # Safety
    /// As [`Ram::new`], while the guest does not run. The CPUs that are made here must be dropped before the mapping, and take
    /// turns.
    pub(super) unsafe fn new(base: *mut u8, len: u64) -> Memory {
        // SAFETY: the caller's promise.
        Memory(unsafe { Ram::new(base, len) })
    }
    pub(super) fn ram(&self) -> Ram {
        // SAFETY: `Memory::new`'s promise, and an engine runs one CPU at a time, on its own thread.
        unsafe { self.0.another() }
    }
    fn cpu(&self, state: &CpuState) -> Cpu {
        let mut cpu = Cpu::new(self.ram(), CACHES);
        cpu.set_state(&CpuState { icount: 0, ..state.clone() });
        cpu
    }
    /// Execute the next instruction.
    pub(super) fn step(&self, state: &CpuState, tsc: TscAnchor) -> Bridge {
        let mut cpu = self.cpu(state);
        cpu.set_tsc(TscAnchor { icount: 0, ..tsc });
        Bridge { cpu, exit: false, asking: false, counted: 0 }
    }
    /// Execute what is left of a repeated instruction that belongs to an exit.
    pub(super) fn repeat(&self, state: &CpuState, tsc: TscAnchor) -> Bridge {
        Bridge { exit: true, ..self.step(state, tsc) }
    }
    /// Whether what comes next belongs to the exit before it, if no exception comes between.
    pub(super) fn repeats(&self, state: &CpuState) -> bool {
        goes_on(&self.cpu(state), state.rip)
    }
    /// Deliver an interrupt or an exception, and execute nothing. The state behind it, and the pages that were written.
    ///
    /// # Errors
    /// The CPU has panicked.
    pub(super) fn deliver(
        &self,
        state: &CpuState,
        deliver: impl FnOnce(&mut Cpu),
    ) -> Result<(CpuState, Vec<u64>), KvmError> {
        let mut cpu = self.cpu(state);
        deliver(&mut cpu);
        match cpu.failure() {
            Some(message) => Err(KvmError::Panic(message.to_owned())),
            None => Ok((cpu.state(), cpu.take_dirty_pages())),
        }
    }
    /// Read memory as the guest sees it.
    pub(super) fn read_virtual(&self, state: &CpuState, gva: u64, buf: &mut [u8]) -> usize {
        self.cpu(state).read_virtual(gva, buf)
    }
}

impl Bridge {
    /// An instruction on this CPU, which has just asked for a device.
    pub(super) fn asking(cpu: Cpu) -> Bridge {
        let counted = cpu.branches();
        Bridge { cpu, exit: true, asking: true, counted }
    }
    /// Go on.
    pub(super) fn go_on(&mut self) -> Step {
        loop {
            // What waits for a device is finished, whatever the count says; else an instruction or an iteration is executed.
            let icount = self.cpu.icount() + u64::from(!std::mem::take(&mut self.asking));
            match self.cpu.run(Until { icount, ..Until::default() }) {
                CpuExit::Device(request) => {
                    (self.exit, self.asking) = (true, true);
                    return Step::Device(request);
                }
                CpuExit::Count if self.exit => {
                    let state = self.cpu.state();
                    if state.exceptions != 0 || !goes_on(&self.cpu, state.rip) {
                        return self.done();
                    }
                    if state.icount > ITERATIONS_MAX {
                        return Step::Endless;
                    }
                }
                CpuExit::Failed => {
                    return Step::Failed(self.cpu.failure().unwrap_or_default().to_owned());
                }
                // A CPU that halted or died is a state like any other.
                _ => return self.done(),
            }
        }
    }
    /// Answer what it wanted.
    pub(super) fn complete(&mut self, value: u64) {
        self.cpu.complete(value);
    }
    fn done(&mut self) -> Step {
        let (state, written) = (Box::new(self.cpu.state()), self.cpu.take_dirty_pages());
        Step::Done { state, written, branches: self.cpu.branches() - self.counted }
    }
}

fn goes_on(cpu: &Cpu, rip: u64) -> bool {
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let known = cpu.read_virtual(rip, &mut bytes);
    repeats(&bytes[..known])
}
