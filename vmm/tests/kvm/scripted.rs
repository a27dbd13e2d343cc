//! A simulated ("scripted") host for the kvm engine, which needs no `/dev/kvm`. Its processor is a soft CPU (Everett's
//! own CPU) that stops as late as the script says, and its counter and TSC misbehave as the script says.
//!
//! Each trouble affects the guest's execution, as on a real host. If the guest stops too late, it has executed too
//! much. The engine holds the TSC at one value. If the TSC ticks nevertheless, RDTSC returns another value. An engine
//! that misses a trouble therefore computes another digest.

use std::sync::{Arc, Mutex, MutexGuard};

use everett_cpu::Request;
use everett_cpu::{CacheConfig, CpuState};
use everett_vmm::engine::kvm::{Counting, KvmEngine, Parts};
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, TscAnchor, Until};
use everett_vmm::kvm::gates::RESUME;
use everett_vmm::kvm::{Counter, HeldTsc, KvmError, KvmExit, Processor, Queued, Saved};
use everett_vmm::ram::Ram;

use crate::makes::{Make, Other};
use crate::rng::Rng;

/// Distance from the stop that the engine requests to the exact stop, in branches. The engine requests an early stop,
/// because a counter's signal stops the guest late. The skid is the number of branches that the guest executes after
/// the requested stop. On sound hosts the skid is smaller than this margin.
pub(crate) const MARGIN: u64 = 64;
/// Number of branches until another signal comes, if the counter's signal was lost.
const WATCHDOG: u64 = 50_000;

/// Disturbance by the host at an entry into the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The guest stops this many branches after the signal was due. A delay below [`MARGIN`] is a normal skid.
    Late(u64),
    /// No signal comes when it is due.
    Lost,
    /// The TSC ticks while the guest executes.
    Tick,
    /// The host takes the counter away for one entry.
    Uncounted,
    /// A signal comes before the guest executes anything.
    Signal,
    /// The host takes the counter away for good.
    Gone,
}

/// Returns the trouble of an entry, by the entry's number.
type Plan = Box<dyn FnMut(u64) -> Trouble + Send>;

/// State that the parts of a host share.
pub(crate) struct Script {
    plan: Plan,
    pub(crate) entries: u64,
    /// Number of calls of `has_moved`, by which the engine asks whether the TSC has moved. On a real host, `has_moved`
    /// also stops the periodic signals with which the engine holds the TSC at one value.
    pub(crate) asked: u64,
    armed: u64,
    counted: u64,
    uncounted: bool,
    gone: bool,
    held: u64,
    ticked: bool,
    /// Number of occurrences of each of the first four troubles, in the order of [`Trouble`]. Delays below [`MARGIN`]
    /// do not count.
    pub(crate) troubles: [u64; 4],
    /// Number of times that [`Other`], a processor of another make, gave at least one undefined flag another value than
    /// the soft CPU's.
    pub(crate) replaced: u64,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Script({} entries)", self.entries)
    }
}

/// Script of a host, shared by its parts.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Script>>);

