//! A virtual machine of KVM: its memory, the log of the pages that its guest wrote, and the MSR filter.
#![allow(unsafe_code)]

use std::any::Any;
use std::sync::Arc;

use kvm_bindings::{
    KVM_CAP_DISABLE_QUIRKS2, KVM_CAP_EXIT_ON_EMULATION_FAILURE, KVM_CAP_SET_TSS_ADDR, KVM_CAP_SYNC_REGS,
    KVM_CAP_X86_MSR_FILTER, KVM_CAP_X86_TRIPLE_FAULT_EVENT, KVM_CAP_X86_USER_SPACE_MSR,
    KVM_MEM_LOG_DIRTY_PAGES, KVM_MSR_EXIT_REASON_FILTER, KVM_MSR_EXIT_REASON_INVAL,
    KVM_MSR_EXIT_REASON_UNKNOWN, KVM_SYNC_X86_EVENTS, KVM_SYNC_X86_REGS, KVM_SYNC_X86_SREGS,
    KVM_X86_QUIRK_FIX_HYPERCALL_INSN, KVM_X86_QUIRK_MWAIT_NEVER_UD_FAULTS, kvm_enable_cap,
    kvm_userspace_memory_region,
};
use kvm_ioctls::{MsrFilterDefaultAction, MsrFilterRange, MsrFilterRangeFlags, VcpuFd, VmFd};
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemoryMmap, MmapRegion};

use super::error::{KvmError, uninterrupted};
use super::host::Host;
use crate::ram;

/// Address of three pages that some Intel processors need for real mode. They lie above the devices and below 4 GiB.
const TSS_ADDRESS: usize = 0xfffb_d000;
/// KVM quirks that are switched off if the host's KVM allows it. Without the quirks, MONITOR, MWAIT and the hypercall
/// instruction that the host's processor lacks (VMMCALL on Intel, VMCALL on AMD) raise #UD, as in the CPU model. With
/// the quirks, MONITOR and MWAIT do nothing although CPUID lacks them, and KVM rewrites that hypercall instruction in
/// guest memory.
const QUIRKS: u32 = KVM_X86_QUIRK_MWAIT_NEVER_UD_FAULTS | KVM_X86_QUIRK_FIX_HYPERCALL_INSN;
const SLOT: u32 = 0;
const PAGE: u64 = 4096;

/// Virtual machine of KVM.
#[derive(Debug)]
pub struct Vm {
    // Declared before `_memory`, so that KVM releases guest memory before this process can unmap it.
    fd: VmFd,
    /// Address of guest memory in this process.
    base: u64,
    bytes: u64,
    triple_fault_events: bool,
    shares_registers: bool,
    filters_msrs: bool,
    _memory: Arc<dyn Any + Send + Sync>,
}

