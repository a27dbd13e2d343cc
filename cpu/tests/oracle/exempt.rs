//! Instructions and state that this test (the oracle) does not compare with the host, each with the reason.

use everett_cpu::CpuModel;
use iced_x86::{Code, Decoder, Instruction, MemorySize, Mnemonic, OpKind};

use crate::encode::LEN_MAX;
use crate::extended::has_area;
use crate::state::flag;

/// Decision whether the oracle compares an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The oracle executes the instruction on the host and on the soft CPU (the guest).
    Compare,
    /// The soft CPU lacks the instruction. The guest must raise #UD, and the host does not execute the instruction.
    Undefined,
    /// The oracle does not execute the instruction, for this reason.
    Skip(&'static str),
}

macro_rules! table {
    ($($($mnemonic:ident)|+ => $reason:literal;)*) => { &[$((&[$(Mnemonic::$mnemonic),+], $reason)),*] };
}

const SELECTOR: &str =
    "depends on the descriptor tables, which differ between host and guest; see the micro-guests";

/// Mnemonics that the oracle skips, with the reason.
pub(crate) const TABLE: &[(&[Mnemonic], &str)] = table! {
    Syscall | Sysenter => "enters the host's kernel; see the micro-guests";
    Iret | Iretd | Iretq => "loads selectors and flags of the host; see the micro-guests";
    Cpuid | Xgetbv => "shows the host, not the model";
    Rdtsc | Rdtscp | Rdpmc => "shows host time";
    Sgdt | Sidt | Sldt | Str | Smsw => "Linux emulates it if the host has UMIP";
    Int1 => "indistinguishable from the trap that ends a test";
    Clac | Stac => "#UD at CPL 3, but some virtual hosts execute it";
    Fsin | Fcos | Fsincos | Fptan | Fpatan | F2xm1 | Fyl2x | Fyl2xp1
        => "a transcendental function: processors differ in the last bits; the model computes it in software";
    Rcpps | Rcpss | Rsqrtps | Rsqrtss | Vrcpps | Vrcpss | Vrsqrtps | Vrsqrtss => "an approximation that processors choose; the model computes it in software";
    Lar | Lsl | Verr | Verw | Lfs | Lgs | Lss
        => "depends on the descriptor tables, which differ between host and guest; see the micro-guests";
    Incsspd | Incsspq | Rstorssp | Saveprevssp | Setssbsy | Clrssbsy | Wrssd | Wrssq | Wrussd | Wrussq
        => "control-flow enforcement: it may be enabled on the host";
};

/// Returns what the oracle does with an instruction on a CPU model.
pub(crate) fn verdict(i: &Instruction, model: CpuModel) -> Verdict {
    if i.is_invalid() {
        return Verdict::Compare;
    }
    if let Some((_, reason)) = TABLE.iter().find(|(mnemonics, _)| mnemonics.contains(&i.mnemonic())) {
        return Verdict::Skip(reason);
    }
    if let Some(reason) = by_operands(i) {
        return Verdict::Skip(reason);
    }
    if !model.has(i) { Verdict::Undefined } else { Verdict::Compare }
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

/// State that processors may change when an instruction faults, although the manual does not say so. This is harmless:
/// after the handler the instruction is executed again, and the state is then correct.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AfterFault {
    /// True if the instruction may have written a part of its memory operand.
    pub(crate) memory: bool,
    /// True if CR2 and the error code may belong to another part of the operand.
    pub(crate) address: bool,
    /// True if TOP and the tags of the x87 may have changed.
    pub(crate) mmx_state: bool,
    /// True if RCX, RSI and RDI may have been truncated to 32 bits.
    pub(crate) string_registers: bool,
}

