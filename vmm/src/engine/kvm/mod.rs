//! The kvm engine: the host's processor behind the engine trait, in clock modes `exit` and `branch`.
//!
//! - `inner`: entry into the guest and handling of its exits; within it `delivery`: exceptions and interrupts;
//!   `access`: a device access, piece by piece
//! - `bridge`: the soft CPU for single instructions that KVM cannot execute; `stretch`: the soft CPU for the last
//!   branches before an exact place
//!
//! In clock mode `exit` a run goes to the guest's next exit. The *count* is the number of exits that the guest itself
//! causes: device accesses and HLT. Each is counted when its instruction is finished, with all iterations of a
//! repeated one. Exits that the host causes (signals, emulation failures, MSRs that the filter holds back, closed
//! gates) are not counted. An interrupt is taken after an exit if the guest can take it at once; the engine never
//! waits for an interrupt window.
//!
//! In clock mode `branch` a hardware counter counts retired branches ([`crate::kvm::Counter`]). It is armed to stop the
//! guest a margin of branches before the wanted place; the margin is a property of the host. The soft CPU executes the
//! rest. The margin only decides who executes a branch. After each exit, whatever its reason, the counter is read: the
//! signal itself is not trusted. Interrupts wait for an interrupt window.
//!
//! The TSC stands still between two places at which it is set, if it can be held ([`crate::kvm::HeldTsc`]). Else it
//! shows the host's TSC, which is not exact.
//!
//! If the host has not shown that SYSCALL enters ring 0, the gates are closed ([`crate::kvm::gates`]): the soft CPU
//! delivers each exception, interrupt and system call.
//!
//! If a stop came too late, the TSC ticked, or the counter was taken away, the executed instructions must be
//! discarded. The run ends with [`Exit::Failed`], and can be repeated from its start ([`Engine::recover`]).
//!
//! Not here: breakpoints and watchpoints, which need a CPU that sees each instruction; CR8, which KVM keeps to itself.
//! A CR8 other than zero ends the run. Reads give zero, and neither reads nor writes of zero are exits. On the soft
//! engine CR8 is the local APIC's task priority, and each access is an exit.
//!
//! A guest that never exits cannot be distinguished from one that exits later. So a limit of host time ends the run, as a
//! failure of the host and not as an action of the guest.
//!
//! **Invariants.**
//! - Errors of the host end the run with a reason ([`Exit::Failed`]), and nothing more is executed.
//! - Registers are read or replaced only when no instruction is unfinished; a replacement finishes it first.
//! - When memory was replaced from outside the guest, everything that KVM derived from page tables is dropped.

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

/// Statistics; nothing depends on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KvmStats {
    /// Number of entries into the guest.
    pub entries: u64,
    /// Number of instructions that the soft CPU executed because KVM could not.
    pub bridged: u64,
    /// Number of RDMSR and WRMSR instructions that the soft CPU executed.
    pub msrs: u64,
    /// Number of exceptions and system calls that the soft CPU delivered because the gates were closed.
    pub delivered: u64,
    /// Number of last stretches to an exact branch, which the soft CPU executed.
    pub stretches: u64,
}

/// A branch counter, and its margin.
#[derive(Debug)]
pub struct Counting {
    /// The counter.
    pub counter: Box<dyn Counter>,
    /// Number of branches before the wanted place at which the counter stops the guest. At least one.
    pub margin: u64,
}

/// Parts of an engine. Few hosts have all of them.
#[derive(Debug)]
pub struct Parts {
    /// The virtual CPU.
    pub processor: Box<dyn Processor>,
    /// If present, the engine counts branches, else exits.
    pub counting: Option<Counting>,
    /// Mechanism that holds the TSC, if the host has one.
    pub tsc: Option<Box<dyn HeldTsc>>,
}

/// Features of a host that the engine uses besides the virtual CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proved {
    /// Raw event that counts conditional branches, and [`Counting::margin`].
    pub branches: Option<(u64, u64)>,
    /// True if the TSC is held.
    pub tsc: bool,
    /// True if the processor delivers exceptions and system calls; else the soft CPU does ([`crate::kvm::gates`]).
    pub system_calls: bool,
    /// True if replaced memory needs no more than a flush ([`Real::new`]).
    pub coherent: bool,
}

/// A virtual CPU of the host's KVM on a machine's RAM.
#[derive(Debug)]
pub struct KvmEngine {
    // A `RefCell`, because reading the state delivers queued exceptions. The guest cannot tell this from a later
    // delivery.
    inner: RefCell<Inner>,
    /// True if the engine sets up its own signals.
    ticks: bool,
}

/// Interval of the signals that take control back from a guest, if the engine sets them up.
const TICK: Duration = Duration::from_millis(20);
/// Approximate interval of signals if the TSC is held.
const HELD: Duration = Duration::from_millis(1);

impl KvmEngine {
    /// Returns a CPU on guest memory of one region from address 0, with the features that this host has proved to have.
    ///
    /// # Errors
    /// Returns an error if the host's KVM refuses a request, or no longer has a feature.
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
            let counter = counter.map_err(KvmError::failed("open a counter"))?;
            Ok(Counting { counter: Box::new(counter), margin })
        };
        let counting = proved.branches.map(open).transpose()?;
        let real = Box::new(Real::new(vm, vcpu, proved.coherent));
        let processor: Box<dyn Processor> =
            if proved.system_calls { real } else { Box::new(Closed::new(real)) };
        KvmEngine::from_parts(Parts { processor, counting, tsc }, memory)
    }

    /// Returns an engine made of these parts. The processor must use this memory.
    ///
    /// # Errors
    /// Returns an error if the processor cannot be set to its first state, or if the memory is not one region from
    /// address 0.
    pub fn from_parts<B>(parts: Parts, memory: Arc<GuestMemoryMmap<B>>) -> Result<KvmEngine, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        Ok(KvmEngine { inner: RefCell::new(Inner::new(parts, memory)?), ticks: false })
    }

    /// Ends a run when `signals` signals ([`crate::kvm::Ticker`]) have interrupted the guest since the last counted
    /// exit or branch. Work of the soft CPU does not count as progress. Such an end depends on host time, and counts
    /// as a failure of the host.
    pub fn give_up_after(&mut self, signals: u32) {
        self.inner.get_mut().give_up_after(signals);
    }

    /// Ends a run as [`KvmEngine::give_up_after`] does, after about this much host time, with the engine's own signals.
    pub fn wait_at_most(&mut self, patience: Duration) {
        self.ticks = true;
        // The mechanism that holds the TSC has its own signals. A counter signals only when it overflows.
        let tick = if self.inner.get_mut().holds_tsc() { HELD } else { TICK };
        let signals = patience.as_nanos() / tick.as_nanos();
        self.give_up_after(u32::try_from(signals).unwrap_or(u32::MAX));
    }

    /// Sets the number of instructions that the soft CPU may execute without an exit or a counted branch before the
    /// guest is ended. For tests; it changes the guest's execution.
    pub fn limit_instructions(&mut self, instructions: u64) {
        self.inner.get_mut().limit_instructions(instructions);
    }

    /// Returns the statistics so far.
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
        // Signals are set up for the thread that runs the engine.
        if self.ticks
            && let Err(error) = Ticker::of_this_thread(TICK)
        {
            inner.fail_for(&format!("cannot set up the signals that end a guest without exits: {error}"));
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
