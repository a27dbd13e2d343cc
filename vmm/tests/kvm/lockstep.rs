//! Lockstep of the soft engine (Everett's own CPU) and the kvm engine (`/dev/kvm`): both run the same programs, and the
//! tests compare them at each exit.

use std::sync::Arc;
use std::time::Duration;

use everett_cpu::Request;
use everett_cpu::{CacheConfig, CpuState};
use everett_vmm::ClockMode;
use everett_vmm::digest::registers::{STATUS_FLAGS, compared};
use everett_vmm::engine::kvm::{KvmEngine, Proved};
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::kvm::{Host, KvmError, Ticker};
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use crate::ground::{END, Guest, RAM_BYTES, TABLES, TABLES_END};
use crate::lacks::{Lacks, ticking_host};
use crate::program::program;
use crate::rng::Rng;
use crate::tables::is_coherent;
use crate::trials::{Ran, trial};

/// Maximum number of exits of a program.
const EXITS_MAX: usize = 500;
pub(crate) const FOREVER: Until = Until { icount: u64::MAX, window: false, passing: false };
const PAGE: usize = 4096;
/// Bits that page walks set in page-table entries: accessed and dirty.
const NOTED_BY_WALKS: u8 = 0x60;

/// Guest memory that a test can read.
pub(crate) type Memory = Arc<GuestMemoryMmap<()>>;

pub(crate) fn memory() -> Memory {
    Arc::new(GuestMemoryMmap::from_ranges(&[(GuestAddress(0), RAM_BYTES)]).expect("memory"))
}
pub(crate) fn bytes(memory: &Memory) -> Vec<u8> {
    let mut all = vec![0; RAM_BYTES];
    memory.read_slice(&mut all, GuestAddress(0)).expect("it is RAM");
    all
}
fn fill(memory: &Memory, ram: &[u8]) {
    memory.write_slice(ram, GuestAddress(0)).expect("it is RAM");
}

/// Returns the part of a state that both engines must have in common after an exit. [`compared`], the rule for digests,
/// leaves out the status flags, both in RFLAGS and in registers that look like a copy of RFLAGS. This function keeps
/// the status flags: the programs overwrite each undefined flag before the next exit, and never copy it.
pub(crate) fn comparable(state: CpuState) -> CpuState {
    let (rflags, gpr) = (state.rflags, state.gpr);
    CpuState { icount: 0, exceptions: 0, rflags, gpr, ..compared(ClockMode::Exit, state) }
}

/// Returns the lines in which two states differ, or `None` if they are equal.
pub(crate) fn difference(soft: &CpuState, kvm: &CpuState) -> Option<String> {
    if soft == kvm {
        return None;
    }
    let (a, b) = (format!("{soft:#x?}"), format!("{kvm:#x?}"));
    let lines = a.lines().zip(b.lines()).enumerate().filter(|(_, (a, b))| a != b);
    let lines: Vec<String> =
        lines.map(|(n, (a, b))| format!("line {n}: {} / {}", a.trim(), b.trim())).collect();
    Some(format!("soft / kvm: {}", lines.join("; ")))
}

/// Returns the first difference in memory, or `None`. Ignores accessed and dirty bits of page tables.
pub(crate) fn memory_difference(soft: &[u8], kvm: &[u8]) -> Option<String> {
    let tables = TABLES as usize..TABLES_END as usize;
    let differ = |at: usize| {
        let mask = if tables.contains(&at) && at.is_multiple_of(8) { !NOTED_BY_WALKS } else { 0xff };
        (soft[at] ^ kvm[at]) & mask != 0
    };
    let at = (0..soft.len()).find(|&at| differ(at))?;
    Some(format!("memory at {at:#x}: {:#x} / {:#x}", soft[at], kvm[at]))
}

/// Returns a device's answer to a read, or `None` if the exit is no read.
fn answer(exit: Exit, rng: &mut Rng) -> Option<u64> {
    matches!(exit, Exit::Device(Request::MmioRead { .. }) | Exit::Device(Request::PioRead { .. }))
        .then(|| rng.next())
}

