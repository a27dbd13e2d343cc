//! The host's `/dev/kvm`, with a soft CPU (Everett's own CPU) in place of the host's branch counter. A branch counter
//! sends a signal after a given number of branches. Before each entry into the guest, the soft CPU executes the guest
//! to its next exit, on a copy of the memory, and counts branches.
//!
//! Without a counter, KVM cannot stop the guest before its next exit. Some KVMs also report too late that the guest can
//! take an interrupt. If the guest has to stop before its next exit, for the counter's signal or for an interrupt, KVM
//! therefore does not execute the guest. Instead the guest gets the state and memory that the soft CPU has at this
//! stop. This also tests transitions between both CPUs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use everett_cpu::Request;
use everett_cpu::{CacheConfig, CpuState};
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::kvm::processor::Real;
use everett_vmm::kvm::state::PASSED_THROUGH;
use everett_vmm::kvm::{Host, KvmError, KvmExit, Processor, Queued, Saved, Vcpu, Vm};
use everett_vmm::ram::Ram;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use crate::rng::Rng;
use crate::scripted::{MARGIN, Shared};

const PAGE: u64 = 4096;

/// A virtual CPU of the host, with a soft CPU beside it.
#[derive(Debug)]
pub(crate) struct Beside {
    real: Real,
    shared: Shared,
    /// The guest's memory, for accesses from outside the guest.
    memory: Arc<dyn Memory>,
    soft: SoftEngine,
    copy: Arc<GuestMemoryMmap<()>>,
    bytes: u64,
    /// True if the copy of the memory may be out of date.
    stale: bool,
    /// Pages that were written and not yet reported.
    dirty: BTreeSet<u64>,
    window: bool,
    /// True if the guest can take an interrupt, according to the soft CPU. `None` if the guest no longer has the soft
    /// CPU's state. KVM is then asked instead.
    ready: Option<bool>,
    skid: Rng,
    /// Number of entries in which `/dev/kvm` executed the guest up to an exit that the guest caused.
    entered: Arc<AtomicU64>,
}

/// Guest memory of any type.
pub(crate) trait Memory: std::fmt::Debug + Send + Sync {
    fn fetch(&self, at: u64, to: &mut [u8]);
    fn put(&self, at: u64, from: &[u8]);
}

impl<B: vm_memory::bitmap::Bitmap + std::fmt::Debug + Send + Sync> Memory for GuestMemoryMmap<B> {
    fn fetch(&self, at: u64, to: &mut [u8]) {
        self.read_slice(to, GuestAddress(at)).expect("it is RAM");
    }
    fn put(&self, at: u64, from: &[u8]) {
        self.write_slice(from, GuestAddress(at)).expect("it is RAM");
    }
}

impl Beside {
    pub(crate) fn new(
        host: &Host,
        ram: &Ram,
        shared: &Shared,
        entered: &Arc<AtomicU64>,
    ) -> Result<Beside, KvmError> {
        let vm = Arc::new(Vm::new(host, ram.shared())?);
        vm.filter_msrs(&PASSED_THROUGH)?;
        let vcpu = Vcpu::new(&vm, CpuState::default().msrs.apic_base)?;
        let bytes = ram.len();
        let copy = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), bytes as usize)]);
        let copy = Arc::new(copy.map_err(|_| KvmError::Memory)?);
        let caches = CacheConfig { branches: true, ..CacheConfig::default() };
        Ok(Beside {
            real: Real::new(vm, vcpu, false),
            shared: shared.clone(),
            memory: ram.shared(),
            soft: SoftEngine::new(Arc::clone(&copy), caches),
            copy,
            bytes,
            stale: true,
            dirty: BTreeSet::new(),
            window: false,
            ready: None,
            skid: Rng::for_case(0, 33),
            entered: Arc::clone(entered),
        })
    }

    /// Updates the copy of the memory.
    fn copy_memory(&mut self) -> Result<(), KvmError> {
        let written = self.real.take_dirty_pages()?;
        self.dirty.extend(&written);
        let pages = if std::mem::take(&mut self.stale) { (0..self.bytes / PAGE).collect() } else { written };
        let mut page = [0; PAGE as usize];
        for at in &pages {
            self.memory.fetch(at * PAGE, &mut page);
            self.copy.put(at * PAGE, &page);
        }
        self.soft.memory_replaced(&pages);
        Ok(())
    }

    /// Runs the soft CPU on the copy. Returns the exit that it reaches, or `None` if the counter's signal stops the
    /// guest before an exit.
    fn foresee(&mut self) -> Result<Option<Exit>, KvmError> {
        self.copy_memory()?;
        let Saved { state, queued } = self.real.save()?;
        self.soft.set_state(&CpuState { icount: self.soft.icount(), halted: false, ..state });
        assert_eq!(queued.exception, None, "KVM must deliver an exception before it exits");
        if let Some(vector) = queued.interrupt {
            self.soft.interrupt(vector);
        }
        let stop = self.shared.armed().saturating_add(self.skid.below(MARGIN));
        loop {
            let missing = stop - self.soft.branches();
            if missing == 0 {
                return Ok(None);
            }
            let icount = self.soft.icount() + missing.min(1 << 20);
            match self.soft.run(Until { icount, window: self.window, passing: false }) {
                Exit::Count => {}
                exit => return Ok(Some(exit)),
            }
        }
    }

    /// Gives the guest the state and memory of the soft CPU.
    fn become_it(&mut self) -> Result<(), KvmError> {
        let mut page = [0; PAGE as usize];
        for at in self.soft.take_dirty_pages() {
            self.copy.fetch(at * PAGE, &mut page);
            self.memory.put(at * PAGE, &page);
            self.dirty.insert(at);
        }
        self.real.load(&self.soft.state())?;
        self.real.forget_memory()?;
        self.ready = Some(self.soft.interruptible());
        Ok(())
    }
}