impl Shared {
    pub(crate) fn new(plan: impl FnMut(u64) -> Trouble + Send + 'static) -> Shared {
        Shared(Arc::new(Mutex::new(Script {
            plan: Box::new(plan),
            entries: 0,
            asked: 0,
            armed: u64::MAX,
            counted: 0,
            uncounted: false,
            gone: false,
            held: 0,
            ticked: false,
            troubles: [0; 4],
            replaced: 0,
        })))
    }
    /// Returns a host without trouble and with a random skid.
    pub(crate) fn sound(seed: u64) -> Shared {
        let mut rng = Rng::for_case(seed, 31);
        Shared::new(move |_| Trouble::Late(rng.below(MARGIN)))
    }
    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().expect("no test has panicked while it held the script")
    }
    /// Adds to the count of branches.
    pub(crate) fn count(&self, branches: u64) {
        self.script().counted += branches;
    }
    /// Returns the number of branches after which the counter's signal is due.
    pub(crate) fn armed(&self) -> u64 {
        self.script().armed
    }
    /// Returns an engine with this host's counter and TSC and the given processor.
    pub(crate) fn engine(
        &self,
        ram: &Ram,
        processor: impl Processor + 'static,
    ) -> Result<KvmEngine, KvmError> {
        let counting = Counting { counter: Box::new(self.clone()), margin: MARGIN };
        let parts = Parts {
            processor: Box::new(processor),
            counting: Some(counting),
            tsc: Some(Box::new(self.clone())),
        };
        KvmEngine::from_parts(parts, ram.shared())
    }
    /// Returns an engine with this host's counter and TSC, on a soft CPU.
    pub(crate) fn engine_on(&self, ram: &Ram) -> Result<KvmEngine, KvmError> {
        self.engine(ram, self.processor(ram, None))
    }
    /// Returns an engine with this host's counter and TSC, on a processor of another make.
    pub(crate) fn engine_of(&self, ram: &Ram, make: Make, seed: u64) -> Result<KvmEngine, KvmError> {
        self.engine(ram, self.processor(ram, Some(Other::new(make, seed))))
    }
    /// Returns an engine that counts exits, on a processor of another make.
    pub(crate) fn exits_of(&self, ram: &Ram, make: Make, seed: u64) -> Result<KvmEngine, KvmError> {
        let processor = Box::new(self.processor(ram, Some(Other::new(make, seed))));
        let tsc: Option<Box<dyn HeldTsc>> = Some(Box::new(self.clone()));
        KvmEngine::from_parts(Parts { processor, counting: None, tsc }, ram.shared())
    }
    /// Returns an engine that counts exits, on a processor whose KVM does not clear RFLAGS.RF after a device access.
    pub(crate) fn exits_that_keep_resume(&self, ram: &Ram) -> Result<KvmEngine, KvmError> {
        let processor = Box::new(Scripted { keeps_resume: true, ..self.processor(ram, None) });
        KvmEngine::from_parts(Parts { processor, counting: None, tsc: None }, ram.shared())
    }
    /// Returns an engine that counts exits, on a processor whose KVM finishes device accesses. If an access then raises
    /// an exception, KVM does not deliver that exception. Instead, it queues the exception `queues`.
    pub(crate) fn exits_that_queue(&self, ram: &Ram, queues: Fault) -> Result<KvmEngine, KvmError> {
        let processor = Box::new(Scripted { queues: Some(queues), ..self.processor(ram, None) });
        KvmEngine::from_parts(Parts { processor, counting: None, tsc: None }, ram.shared())
    }
    /// Returns an engine that counts exits.
    pub(crate) fn exits_on(&self, ram: &Ram) -> Result<KvmEngine, KvmError> {
        let processor = Box::new(self.processor(ram, None));
        KvmEngine::from_parts(Parts { processor, counting: None, tsc: None }, ram.shared())
    }
    /// Returns an engine with this host's counter, and no means to hold the TSC.
    pub(crate) fn branches_with_a_free_tsc(&self, ram: &Ram) -> Result<KvmEngine, KvmError> {
        let counting = Some(Counting { counter: Box::new(self.clone()), margin: MARGIN });
        let processor = Box::new(self.processor(ram, None));
        KvmEngine::from_parts(Parts { processor, counting, tsc: None }, ram.shared())
    }
    fn processor(&self, ram: &Ram, make: Option<Other>) -> Scripted {
        let caches =
            CacheConfig { tlb_entries: 64, block_entries: 1024, branches: true, ..CacheConfig::default() };
        let soft = SoftEngine::new(ram.shared(), caches);
        let pages = ram.len() / 4096;
        let shared = self.clone();
        Scripted {
            shared,
            soft,
            make,
            pages,
            exit: None,
            window: false,
            data: [0; 8],
            keeps_resume: false,
            queues: None,
            queued: Queued::default(),
        }
    }
}

