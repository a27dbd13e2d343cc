//! A virtual CPU that runs until something is wanted of us.
//!
//! **Invariants.**
//! - An exit whose instruction is unfinished ([`KvmExit::is_unfinished`]) is finished by [`Vcpu::finish`], which executes
//!   nothing else, before registers are read, saved or replaced. Reading them earlier shows the CPU before or within it.
//! - A signal costs the guest nothing: [`KvmExit::Interrupted`] is an exit of the host's.

use std::sync::Arc;

use kvm_bindings::KVM_EXIT_IO;
use kvm_ioctls::VcpuFd;

use super::error::{KvmError, Wanted};
use super::exit::{self, KvmExit};
use super::vm::Vm;
use super::{cpuid, ioctl};

/// How often a CPU that is "not ready yet" is asked again. None of ours ever is.
const RETRIES_MAX: u32 = 100;

/// A virtual CPU.
#[derive(Debug)]
pub struct Vcpu {
    // Before the machine, which keeps the memory alive.
    pub(super) fd: VcpuFd,
    pub(super) vm: Arc<Vm>,
}

impl Vcpu {
    /// The machine's CPU, with our model's CPUID. There can be one.
    ///
    /// # Errors
    /// When KVM refuses it.
    pub fn new(vm: &Arc<Vm>, apic_base: u64) -> Result<Vcpu, KvmError> {
        let fd = vm.create_vcpu()?;
        fd.set_cpuid2(&cpuid::table(apic_base)?).wanted("set CPUID")?;
        Ok(Vcpu { fd, vm: Arc::clone(vm) })
    }

    /// Enter the guest until an exit.
    ///
    /// # Errors
    /// When KVM cannot, or ends the run in a way that we do not know.
    pub fn run(&mut self) -> Result<KvmExit, KvmError> {
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

    /// Finish the instruction of the last exit and execute nothing else. Returns what else that instruction wants, if it
    /// does.
    ///
    /// # Errors
    /// As [`Vcpu::run`].
    pub fn finish(&mut self) -> Result<Option<KvmExit>, KvmError> {
        self.fd.set_kvm_immediate_exit(1);
        let ended = self.run();
        self.fd.set_kvm_immediate_exit(0);
        Ok(Some(ended?).filter(|ended| *ended != KvmExit::Interrupted))
    }

    /// Answer the load of [`KvmExit::MmioRead`].
    pub fn answer_mmio(&mut self, value: u64) {
        exit::answer_mmio(self.fd.get_kvm_run(), value);
    }
    /// Answer the access of [`KvmExit::MsrRead`] or [`KvmExit::MsrWrite`]; nothing is #GP.
    pub fn answer_msr(&mut self, value: Option<u64>) {
        exit::answer_msr(self.fd.get_kvm_run(), value);
    }
    /// The data of [`KvmExit::PioRead`], to be filled in, or of [`KvmExit::PioWrite`].
    ///
    /// # Panics
    /// If the last exit was neither with this size and count.
    pub fn port_data(&mut self, size: u8, count: u32) -> &mut [u8] {
        exit::port_data(self.fd.get_kvm_run(), size, count)
    }
    /// Whether the last exit was a port access, so that there is data of one.
    pub fn is_at_port(&mut self) -> bool {
        self.fd.get_kvm_run().exit_reason == KVM_EXIT_IO
    }

    /// Queue an external interrupt, which the guest takes when it is entered.
    ///
    /// # Errors
    /// When KVM refuses it.
    pub fn interrupt(&self, vector: u8) -> Result<(), KvmError> {
        ioctl::interrupt(&self.fd, vector).wanted("queue an interrupt")
    }
    /// Whether the guest could take an interrupt when the last run ended. Says nothing once registers were replaced.
    pub fn ready_for_interrupt(&mut self) -> bool {
        self.fd.get_kvm_run().ready_for_interrupt_injection != 0
    }
    /// Ask for [`KvmExit::Window`] as soon as an interrupt can be taken, or do not.
    pub fn request_window(&mut self, on: bool) {
        self.fd.get_kvm_run().request_interrupt_window = u8::from(on);
    }
    /// What the guest has in CR8, which is the upper half of its local APIC's task priority.
    pub fn priority(&mut self) -> u8 {
        (self.fd.get_kvm_run().cr8 & 0xf) as u8
    }

    /// Set how fast the guest's TSC goes, for which the host needs TSC control.
    ///
    /// # Errors
    /// When KVM refuses it.
    pub fn set_tsc_khz(&self, khz: u32) -> Result<(), KvmError> {
        ioctl::set_tsc_khz(&self.fd, khz).wanted("set the TSC's frequency")
    }
}
