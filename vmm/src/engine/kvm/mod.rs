//! The kvm engine: the host's processor behind the engine trait, in clock modes `exit` and `branch`.
//!
//! - `inner`: entering the guest, and what its exits mean; within it `delivery`, of exceptions and interrupts; `access`: an access to a device, piece by piece
//! - `bridge`: the soft CPU, for what KVM cannot execute; `stretch`: the same for the last branches before an exact place
//!
//! In clock mode `exit` it runs to the guest's next exit. So its *count* is of exits that the guest causes by itself: accesses to
//! devices and HLT, each counted when its instruction is finished, with all iterations of a repeated one. What the
//! host causes (signals, emulation failures, MSRs that the filter holds back, closed gates) is not counted. Interrupts are taken behind
//! exits, where the guest can take one at once: no window is ever waited for.
//!
//! In clock mode `branch` a counter of the processor's says how many branches retired ([`crate::kvm::Counter`]). It is told to
//! stop the guest some branches before the place that is wanted, by the host's margin, and the soft CPU executes what is left. The
//! margin decides who executes, and nothing else. Each time that the guest was left, whatever for, the counter is read: what
//! the signal says is not believed. Interrupts wait for a window.
//!
//! The TSC stands still between two places at which it is set, if there is something that holds it ([`crate::kvm::HeldTsc`]); else
//! it shows what the host shows, and nothing of that is exact.
//!
//! Where the host has not shown that SYSCALL enters ring 0, its gates are closed ([`crate::kvm::gates`]): each exception, interrupt and
//! system call is delivered by the soft CPU.
//!
//! A stop that came too late, a TSC that ticked, a counter that was taken away: what was executed is worth nothing. The run ends
//! with [`Exit::Failed`], and can be made again from where it began ([`Engine::recover`]).
//!
//! Not here: breakpoints and watchpoints, which need a CPU that sees each instruction; CR8 (ends the run). A guest that never
//! exits cannot be told from one that will, so a time of the host's ends it, as the host's failure: never as something that
//! the guest did.
//!
//! **Invariants.**
//! - Errors of the host's end the run with a reason ([`Exit::Failed`]), and nothing is executed any more.
//! - Registers are read or replaced only when no instruction is unfinished; replacing finishes it first.
//! - Memory that something else than the guest replaced is forgotten by KVM's translations.

mod access;
mod bridge;
mod inner;
mod stretch;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use everett_cpu::CpuState;
use everett_cpu::state::Msrs;
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemoryMmap, MmapRegion};

use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::kvm::gates::Closed;
use crate::kvm::processor::Real;
use crate::kvm::state::PASSED_THROUGH;
use crate::kvm::{Counter, HeldTsc, Host, KvmError, PerfCounter, Processor, SlowTsc, Ticker, Vcpu, Vm};
use inner::Inner;

/// Counts for people; nothing depends on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KvmStats {
    /// Times that the guest was entered.
    pub entries: u64,
    /// Instructions that KVM could not execute and the soft CPU did.
    pub bridged: u64,
    /// RDMSR and WRMSR that the soft CPU executed.
    pub msrs: u64,
    /// Exceptions and system calls that ended at closed gates, and were the soft CPU's.
    pub delivered: u64,
    /// Last stretches to an exact branch, which the soft CPU executed.
    pub stretches: u64,
}

/// A count of branches, and how late it stops a guest at most.
#[derive(Debug)]
pub struct Counting {
    /// The counter.
    pub counter: Box<dyn Counter>,
    /// So many branches before the place that is wanted it is told to stop the guest. At least one.
    pub margin: u64,
}

/// What an engine is made of. Few hosts have all of it.
#[derive(Debug)]
pub struct Parts {
    /// The virtual CPU.
    pub processor: Box<dyn Processor>,
    /// With it the engine counts branches, else exits.
    pub counting: Option<Counting>,
    /// What holds the TSC.
    pub tsc: Option<Box<dyn HeldTsc>>,
}

/// What of a host is to be used besides its virtual CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proved {
    /// The raw event that counts conditional branches, and [`Counting::margin`].
    pub branches: Option<(u64, u64)>,
    /// Hold the TSC.
    pub tsc: bool,
    /// Leave exceptions and system calls to it; else the soft CPU delivers them ([`crate::kvm::gates`]).
    pub system_calls: bool,
}

/// A virtual CPU of the host's KVM on a machine's RAM.
#[derive(Debug)]
pub struct KvmEngine {
    // Reading the state delivers what is queued, which the guest cannot tell from doing so later.
    inner: RefCell<Inner>,
    /// It sees to it that signals come.
    ticks: bool,
}