struct Pair<'a> {
    soft: SoftEngine,
    kvm: &'a mut KvmEngine,
    exits: usize,
    leak: Option<Leak>,
}

/// Deliberate error that the comparison has to find: after this number of exits, the function changes the kvm engine's
/// state.
type Leak = (usize, fn(&mut CpuState));

impl Pair<'_> {
    /// Runs both engines to their next exit, or for at most one instruction if `one` is true. Compares the exits.
    fn run(&mut self, one: bool) -> Result<Exit, String> {
        let until = |engine: &dyn Engine| Until {
            icount: if one { engine.icount() + 1 } else { u64::MAX },
            ..FOREVER
        };
        let soft = self.soft.run(until(&self.soft));
        let until = until(self.kvm);
        let kvm = self.kvm.run(until);
        if soft != kvm {
            let rip = self.soft.state().rip;
            return Err(format!("exit {}: {soft:x?} / {kvm:x?}, soft at {rip:#x}", self.exits));
        }
        Ok(soft)
    }
    fn compare(&mut self, what: &str) -> Result<(), String> {
        if let Some((_, change)) = self.leak.take_if(|(at, _)| *at == self.exits) {
            let mut state = self.kvm.state();
            change(&mut state);
            self.kvm.set_state(&state);
        }
        match difference(&comparable(self.soft.state()), &comparable(self.kvm.state())) {
            Some(differs) => Err(format!("{what} {}: {differs}", self.exits)),
            None => Ok(()),
        }
    }

    /// Runs a program to its end.
    fn program(&mut self, rng: &mut Rng) -> Result<(), String> {
        let mut exit = self.run(false)?;
        loop {
            self.exits += 1;
            if self.exits > EXITS_MAX {
                return Ok(());
            }
            match exit {
                Exit::Halt => {
                    self.compare("halt")?;
                    if !self.soft.interruptible() {
                        return Ok(());
                    }
                    if !self.kvm.interruptible() {
                        return Err("soft takes an interrupt in HLT, kvm does not".to_owned());
                    }
                    let vector = 0x40 + rng.below(0x80) as u8;
                    self.soft.interrupt(vector);
                    self.kvm.interrupt(vector);
                    if rng.one_in(2) {
                        // The comparison reads the state. After a read of the state, the kvm engine's soft CPU delivers
                        // the interrupt, instead of KVM.
                        self.compare("interrupt")?;
                    }
                }
                Exit::Shutdown => return Ok(()),
                Exit::Device(Request::MmioWrite { gpa: END, .. }) => return Ok(()),
                Exit::Device(Request::MmioRead { .. })
                | Exit::Device(Request::MmioWrite { .. })
                | Exit::Device(Request::PioRead { .. })
                | Exit::Device(Request::PioWrite { .. }) => {
                    if let Some(value) = answer(exit, rng) {
                        self.soft.complete_read(value);
                        self.kvm.complete_read(value);
                    }
                    // The instruction ends, or it accesses a device again.
                    exit = self.run(true)?;
                    if exit != Exit::Count {
                        continue;
                    }
                    self.compare("exit")?;
                    let (soft, kvm) = (self.soft.interruptible(), self.kvm.interruptible());
                    if soft != kvm {
                        return Err(format!(
                            "exit {}: soft takes interrupts: {soft}, kvm: {kvm}",
                            self.exits
                        ));
                    }
                    if soft && rng.one_in(3) {
                        let vector = 0x40 + rng.below(0x80) as u8;
                        self.soft.interrupt(vector);
                        self.kvm.interrupt(vector);
                    }
                }
                other => return Err(format!("exit {}: {other:?}", self.exits)),
            }
            exit = self.run(false)?;
        }
    }
}

/// Runs programs on one vCPU of KVM and on the soft engine. A new vCPU replaces the old one after [`PROGRAMS_A_CPU`]
/// programs, and after a failure.
pub(crate) struct Bench<'a> {
    host: &'a Host,
    gates: Gates,
    kvm: KvmEngine,
    kvm_memory: Memory,
    soft_memory: Memory,
    programs: u64,
    entries: u64,
    bridged: u64,
    delivered: u64,
    leak: Option<Leak>,
}

