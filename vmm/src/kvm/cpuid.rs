//! CPUID table that guests on KVM see, in KVM's format. It describes Everett's CPU model and not the host's processor.
//!
//! The table has the same rows as the table of the soft CPU (Everett's own CPU). A query beyond the last leaf returns
//! the last basic leaf, on KVM and on the soft CPU. KVM and the soft CPU derive the APIC bit from IA32_APIC_BASE.

use everett_cpu::CpuModel;
use everett_cpu::cpuid::leaves;
use kvm_bindings::{CpuId, KVM_CPUID_FLAG_SIGNIFCANT_INDEX, kvm_cpuid_entry2};

use super::error::KvmError;

/// Returns the CPUID table for a vCPU whose IA32_APIC_BASE is `apic_base`.
///
/// # Errors
/// Returns an error if KVM cannot hold so many rows.
pub fn table(apic_base: u64) -> Result<CpuId, KvmError> {
    let entries: Vec<kvm_cpuid_entry2> = leaves(CpuModel::V2, apic_base)
        .into_iter()
        .map(|row| kvm_cpuid_entry2 {
            function: row.leaf,
            index: row.subleaf.unwrap_or(0),
            flags: if row.subleaf.is_some() { KVM_CPUID_FLAG_SIGNIFCANT_INDEX } else { 0 },
            eax: row.registers[0],
            ebx: row.registers[1],
            ecx: row.registers[2],
            edx: row.registers[3],
            padding: [0; 3],
        })
        .collect();
    CpuId::from_entries(&entries).map_err(|_| KvmError::Lacks("room for the CPU model's CPUID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_runs_on_host_time_is_offered() {
        let table = table(0xfee0_0900).unwrap();
        let row =
            |leaf| table.as_slice().iter().find(|row| row.function == leaf).copied().unwrap_or_default();
        // Bits of x2APIC and of the TSC-deadline timer.
        assert_eq!(row(1).ecx & (1 << 21 | 1 << 24), 0);
        // Bits of RDRAND, RDSEED, TSC_ADJUST.
        assert_eq!((row(1).ecx & 1 << 30, row(7).ebx & (1 << 18 | 1 << 1)), (0, 0));
        assert!(table.as_slice().iter().all(|row| row.function >> 8 != 0x40_0000));
    }
}
