//! Model-specific registers (SDM vol. 4). RDMSR and WRMSR of any register that this table lacks raise #GP. [`number`]
//! defines constants for the numbers of the registers.
//!
//! | MSR | reason |
//! |---|---|
//! | 10h TSC | kernels may set it; `CpuState` stores the offset |
//! | 17h PLATFORM_ID | microcode drivers read it without checking that it exists |
//! | 1Bh APIC_BASE | address and enable bit of the local APIC |
//! | 8Bh BIOS_SIGN_ID | microcode revision: kernels write 0, execute CPUID, and read it |
//! | FEh MTRRCAP, 200h-20Fh, 250h-26Fh, 2FFh | MTRRs: kernels use PAT only with MTRRs; memory types have no effect |
//! | 10Ah ARCH_CAPABILITIES | tells the guest that this CPU does not speculate |
//! | 174h-176h SYSENTER | the fast system call of 32-bit kernels, also valid in 64-bit mode |
//! | 1A0h MISC_ENABLE | kernels look for its bit "fast strings" |
//! | 1D9h DEBUGCTL | debug handlers clear it; all of its bits are reserved here |
//! | 277h PAT | the register exists, but page attributes have no effect |
//! | C0000080h-84h | EFER and SYSCALL |
//! | C0000100h-103h | FS, GS and kernel GS bases, TSC_AUX |

pub mod number;

use crate::core::{Core, cr0, efer};
use crate::mem::{PHYSICAL_BITS, canonical};
use crate::op::{Op, slot};
use crate::state::{Unsupported, seg};
use number::*;

/// IA32_MTRRCAP: eight variable ranges, fixed ranges, write-combining.
const MTRRCAP_VALUE: u64 = 8 | 1 << 8 | 1 << 10;
/// Fast-strings bit of IA32_MISC_ENABLE, the only bit that the guest can change.
pub const MISC_FAST_STRINGS: u64 = 1;
/// Fixed bits of IA32_MISC_ENABLE: branch trace storage and PEBS are unavailable.
pub const MISC_FIXED: u64 = 1 << 11 | 1 << 12;
/// Enable bit of IA32_APIC_BASE.
const APIC_ENABLE: u64 = 1 << 11;

/// Value of IA32_ARCH_CAPABILITIES for a CPU that does not speculate: RDCL_NO, SKIP_L1DFL_VMENTRY, SSB_NO, MDS_NO,
/// PSCHANGE_MC_NO, TAA_NO, SBDR_SSDP_NO, FBSDP_NO, PSDP_NO, BHI_NO, PBRSB_NO, GDS_NO, RFDS_NO, ITS_NO.
const ARCH_CAPABILITIES_VALUE: u64 = 1
    | 1 << 3
    | 1 << 4
    | 1 << 5
    | 1 << 6
    | 1 << 8
    | 1 << 13
    | 1 << 14
    | 1 << 15
    | 1 << 20
    | 1 << 24
    | 1 << 26
    | 1 << 27
    | 1 << 62;

/// Implements RDMSR. Returns `None` for an MSR that does not exist.
pub(crate) fn read(core: &Core, op: &Op, index: u32) -> Option<u64> {
    let m = &core.msrs;
    Some(match index {
        TSC => core.read_tsc(op),
        PLATFORM_ID | DEBUGCTL => 0,
        APIC_BASE => m.apic_base,
        BIOS_SIGN_ID => m.bios_sign_id,
        MTRRCAP => MTRRCAP_VALUE,
        ARCH_CAPABILITIES => ARCH_CAPABILITIES_VALUE,
        SYSENTER_CS => m.sysenter_cs,
        SYSENTER_ESP => m.sysenter_esp,
        SYSENTER_EIP => m.sysenter_eip,
        MISC_ENABLE => m.misc_enable | MISC_FIXED,
        MTRR_VARIABLE..=MTRR_VARIABLE_LAST => m.mtrr_var[(index - MTRR_VARIABLE) as usize],
        PAT => m.pat,
        MTRR_DEF_TYPE => m.mtrr_def_type,
        EFER => core.efer,
        STAR => m.star,
        LSTAR => m.lstar,
        CSTAR => m.cstar,
        FMASK => m.fmask,
        FS_BASE => core.regs[slot::FS as usize],
        GS_BASE => core.regs[slot::GS as usize],
        KERNEL_GS_BASE => m.kernel_gs_base,
        TSC_AUX => m.tsc_aux,
        _ => m.mtrr_fixed[MTRR_FIXED.iter().position(|&n| n == index)?],
    })
}

