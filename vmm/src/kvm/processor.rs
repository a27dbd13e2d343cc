//! Trait for a vCPU and its memory, as the KVM engine uses them, so that tests can replace `/dev/kvm`.
//!
//! As with [`Vcpu`], an exit may leave its instruction unfinished. The engine calls [`Processor::finish`] before it
//! saves or replaces registers.

use std::fmt::Debug;
use std::sync::Arc;

use everett_cpu::CpuState;

use super::error::KvmError;
use super::exit::KvmExit;
use super::state::{Queued, Saved};
use super::vcpu::Vcpu;
use super::vm::Vm;

/// Virtual CPU and its memory, with functions of [`Vcpu`] and [`Vm`].
#[allow(clippy::missing_errors_doc, reason = "each function returns an error if the host refuses")]
pub trait Processor: Debug + Send {
    /// True if the CPU itself delivers exceptions, interrupts and system calls. If false, exceptions and system calls
    /// end a run with [`KvmExit::Shutdown`] before they take effect, and [`Processor::interrupt`] is an error.
    fn delivers(&self) -> bool {
        true
    }
    /// See [`Vcpu::run`].
    fn run(&mut self) -> Result<KvmExit, KvmError>;
    /// See [`Vcpu::finish`].
    fn finish(&mut self) -> Result<Option<KvmExit>, KvmError>;
    /// See [`Vcpu::answer_mmio`].
    fn answer_mmio(&mut self, value: u64);
    /// See [`Vcpu::answer_msr`].
    fn answer_msr(&mut self, value: Option<u64>);
    /// See [`Vcpu::port_data`].
    fn port_data(&mut self, size: u8, count: u32) -> &mut [u8];
    /// See [`Vcpu::is_at_port`].
    fn is_at_port(&mut self) -> bool;
    /// See [`Vcpu::interrupt`].
    fn interrupt(&mut self, vector: u8) -> Result<(), KvmError>;
    /// See [`Vcpu::ready_for_interrupt`].
    fn ready_for_interrupt(&mut self) -> bool;
    /// See [`Vcpu::request_window`].
    fn request_window(&mut self, on: bool);
    /// See [`Vcpu::priority`].
    fn priority(&mut self) -> u8;
    /// See [`Vcpu::load`].
    fn load(&mut self, state: &CpuState) -> Result<(), KvmError>;
    /// See [`Vcpu::save`].
    fn save(&mut self) -> Result<Saved, KvmError>;
    /// See [`Vcpu::save_place`].
    fn save_place(&mut self) -> Result<CpuState, KvmError>;
    /// See [`Vcpu::queued`].
    fn queued(&mut self) -> Result<Queued, KvmError>;
    /// See [`Vm::take_dirty_pages`].
    fn take_dirty_pages(&mut self) -> Result<Vec<u64>, KvmError>;
    /// Ensures that the guest sees memory that Everett replaced, including page tables. Entries in the log of written
    /// pages may be lost if the engine has not taken them yet.
    fn forget_memory(&mut self) -> Result<(), KvmError>;
}

/// Virtual CPU of `/dev/kvm`.
#[derive(Debug)]
pub struct Real {
    vcpu: Vcpu,
    vm: Arc<Vm>,
    /// See [`Real::new`].
    coherent: bool,
}

impl Real {
    /// Combines a machine and its vCPU.
    ///
    /// `coherent`: true if a TLB flush is enough for the guest to see changes that this process made to the guest's
    /// page tables, as with nested paging. If false, KVM may keep shadow page tables. [`Processor::forget_memory`] then
    /// removes the memory and adds it again, which takes longer and makes the guest fault on each page once more.
    pub fn new(vm: Arc<Vm>, vcpu: Vcpu, coherent: bool) -> Real {
        Real { vcpu, vm, coherent }
    }
}

impl Processor for Real {
    fn run(&mut self) -> Result<KvmExit, KvmError> {
        self.vcpu.run()
    }
    fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        self.vcpu.finish()
    }
    fn answer_mmio(&mut self, value: u64) {
        self.vcpu.answer_mmio(value);
    }
    fn answer_msr(&mut self, value: Option<u64>) {
        self.vcpu.answer_msr(value);
    }
    fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        self.vcpu.port_data(size, count)
    }
    fn is_at_port(&mut self) -> bool {
        self.vcpu.is_at_port()
    }
    fn interrupt(&mut self, vector: u8) -> Result<(), KvmError> {
        self.vcpu.interrupt(vector)
    }
    fn ready_for_interrupt(&mut self) -> bool {
        self.vcpu.ready_for_interrupt()
    }
    fn request_window(&mut self, on: bool) {
        self.vcpu.request_window(on);
    }
    fn priority(&mut self) -> u8 {
        self.vcpu.priority()
    }
    fn load(&mut self, state: &CpuState) -> Result<(), KvmError> {
        self.vcpu.load(state)
    }
    fn save(&mut self) -> Result<Saved, KvmError> {
        self.vcpu.save()
    }
    fn save_place(&mut self) -> Result<CpuState, KvmError> {
        self.vcpu.save_place()
    }
    fn queued(&mut self) -> Result<Queued, KvmError> {
        self.vcpu.queued()
    }
    fn take_dirty_pages(&mut self) -> Result<Vec<u64>, KvmError> {
        self.vm.take_dirty_pages()
    }
    fn forget_memory(&mut self) -> Result<(), KvmError> {
        if self.coherent { self.vcpu.flush_translations() } else { self.vm.forget_memory() }
    }
}
