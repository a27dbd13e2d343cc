//! A vCPU's registers, to and from [`CpuState`].
//!
//! - `registers`: general and control registers; `segments`: descriptors; `fpu`: x87 and SSE; `msrs`; `events`
//!
//! What [`CpuState`] has and KVM has not, and who keeps it instead:
//! - `icount`, `exceptions`, `dead`, and `halted` (HLT exits): the engine
//! - `msrs.tsc_offset`: KVM's offset is the TSC's against the host's, ours is what the guest wrote: the engine
//! - the reason of a shadow: KVM tells STI's from MOV SS's, and gets STI's where interrupts are enabled
//!
//! What KVM has and [`CpuState`] has not:
//! - interrupts and exceptions that are about to be delivered ([`Queued`]): the engine delivers them first
//! - CR8, which is the local APIC's and thus a device's
//! - NMI, SMM, XCR0, PDPTRs, guest debugging: always at their reset values, and written so with each state
//!
//! **Invariant.** A CPU into which a state is loaded is the same whatever it did before: each record is written whole, with
//! all VALID bits set.

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

/// What a vCPU holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Its registers. What KVM does not hold is as in [`CpuState::default`].
    pub state: CpuState,
    /// What is about to be delivered.
    pub queued: Queued,
}

impl Vcpu {
    /// Replace everything.
    ///
    /// # Errors
    /// When KVM does not take it.
    pub fn load(&mut self, state: &CpuState) -> Result<(), KvmError> {
        // CPUID decides which bits CR4 has, CR0 and CR4 what EFER may be, and setting registers drops exceptions.
        self.fd.set_sregs(&registers::system(state)).wanted("set control registers")?;
        self.load_fpu(&state.fpu)?;
        self.load_msrs(&state.msrs)?;
        self.fd.set_debug_regs(&registers::debug(state)).wanted("set debug registers")?;
        self.fd.set_regs(&registers::general(state)).wanted("set registers")?;
        self.load_events(state)?;
        let runnable = kvm_mp_state { mp_state: KVM_MP_STATE_RUNNABLE };
        self.fd.set_mp_state(runnable).wanted("make the virtual CPU runnable")
    }

    /// Everything. An exit that is unfinished has to be finished first.
    ///
    /// # Errors
    /// When KVM does not tell.
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

    /// General and control registers alone: where the guest is, and what is there.
    ///
    /// # Errors
    /// When KVM does not give them.
    pub fn save_place(&self) -> Result<CpuState, KvmError> {
        let mut state = CpuState::default();
        registers::read_general(&mut state, &self.fd.get_regs().wanted("read registers")?);
        registers::read_system(&mut state, &self.fd.get_sregs().wanted("read control registers")?);
        Ok(state)
    }

    /// What is about to be delivered.
    ///
    /// # Errors
    /// When KVM does not tell.
    pub fn queued(&self) -> Result<Queued, KvmError> {
        let (_, queued) = self.save_events()?;
        Ok(queued)
    }
}
