//! A scripted engine for tests of the code above the engine trait. Its CPU executes a list of [`Op`]s.
//!
//! RIP is the kernel's entry plus the index of the next operation. RAX accumulates everything that the program has
//! seen. R13 counts down [`Op::Work`]. R12, R14 and R15 hold the state of the interrupted program.

use everett_cpu::Request;
use everett_cpu::{CpuModel, CpuState};
use vm_memory::{Bytes, GuestAddress};

use super::{Machine, MachineConfig};
use crate::boot::small_kernel;
use crate::clock::ClockMode;
use crate::engine::any::AnyEngine;
use crate::engine::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::layout::PAGE;
use crate::ram::Ram;

/// Address at which programs start: the entry of the kernel file that [`small_kernel`] makes.
const ENTRY: u64 = 0x100_0000;
const INTERRUPTS_ON: u64 = 1 << 9;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// Executes this many instructions. Each adds one to RAX and subtracts one from R13.
    Work(u64),
    In(u16),
    Out(u16, u32),
    Load(u64),
    Store(u64, u32),
    /// Writes RAX to this address of RAM.
    Save(u64),
    /// Mixes the TSC into RAX.
    Tsc,
    Sti,
    Cli,
    Hlt,
    Iret,
    /// Jumps to the operation with this index.
    Jump(u64),
    /// Causes a triple fault.
    Crash,
    /// Accesses a device again and again within one instruction.
    Stuck,
}

/// Simulated defect of the engine: at this instruction count, RAX changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Defect(pub(crate) Option<u64>);

/// Simulated failure of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HostFails {
    #[default]
    Never,
    /// Execution fails when this instruction count is reached.
    Running(u64),
    /// The query for written pages fails.
    Looking,
    /// The query whether the CPU is interruptible fails once the CPU is halted.
    Asking,
}

pub(crate) struct FakeEngine {
    cpu: CpuState,
    ram: Ram,
    program: Vec<Op>,
    /// Index of the operation at which interrupt handlers start.
    handler: u64,
    tsc: TscAnchor,
    /// True while an instruction waits for a device access.
    pending: bool,
    /// Value for the unfinished read, once the device has answered.
    answer: Option<u64>,
    dirty: Vec<u64>,
    defect: Defect,
    host: HostFails,
    failure: Option<&'static str>,
    breakpoints: Vec<u64>,
}

impl FakeEngine {
    fn on(&self) -> bool {
        self.cpu.rflags & INTERRUPTS_ON != 0
    }
    fn retire(&mut self, jump: Option<u64>) {
        self.cpu.icount += 1;
        self.cpu.rip = jump.map_or(self.cpu.rip + 1, |op| ENTRY + op);
        self.pending = false;
        self.answer = None;
        if self.defect.0 == Some(self.cpu.icount) {
            self.cpu.gpr[0] ^= 0x8000_0000;
        }
    }
    fn mix(&mut self, value: u64) {
        self.cpu.gpr[0] = self.cpu.gpr[0].wrapping_mul(31).wrapping_add(value);
    }
    fn read(&mut self, exit: Exit) -> Option<Exit> {
        match self.answer {
            Some(value) => {
                self.mix(value);
                self.retire(None);
                None
            }
            None => {
                self.pending = true;
                Some(exit)
            }
        }
    }
    fn write(&mut self, exit: Exit) -> Option<Exit> {
        if self.pending {
            self.retire(None);
            return None;
        }
        self.pending = true;
        Some(exit)
    }
    fn step(&mut self, limit: u64) -> Option<Exit> {
        let op = self.program.get((self.cpu.rip - ENTRY) as usize).copied().unwrap_or(Op::Crash);
        match op {
            Op::Work(count) => {
                if self.cpu.gpr[13] == 0 {
                    self.cpu.gpr[13] = count;
                }
                let mut batch = self.cpu.gpr[13].min(limit - self.cpu.icount);
                if let Some(at) =
                    self.defect.0.filter(|at| (self.cpu.icount + 1..self.cpu.icount + batch).contains(at))
                {
                    batch = at - self.cpu.icount;
                }
                self.cpu.gpr[0] = self.cpu.gpr[0].wrapping_add(batch);
                self.cpu.gpr[13] -= batch;
                self.cpu.icount += batch - 1;
                let stay = (self.cpu.gpr[13] > 0).then_some(self.cpu.rip - ENTRY);
                self.retire(stay);
            }
            Op::In(port) => return self.read(Exit::Device(Request::PioRead { port, size: 1 })),
            Op::Out(port, value) => {
                return self.write(Exit::Device(Request::PioWrite { port, size: 1, value }));
            }
            Op::Load(gpa) => return self.read(Exit::Device(Request::MmioRead { gpa, size: 4 })),
            Op::Store(gpa, value) => {
                return self.write(Exit::Device(Request::MmioWrite { gpa, size: 4, value: value.into() }));
            }
            Op::Save(gpa) => {
                self.ram.memory().write_obj(self.cpu.gpr[0], GuestAddress(gpa)).unwrap();
                self.ram.take_device_writes();
                self.dirty.push(gpa / PAGE);
                self.retire(None);
            }
            Op::Tsc => {
                let ticks = self.tsc.tsc + (self.cpu.icount - self.tsc.icount) * self.tsc.num / self.tsc.den;
                self.mix(ticks);
                self.retire(None);
            }
            Op::Sti | Op::Cli => {
                self.cpu.rflags =
                    self.cpu.rflags & !INTERRUPTS_ON | if op == Op::Sti { INTERRUPTS_ON } else { 0 };
                self.retire(None);
            }
            Op::Hlt => {
                self.retire(None);
                self.cpu.halted = true;
                return Some(Exit::Halt);
            }
            Op::Iret => {
                self.cpu.rflags = self.cpu.gpr[14];
                self.cpu.gpr[13] = self.cpu.gpr[12];
                let back = self.cpu.gpr[15] - ENTRY;
                self.retire(Some(back));
            }
            Op::Jump(op) => self.retire(Some(op)),
            Op::Crash => return Some(Exit::Shutdown),
            Op::Stuck => {
                self.pending = true;
                return Some(Exit::Device(Request::PioRead { port: 0x80, size: 1 }));
            }
        }
        None
    }
}

