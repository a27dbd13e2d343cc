//! The architectural state of one vCPU as plain data. Moments (snapshots) contain it, and digests cover it.
//!
//! The form is canonical: two CPUs that a guest cannot tell apart have equal values here. TLB entries, code caches and
//! lazy flags are therefore left out.

use serde::{Deserialize, Serialize};

use crate::model::CpuModel;

/// A segment register with its hidden part (SDM vol. 3A, 3.4.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Visible selector.
    pub selector: u16,
    /// Hidden base address.
    pub base: u64,
    /// Hidden limit in bytes. The G bit is already applied.
    pub limit: u32,
    /// Access rights: bits 8-23 of the descriptor's second word, shifted right by 8. They hold type, S, DPL, P, AVL, L,
    /// D/B and G.
    pub access: u16,
}

impl Segment {
    /// Descriptor privilege level.
    pub fn dpl(&self) -> u8 {
        ((self.access >> 5) & 3) as u8
    }
    /// True if the present bit is set.
    pub fn present(&self) -> bool {
        self.access & 0x80 != 0
    }
    /// True if the L bit is set, which means 64-bit code.
    pub fn long(&self) -> bool {
        self.access & 0x2000 != 0
    }
}

/// Value of GDTR or IDTR.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRegister {
    /// Linear base address.
    pub base: u64,
    /// Limit: size of the table in bytes, minus one.
    pub limit: u16,
}

/// Model-specific registers that are not stored elsewhere in [`CpuState`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Msrs {
    /// IA32_STAR.
    pub star: u64,
    /// IA32_LSTAR.
    pub lstar: u64,
    /// IA32_CSTAR.
    pub cstar: u64,
    /// IA32_FMASK.
    pub fmask: u64,
    /// IA32_KERNEL_GS_BASE.
    pub kernel_gs_base: u64,
    /// IA32_SYSENTER_CS.
    pub sysenter_cs: u64,
    /// IA32_SYSENTER_ESP.
    pub sysenter_esp: u64,
    /// IA32_SYSENTER_EIP.
    pub sysenter_eip: u64,
    /// IA32_APIC_BASE.
    pub apic_base: u64,
    /// IA32_PAT.
    pub pat: u64,
    /// IA32_MISC_ENABLE.
    pub misc_enable: u64,
    /// IA32_TSC_AUX.
    pub tsc_aux: u64,
    /// Difference between the TSC that the guest reads and the TSC that it would read if it had never written the TSC.
    pub tsc_offset: u64,
    /// IA32_MTRR_DEF_TYPE.
    pub mtrr_def_type: u64,
    /// The eight variable MTRR pairs, base and mask.
    pub mtrr_var: [u64; 16],
    /// The eleven fixed-range MTRRs.
    pub mtrr_fixed: [u64; 11],
    /// IA32_BIOS_SIGN_ID.
    pub bios_sign_id: u64,
}

impl Default for Msrs {
    fn default() -> Self {
        Msrs {
            star: 0,
            lstar: 0,
            cstar: 0,
            fmask: 0,
            kernel_gs_base: 0,
            sysenter_cs: 0,
            sysenter_esp: 0,
            sysenter_eip: 0,
            apic_base: 0xfee0_0900,
            pat: 0x0007_0406_0007_0406,
            misc_enable: 1,
            tsc_aux: 0,
            tsc_offset: 0,
            // Value that firmware leaves: MTRRs enabled, all memory write-back.
            mtrr_def_type: 0x806,
            mtrr_var: [0; 16],
            mtrr_fixed: [0; 11],
            bios_sign_id: 0,
        }
    }
}

/// Bits of MXCSR that exist, as in the MXCSR_MASK of FXSAVE (SDM vol. 1, 10.5.1.2).
pub(crate) const MXCSR_MASK: u32 = 0xffff;

/// x87 and SSE state (SDM vol. 1, chapters 8 and 10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FpuState {
    /// Physical x87 registers R0-R7: the 64-bit significand, and the word with sign and exponent.
    pub r: [(u64, u16); 8],
    /// Control word.
    pub fcw: u16,
    /// Status word, including TOP.
    pub fsw: u16,
    /// Abridged tag word: bit i is set if physical register Ri is not empty.
    pub ftw: u8,
    /// Last opcode, 11 bits.
    pub fop: u16,
    /// Last instruction pointer.
    pub fip: u64,
    /// Last data pointer.
    pub fdp: u64,
    /// SSE control and status register.
    pub mxcsr: u32,
    /// XMM0-XMM15.
    pub xmm: [u128; 16],
}

impl Default for FpuState {
    fn default() -> Self {
        FpuState {
            r: [(0, 0); 8],
            fcw: 0x0037f,
            fsw: 0,
            ftw: 0,
            fop: 0,
            fip: 0,
            fdp: 0,
            mxcsr: 0x1f80,
            xmm: [0; 16],
        }
    }
}

/// Bits of XCR0, one for each state component (SDM vol. 1, 13.1).
pub mod xcr0 {
    /// x87 registers.
    pub const X87: u64 = 1;
    /// XMM registers and MXCSR.
    pub const SSE: u64 = 1 << 1;
    /// Upper halves of the YMM registers.
    pub const AVX: u64 = 1 << 2;
    /// The components that AVX instructions need.
    pub const AVX_STATE: u64 = SSE | AVX;
}

/// Bit of CR4 that enables XSAVE.
pub const OSXSAVE: u64 = 1 << 18;

/// Offset in the XSAVE area of the AVX component, in both formats.
pub(crate) const AVX_AT: u64 = 576;
/// Size of the AVX component in bytes.
pub(crate) const AVX_LEN: u64 = 256;

