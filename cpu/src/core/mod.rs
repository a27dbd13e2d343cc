//! Registers and memory of one vCPU, in the form that the instruction handlers use. [`crate::state::CpuState`] holds
//! the same registers as plain data.

pub(crate) mod edges;
pub(crate) mod native;
pub(crate) mod slot;

use crate::flags::{Flags, bits};
use crate::mem::{Mem, Mode, PagingControl};
use crate::model::{CpuModel, MissingInstruction};
use crate::state::{
    CpuState, Dead, Extended, FpuState, MXCSR_MASK, Msrs, Segment, TableRegister, Unsupported, seg, xcr0,
};
use crate::stop::{Fault, Flow, Stop, vector};
use edges::Edges;
use native::Native;

/// CR0 bits.
pub(crate) mod cr0 {
    pub(crate) const PE: u64 = 1;
    pub(crate) const MP: u64 = 1 << 1;
    pub(crate) const EM: u64 = 1 << 2;
    pub(crate) const TS: u64 = 1 << 3;
    pub(crate) const NE: u64 = 1 << 5;
    pub(crate) const WP: u64 = 1 << 16;
    pub(crate) const AM: u64 = 1 << 18;
    pub(crate) const NW: u64 = 1 << 29;
    pub(crate) const CD: u64 = 1 << 30;
    pub(crate) const PG: u64 = 1 << 31;
}
/// CR4 bits.
pub(crate) mod cr4 {
    pub(crate) const TSD: u64 = 1 << 2;
    pub(crate) const DE: u64 = 1 << 3;
    pub(crate) const PAE: u64 = 1 << 5;
    pub(crate) const PGE: u64 = 1 << 7;
    pub(crate) const OSFXSR: u64 = 1 << 9;
    pub(crate) const OSXMMEXCPT: u64 = 1 << 10;
    pub(crate) const UMIP: u64 = 1 << 11;
    pub(crate) use crate::state::OSXSAVE;
    pub(crate) const SMEP: u64 = 1 << 20;
    pub(crate) const SMAP: u64 = 1 << 21;
}
/// EFER bits.
pub(crate) mod efer {
    pub(crate) const SCE: u64 = 1;
    pub(crate) const LME: u64 = 1 << 8;
    pub(crate) const LMA: u64 = 1 << 10;
    pub(crate) const NXE: u64 = 1 << 11;
}

/// Linear function that converts an instruction count to a TSC value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscAnchor {
    /// Instruction count at which the TSC has the value `tsc`.
    pub icount: u64,
    /// Value of the TSC at `icount`.
    pub tsc: u64,
    /// TSC ticks per `den` instructions.
    pub num: u64,
    /// Denominator of the rate, not zero.
    pub den: u64,
}

/// Registers and memory of one vCPU.
#[derive(Debug)]
pub(crate) struct Core {
    /// The sixteen general registers, and after them other words, e.g. segment bases. [`slot`] has their indices.
    pub regs: [u64; slot::COUNT],
    /// Address of the next instruction. While a block executes, it is the address after the block, or the target of the
    /// branch that ends the block.
    pub rip: u64,
    /// Arithmetic flags in lazy form: values from which any flag can be computed.
    pub flags: Flags,
    /// All other bits of RFLAGS.
    pub rflags: u64,
    /// Current privilege level.
    pub cpl: u8,
    /// True if the CPU was in user mode when a run last looked. `None` if changes of the mode do not end runs.
    pub observed_user: Option<bool>,
    /// Instructions retired before the current block.
    pub icount: u64,
    /// Instruction count at which the run (one call of `Cpu::run`) must stop. Repeated string instructions check it
    /// after each iteration.
    pub limit: u64,
    /// True if the run ends as soon as an external interrupt can be taken.
    pub window: bool,
    pub mem: Mem,
    /// Instructions and features of this CPU. It never changes.
    pub model: CpuModel,
    pub seg: [Segment; 6],
    pub ldtr: Segment,
    pub tr: Segment,
    pub gdtr: TableRegister,
    pub idtr: TableRegister,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub efer: u64,
    pub dr: [u64; 4],
    pub dr6: u64,
    pub dr7: u64,
    pub msrs: Msrs,
    pub fpu: FpuState,
    /// Upper halves of the YMM registers. The lower halves are in `fpu`.
    pub ymm: [u128; 16],
    pub xcr0: u64,
    pub halted: bool,
    pub shadow: bool,
    pub tsc: TscAnchor,
    /// True if INT n, INT3, INT1 or SYSCALL has just cleared RFLAGS.TF. The CPU then raises no single-step trap after
    /// the instruction.
    pub no_trap: bool,
    /// Instruction count at the last exception, and the number of exceptions at that instruction count.
    pub exceptions_at: (u64, u32),
    /// First instruction in ring 3 that the model lacks, until the caller takes it. Not part of the state.
    pub missing: Option<MissingInstruction>,
    /// Reason why the CPU executes nothing more until `load_state` replaces its state.
    pub dead: Option<Dead>,
    /// Message of a panic in the CPU's own code. After a panic the CPU executes nothing more, even if its state is
    /// replaced.
    pub failure: Option<Box<str>>,
    /// Planted defect for tests: the first CPUID at this instruction count or later panics.
    pub panics_from: Option<u64>,
    /// Recorded branch edges, or `None` if recording is off.
    pub edges: Option<Box<Edges>>,
    /// True if the CPU counts retired conditional branches in [`slot::BRANCHES`].
    pub branches: bool,
    /// Data of translated code, used only by `crate::translate`.
    pub native: Native,
}