/// Number of programs that one vCPU runs before another vCPU replaces it.
const PROGRAMS_A_CPU: u64 = 64;
/// Number of signals of [`tick`], i.e. ten seconds, after which the engine gives up a guest that does not exit.
pub(crate) const SIGNALS_MAX: u32 = 1000;

/// Starts signals to this thread every 10 ms. A signal interrupts a guest that does not exit.
pub(crate) fn tick() -> Ticker {
    Ticker::start(Duration::from_millis(10)).expect("timers")
}

/// CPU that delivers exceptions, software interrupts and system calls. With closed gates, KVM gets an interrupt
/// descriptor table without gates, so that the soft CPU of the kvm engine has to deliver these events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gates {
    /// The host's processor, with open gates.
    Open = 0,
    /// The soft CPU, with closed gates.
    Closed = 1,
}

impl Gates {
    fn proved(self, host: &Host) -> Proved {
        Proved { system_calls: self == Gates::Open, coherent: is_coherent(host), ..Proved::default() }
    }
}

pub(crate) fn kvm_engine(host: &Host, gates: Gates, memory: &Memory) -> KvmEngine {
    let mut engine = KvmEngine::new(host, Arc::clone(memory), gates.proved(host)).expect("a virtual machine");
    engine.give_up_after(SIGNALS_MAX);
    engine
}

/// Creates a KVM engine on the RAM of a simulated machine (which also has devices), with these gates.
pub(crate) fn kvm_engine_on(host: &Host, gates: Gates, ram: &Ram) -> Result<KvmEngine, KvmError> {
    let mut engine = KvmEngine::new(host, ram.shared(), gates.proved(host))?;
    engine.give_up_after(SIGNALS_MAX);
    Ok(engine)
}

impl<'a> Bench<'a> {
    pub(crate) fn new(host: &'a Host, gates: Gates) -> Bench<'a> {
        let (kvm_memory, soft_memory) = (memory(), memory());
        Bench {
            host,
            gates,
            kvm: kvm_engine(host, gates, &kvm_memory),
            kvm_memory,
            soft_memory,
            programs: 0,
            entries: 0,
            bridged: 0,
            delivered: 0,
            leak: None,
        }
    }

    /// Returns the number of exceptions and system calls that the soft CPU delivered for KVM.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Runs a guest on both engines. Returns the number of exits.
    pub(crate) fn run(&mut self, guest: &Guest, seed: u64) -> Result<usize, String> {
        if self.programs.is_multiple_of(PROGRAMS_A_CPU) || self.kvm.failure().is_some() {
            self.kvm_memory = memory();
            self.kvm = kvm_engine(self.host, self.gates, &self.kvm_memory);
        }
        self.programs += 1;
        fill(&self.kvm_memory, &guest.ram);
        fill(&self.soft_memory, &guest.ram);
        self.kvm.memory_replaced(&(0..(RAM_BYTES / PAGE) as u64).collect::<Vec<_>>());
        self.kvm.set_state(&guest.state);
        let mut soft = SoftEngine::new(Arc::clone(&self.soft_memory), CacheConfig::default());
        soft.set_state(&guest.state);
        let before = self.kvm.stats();
        let mut pair = Pair { soft, kvm: &mut self.kvm, exits: 0, leak: self.leak };
        pair.program(&mut Rng::for_case(seed, 1))?;
        let (exits, stats) = (pair.exits, self.kvm.stats());
        self.entries += stats.entries - before.entries;
        self.bridged += stats.bridged - before.bridged;
        self.delivered += stats.delivered - before.delivered;
        let (soft, kvm) = (bytes(&self.soft_memory), bytes(&self.kvm_memory));
        if let Some(differs) = memory_difference(&soft, &kvm) {
            return Err(differs);
        }
        let dirty = self.kvm.take_dirty_pages();
        let changed =
            (0..RAM_BYTES / PAGE).filter(|n| kvm[n * PAGE..][..PAGE] != guest.ram[n * PAGE..][..PAGE]);
        for page in changed {
            if !dirty.contains(&(page as u64)) {
                return Err(format!("page {page:#x} was written and not reported"));
            }
        }
        Ok(exits)
    }
}

fn random_programs_do_the_same(gates: Gates) -> Ran {
    let (host, _ticker) = ticking_host(gates)?;
    let programs = crate::programs_or(3000);
    let lacks = Lacks::of(&host, gates);
    eprintln!("left out on this host, gates {gates:?}: {lacks:?}");
    let mut bench = Bench::new(&host, gates);
    let (mut exits, mut failures) = (0, Vec::new());
    for seed in 0..programs {
        let user = seed & 1 == 1;
        match bench.run(&program(seed, user, lacks), seed) {
            Ok(n) => exits += n,
            Err(why) => failures.push(format!("seed {seed}, ring {}: {why}", if user { 3 } else { 0 })),
        }
    }
    eprintln!(
        "{programs} programs, {exits} exits, {} entries, {} instructions by the soft CPU, {} deliveries, {} programs differ",
        bench.entries,
        bench.bridged,
        bench.delivered,
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(20)].join("\n"));
    assert_eq!(bench.delivered > 0, gates == Gates::Closed);
    Ok(())
}

