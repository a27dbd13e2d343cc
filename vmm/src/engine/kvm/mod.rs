//! The KVM engine executes guests on the host's processor through `/dev/kvm`, in clock modes `exit` and `branch`.
//!
//! - `inner`: entry into the guest and handling of its exits; within it `delivery`: exceptions and interrupts;
//!   `access`: a device access, piece by piece
//! - `bridge`: runs single instructions on the soft CPU if KVM cannot; `stretch`: runs the last branches before an
//!   exact stop on the soft CPU
//!
//! In clock mode `exit`, a run goes to the guest's next exit. The *count* is the number of exits that the guest itself
//! causes: device accesses and HLT. The engine counts an exit when its instruction is finished, with all iterations of
//! a repeated instruction. It does not count exits that the host causes: signals, emulation failures, MSRs that the
//! filter denies, closed gates (see below). After an exit, the guest takes an interrupt only if it can do so at once;
//! the engine never waits for an interrupt window.
//!
//! In clock mode `branch`, a hardware counter counts retired conditional branches ([`crate::kvm::Counter`]). Its signal
//! stops the guest some branches before the requested count. The distance, called margin, depends on the host. The soft
//! CPU executes the remaining branches, so the margin only decides which of the two CPUs executes a branch. The engine
//! reads the counter after each exit, because the signal may come late or not at all. Interrupts wait for an interrupt
//! window.
//!
//! If the host can hold the TSC ([`crate::kvm::HeldTsc`]), the TSC stands still until the machine sets it again.
//! Otherwise the guest reads the host's TSC, which is not exact.
//!
//! If the host has not shown that SYSCALL enters ring 0, the engine closes the gates ([`crate::kvm::gates`]): the soft
//! CPU delivers each exception, interrupt and system call.
//!
//! The host disturbs a run if the guest stopped too late, the TSC ticked, or the kernel took the counter away. The run
//! then ends with [`Exit::Failed`], and everything that it executed must be discarded. The machine can repeat it from
//! its start ([`Engine::recover`]).
//!
//! The engine lacks breakpoints and watchpoints, which need a CPU that sees each instruction. It also lacks CR8, which
//! KVM handles itself: a CR8 other than zero ends the run, reads return zero, and accesses cause no exit. On the soft
//! engine, CR8 is the local APIC's task priority, and each access is an exit.
//!
//! The engine cannot distinguish a guest that never exits from one that exits later. So a limit of host time ends the
//! run, as a failure of the host and not as an action of the guest.
//!
//! **Invariants.**
//! - An error of the host ends the run with a reason ([`Exit::Failed`]). The engine then executes nothing more, unless
//!   the error was a disturbance and the machine repeats the run.
//! - The engine finishes an unfinished instruction before it reads or replaces registers.
//! - When Everett has replaced guest memory, KVM drops everything that it derived from page tables.

mod access;
mod bridge;
mod inner;
mod stretch;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use everett_cpu::state::Msrs;
use everett_cpu::{CpuModel, CpuState};
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemoryMmap, MmapRegion};

use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::kvm::gates::Closed;
use crate::kvm::processor::Real;
use crate::kvm::state::PASSED_THROUGH;
use crate::kvm::{Counter, HeldTsc, Host, KvmError, PerfCounter, Processor, SlowTsc, Ticker, Vcpu, Vm};
use inner::Inner;

/// Statistics for display.
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
    /// Number of times that the soft CPU executed the last branches before an exact stop.
    pub stretches: u64,
}

/// A branch counter and its margin.
#[derive(Debug)]
pub struct Counting {
    /// The counter.
    pub counter: Box<dyn Counter>,
    /// Number of branches before the requested count at which the counter signals. At least one.
    pub margin: u64,
}

/// Parts of an engine. Few hosts can provide all of them.
#[derive(Debug)]
pub struct Parts {
    /// The virtual CPU and its memory.
    pub processor: Box<dyn Processor>,
    /// Branch counter. If present, the engine counts branches; otherwise it counts exits.
    pub counting: Option<Counting>,
    /// Holds the TSC still. `None` if the host cannot.
    pub tsc: Option<Box<dyn HeldTsc>>,
}