/// State that only CPUs with XSAVE have. On other models it always has the default value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extended {
    /// XCR0.
    pub xcr0: u64,
    /// Upper halves of YMM0-YMM15.
    pub ymm: [u128; 16],
}

impl Default for Extended {
    /// Returns the state after a reset.
    fn default() -> Self {
        Extended { xcr0: xcr0::X87, ymm: [0; 16] }
    }
}

/// Indices into [`CpuState::seg`] and the order of segment registers in encodings.
pub mod seg {
    /// ES.
    pub const ES: usize = 0;
    /// CS.
    pub const CS: usize = 1;
    /// SS.
    pub const SS: usize = 2;
    /// DS.
    pub const DS: usize = 3;
    /// FS.
    pub const FS: usize = 4;
    /// GS.
    pub const GS: usize = 5;
}

/// A feature that the CPU does not model. Its use by the guest ended the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unsupported {
    /// The guest entered a 32-bit code segment.
    Code32Bit,
    /// The guest moved its local APIC.
    ApicMoved,
    /// The guest fetched instructions from an address that is not RAM.
    FetchOutsideRam,
    /// The delivery of an exception or interrupt accesses the IDT, a descriptor table, the TSS or a stack that lies
    /// outside RAM.
    DeliveryOutsideRam,
    /// Too many exceptions followed one another without a retired instruction between them: the guest's exception
    /// handler faults at its first instruction.
    EndlessExceptions,
}

impl Unsupported {
    /// Returns the description that the operator reads.
    pub fn reason(self) -> &'static str {
        match self {
            Unsupported::Code32Bit => "32-bit code",
            Unsupported::ApicMoved => "a local APIC at another address",
            Unsupported::FetchOutsideRam => "execution from an address that is not RAM",
            Unsupported::DeliveryOutsideRam => {
                "exception or interrupt delivery through memory that is not RAM"
            }
            Unsupported::EndlessExceptions => {
                "exceptions without end: a handler faults before its first instruction"
            }
        }
    }
}

/// Reason why a CPU executes nothing more until its state is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dead {
    /// A triple fault.
    Shutdown,
    /// The guest used a feature that the CPU does not model.
    Unsupported(Unsupported),
}

/// Everything that a guest can observe of its CPU, and the instruction count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuState {
    /// Number of retired instructions.
    pub icount: u64,
    /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8-R15.
    pub gpr: [u64; 16],
    /// Instruction pointer.
    pub rip: u64,
    /// RFLAGS. The reserved bit 1 is set.
    pub rflags: u64,
    /// ES, CS, SS, DS, FS, GS.
    pub seg: [Segment; 6],
    /// Local descriptor table register.
    pub ldtr: Segment,
    /// Task register.
    pub tr: Segment,
    /// Global descriptor table register.
    pub gdtr: TableRegister,
    /// Interrupt descriptor table register.
    pub idtr: TableRegister,
    /// CR0.
    pub cr0: u64,
    /// CR2.
    pub cr2: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// IA32_EFER.
    pub efer: u64,
    /// DR0-DR3.
    pub dr: [u64; 4],
    /// DR6.
    pub dr6: u64,
    /// DR7.
    pub dr7: u64,
    /// Model-specific registers.
    pub msrs: Msrs,
    /// x87 and SSE registers.
    pub fpu: FpuState,
    /// State of XSAVE and AVX. The serialised form leaves it out, so that moments and digests of `v2` have the form that they
    /// had before there were other models. Moments and digests of other models append it.
    #[serde(skip)]
    pub extended: Extended,
    /// True after HLT, while the CPU waits for an interrupt.
    pub halted: bool,
    /// True in an interrupt shadow: STI or MOV SS holds off interrupts for one instruction.
    pub shadow: bool,
    /// Number of exceptions since the last retired instruction. A maximum bounds it, so an endless chain of exceptions
    /// ends the run.
    pub exceptions: u32,
    /// Reason why the CPU executes nothing more, if there is one.
    pub dead: Option<Dead>,
}

impl CpuState {
    /// True if a CPU of this model can have the state of XSAVE and AVX: XCR0 is one that XSETBV accepts, and models without
    /// XSAVE have the initial state.
    pub fn fits(&self, model: CpuModel) -> bool {
        let has_xsave = self.extended != Extended::default() || self.cr4 & OSXSAVE != 0;
        let valid =
            [xcr0::X87, xcr0::X87 | xcr0::SSE, xcr0::X87 | xcr0::AVX_STATE].contains(&self.extended.xcr0);
        valid && (model.is_v3() || !has_xsave)
    }
}

impl Default for CpuState {
    /// Returns a CPU in long mode at CPL 0 with a page table root at address zero. The code that sets up a guest must
    /// set the other registers that the guest needs.
    fn default() -> Self {
        let data = Segment { selector: 0x18, base: 0, limit: 0xffff_ffff, access: 0xc093 };
        let code = Segment { selector: 0x10, base: 0, limit: 0xffff_ffff, access: 0xa09b };
        CpuState {
            icount: 0,
            gpr: [0; 16],
            rip: 0,
            rflags: 2,
            seg: [data, code, data, data, data, data],
            ldtr: Segment { selector: 0, base: 0, limit: 0, access: 0x82 },
            tr: Segment { selector: 0, base: 0, limit: 0xffff, access: 0x8b },
            gdtr: TableRegister::default(),
            idtr: TableRegister::default(),
            cr0: 0x8005_0033,
            cr2: 0,
            cr3: 0,
            cr4: 0x620,
            efer: 0xd00,
            dr: [0; 4],
            dr6: 0xffff_0ff0,
            dr7: 0x400,
            msrs: Msrs::default(),
            fpu: FpuState::default(),
            extended: Extended::default(),
            halted: false,
            shadow: false,
            exceptions: 0,
            dead: None,
        }
    }
}