fn random_programs_do_the_same_on_both_engines() -> Ran {
    random_programs_do_the_same(Gates::Open)
}

/// With closed gates, the soft CPU executes some pieces of code that the host's processor executes wrongly. The random
/// programs can therefore contain more kinds of pieces than with open gates.
fn random_programs_do_the_same_on_both_engines_if_the_soft_cpu_delivers() -> Ran {
    random_programs_do_the_same(Gates::Closed)
}

/// Checks that the tests above can fail, and that programs do not end before their first exit.
fn a_change_of_one_bit_is_caught() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let lacks = Lacks::of(&host, Gates::Open);
    let changes: [fn(&mut CpuState); 8] = [
        |s| s.gpr[11] ^= 1 << 40,
        |s| s.rflags ^= 1,
        |s| s.fpu.mxcsr ^= 1,
        |s| s.fpu.xmm[9] ^= 1 << 100,
        |s| s.fpu.r[3].0 ^= 1,
        |s| s.msrs.kernel_gs_base ^= 1,
        |s| s.dr[2] ^= 1,
        |s| s.seg[3].limit ^= 0x1000,
    ];
    let mut bench = Bench::new(&host, Gates::Open);
    for (n, change) in changes.into_iter().enumerate() {
        bench.leak = Some((2, change));
        let caught =
            (0..16).step_by(2).filter(|seed| bench.run(&program(*seed, false, lacks), *seed).is_err());
        let caught = caught.count();
        assert!(caught >= 6, "change {n} was caught in {caught} of 8 programs");
    }
    Ok(())
}

/// [`comparable`] keeps the status flags, although digests ignore them in RFLAGS and in registers that look like a copy
/// of RFLAGS.
fn a_status_flag_is_compared_wherever_it_is() {
    let state = |rflags, rax| {
        let mut state = CpuState { rflags, ..CpuState::default() };
        state.gpr[0] = rax;
        comparable(state)
    };
    for flag in (0..64).map(|bit| 1 << bit).filter(|flag| flag & STATUS_FLAGS != 0) {
        assert_ne!(
            state(0x202, 0x202),
            state(0x202 ^ flag, 0x202),
            "flag {flag:#x} in RFLAGS must make a difference"
        );
        assert_ne!(
            state(0x202, 0x202),
            state(0x202, 0x202 ^ flag),
            "flag {flag:#x} in RAX must make a difference"
        );
    }
}

/// Returns the tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(random_programs_do_the_same_on_both_engines),
        trial(random_programs_do_the_same_on_both_engines_if_the_soft_cpu_delivers),
        trial(a_change_of_one_bit_is_caught),
        trial(a_status_flag_is_compared_wherever_it_is),
    ]
}
