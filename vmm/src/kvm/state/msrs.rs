//! Model-specific registers.
//!
//! This module sets the MSRs of SYSCALL and SYSENTER, PAT, MTRRs, MISC_ENABLE, TSC_AUX and the microcode revision.
//! `segments` sets the bases of FS and GS; `registers` sets EFER and APIC_BASE.

use everett_cpu::msr::number::*;
use everett_cpu::msr::{MISC_FAST_STRINGS, MISC_FIXED};
use everett_cpu::state::Msrs;
use kvm_bindings::kvm_msr_entry;

use crate::kvm::error::{KvmError, Wanted};
use crate::kvm::vcpu::Vcpu;

/// MSRs that the guest reads and writes without an exit. KVM handles them as Everett's own CPU does, and kernels access
/// them all the time.
pub const PASSED_THROUGH: [u32; 4] = [FS_BASE, GS_BASE, KERNEL_GS_BASE, EFER];

/// Returns the number of each MSR with its field.
fn fields(m: &mut Msrs) -> Vec<(u32, &mut u64)> {
    let mut all = vec![
        (BIOS_SIGN_ID, &mut m.bios_sign_id),
        (SYSENTER_CS, &mut m.sysenter_cs),
        (SYSENTER_ESP, &mut m.sysenter_esp),
        (SYSENTER_EIP, &mut m.sysenter_eip),
        (MISC_ENABLE, &mut m.misc_enable),
        (PAT, &mut m.pat),
        (MTRR_DEF_TYPE, &mut m.mtrr_def_type),
        (STAR, &mut m.star),
        (LSTAR, &mut m.lstar),
        (CSTAR, &mut m.cstar),
        (FMASK, &mut m.fmask),
        (KERNEL_GS_BASE, &mut m.kernel_gs_base),
        (TSC_AUX, &mut m.tsc_aux),
    ];
    all.extend((MTRR_VARIABLE..).zip(&mut m.mtrr_var));
    all.extend(MTRR_FIXED.into_iter().zip(&mut m.mtrr_fixed));
    all
}

impl Vcpu {
    pub(super) fn load_msrs(&self, msrs: &Msrs) -> Result<(), KvmError> {
        let mut msrs = msrs.clone();
        msrs.misc_enable |= MISC_FIXED;
        let entries: Vec<kvm_msr_entry> = fields(&mut msrs)
            .into_iter()
            .map(|(index, value)| kvm_msr_entry { index, data: *value, ..Default::default() })
            .collect();
        let list =
            kvm_bindings::Msrs::from_entries(&entries).map_err(|_| KvmError::Lacks("room for MSRs"))?;
        let done = self.fd.set_msrs(&list).wanted("set MSRs")?;
        // KVM stops at the first MSR that it refuses.
        match entries.get(done) {
            Some(refused) => Err(KvmError::MsrWrite(refused.index, refused.data)),
            None => Ok(()),
        }
    }
    pub(super) fn save_msrs(&self, msrs: &mut Msrs) -> Result<(), KvmError> {
        let mut fields = fields(msrs);
        let entries: Vec<kvm_msr_entry> =
            fields.iter().map(|(index, _)| kvm_msr_entry { index: *index, ..Default::default() }).collect();
        let mut list =
            kvm_bindings::Msrs::from_entries(&entries).map_err(|_| KvmError::Lacks("room for MSRs"))?;
        let done = self.fd.get_msrs(&mut list).wanted("read MSRs")?;
        if let Some(refused) = entries.get(done) {
            return Err(KvmError::MsrRead(refused.index));
        }
        for ((_, field), entry) in fields.iter_mut().zip(list.as_slice()) {
            **field = entry.data;
        }
        msrs.misc_enable &= MISC_FAST_STRINGS;
        Ok(())
    }
}