/// Features of a host, besides the virtual CPU, that checks have confirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proved {
    /// Raw number of the hardware event that counts retired conditional branches, and [`Counting::margin`].
    pub branches: Option<(u64, u64)>,
    /// True if the host can hold the TSC.
    pub tsc: bool,
    /// True if the processor delivers exceptions and system calls. If false, the soft CPU delivers them
    /// ([`crate::kvm::gates`]).
    pub system_calls: bool,
    /// True if a TLB flush suffices for the guest to see page tables that Everett has replaced. If false, KVM must also
    /// drop its shadow page tables ([`Real::new`]).
    pub coherent: bool,
}

/// Virtual CPU of the host's KVM, on a machine's RAM.
#[derive(Debug)]
pub struct KvmEngine {
    // A `RefCell`, because reading the state through `&self` changes the engine: it delivers queued exceptions. The
    // guest cannot distinguish this from a later delivery.
    inner: RefCell<Inner>,
    /// True if the engine starts a [`Ticker`] of its own.
    ticks: bool,
}

/// Interval of the engine's own signals, which take control back from a guest.
const TICK: Duration = Duration::from_millis(20);
/// Approximate interval of signals while the TSC is held.
const HELD: Duration = Duration::from_millis(1);

impl KvmEngine {
    /// Creates an engine on guest memory of one region from address 0. The engine uses the features that `proved` lists
    /// for this host.
    ///
    /// # Errors
    /// Returns an error if the host's KVM refuses a request or no longer has a feature.
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

    /// Creates an engine from these parts. The processor must use this memory.
    ///
    /// # Errors
    /// Returns an error if the processor refuses its first state, or if the memory is not one region from address 0.
    pub fn from_parts<B>(parts: Parts, memory: Arc<GuestMemoryMmap<B>>) -> Result<KvmEngine, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        Ok(KvmEngine { inner: RefCell::new(Inner::new(parts, memory)?), ticks: false })
    }

    /// Sets the number of signals ([`crate::kvm::Ticker`]) after which a run ends, counted since the last exit or
    /// branch of the guest. Instructions that the soft CPU executes do not restart this count. Such an end of a run
    /// depends on host time, so it is a failure of the host.
    pub fn give_up_after(&mut self, signals: u32) {
        self.inner.get_mut().give_up_after(signals);
    }

    /// Sets the approximate host time after which a run ends as with [`KvmEngine::give_up_after`]. From the next run
    /// on, the engine sends the signals itself.
    pub fn wait_at_most(&mut self, patience: Duration) {
        self.ticks = true;
        // If the TSC is held, [`HeldTsc`] sends most of the signals. Signals of a branch counter do not matter here:
        // they come only after branches, and each branch restarts the count of signals.
        let tick = if self.inner.get_mut().holds_tsc() { HELD } else { TICK };
        let signals = patience.as_nanos() / tick.as_nanos();
        self.give_up_after(u32::try_from(signals).unwrap_or(u32::MAX));
    }

    /// Sets the number of instructions that the soft CPU may execute without an exit or counted branch before the
    /// engine ends the guest. For tests, because it changes the guest's execution.
    pub fn limit_instructions(&mut self, instructions: u64) {
        self.inner.get_mut().limit_instructions(instructions);
    }

    /// Returns the statistics since the engine was created.
    pub fn stats(&self) -> KvmStats {
        self.inner.borrow().stats()
    }
}

impl Engine for KvmEngine {
    fn cpu_model(&self) -> CpuModel {
        CpuModel::V2
    }
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.borrow();
        Capabilities { clock: inner.clock(), disturbed: inner.can_be_disturbed() }
    }
    fn failure(&self) -> Option<Failure> {
        self.inner.borrow().failure()
    }
    fn recover(&mut self) -> bool {
        self.inner.get_mut().recover()
    }
    fn run(&mut self, until: Until) -> Exit {
        let inner = self.inner.get_mut();
        // Signals go to the thread that runs the engine.
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