impl Core {
    pub(crate) fn new(mem: Mem) -> Core {
        let mut core = Core {
            regs: [0; slot::COUNT],
            rip: 0,
            flags: Flags::from_bits(0),
            rflags: 2,
            cpl: 0,
            observed_user: None,
            icount: 0,
            limit: 0,
            window: false,
            mem,
            model: CpuModel::default(),
            seg: [Segment::default(); 6],
            ldtr: Segment::default(),
            tr: Segment::default(),
            gdtr: TableRegister::default(),
            idtr: TableRegister::default(),
            cr0: 0,
            cr2: 0,
            cr3: 0,
            cr4: 0,
            efer: 0,
            dr: [0; 4],
            dr6: 0,
            dr7: 0,
            msrs: Msrs::default(),
            fpu: FpuState::default(),
            ymm: [0; 16],
            xcr0: xcr0::X87,
            halted: false,
            shadow: false,
            missing: None,
            tsc: TscAnchor { icount: 0, tsc: 0, num: 1, den: 1 },
            no_trap: false,
            exceptions_at: (0, 0),
            dead: None,
            failure: None,
            panics_from: None,
            edges: None,
            branches: false,
            native: Native::default(),
        };
        core.load_state(&CpuState::default());
        core
    }
    /// Returns the complete RFLAGS: the arithmetic flags and all other bits.
    pub(crate) fn rflags(&self) -> u64 {
        self.rflags | self.flags.to_bits()
    }
    /// Sets the complete RFLAGS. Reserved bits get their architectural values.
    pub(crate) fn set_rflags(&mut self, v: u64) {
        let known = bits::TF | bits::IF | bits::DF | bits::IOPL | bits::NT | bits::RF | bits::AC | bits::ID;
        self.flags = Flags::from_bits(v);
        self.rflags = (v & known) | 2;
        self.update_mode();
    }
    /// Selects the TLB's table for the current CPL, RFLAGS.AC and CR0.AM. Must be called after each change of these.
    pub(crate) fn update_mode(&mut self) {
        let ac = self.rflags & bits::AC != 0;
        let mode = match (self.cpl == 3, ac) {
            (false, false) => Mode::Kernel,
            (false, true) => Mode::KernelAc,
            (true, true) if self.cr0 & cr0::AM != 0 => Mode::UserAligned,
            (true, _) => Mode::User,
        };
        self.mem.tlb.set_mode(mode);
    }
    /// Passes the paging registers to memory and flushes the TLB. Every change of CR0.WP, CR4.SMEP, CR4.SMAP or
    /// EFER.NXE must call this. MOV to CR3 calls [`Mem::set_root`] instead, which may keep TLB entries.
    pub(crate) fn update_paging(&mut self) {
        let new = PagingControl {
            cr3: self.cr3,
            write_protect: self.cr0 & cr0::WP != 0,
            smep: self.cr4 & cr4::SMEP != 0,
            smap: self.cr4 & cr4::SMAP != 0,
            nxe: self.efer & efer::NXE != 0,
        };
        self.mem.set_paging(new);
        self.update_mode();
    }
    /// Passes the data breakpoints to memory. Every change of DR0-DR3, or of a breakpoint field of DR7, must call this.
    pub(crate) fn update_watch(&mut self) {
        self.mem.set_watch(&self.dr, self.dr7);
    }
    /// Sets the base of a segment. Also copies the base of FS or GS to its slot in `regs`.
    pub(crate) fn set_segment_base(&mut self, which: usize, base: u64) {
        self.seg[which].base = base;
        match which {
            seg::FS => self.regs[slot::FS as usize] = base,
            seg::GS => self.regs[slot::GS as usize] = base,
            _ => {}
        }
    }
    /// Raises an exception without an error code.
    #[cold]
    pub(crate) fn raise(&mut self, vector: u8) -> Stop {
        self.mem.fault = Fault { vector, error: None, non_canonical: false };
        Stop::Fault
    }
    /// Raises an exception with an error code.
    #[cold]
    pub(crate) fn raise_with(&mut self, vector: u8, error: u32) -> Stop {
        self.mem.fault = Fault { vector, error: Some(error), non_canonical: false };
        Stop::Fault
    }
    /// Raises #GP(0).
    #[cold]
    pub(crate) fn gp(&mut self) -> Stop {
        self.raise_with(vector::GP, 0)
    }
    /// Marks the CPU as dead, which ends the run: the guest used a feature that the modelled CPU lacks.
    #[cold]
    pub(crate) fn unsupported(&mut self, what: Unsupported) {
        self.dead = Some(Dead::Unsupported(what));
    }
    /// Raises #UD.
    #[cold]
    pub(crate) fn ud(&mut self) -> Stop {
        self.raise(vector::UD)
    }
    /// Returns `Err(Stop::Single)` unless the CPU executes the current instruction alone, i.e. outside of a block.
    /// After this return value, the CPU executes the instruction again, alone.
    ///
    /// A handler calls this before its first store if it stores several values, or reads memory after a store. Some
    /// memory accesses, e.g. a store to a page of code, also return `Err(Stop::Single)`. If an access returned
    /// this after a store of the same instruction, the second attempt would read values that the first attempt stored.
    pub(crate) fn alone(&self) -> Flow {
        if self.mem.single { Ok(()) } else { Err(Stop::Single) }
    }
    /// True if the CPU may take an external interrupt before the next instruction.
    pub(crate) fn interruptible(&self) -> bool {
        self.rflags & bits::IF != 0 && !self.shadow && self.dead.is_none()
    }

