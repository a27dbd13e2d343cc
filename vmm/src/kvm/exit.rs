//! Reads the reason of a vCPU's exit from the pages that KVM shares, and writes the answers into those pages.
#![allow(unsafe_code)]

use kvm_bindings::{
    KVM_EXIT_DEBUG, KVM_EXIT_FAIL_ENTRY, KVM_EXIT_HLT, KVM_EXIT_INTERNAL_ERROR, KVM_EXIT_INTR, KVM_EXIT_IO,
    KVM_EXIT_IO_IN, KVM_EXIT_IRQ_WINDOW_OPEN, KVM_EXIT_MMIO, KVM_EXIT_SET_TPR, KVM_EXIT_SHUTDOWN,
    KVM_EXIT_X86_RDMSR, KVM_EXIT_X86_WRMSR, KVM_INTERNAL_ERROR_EMULATION,
    KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES, kvm_run,
};

use super::error::KvmError;

/// Maximum length of an instruction, in bytes.
const INSTRUCTION_BYTES_MAX: usize = 15;
/// Offset of the data of port accesses in the shared pages. KVM puts it into the second page.
const DATA_PAGE: u64 = 4096;

/// Instruction that KVM cannot execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Kind of failure, `KVM_INTERNAL_ERROR_*`. The soft CPU can execute the instruction only if the kind is
    /// `EMULATION`.
    pub suberror: u32,
    /// Bytes of the instruction, if KVM reports them.
    pub bytes: [u8; INSTRUCTION_BYTES_MAX],
    /// Number of bytes that KVM reports.
    pub len: u8,
}

impl Failure {
    /// True if KVM failed to emulate an instruction.
    pub fn is_emulation(&self) -> bool {
        self.suberror == KVM_INTERNAL_ERROR_EMULATION
    }
}

/// Reason why a vCPU stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvmExit {
    /// A load from an address that is not RAM.
    MmioRead {
        /// Guest-physical address.
        gpa: u64,
        /// Bytes, 1 to 8.
        size: u8,
    },
    /// A store to an address that is not RAM.
    MmioWrite {
        /// Guest-physical address.
        gpa: u64,
        /// Bytes, 1 to 8.
        size: u8,
        /// Value, zero-extended.
        value: u64,
    },
    /// IN, or `count` iterations of INS.
    PioRead {
        /// Port.
        port: u16,
        /// Bytes: 1, 2 or 4.
        size: u8,
        /// Number of values to read.
        count: u32,
    },
    /// OUT, or `count` iterations of OUTS.
    PioWrite {
        /// Port.
        port: u16,
        /// Bytes: 1, 2 or 4.
        size: u8,
        /// Number of values written.
        count: u32,
    },
    /// RDMSR of an MSR that KVM's MSR filter denies or that KVM does not know.
    MsrRead {
        /// Number of the MSR.
        index: u32,
    },
    /// WRMSR that KVM's MSR filter denies, or whose MSR or value KVM refuses.
    MsrWrite {
        /// Number of the MSR.
        index: u32,
        /// The value.
        value: u64,
    },
    /// HLT.
    Halt,
    /// The guest can take an interrupt now; the engine had requested this exit.
    Window,
    /// A triple fault.
    Shutdown,
    /// MOV to CR8 lowered the task priority.
    Priority,
    /// A signal to the thread interrupted the run.
    Interrupted,
    /// A debug exception that the engine requested.
    Debug,
    /// KVM failed to execute an instruction.
    Failure(Failure),
}

impl KvmExit {
    /// True if KVM finishes the instruction only at the next entry.
    pub fn is_unfinished(&self) -> bool {
        use KvmExit::*;
        matches!(
            self,
            MmioRead { .. }
                | MmioWrite { .. }
                | PioRead { .. }
                | PioWrite { .. }
                | MsrRead { .. }
                | MsrWrite { .. }
        )
    }
}