impl Counter for Shared {
    fn arm(&mut self, after: u64) -> Result<(), KvmError> {
        let mut script = self.script();
        (script.armed, script.counted, script.uncounted) = (after, 0, false);
        Ok(())
    }
    fn read(&mut self) -> Result<u64, KvmError> {
        let script = self.script();
        if script.gone {
            return Err(KvmError::Exit("the counter is gone".to_owned()));
        }
        if script.uncounted {
            return Err(KvmError::Disturbed("the counter was taken away for a while".to_owned()));
        }
        Ok(script.counted)
    }
}

impl HeldTsc for Shared {
    fn hold(&mut self, tsc: u64) -> Result<(), KvmError> {
        let mut script = self.script();
        (script.held, script.ticked) = (tsc, false);
        Ok(())
    }
    fn has_moved(&mut self) -> Result<bool, KvmError> {
        let mut script = self.script();
        script.asked += 1;
        Ok(script.ticked)
    }
}

/// Vector of an exception, and its error code.
pub(crate) type Fault = (u8, Option<u32>);

/// A soft CPU that behaves as a virtual CPU of KVM.
#[derive(Debug)]
struct Scripted {
    shared: Shared,
    soft: SoftEngine,
    /// Replaces undefined status flags by those of another make of processor. `None` leaves the soft CPU's values.
    make: Option<Other>,
    pages: u64,
    /// The last exit, until `finish` finishes its instruction. `None` if the last entry ended with a signal.
    exit: Option<KvmExit>,
    window: bool,
    data: [u8; 8],
    /// True if a finished device access leaves RFLAGS.RF as it was.
    keeps_resume: bool,
    /// Exception to queue if the end of a device access raises any exception. `None` delivers that exception instead.
    queues: Option<Fault>,
    queued: Queued,
}

impl Scripted {
    /// Returns the number of conditional branches that retired since the registers were loaded.
    fn branches(&self) -> u64 {
        self.make.as_ref().map_or_else(|| self.soft.branches(), |make| make.branches(&self.soft))
    }
    fn execute(&mut self, until: Until) -> Exit {
        let Some(make) = &mut self.make else { return self.soft.run(until) };
        let exit = make.run(&mut self.soft, until);
        self.shared.script().replaced += std::mem::take(&mut make.replaced);
        exit
    }
    /// Converts the soft CPU's exit to KVM's form. Returns `None` if the soft CPU stopped at the requested instruction
    /// count, which is no exit of KVM.
    fn exit(&mut self, exit: Exit) -> Result<Option<KvmExit>, KvmError> {
        let exit = match exit {
            Exit::Count => return Ok(None),
            Exit::Window => KvmExit::Window,
            Exit::Halt => KvmExit::Halt,
            Exit::Shutdown => KvmExit::Shutdown,
            Exit::Device(Request::MmioRead { gpa, size }) => {
                self.data = [0; 8];
                KvmExit::MmioRead { gpa, size }
            }
            Exit::Device(Request::MmioWrite { gpa, size, value }) => KvmExit::MmioWrite { gpa, size, value },
            Exit::Device(Request::PioRead { port, size }) => {
                self.data = [0; 8];
                KvmExit::PioRead { port, size, count: 1 }
            }
            Exit::Device(Request::PioWrite { port, size, value }) => {
                self.data = u64::from(value).to_le_bytes();
                KvmExit::PioWrite { port, size, count: 1 }
            }
            other => return Err(KvmError::Exit(format!("{other:?}"))),
        };
        self.exit = Some(exit);
        Ok(Some(exit))
    }
}