/// Implements WRMSR. Returns false, and changes nothing, if the MSR does not exist, is read-only, or cannot hold the
/// value.
pub(crate) fn write(core: &mut Core, op: &Op, index: u32, v: u64) -> bool {
    let Some(ok) = valid(core, index, v) else { return false };
    if !ok {
        return false;
    }
    let m = &mut core.msrs;
    match index {
        TSC => {
            let now = core.read_tsc(op);
            core.msrs.tsc_offset = core.msrs.tsc_offset.wrapping_add(v.wrapping_sub(now));
        }
        APIC_BASE if (v ^ m.apic_base) & !APIC_ENABLE != 0 => {
            core.unsupported(Unsupported::ApicMoved);
        }
        APIC_BASE => m.apic_base = v,
        BIOS_SIGN_ID => m.bios_sign_id = v,
        SYSENTER_CS => m.sysenter_cs = v,
        SYSENTER_ESP => m.sysenter_esp = v,
        SYSENTER_EIP => m.sysenter_eip = v,
        MISC_ENABLE => m.misc_enable = v & MISC_FAST_STRINGS,
        MTRR_VARIABLE..=MTRR_VARIABLE_LAST => m.mtrr_var[(index - MTRR_VARIABLE) as usize] = v,
        PAT => m.pat = v,
        MTRR_DEF_TYPE => m.mtrr_def_type = v,
        EFER => {
            core.efer = v & !efer::LMA | core.efer & efer::LMA;
            core.update_paging();
        }
        STAR => m.star = v,
        LSTAR => m.lstar = v,
        CSTAR => m.cstar = v,
        FMASK => m.fmask = v,
        FS_BASE => core.set_segment_base(seg::FS, v),
        GS_BASE => core.set_segment_base(seg::GS, v),
        KERNEL_GS_BASE => m.kernel_gs_base = v,
        TSC_AUX => m.tsc_aux = v,
        _ => {
            if let Some(n) = MTRR_FIXED.iter().position(|&n| n == index) {
                m.mtrr_fixed[n] = v;
            }
        }
    }
    true
}

/// Returns whether the guest may write `v` to the MSR, or `None` if the MSR does not exist.
fn valid(core: &Core, index: u32, v: u64) -> Option<bool> {
    let memory_types = |allowed: fn(u8) -> bool| v.to_le_bytes().into_iter().all(allowed);
    Some(match index {
        TSC | BIOS_SIGN_ID | STAR => true,
        SYSENTER_CS | FMASK | TSC_AUX => v >> 32 == 0,
        SYSENTER_ESP | SYSENTER_EIP | LSTAR | CSTAR | FS_BASE | GS_BASE | KERNEL_GS_BASE => canonical(v),
        // The CPU is the bootstrap processor, so bit 8 stays as it is. It has no x2APIC, so bit 10 is reserved.
        APIC_BASE => v >> PHYSICAL_BITS == 0 && v & 0x6ff == 0 && v & 0x100 == core.msrs.apic_base & 0x100,
        MISC_ENABLE => v & !(MISC_FAST_STRINGS | MISC_FIXED) == 0,
        DEBUGCTL => v == 0,
        PAT => memory_types(|t| matches!(t, 0 | 1 | 4..=7)),
        MTRR_DEF_TYPE => v & !0xcff == 0 && mtrr_type(v as u8),
        MTRR_VARIABLE..=MTRR_VARIABLE_LAST => {
            let is_mask = index & 1 != 0;
            let low = if is_mask { v & 0x7ff == 0 } else { v & 0xf00 == 0 && mtrr_type(v as u8) };
            low && v >> PHYSICAL_BITS == 0
        }
        EFER => {
            let known = efer::SCE | efer::LME | efer::LMA | efer::NXE;
            let switches = (v ^ core.efer) & efer::LME != 0 && core.cr0 & cr0::PG != 0;
            v & !known == 0 && !switches
        }
        PLATFORM_ID | MTRRCAP | ARCH_CAPABILITIES => false,
        _ => {
            MTRR_FIXED.iter().position(|&n| n == index)?;
            memory_types(mtrr_type)
        }
    })
}

/// True for a valid memory type of an MTRR (SDM vol. 3A, table 12-8).
fn mtrr_type(t: u8) -> bool {
    matches!(t, 0 | 1 | 4 | 5 | 6)
}
