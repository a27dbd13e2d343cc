//! What is not compared with the host, each with its reason.

use everett_cpu::model;
use iced_x86::{Code, DecoderOptions, Instruction, Mnemonic, OpKind};

/// How the decoder reads bytes: TZCNT and LZCNT are outside of the model, so their prefix means nothing.
pub const DECODER: u32 =
    DecoderOptions::NO_MPFX_0FBC | DecoderOptions::NO_MPFX_0FBD | DecoderOptions::NO_WBNOINVD;

/// What to do with an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Execute it on both sides.
    Compare,
    /// It is outside of the model: the guest must raise #UD, whatever the host would do.
    Undefined,
    /// The host cannot be asked; the reason.
    Skip(&'static str),
}

macro_rules! table {
    ($($($mnemonic:ident)|+ => $reason:literal;)*) => { &[$((&[$(Mnemonic::$mnemonic),+], $reason)),*] };
}

const SELECTOR: &str = "depends on the descriptor tables, and the host's are not the guest's; see the micro-guests";

/// Instructions by mnemonic.
pub const TABLE: &[(&[Mnemonic], &str)] = table! {
    Syscall | Sysenter => "enters the host's kernel; see the micro-guests";
    Iret | Iretd | Iretq => "loads selectors and flags of the host; see the micro-guests";
    Cpuid => "shows the host, not the model";
    Rdtsc | Rdtscp | Rdpmc => "shows host time";
    Sgdt | Sidt | Sldt | Str | Smsw => "Linux emulates it when the host has UMIP";
    Int1 => "indistinguishable from the trap that ends a test";
    Clac | Stac => "#UD at CPL 3, but on some virtual hosts executed";
    Fsin | Fcos | Fsincos | Fptan | Fpatan | F2xm1 | Fyl2x | Fyl2xp1 => "a transcendental function: processors differ in the last bits; the model computes its own";
    Rcpps | Rcpss | Rsqrtps | Rsqrtss => "an approximation that processors choose; the model computes its own";
    Lar | Lsl | Verr | Verw | Lfs | Lgs | Lss => "depends on the descriptor tables, and the host's are not the guest's; see the micro-guests";
    Incsspd | Incsspq | Rstorssp | Saveprevssp | Setssbsy | Clrssbsy | Wrssd | Wrssq | Wrussd | Wrussq
        => "control-flow enforcement: the host may have it on";
};

/// Whether and how to compare an instruction.
pub fn verdict(i: &Instruction) -> Verdict {
    if i.is_invalid() {
        return Verdict::Compare;
    }
    if let Some((_, reason)) = TABLE.iter().find(|(mnemonics, _)| mnemonics.contains(&i.mnemonic())) {
        return Verdict::Skip(reason);
    }
    if let Some(reason) = by_operands(i) {
        return Verdict::Skip(reason);
    }
    if !model::has(i) { Verdict::Undefined } else { Verdict::Compare }
}

fn by_operands(i: &Instruction) -> Option<&'static str> {
    use iced_x86::Register::FS;
    let code = i.code();
    let loads = [
        Code::Mov_Sreg_rm16,
        Code::Mov_Sreg_r32m16,
        Code::Mov_Sreg_r64m16,
        Code::Popw_FS,
        Code::Popq_FS,
        Code::Popw_GS,
        Code::Popq_GS,
    ];
    if loads.contains(&code) {
        return Some(SELECTOR);
    }
    if i.is_jmp_far() || i.is_jmp_far_indirect() || i.is_call_far() || i.is_call_far_indirect() {
        return Some(SELECTOR);
    }
    if i.mnemonic() == Mnemonic::Retf {
        return Some(SELECTOR);
    }
    if i.mnemonic() == Mnemonic::Int && i.immediate8() == 0x80 {
        return Some("the 32-bit system call of the host's kernel");
    }
    if i.segment_prefix() == FS {
        return Some("FS is the host thread's own");
    }
    if matches!(i.mnemonic(), Mnemonic::Bsf | Mnemonic::Bsr) && i.has_rep_prefix() {
        return Some("TZCNT or LZCNT on hosts that have them");
    }
    if i.has_xacquire_prefix() || i.has_xrelease_prefix() {
        return Some("hardware lock elision on hosts that have it");
    }
    None
}

/// State that processors leave behind when an instruction faults, beyond what the architecture says. The instruction is
/// executed again after the handler, and then all is as it should be.
#[derive(Debug, Clone, Copy, Default)]
pub struct AfterFault {
    /// Memory may have been written.
    pub memory: bool,
    /// The x87's TOP and tags may have changed.
    pub mmx_state: bool,
    /// CR2 may point elsewhere in the operand.
    pub address: bool,
    /// RCX, RSI and RDI may have been cut to 32 bits.
    pub string_registers: bool,
    /// The arithmetic flags may be those from before the instruction.
    pub string_flags: bool,
}

/// What to overlook after a fault of `i`.
pub fn after_fault(i: &Instruction) -> AfterFault {
    let mmx = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Register && i.op_register(n).is_mm());
    AfterFault {
        // CALL through a register to an address that is not canonical: the return address is on the stack already.
        memory: i.code() == Code::Call_rm64,
        // The transition to MMX state comes before the operand is loaded or stored, and before #XM of a conversion.
        mmx_state: mmx,
        // The two halves are tested one by one, and their addresses reported whatever the mask.
        address: matches!(i.mnemonic(), Mnemonic::Maskmovq | Mnemonic::Maskmovdqu),
        // Neither documented nor the same for MOVS and CMPS on one processor; also when no iteration is asked for.
        string_registers: repeats_short(i),
        // "The EFLAGS value is restored to the state prior to the execution of the instruction" (SDM vol. 2B, REP), how
        // many comparisons have retired notwithstanding.
        string_flags: i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix()),
    }
}

/// A repeated string instruction with 32-bit addresses.
pub fn repeats_short(i: &Instruction) -> bool {
    use OpKind::{MemoryESEDI, MemorySegEDI, MemorySegESI};
    i.is_string_instruction()
        && (i.has_rep_prefix() || i.has_repne_prefix())
        && (0..i.op_count()).any(|n| matches!(i.op_kind(n), MemoryESEDI | MemorySegEDI | MemorySegESI))
}