impl Vm {
    /// Creates a machine on guest memory, which must be one region from address 0. KVM logs the pages that the guest
    /// writes.
    ///
    /// # Errors
    /// Returns an error if the memory is not one region from address 0, or if KVM refuses a request.
    pub fn new<B>(host: &Host, memory: Arc<GuestMemoryMmap<B>>) -> Result<Vm, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        let (base, bytes) = ram::whole(&memory).ok_or(KvmError::Memory)?;
        let fd = host.create_vm()?;
        if host.capability(KVM_CAP_SET_TSS_ADDR)? != 0 {
            uninterrupted("place the TSS", || fd.set_tss_address(TSS_ADDRESS))?;
        }
        let enable = |cap, argument| {
            if host.capability(cap)? == 0 {
                return Ok(false);
            }
            let request = kvm_enable_cap { cap, args: [argument, 0, 0, 0], ..Default::default() };
            uninterrupted("enable a capability", || fd.enable_cap(&request))?;
            Ok::<bool, KvmError>(true)
        };
        // The soft CPU (Everett's own CPU in software) executes the instructions that KVM fails to emulate. Without
        // this capability, such an instruction in ring 3 would raise #UD in the guest.
        enable(KVM_CAP_EXIT_ON_EMULATION_FAILURE, 1)?;
        let triple_fault_events = enable(KVM_CAP_X86_TRIPLE_FAULT_EVENT, 1)?;
        // With this capability, an access that the MSR filter denies exits to Everett. Without it, the access would
        // raise #GP in the guest. It is therefore enabled before `filter_msrs` installs a filter.
        let reasons = KVM_MSR_EXIT_REASON_FILTER | KVM_MSR_EXIT_REASON_INVAL | KVM_MSR_EXIT_REASON_UNKNOWN;
        let filters_msrs = enable(KVM_CAP_X86_USER_SPACE_MSR, u64::from(reasons))?
            && host.capability(KVM_CAP_X86_MSR_FILTER)? != 0;
        let quirks = QUIRKS & host.capability(KVM_CAP_DISABLE_QUIRKS2)?;
        if quirks != 0 {
            enable(KVM_CAP_DISABLE_QUIRKS2, u64::from(quirks))?;
        }
        let shared = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS | KVM_SYNC_X86_EVENTS;
        let shares_registers = host.capability(KVM_CAP_SYNC_REGS)? & shared == shared;
        let base = base as u64;
        let vm = Vm { fd, base, bytes, triple_fault_events, shares_registers, filters_msrs, _memory: memory };
        vm.set_memory(bytes)?;
        Ok(vm)
    }

    /// Makes KVM forget the log of written pages and everything that it derived from the guest's page tables. The
    /// engine calls this after Everett has replaced guest memory.
    ///
    /// # Errors
    /// Returns an error if KVM refuses to remove the memory or to add it again.
    pub fn forget_memory(&self) -> Result<(), KvmError> {
        self.set_memory(0)?;
        self.set_memory(self.bytes)
    }

    fn set_memory(&self, bytes: u64) -> Result<(), KvmError> {
        let region = kvm_userspace_memory_region {
            slot: SLOT,
            flags: KVM_MEM_LOG_DIRTY_PAGES,
            guest_phys_addr: 0,
            memory_size: bytes,
            userspace_addr: self.base,
        };
        uninterrupted("set the guest's memory", || {
            // SAFETY: the mapping has this length; length zero removes it from KVM. The mapping outlives KVM's machine:
            // `Vm` owns the mapping and the machine's descriptor, and each vCPU shares ownership of the `Vm`. While the
            // guest writes to the mapping, no other code does, as for `everett_cpu::Ram`.
            unsafe { self.fd.set_user_memory_region(region) }
        })
    }

    /// Denies the guest direct access to all MSRs except `allowed`, which must not be empty. KVM must handle the
    /// allowed MSRs as the CPU model does.
    ///
    /// Returns false if the host's KVM has no filter. The guest then sees KVM's own MSRs.
    ///
    /// # Errors
    /// Returns an error if KVM refuses the filter.
    pub fn filter_msrs(&self, allowed: &[u32]) -> Result<bool, KvmError> {
        if !self.filters_msrs {
            return Ok(false);
        }
        let ranges: Vec<MsrFilterRange<'_>> = allowed
            .iter()
            .map(|&base| MsrFilterRange {
                flags: MsrFilterRangeFlags::READ | MsrFilterRangeFlags::WRITE,
                base,
                msr_count: 1,
                bitmap: &[1],
            })
            .collect();
        uninterrupted("install an MSR filter", || {
            self.fd.set_msr_filter(MsrFilterDefaultAction::DENY, &ranges)
        })?;
        Ok(true)
    }

    /// Takes the numbers of the pages that the guest wrote since the last call, in ascending order. Writes by this
    /// process are not included.
    ///
    /// # Errors
    /// Returns an error if KVM fails to return the log.
    pub fn take_dirty_pages(&self) -> Result<Vec<u64>, KvmError> {
        let words = uninterrupted("read the log of written pages", || {
            self.fd.get_dirty_log(SLOT, self.bytes as usize)
        })?;
        let mut pages = Vec::new();
        for (n, mut word) in words.into_iter().enumerate() {
            while word != 0 {
                pages.push(n as u64 * 64 + u64::from(word.trailing_zeros()));
                word &= word - 1;
            }
        }
        // The bitmap consists of whole words, so its last bits may lie beyond the end of memory.
        pages.retain(|page| page * PAGE < self.bytes);
        Ok(pages)
    }

    pub(super) fn create_vcpu(&self) -> Result<VcpuFd, KvmError> {
        uninterrupted("create a virtual CPU", || self.fd.create_vcpu(0))
    }
    /// True if the vCPU events (KVM_GET_VCPU_EVENTS, KVM_SET_VCPU_EVENTS) include a pending triple fault.
    pub(super) fn has_triple_fault_events(&self) -> bool {
        self.triple_fault_events
    }
    /// True if KVM can copy registers and events into the shared page at the end of a run.
    pub(super) fn shares_registers(&self) -> bool {
        self.shares_registers
    }
}