/// Returns the reason of the last exit.
pub(super) fn read(run: &kvm_run) -> Result<KvmExit, KvmError> {
    let exit = &run.__bindgen_anon_1;
    Ok(match run.exit_reason {
        KVM_EXIT_MMIO => {
            // SAFETY: the exit reason names this variant.
            let mmio = unsafe { exit.mmio };
            let (gpa, size) = (mmio.phys_addr, mmio.len.min(8) as u8);
            if mmio.is_write == 0 {
                KvmExit::MmioRead { gpa, size }
            } else {
                let mut bytes = [0; 8];
                bytes[..usize::from(size)].copy_from_slice(&mmio.data[..usize::from(size)]);
                KvmExit::MmioWrite { gpa, size, value: u64::from_le_bytes(bytes) }
            }
        }
        KVM_EXIT_IO => {
            // SAFETY: the exit reason names this variant.
            let io = unsafe { exit.io };
            let (port, size, count) = (io.port, io.size, io.count);
            let fits = matches!(size, 1 | 2 | 4) && u64::from(size) * u64::from(count) <= DATA_PAGE;
            if !fits || io.data_offset != DATA_PAGE || count == 0 {
                return Err(KvmError::Exit(format!("a port access of {count} times {size} bytes")));
            }
            if u32::from(io.direction) == KVM_EXIT_IO_IN {
                KvmExit::PioRead { port, size, count }
            } else {
                KvmExit::PioWrite { port, size, count }
            }
        }
        KVM_EXIT_X86_RDMSR => {
            // SAFETY: the exit reason names this variant.
            let msr = unsafe { exit.msr };
            KvmExit::MsrRead { index: msr.index }
        }
        KVM_EXIT_X86_WRMSR => {
            // SAFETY: the exit reason names this variant.
            let msr = unsafe { exit.msr };
            KvmExit::MsrWrite { index: msr.index, value: msr.data }
        }
        KVM_EXIT_HLT => KvmExit::Halt,
        KVM_EXIT_IRQ_WINDOW_OPEN => KvmExit::Window,
        KVM_EXIT_SHUTDOWN => KvmExit::Shutdown,
        KVM_EXIT_SET_TPR => KvmExit::Priority,
        KVM_EXIT_INTR => KvmExit::Interrupted,
        KVM_EXIT_DEBUG => KvmExit::Debug,
        KVM_EXIT_INTERNAL_ERROR => KvmExit::Failure(failure(run)),
        KVM_EXIT_FAIL_ENTRY => {
            // SAFETY: the exit reason names this variant.
            let reason = unsafe { exit.fail_entry }.hardware_entry_failure_reason;
            return Err(KvmError::Exit(format!(
                "the processor refused to enter the guest, reason {reason:#x}"
            )));
        }
        other => return Err(KvmError::Exit(format!("exit reason {other}"))),
    })
}

fn failure(run: &kvm_run) -> Failure {
    // SAFETY: the exit reason is an internal error, and this variant is its longest form. All forms share the fields up
    // to `ndata`. The fields after `ndata` are read only if `ndata` and the flags say that they are present.
    let failed = unsafe { run.__bindgen_anon_1.emulation_failure };
    let mut failure = Failure { suberror: failed.suberror, bytes: [0; INSTRUCTION_BYTES_MAX], len: 0 };
    let flag = u64::from(KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES);
    // `ndata` counts 64-bit words: one for the flags, two for the instruction's length and bytes.
    if failure.is_emulation() && failed.ndata >= 3 && failed.flags & flag != 0 {
        // SAFETY: the flag says that the instruction's bytes are present.
        let instruction = unsafe { failed.__bindgen_anon_1.__bindgen_anon_1 };
        failure.len = instruction.insn_size.min(INSTRUCTION_BYTES_MAX as u8);
        failure.bytes = instruction.insn_bytes;
    }
    failure
}

/// Returns the data of a port access: `count * size` bytes.
///
/// # Panics
/// Panics if the last exit was not a port access.
pub(super) fn port_data(run: &mut kvm_run, size: u8, count: u32) -> &mut [u8] {
    assert_eq!(run.exit_reason, KVM_EXIT_IO, "the last exit must be a port access");
    let len = usize::from(size) * count as usize;
    assert!(len as u64 <= DATA_PAGE);
    let start = std::ptr::from_mut(run).cast::<u8>();
    // SAFETY: `read` has checked that the data lies in the page after the one where `run` begins. KVM maps that page
    // too: the mapping has KVM_GET_VCPU_MMAP_SIZE bytes, at least three pages on x86. KVM does not write to it before
    // the next entry.
    unsafe { std::slice::from_raw_parts_mut(start.add(DATA_PAGE as usize), len) }
}

/// Sets the value that a load from a device returns.
pub(super) fn answer_mmio(run: &mut kvm_run, value: u64) {
    if run.exit_reason == KVM_EXIT_MMIO {
        run.__bindgen_anon_1.mmio.data = value.to_le_bytes();
    }
}

/// Answers RDMSR or WRMSR. With a value, the instruction succeeds, and RDMSR returns the value. With `None`, the
/// instruction raises #GP.
pub(super) fn answer_msr(run: &mut kvm_run, value: Option<u64>) {
    if matches!(run.exit_reason, KVM_EXIT_X86_RDMSR | KVM_EXIT_X86_WRMSR) {
        // SAFETY: the exit reason names this variant.
        let msr = unsafe { &mut run.__bindgen_anon_1.msr };
        msr.error = u8::from(value.is_none());
        if let Some(value) = value {
            msr.data = value;
        }
    }
}
