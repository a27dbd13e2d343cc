//! Flags that the manual leaves undefined. Each line of the table has a mnemonic, its undefined flags, and an entry in
//! volume 2 of the SDM (Intel 64 and IA-32 Architectures Software Developer's Manual). The section "Flags Affected" of
//! this entry calls these flags undefined.
//!
//! The tests of the KVM engine use this file, too, because the host may set undefined flags to other values.

use crate::flag::{AF, CF, OF, PF, SF, ZF};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// One line of the table.
pub(crate) struct Undefined {
    /// The instruction.
    pub(crate) mnemonic: Mnemonic,
    /// Condition on the operands. The flags are undefined if it is true.
    pub(crate) when: fn(&Instruction, &Operands) -> bool,
    /// Undefined flags, as bits of RFLAGS.
    pub(crate) flags: u64,
    /// Part of SDM volume 2 (2A to 2D), and the name of the entry.
    pub(crate) section: &'static str,
}

/// Operand values that the conditions of the table depend on.
pub(crate) struct Operands {
    /// RCX before the instruction.
    pub(crate) rcx: u64,
}

fn always(_: &Instruction, _: &Operands) -> bool {
    true
}
/// Returns the count of a shift, masked to 5 or 6 bits, and the width of its operand in bits.
fn count(i: &Instruction, o: &Operands) -> (u64, u64) {
    let last = i.op_count() - 1;
    let raw = match i.op_kind(last) {
        OpKind::Register => o.rcx,
        _ => u64::from(i.immediate8()),
    };
    let bytes = match i.op_kind(0) {
        OpKind::Register => i.op0_register().size(),
        _ => i.memory_size().size(),
    };
    (raw & if bytes == 8 { 0x3f } else { 0x1f }, bytes as u64 * 8)
}
fn shifted(i: &Instruction, o: &Operands) -> bool {
    count(i, o).0 != 0
}
fn shifted_far(i: &Instruction, o: &Operands) -> bool {
    count(i, o).0 > 1
}
fn shifted_out(i: &Instruction, o: &Operands) -> bool {
    let (count, bits) = count(i, o);
    count >= bits
}
fn shifted_beyond(i: &Instruction, o: &Operands) -> bool {
    let (count, bits) = count(i, o);
    count > bits
}

macro_rules! table {
    ($($mnemonic:ident, $when:expr, $flags:expr, $section:literal;)*) => {
        &[$(Undefined { mnemonic: Mnemonic::$mnemonic, when: $when, flags: $flags, section: $section }),*]
    };
}

/// All undefined flags.
pub(crate) const TABLE: &[Undefined] = table! {
    And, always, AF, "2A, AND";
    Or, always, AF, "2B, OR";
    Xor, always, AF, "2D, XOR";
    Test, always, AF, "2B, TEST";
    Mul, always, SF | ZF | AF | PF, "2B, MUL";
    Imul, always, SF | ZF | AF | PF, "2A, IMUL";
    Div, always, CF | OF | SF | ZF | AF | PF, "2A, DIV";
    Idiv, always, CF | OF | SF | ZF | AF | PF, "2A, IDIV";
    Bsf, always, CF | OF | SF | AF | PF, "2A, BSF";
    Tzcnt, always, OF | SF | AF | PF, "2B, TZCNT";
    Lzcnt, always, OF | SF | AF | PF, "2A, LZCNT";
    Andn, always, AF | PF, "2A, ANDN";
    Bextr, always, SF | AF | PF, "2A, BEXTR";
    Blsi, always, AF | PF, "2A, BLSI";
    Blsmsk, always, AF | PF, "2A, BLSMSK";
    Blsr, always, AF | PF, "2A, BLSR";
    Bzhi, always, AF | PF, "2A, BZHI";
    Bsr, always, CF | OF | SF | AF | PF, "2A, BSR";
    Bt, always, OF | SF | AF | PF, "2A, BT";
    Bts, always, OF | SF | AF | PF, "2A, BTS";
    Btr, always, OF | SF | AF | PF, "2A, BTR";
    Btc, always, OF | SF | AF | PF, "2A, BTC";
    Shl, shifted, AF, "2B, SAL/SAR/SHL/SHR";
    Shr, shifted, AF, "2B, SAL/SAR/SHL/SHR";
    Sal, shifted, AF, "2B, SAL/SAR/SHL/SHR";
    Sar, shifted, AF, "2B, SAL/SAR/SHL/SHR";
    Shl, shifted_far, OF, "2B, SAL/SAR/SHL/SHR";
    Shr, shifted_far, OF, "2B, SAL/SAR/SHL/SHR";
    Sal, shifted_far, OF, "2B, SAL/SAR/SHL/SHR";
    Sar, shifted_far, OF, "2B, SAL/SAR/SHL/SHR";
    Shl, shifted_out, CF, "2B, SAL/SAR/SHL/SHR";
    Shr, shifted_out, CF, "2B, SAL/SAR/SHL/SHR";
    Sal, shifted_out, CF, "2B, SAL/SAR/SHL/SHR";
    Shld, shifted, AF, "2B, SHLD";
    Shrd, shifted, AF, "2B, SHRD";
    Shld, shifted_far, OF, "2B, SHLD";
    Shrd, shifted_far, OF, "2B, SHRD";
    Shld, shifted_beyond, CF | OF | SF | ZF | AF | PF, "2B, SHLD";
    Shrd, shifted_beyond, CF | OF | SF | ZF | AF | PF, "2B, SHRD";
    Rol, shifted_far, OF, "2B, RCL/RCR/ROL/ROR";
    Ror, shifted_far, OF, "2B, RCL/RCR/ROL/ROR";
    Rcl, shifted_far, OF, "2B, RCL/RCR/ROL/ROR";
    Rcr, shifted_far, OF, "2B, RCL/RCR/ROL/ROR";
};

/// Returns the flags in which the host's CPU and the soft CPU may differ after this instruction.
pub(crate) fn undefined_flags(i: &Instruction, o: &Operands) -> u64 {
    TABLE.iter().filter(|u| u.mnemonic == i.mnemonic() && (u.when)(i, o)).fold(0, |mask, u| mask | u.flags)
}
/// True if the tests must not compare the destination, because the manual leaves it undefined: after a double shift by
/// more than the operand's width (2B, SHLD and SHRD). A bit scan of zero has an undefined destination, too (2A, BSF and
/// BSR). The tests compare it nevertheless, because every known processor leaves it unchanged.
pub(crate) fn undefined_result(i: &Instruction, o: &Operands) -> bool {
    matches!(i.mnemonic(), Mnemonic::Shld | Mnemonic::Shrd) && shifted_beyond(i, o)
}
