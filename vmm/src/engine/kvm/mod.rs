//! The kvm engine: the host's processor behind the engine trait, in clock mode `exit`.
//!
//! - `inner`: entering the guest, and what its exits mean; `access`: an access to a device, piece by piece
//! - `bridge`: the soft CPU, for what KVM cannot execute
//!
//! It runs to the guest's next exit. So its *count* is not of instructions but of exits that the guest causes by itself:
//! accesses to devices and HLT, each counted when its instruction is finished, with all iterations of a repeated one. What the
//! host causes (signals, emulation failures, MSRs that the filter holds back) is not counted. Interrupts are taken behind
//! exits, where the guest can take one at once: no window is ever waited for.
//!
//! Not here: breakpoints and watchpoints, which need a CPU that sees each instruction; CR8 (ends the run); what holds the TSC
//! (RDTSC shows what the host shows, for which no kvm engine of this version counts as exact). A guest that never exits cannot be told from one that will, so a time of the host's ends
//! it, as the host's failure: never as something that the guest did.
//!
//! **Invariants.**
//! - Errors of the host's end the run with a reason ([`Exit::Failed`]), and nothing is executed any more.
//! - Registers are read or replaced only when no instruction is unfinished; replacing finishes it first.
//! - Memory that something else than the guest replaced is forgotten by KVM's translations.

mod access;
mod bridge;
mod inner;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use everett_cpu::CpuState;
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemoryMmap, MmapRegion};

use super::{Capabilities, Engine, Exit, TscAnchor, Until};
use crate::clock::ClockMode;
use crate::kvm::{Host, KvmError, Ticker};
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

impl KvmEngine {
    /// A CPU on guest memory of one region from address 0.
    ///
    /// # Errors
    /// When the host's KVM refuses it.
    pub fn new<B>(host: &Host, memory: Arc<GuestMemoryMmap<B>>) -> Result<KvmEngine, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        Ok(KvmEngine { inner: RefCell::new(Inner::new(host, memory)?), ticks: false })
    }

    /// End the run when so many signals ([`crate::kvm::Ticker`]) came since the guest's last exit. What ends so depends on the
    /// host's time, and ends as the host's failure.
    pub fn give_up_after(&mut self, signals: u32) {
        self.inner.get_mut().give_up_after(signals);
    }

    /// The same by the host's clock, with signals of the engine's own.
    pub fn wait_at_most(&mut self, patience: Duration) {
        self.ticks = true;
        let signals = patience.as_nanos() / TICK.as_nanos();
        self.give_up_after(u32::try_from(signals).unwrap_or(u32::MAX));
    }

    /// What it did so far.
    pub fn stats(&self) -> KvmStats {
        self.inner.borrow().stats()
    }
}

impl Engine for KvmEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: ClockMode::Exit, breakpoints: false }
    }
    fn failure(&self) -> Option<String> {
        self.inner.borrow().failure().map(str::to_owned)
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
