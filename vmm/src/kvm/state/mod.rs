//! Conversion of a vCPU's registers to and from [`CpuState`].
//!
//! - `registers`: general and control registers; `segments`: descriptors; `fpu`: x87 and SSE; `msrs`: model-specific
//!   registers; `events`: interrupts and exceptions that are about to be delivered
//!
//! KVM does not hold these fields of [`CpuState`]. The engine, which runs the guest on KVM, keeps them:
//! - `icount`, `exceptions`, `dead`, and `halted` (KVM does not halt a vCPU, because HLT causes an exit)
//! - `msrs.tsc_offset`: KVM's offset is relative to the host's TSC; the field contains the value that the guest wrote
//!
//! [`CpuState`] does not hold these parts of KVM's state:
//! - interrupts and exceptions that are about to be delivered ([`Queued`]): the engine delivers them first
//! - CR8, which belongs to the local APIC, a device of the machine
//! - which instruction began an interrupt shadow, STI or MOV SS: a load gives KVM the shadow of STI if interrupts are
//!   enabled, and the shadow of MOV SS otherwise
//! - NMI, SMM, XCR0, PDPTRs, guest debugging: each load writes their reset values
//!
//! **Invariant.** After a load, a vCPU does not depend on what it executed before: each structure is written whole,
//! with all VALID bits set.

mod events;
mod fpu;
mod msrs;
mod registers;
mod segments;

pub use events::Queued;
pub use msrs::PASSED_THROUGH;

use everett_cpu::CpuState;
use kvm_bindings::{KVM_MP_STATE_RUNNABLE, kvm_mp_state};

use super::error::{KvmError, Wanted};
use super::vcpu::Vcpu;

/// Saved registers and pending events of a vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Registers. Fields that KVM does not hold are as in [`CpuState::default`].
    pub state: CpuState,
    /// Events that are about to be delivered.
    pub queued: Queued,
}

impl Vcpu {
    /// Replaces all registers and pending events.
    ///
    /// # Errors
    /// Returns an error if KVM refuses some of them.
    pub fn load(&mut self, state: &CpuState) -> Result<(), KvmError> {
        self.is_shared = false;
        // The order matters. CPUID, which decides the bits of CR4, was set when the vCPU was created. Setting
        // registers drops pending exceptions, so events come last.
        self.fd.set_sregs(&registers::system(state)).wanted("set control registers")?;
        self.load_fpu(&state.fpu)?;
        self.load_msrs(&state.msrs)?;
        self.fd.set_debug_regs(&registers::debug(state)).wanted("set debug registers")?;
        self.fd.set_regs(&registers::general(state)).wanted("set registers")?;
        self.load_events(state)?;
        let runnable = kvm_mp_state { mp_state: KVM_MP_STATE_RUNNABLE };
        self.fd.set_mp_state(runnable).wanted("make the virtual CPU runnable")
    }

    /// Returns all registers and pending events. If the last exit left its instruction unfinished, the caller must call
    /// [`Vcpu::finish`] first.
    ///
    /// # Errors
    /// Returns an error if KVM cannot read some of them.
    pub fn save(&self) -> Result<Saved, KvmError> {
        let mut state = CpuState { fpu: self.save_fpu()?, ..CpuState::default() };
        registers::read_general(&mut state, &self.fd.get_regs().wanted("read registers")?);
        registers::read_system(&mut state, &self.fd.get_sregs().wanted("read control registers")?);
        registers::read_debug(&mut state, &self.fd.get_debug_regs().wanted("read debug registers")?);
        self.save_msrs(&mut state.msrs)?;
        let (shadow, queued) = self.save_events()?;
        state.shadow = shadow;
        Ok(Saved { state, queued })
    }

    /// Returns only the general and control registers: where the guest executes, and its paging.
    ///
    /// # Errors
    /// Returns an error if KVM cannot read them.
    pub fn save_place(&self) -> Result<CpuState, KvmError> {
        let mut state = CpuState::default();
        let (general, system) = if self.is_shared {
            let shared = self.fd.sync_regs();
            (shared.regs, shared.sregs)
        } else {
            (
                self.fd.get_regs().wanted("read registers")?,
                self.fd.get_sregs().wanted("read control registers")?,
            )
        };
        registers::read_general(&mut state, &general);
        registers::read_system(&mut state, &system);
        Ok(state)
    }

    /// Returns the events that are about to be delivered.
    ///
    /// # Errors
    /// Returns an error if KVM cannot read them.
    pub fn queued(&self) -> Result<Queued, KvmError> {
        if self.is_shared {
            return Ok(events::queued(&self.fd.sync_regs().events));
        }
        let (_, queued) = self.save_events()?;
        Ok(queued)
    }
}