impl Processor for Scripted {
    fn run(&mut self) -> Result<KvmExit, KvmError> {
        assert_eq!(self.queued, Queued::default(), "a scripted processor cannot deliver queued exceptions");
        let (stop, tsc) = {
            let mut script = self.shared.script();
            let entry = script.entries;
            script.entries += 1;
            let trouble = (script.plan)(entry);
            let mut tsc = script.held;
            let mut stop = script.armed;
            match trouble {
                Trouble::Late(by) => {
                    script.troubles[0] += u64::from(by >= MARGIN);
                    stop = stop.saturating_add(by);
                }
                Trouble::Lost => {
                    script.troubles[1] += 1;
                    stop = stop.saturating_add(WATCHDOG);
                }
                Trouble::Tick => {
                    script.troubles[2] += 1;
                    script.ticked = true;
                    tsc += 1;
                }
                Trouble::Uncounted => {
                    script.troubles[3] += 1;
                    script.uncounted = true;
                }
                Trouble::Signal => stop = 0,
                Trouble::Gone => script.gone = true,
            }
            (stop, tsc)
        };
        self.soft.set_tsc(TscAnchor { icount: 0, tsc, num: 0, den: 1 });
        self.exit = None;
        let before = self.branches();
        loop {
            let missing = stop.saturating_sub(self.branches() - before);
            if missing == 0 {
                break;
            }
            let icount = self.soft.icount() + missing.min(1 << 20);
            let exit = self.execute(Until { icount, window: self.window, passing: false });
            if self.exit(exit)?.is_some() {
                break;
            }
        }
        self.shared.count(self.branches() - before);
        Ok(self.exit.unwrap_or(KvmExit::Interrupted))
    }
    fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        match self.exit.take() {
            Some(KvmExit::PioRead { .. } | KvmExit::MmioRead { .. }) => {
                self.soft.complete_read(u64::from_le_bytes(self.data));
            }
            Some(exit) if exit.is_unfinished() => {}
            _ => return Ok(None),
        }
        let icount = self.soft.icount();
        let before = self.soft.state();
        let resume = before.rflags & RESUME;
        let exit = self.soft.run(Until { icount, window: false, passing: false });
        if self.queues.is_some() {
            let CpuState { exceptions, cr2, .. } = self.soft.state();
            if exceptions != 0 || exit == Exit::Shutdown {
                self.queued.exception = self.queues;
                self.soft.set_state(&CpuState { cr2, ..before });
                return Ok(None);
            }
        }
        if exit == Exit::Count && self.keeps_resume {
            let mut state = self.soft.state();
            state.rflags |= resume;
            self.soft.set_state(&state);
        }
        self.exit(exit)
    }
    fn answer_mmio(&mut self, value: u64) {
        self.data = value.to_le_bytes();
    }
    fn answer_msr(&mut self, _: Option<u64>) {}
    fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        &mut self.data[..usize::from(size) * count as usize]
    }
    fn is_at_port(&mut self) -> bool {
        matches!(self.exit, Some(KvmExit::PioRead { .. } | KvmExit::PioWrite { .. }))
    }
    fn interrupt(&mut self, vector: u8) -> Result<(), KvmError> {
        self.soft.interrupt(vector);
        Ok(())
    }
    fn ready_for_interrupt(&mut self) -> bool {
        self.queued == Queued::default() && self.soft.interruptible()
    }
    fn request_window(&mut self, on: bool) {
        self.window = on;
    }
    fn priority(&mut self) -> u8 {
        0
    }
    fn load(&mut self, state: &CpuState) -> Result<(), KvmError> {
        let unfinished = self.exit.is_some_and(|exit| exit.is_unfinished());
        assert!(!unfinished, "an instruction must be finished before its registers are replaced");
        let icount = self.soft.icount();
        self.soft.set_state(&CpuState { icount, ..state.clone() });
        self.queued = Queued::default();
        if let Some(make) = &mut self.make {
            make.state_replaced();
        }
        Ok(())
    }
    fn save(&mut self) -> Result<Saved, KvmError> {
        let state = CpuState { exceptions: 0, ..self.soft.state() };
        Ok(Saved { state, queued: self.queued })
    }
    fn save_place(&mut self) -> Result<CpuState, KvmError> {
        Ok(self.soft.state())
    }
    fn queued(&mut self) -> Result<Queued, KvmError> {
        Ok(self.queued)
    }
    fn take_dirty_pages(&mut self) -> Result<Vec<u64>, KvmError> {
        Ok(self.soft.take_dirty_pages())
    }
    fn forget_memory(&mut self) -> Result<(), KvmError> {
        let pages: Vec<u64> = (0..self.pages).collect();
        self.soft.memory_replaced(&pages);
        Ok(())
    }
}
