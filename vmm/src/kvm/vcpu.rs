//! A vCPU of KVM.
//!
//! **Invariants.**
//! - An exit may leave its instruction unfinished ([`KvmExit::is_unfinished`]). [`Vcpu::finish`] finishes it and
//!   executes nothing else. The caller must do this before it reads, saves or replaces registers. Before
//!   [`Vcpu::finish`], registers hold their values from before the instruction, or intermediate values.
//! - A signal does not change the guest. It only ends the run with [`KvmExit::Interrupted`].

use std::sync::Arc;

use kvm_bindings::{KVM_EXIT_IO, kvm_sregs};
use kvm_ioctls::{SyncReg, VcpuFd};

use super::error::{KvmError, Wanted};
use super::exit::{self, KvmExit};
use super::vm::Vm;
use super::{cpuid, ioctl};
use crate::layout::PAGE;

/// Maximum number of retries for a vCPU that is "not ready yet" (EAGAIN). KVM does not report this for our vCPUs.
const RETRIES_MAX: u32 = 100;

/// Registers and events that KVM copies in [`Vcpu::finish`] into the shared page (`kvm_run`), which Everett can read.
const SHARED: [SyncReg; 3] = [SyncReg::Register, SyncReg::SystemRegister, SyncReg::VcpuEvents];

/// Virtual CPU of KVM.
#[derive(Debug)]
pub struct Vcpu {
    // `fd` is declared before `vm`, so that it is dropped before `vm`, which keeps the guest's memory alive.
    pub(super) fd: VcpuFd,
    pub(super) vm: Arc<Vm>,
    /// True if the shared page contains the vCPU's current general and control registers and its pending events.
    pub(super) is_shared: bool,
}

impl Vcpu {
    /// Creates the machine's only vCPU, with the CPU model's CPUID.
    ///
    /// # Errors
    /// Returns an error if KVM refuses a request.
    pub fn new(vm: &Arc<Vm>, apic_base: u64) -> Result<Vcpu, KvmError> {
        let fd = vm.create_vcpu()?;
        fd.set_cpuid2(&cpuid::table(apic_base)?).wanted("set CPUID")?;
        Ok(Vcpu { fd, vm: Arc::clone(vm), is_shared: false })
    }

    /// Executes the guest up to its next exit.
    ///
    /// # Errors
    /// Returns an error if KVM cannot run the vCPU or returns an unknown exit.
    pub fn run(&mut self) -> Result<KvmExit, KvmError> {
        self.is_shared = false;
        let mut tries = 0;
        loop {
            let answer = self.fd.run().map(|_| ());
            match answer {
                Ok(()) => return exit::read(self.fd.get_kvm_run()),
                Err(error) if error.errno() == libc::EINTR => return Ok(KvmExit::Interrupted),
                Err(error) if error.errno() == libc::EAGAIN && tries < RETRIES_MAX => tries += 1,
                Err(error) => return Err(KvmError::request("run the virtual CPU", error)),
            }
        }
    }

    /// Finishes the instruction of the last exit and executes nothing else. Returns the next exit if that instruction
    /// has several.
    ///
    /// # Errors
    /// Returns the errors of [`Vcpu::run`].
    pub fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        // The engine reads these registers after each exit. KVM copies them into the shared page, which saves requests.
        let shares = self.vm.shares_registers();
        if shares {
            SHARED.into_iter().for_each(|registers| self.fd.set_sync_valid_reg(registers));
        }
        self.fd.set_kvm_immediate_exit(1);
        let ended = self.run();
        self.fd.set_kvm_immediate_exit(0);
        if shares {
            SHARED.into_iter().for_each(|registers| self.fd.clear_sync_valid_reg(registers));
        }
        let more = Some(ended?).filter(|ended| *ended != KvmExit::Interrupted);
        self.is_shared = shares && more.is_none();
        Ok(more)
    }

    /// Answers the load of [`KvmExit::MmioRead`].
    pub fn answer_mmio(&mut self, value: u64) {
        exit::answer_mmio(self.fd.get_kvm_run(), value);
    }
    /// Answers the access of [`KvmExit::MsrRead`] or [`KvmExit::MsrWrite`]; `None` raises #GP.
    pub fn answer_msr(&mut self, value: Option<u64>) {
        exit::answer_msr(self.fd.get_kvm_run(), value);
    }
    /// Returns the data of a port access. The caller fills it in for [`KvmExit::PioRead`] and reads it for
    /// [`KvmExit::PioWrite`].
    ///
    /// # Panics
    /// Panics if the last exit was not a port access with this size and count.
    pub fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        exit::port_data(self.fd.get_kvm_run(), size, count)
    }
    /// True if the last exit was a port access, so that its data can be read.
    pub fn is_at_port(&mut self) -> bool {
        self.fd.get_kvm_run().exit_reason == KVM_EXIT_IO
    }

    /// Queues an external interrupt, which the guest takes at the next entry.
    ///
    /// # Errors
    /// Returns an error if KVM refuses it.
    pub fn interrupt(&mut self, vector: u8) -> Result<(), KvmError> {
        self.is_shared = false;
        ioctl::interrupt(&self.fd, vector).wanted("queue an interrupt")
    }
    /// True if the guest could take an interrupt when the last run ended. Invalid after the caller has replaced
    /// registers.
    pub fn ready_for_interrupt(&mut self) -> bool {
        self.fd.get_kvm_run().ready_for_interrupt_injection != 0
    }
    /// Requests [`KvmExit::Window`], an exit as soon as the guest can take an interrupt, or cancels the request.
    pub fn request_window(&mut self, on: bool) {
        self.fd.get_kvm_run().request_interrupt_window = u8::from(on);
    }
    /// Returns the guest's CR8, which is the upper half of its local APIC's task priority.
    pub fn priority(&mut self) -> u8 {
        (self.fd.get_kvm_run().cr8 & 0xf) as u8
    }

    /// Drops the translations that the processor has cached for the guest. KVM does this when CR3 changes, so this
    /// function changes CR3 and changes it back. KVM's own tables stay: with nested paging they do not depend on the
    /// guest's page tables.
    ///
    /// # Errors
    /// Returns an error if KVM refuses it.
    pub fn flush_translations(&mut self) -> Result<(), KvmError> {
        self.is_shared = false;
        let present = self.fd.get_sregs().wanted("read control registers")?;
        let other = kvm_sregs { cr3: present.cr3 ^ PAGE, ..present };
        self.fd.set_sregs(&other).wanted("set control registers")?;
        self.fd.set_sregs(&present).wanted("set control registers")
    }

    /// Sets the frequency of the guest's TSC in kHz. The host must be able to scale the TSC.
    ///
    /// # Errors
    /// Returns an error if KVM refuses it.
    pub fn set_tsc_khz(&self, khz: u32) -> Result<(), KvmError> {
        ioctl::set_tsc_khz(&self.fd, khz).wanted("set the TSC's frequency")
    }
}