impl From<FakeEngine> for AnyEngine {
    fn from(engine: FakeEngine) -> AnyEngine {
        AnyEngine::Other(Box::new(engine))
    }
}

impl Engine for FakeEngine {
    fn cpu_model(&self) -> CpuModel {
        CpuModel::V2
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: ClockMode::Insn, disturbed: false }
    }
    fn failure(&self) -> Option<Failure> {
        let asked = self.host == HostFails::Asking && self.cpu.halted;
        self.failure.or(asked.then_some("no registers")).map(|why| Failure::Host(why.to_owned()))
    }
    fn run(&mut self, until: Until) -> Exit {
        let mut passing = until.passing;
        loop {
            if matches!(self.host, HostFails::Running(from) if self.cpu.icount >= from) {
                self.failure = Some("the device is gone");
            }
            if self.failure.is_some() {
                return Exit::Failed;
            }
            if !self.pending {
                if self.cpu.icount >= until.icount {
                    return Exit::Count;
                }
                if until.window && self.interruptible() {
                    return Exit::Window;
                }
                if !std::mem::take(&mut passing) && self.breakpoints.contains(&self.cpu.rip) {
                    return Exit::Breakpoint;
                }
                assert!(!self.cpu.halted, "a halted CPU is not run");
            }
            if let Some(exit) = self.step(until.icount) {
                return exit;
            }
        }
    }
    fn set_breakpoints(&mut self, addresses: &[u64]) -> bool {
        self.breakpoints = addresses.to_vec();
        true
    }
    fn icount(&self) -> u64 {
        self.cpu.icount
    }
    fn complete_read(&mut self, value: u64) {
        self.answer = Some(value);
    }
    fn interruptible(&self) -> bool {
        let answers = self.host != HostFails::Asking || !self.cpu.halted;
        self.on() && !self.pending && answers
    }
    fn interrupt(&mut self, vector: u8) {
        assert!(self.interruptible());
        self.cpu.gpr[15] = self.cpu.rip;
        self.cpu.gpr[14] = self.cpu.rflags;
        self.cpu.gpr[12] = std::mem::take(&mut self.cpu.gpr[13]);
        self.cpu.rflags &= !INTERRUPTS_ON;
        self.cpu.halted = false;
        self.cpu.rip = ENTRY + self.handler;
        self.mix(u64::from(vector));
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        self.tsc = anchor;
    }
    fn state(&self) -> CpuState {
        self.cpu.clone()
    }
    fn set_state(&mut self, state: &CpuState) {
        self.cpu = state.clone();
    }
    fn memory_written(&mut self, gpa: u64, len: u64) {
        self.dirty.extend(gpa / PAGE..(gpa + len).div_ceil(PAGE));
    }
    fn memory_replaced(&mut self, _: &[u64]) {
        self.dirty.clear();
    }
    fn take_dirty_pages(&mut self) -> Vec<u64> {
        if self.host == HostFails::Looking {
            self.failure = Some("no log of written pages");
        }
        let mut pages = std::mem::take(&mut self.dirty);
        pages.sort_unstable();
        pages.dedup();
        pages
    }
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        self.ram.memory().read(buf, GuestAddress(gva)).unwrap_or(0)
    }
}

/// Program of a fake machine and its simulated failures.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) main: Vec<Op>,
    pub(crate) handler: Vec<Op>,
    pub(crate) defect: Defect,
    pub(crate) host: HostFails,
}

impl Script {
    pub(crate) fn new(main: &[Op], handler: &[Op]) -> Script {
        Script {
            main: main.to_vec(),
            handler: handler.to_vec(),
            defect: Defect(None),
            host: HostFails::Never,
        }
    }
    pub(crate) fn machine(&self) -> Machine {
        self.machine_with(|_| {})
    }
    pub(crate) fn machine_with(&self, change: impl FnOnce(&mut MachineConfig)) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("vmlinux");
        std::fs::write(&kernel, small_kernel(b"code", 0)).unwrap();
        let mut config = MachineConfig::new(kernel);
        config.memory_bytes = 32 << 20;
        change(&mut config);
        let mut program = self.main.clone();
        // Running past the end of the main program is a crash.
        program.push(Op::Crash);
        let handler = program.len() as u64;
        program.extend(&self.handler);
        let (defect, host) = (self.defect, self.host);
        let engine = |ram: &Ram| FakeEngine {
            cpu: CpuState::default(),
            ram: ram.clone(),
            program,
            handler,
            tsc: TscAnchor { icount: 0, tsc: 0, num: 1, den: 1 },
            pending: false,
            answer: None,
            dirty: Vec::new(),
            defect,
            host,
            failure: None,
            breakpoints: Vec::new(),
        };
        Machine::new(config, |ram| Ok(engine(ram))).unwrap()
    }
}