/// Returns the state that the oracle ignores after a fault of `i`.
pub(crate) fn after_fault(i: &Instruction) -> AfterFault {
    let mmx = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Register && i.op_register(n).is_mm());
    AfterFault {
        memory: has_image(i),
        // Masked moves need not report the first byte that faults.
        address: has_image(i) || is_masked(i),
        // MMX instructions enter the MMX state before they load or store the operand. Conversions with an MMX register
        // enter it before they raise #XM.
        mmx_state: mmx,
        // Processors may truncate the registers to 32 bits even if RCX is zero. This is not documented, and MOVS and
        // CMPS may differ on one processor.
        string_registers: repeats_short(i),
    }
}

/// True if the bytes are not a valid instruction, but may be the start of an instruction of more than 15 bytes. #GP(0)
/// and #UD are then both correct: the choice depends on the lengths of opcodes that do not exist.
pub(crate) fn is_doubly_wrong(bytes: &[u8], model: CpuModel) -> bool {
    let first = bytes.iter().position(|byte| !is_prefix(*byte)).unwrap_or(bytes.len());
    let (prefixes, rest) = bytes.split_at(first);
    // The same bytes without redundant prefixes, padded with zeros.
    let mut short: Vec<u8> = [0x66, 0x67, 0xf0].into_iter().filter(|byte| prefixes.contains(byte)).collect();
    short.extend(prefixes.iter().rfind(|&&byte| byte == 0xf2 || byte == 0xf3));
    short.extend(prefixes.last().filter(|&&byte| byte & 0xf0 == 0x40));
    short.extend(rest);
    short.resize(2 * LEN_MAX, 0);
    let invalid = |bytes: &[u8]| Decoder::new(64, bytes, model.decoder_options()).decode().is_invalid();
    bytes.len() == LEN_MAX && invalid(bytes) && invalid(&short)
}

/// True for legacy prefixes and REX prefixes.
pub(crate) fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
}

/// True if the operand has more than eight bytes and is accessed in parts. Each processor chooses the order of the
/// parts.
fn has_image(i: &Instruction) -> bool {
    use Mnemonic::{Fbld, Fbstp, Fldenv, Fnsave, Fnstenv, Frstor, Fxrstor, Fxrstor64, Fxsave, Fxsave64};
    let images = [Fbld, Fbstp, Fldenv, Fnsave, Fnstenv, Frstor, Fxrstor, Fxrstor64, Fxsave, Fxsave64];
    images.contains(&i.mnemonic()) || has_area(i) || i.memory_size() == MemorySize::Float80
}

/// True if some processors raise #AC and others #GP. Processors differ in FXSAVE and FXRSTOR with alignment checks on
/// (SDM vol. 2A, FXSAVE: "signaling of #AC is not guaranteed").
pub(crate) fn may_check_alignment(i: &Instruction, rflags: u64) -> bool {
    use Mnemonic::{Fxrstor, Fxrstor64, Fxsave, Fxsave64};
    let images = [Fxrstor, Fxrstor64, Fxsave, Fxsave64].contains(&i.mnemonic()) || has_area(i);
    images && rflags & flag::AC != 0
}

/// True for moves of the elements that a mask selects.
fn is_masked(i: &Instruction) -> bool {
    use Mnemonic::{Vmaskmovpd, Vmaskmovps, Vpmaskmovd, Vpmaskmovq};
    matches!(i.mnemonic(), Vmaskmovpd | Vmaskmovps | Vpmaskmovd | Vpmaskmovq)
}

/// True for MASKMOVQ and MASKMOVDQU. For a byte that the mask excludes, or for an empty mask, some processors raise a
/// fault and others do not (SDM vol. 2B, MASKMOVDQU: "implementation dependent"). If only one side faults, the oracle
/// compares nothing.
pub(crate) fn may_fault(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu)
}

/// True for a repeated string instruction with 32-bit addresses.
pub(crate) fn repeats_short(i: &Instruction) -> bool {
    use OpKind::{MemoryESEDI, MemorySegEDI, MemorySegESI};
    i.is_string_instruction()
        && (i.has_rep_prefix() || i.has_repne_prefix())
        && (0..i.op_count()).any(|n| matches!(i.op_kind(n), MemoryESEDI | MemorySegEDI | MemorySegESI))
}