/// True if KVM's exit is the one that the soft CPU reached.
fn is_it(exit: KvmExit, foreseen: Option<Exit>) -> bool {
    use KvmExit::{Halt, MmioRead, MmioWrite, PioRead, PioWrite};
    match (exit, foreseen) {
        (Halt, Some(Exit::Halt)) => true,
        (MmioRead { gpa, size }, Some(Exit::Device(Request::MmioRead { gpa: at, size: bytes }))) => {
            (gpa, size) == (at, bytes)
        }
        (
            MmioWrite { gpa, value, .. },
            Some(Exit::Device(Request::MmioWrite { gpa: at, value: stored, .. })),
        ) => (gpa, value) == (at, stored),
        // KVM may report several iterations of a repeated port access at once, so the values are not compared.
        (PioRead { port, size, .. }, Some(Exit::Device(Request::PioRead { port: at, size: bytes }))) => {
            (port, size) == (at, bytes)
        }
        (
            PioWrite { port, size, .. },
            Some(Exit::Device(Request::PioWrite { port: at, size: bytes, .. })),
        ) => (port, size) == (at, bytes),
        _ => false,
    }
}

impl Processor for Beside {
    fn run(&mut self) -> Result<KvmExit, KvmError> {
        self.ready = None;
        let foreseen = self.foresee()?;
        self.shared.count(self.soft.branches());
        if let None | Some(Exit::Window) = foreseen {
            self.become_it()?;
            return Ok(if foreseen.is_some() { KvmExit::Window } else { KvmExit::Interrupted });
        }
        self.real.request_window(false);
        loop {
            match self.real.run()? {
                KvmExit::Interrupted => {}
                exit => {
                    assert!(
                        is_it(exit, foreseen),
                        "KVM exits with {exit:x?}, the soft CPU with {foreseen:x?}"
                    );
                    self.entered.fetch_add(1, Ordering::Relaxed);
                    return Ok(exit);
                }
            }
        }
    }
    fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        self.ready = None;
        self.real.finish()
    }
    fn answer_mmio(&mut self, value: u64) {
        self.real.answer_mmio(value);
    }
    fn answer_msr(&mut self, value: Option<u64>) {
        self.real.answer_msr(value);
    }
    fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        self.real.port_data(size, count)
    }
    fn is_at_port(&mut self) -> bool {
        self.real.is_at_port()
    }
    fn interrupt(&mut self, vector: u8) -> Result<(), KvmError> {
        self.ready = None;
        self.real.interrupt(vector)
    }
    fn ready_for_interrupt(&mut self) -> bool {
        self.ready.unwrap_or_else(|| self.real.ready_for_interrupt())
    }
    fn request_window(&mut self, on: bool) {
        self.window = on;
    }
    fn priority(&mut self) -> u8 {
        self.real.priority()
    }
    fn load(&mut self, state: &CpuState) -> Result<(), KvmError> {
        self.ready = None;
        self.real.load(state)
    }
    fn save(&mut self) -> Result<Saved, KvmError> {
        self.real.save()
    }
    fn save_place(&mut self) -> Result<CpuState, KvmError> {
        self.real.save_place()
    }
    fn queued(&mut self) -> Result<Queued, KvmError> {
        self.real.queued()
    }
    fn take_dirty_pages(&mut self) -> Result<Vec<u64>, KvmError> {
        let written = self.real.take_dirty_pages()?;
        // The copy lacks the new content of these pages.
        self.stale |= !written.is_empty();
        self.dirty.extend(written);
        Ok(std::mem::take(&mut self.dirty).into_iter().collect())
    }
    fn forget_memory(&mut self) -> Result<(), KvmError> {
        self.stale = true;
        self.real.forget_memory()
    }
}
