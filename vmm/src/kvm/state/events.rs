//! Pending interrupts and exceptions, and the interrupt shadow of STI and MOV SS, which blocks interrupts for one
//! instruction.

use everett_cpu::CpuState;
use kvm_bindings::{
    KVM_VCPUEVENT_VALID_NMI_PENDING, KVM_VCPUEVENT_VALID_SHADOW, KVM_VCPUEVENT_VALID_SMM,
    KVM_VCPUEVENT_VALID_TRIPLE_FAULT, KVM_X86_SHADOW_INT_MOV_SS, KVM_X86_SHADOW_INT_STI, kvm_vcpu_events,
};

use crate::kvm::error::{KvmError, Wanted};
use crate::kvm::vcpu::Vcpu;

const INTERRUPTS_ENABLED: u64 = 1 << 9;

/// Events that a vCPU will deliver before its next instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queued {
    /// Vector of an external interrupt.
    pub interrupt: Option<u8>,
    /// Vector of an exception, and its error code if it has one.
    pub exception: Option<(u8, Option<u32>)>,
    /// True for a triple fault.
    pub triple_fault: bool,
}

impl Vcpu {
    pub(super) fn load_events(&self, state: &CpuState) -> Result<(), KvmError> {
        let mut events = kvm_vcpu_events {
            flags: KVM_VCPUEVENT_VALID_NMI_PENDING | KVM_VCPUEVENT_VALID_SHADOW | KVM_VCPUEVENT_VALID_SMM,
            ..Default::default()
        };
        if self.vm.has_triple_fault_events() {
            events.flags |= KVM_VCPUEVENT_VALID_TRIPLE_FAULT;
        }
        if state.shadow {
            // Processors refuse to enter a guest that has STI's shadow and disabled interrupts. If interrupts are
            // disabled, KVM therefore gets MOV SS's shadow.
            let enabled = state.rflags & INTERRUPTS_ENABLED != 0;
            let shadow = if enabled { KVM_X86_SHADOW_INT_STI } else { KVM_X86_SHADOW_INT_MOV_SS };
            events.interrupt.shadow = shadow as u8;
        }
        self.fd.set_vcpu_events(&events).wanted("set pending events")
    }

    pub(super) fn save_events(&self) -> Result<(bool, Queued), KvmError> {
        let events = self.fd.get_vcpu_events().wanted("read pending events")?;
        Ok((events.interrupt.shadow != 0, queued(&events)))
    }
}

pub(super) fn queued(events: &kvm_vcpu_events) -> Queued {
    let (interrupt, exception) = (events.interrupt, events.exception);
    Queued {
        // KVM also reports an INT n whose delivery has begun but not ended as an injected interrupt. Both are delivered
        // in the same way.
        interrupt: (interrupt.injected != 0).then_some(interrupt.nr),
        exception: (exception.injected != 0 || exception.pending != 0).then(|| {
            let error = exception.error_code;
            (exception.nr, (exception.has_error_code != 0).then_some(error))
        }),
        triple_fault: events.triple_fault.pending != 0,
    }
}