    /// Returns the architectural state as plain data.
    pub(crate) fn save_state(&self) -> CpuState {
        let mut gpr = [0; 16];
        gpr.copy_from_slice(&self.regs[..16]);
        CpuState {
            icount: self.icount,
            gpr,
            rip: self.rip,
            rflags: self.rflags(),
            seg: self.seg,
            ldtr: self.ldtr,
            tr: self.tr,
            gdtr: self.gdtr,
            idtr: self.idtr,
            cr0: self.cr0,
            cr2: self.cr2,
            cr3: self.cr3,
            cr4: self.cr4,
            efer: self.efer,
            dr: self.dr,
            dr6: self.dr6,
            dr7: self.dr7,
            msrs: self.msrs.clone(),
            fpu: self.fpu.clone(),
            extended: Extended { xcr0: self.xcr0, ymm: self.ymm },
            halted: self.halted,
            shadow: self.shadow,
            exceptions: if self.exceptions_at.0 == self.icount { self.exceptions_at.1 } else { 0 },
            dead: self.dead,
        }
    }
    /// Replaces the architectural state. Drops everything derived from the old state, such as TLB entries.
    /// True if the CPU has entered or left user mode since the last call, and such changes end runs.
    #[inline(always)]
    pub(crate) fn mode_has_changed(&mut self) -> bool {
        let is_user = self.cpl == 3;
        self.observed_user.as_mut().is_some_and(|seen| std::mem::replace(seen, is_user) != is_user)
    }
    pub(crate) fn load_state(&mut self, s: &CpuState) {
        self.icount = s.icount;
        self.missing = None;
        self.regs = [0; slot::COUNT];
        self.regs[..16].copy_from_slice(&s.gpr);
        self.rip = s.rip;
        self.seg = s.seg;
        self.regs[slot::FS as usize] = s.seg[seg::FS].base;
        self.regs[slot::GS as usize] = s.seg[seg::GS].base;
        self.cpl = (s.seg[seg::CS].selector & 3) as u8;
        self.observed_user = self.observed_user.map(|_| self.cpl == 3);
        self.ldtr = s.ldtr;
        self.tr = s.tr;
        self.gdtr = s.gdtr;
        self.idtr = s.idtr;
        self.cr0 = s.cr0;
        self.cr2 = s.cr2;
        self.cr3 = s.cr3;
        self.cr4 = s.cr4;
        self.efer = s.efer;
        self.dr = s.dr;
        self.dr6 = s.dr6;
        self.dr7 = s.dr7;
        self.msrs = s.msrs.clone();
        self.fpu = s.fpu.clone();
        // The host would fault if a reserved bit were loaded into its MXCSR.
        self.fpu.mxcsr &= MXCSR_MASK;
        let known = if self.model.is_v3() { xcr0::AVX_STATE } else { 0 };
        self.xcr0 = s.extended.xcr0 & known | xcr0::X87;
        self.ymm = if self.model.is_v3() { s.extended.ymm } else { [0; 16] };
        self.halted = s.halted;
        self.shadow = s.shadow;
        self.no_trap = false;
        self.exceptions_at = (s.icount, s.exceptions);
        self.dead = s.dead;
        self.mem.mmio.clear();
        self.mem.take_hits();
        self.set_rflags(s.rflags);
        self.update_paging();
        self.update_watch();
    }
}