/// How often a signal gets control back from a guest, if the engine sees to it.
const TICK: Duration = Duration::from_millis(20);
/// The same where the TSC is held, about.
const HELD: Duration = Duration::from_millis(1);

impl KvmEngine {
    /// A CPU on guest memory of one region from address 0, with what this host has proved to have.
    ///
    /// # Errors
    /// When the host's KVM refuses it, or has it no longer.
    pub fn new<B>(host: &Host, memory: Arc<GuestMemoryMmap<B>>, proved: Proved) -> Result<KvmEngine, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        let vm = Arc::new(Vm::new(host, Arc::clone(&memory))?);
        vm.filter_msrs(&PASSED_THROUGH)?;
        let vcpu = Vcpu::new(&vm, Msrs::default().apic_base)?;
        let tsc = if proved.tsc { Some(Box::new(SlowTsc::new(&vcpu)?) as Box<dyn HeldTsc>) } else { None };
        let open = |(event, margin)| {
            let counter = PerfCounter::open(event);
            let counter = counter.map_err(|source| KvmError::Request { what: "open a counter", source })?;
            Ok(Counting { counter: Box::new(counter), margin })
        };
        let counting = proved.branches.map(open).transpose()?;
        let real = Box::new(Real::new(vm, vcpu));
        let processor: Box<dyn Processor> =
            if proved.system_calls { real } else { Box::new(Closed::new(real)) };
        KvmEngine::from_parts(Parts { processor, counting, tsc }, memory)
    }

    /// An engine of these parts, whose processor is on this memory.
    ///
    /// # Errors
    /// When the processor cannot be set to its first state, or the memory has another shape.
    pub fn from_parts<B>(parts: Parts, memory: Arc<GuestMemoryMmap<B>>) -> Result<KvmEngine, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        Ok(KvmEngine { inner: RefCell::new(Inner::new(parts, memory)?), ticks: false })
    }

    /// End a run when so many signals ([`crate::kvm::Ticker`]) found the guest on the processor since the last thing that was counted: what
    /// the soft CPU does for it is not. What ends so depends on the
    /// host's time, and ends as the host's failure.
    pub fn give_up_after(&mut self, signals: u32) {
        self.inner.get_mut().give_up_after(signals);
    }

    /// The same by the host's clock, with signals of the engine's own.
    pub fn wait_at_most(&mut self, patience: Duration) {
        self.ticks = true;
        // What holds the TSC has signals of its own.
        let tick = if self.inner.get_mut().can_be_disturbed() { HELD } else { TICK };
        let signals = patience.as_nanos() / tick.as_nanos();
        self.give_up_after(u32::try_from(signals).unwrap_or(u32::MAX));
    }

    /// What it did so far.
    pub fn stats(&self) -> KvmStats {
        self.inner.borrow().stats()
    }
}

impl Engine for KvmEngine {
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.borrow();
        Capabilities { clock: inner.clock(), breakpoints: false, disturbed: inner.can_be_disturbed() }
    }
    fn failure(&self) -> Option<Failure> {
        self.inner.borrow().failure()
    }
    fn recover(&mut self) -> bool {
        self.inner.get_mut().recover()
    }
    fn run(&mut self, until: Until<'_>) -> Exit {
        let inner = self.inner.get_mut();
        // On whichever thread this is.
        if self.ticks
            && let Err(error) = Ticker::of_this_thread(TICK)
        {
            inner.fail_for(&format!("no signals to end a guest that does not exit: {error}"));
        }
        inner.run(&until)
    }
    fn icount(&self) -> u64 {
        self.inner.borrow().count()
    }
    fn complete_read(&mut self, value: u64) {
        self.inner.get_mut().complete_read(value);
    }
    fn interruptible(&self) -> bool {
        self.inner.borrow_mut().interruptible()
    }
    fn interrupt(&mut self, vector: u8) {
        self.inner.get_mut().interrupt(vector);
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        self.inner.get_mut().set_tsc(anchor);
    }
    fn state(&self) -> CpuState {
        self.inner.borrow_mut().state()
    }
    fn set_state(&mut self, state: &CpuState) {
        self.inner.get_mut().set_state(state);
    }
    fn memory_written(&mut self, gpa: u64, len: u64) {
        self.inner.get_mut().memory_written(gpa, len);
    }
    fn memory_replaced(&mut self, _: &[u64]) {
        self.inner.get_mut().memory_replaced();
    }
    fn take_dirty_pages(&mut self) -> Vec<u64> {
        self.inner.get_mut().take_dirty_pages()
    }
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        self.inner.borrow_mut().read_virtual(gva, buf)
    }
}
