//! Decides which instructions of a block are translated, and which must store their flags because something may read
//! them.

use iced_x86::{Code, ConditionCode, CpuidFeature, Instruction, Mnemonic, OpKind, Register, RflagsBits};

use super::lazy_flags::Operation;
use super::registers::FIXED;
use crate::model::CpuModel;
use crate::op::operand::{gpr, is_gpr, is_immediate, is_memory, width};
use crate::op::{ADDRESS_32, Op};

/// All six arithmetic flags.
pub(super) const ARITH: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// True if the instruction has a memory operand whose address [`Emitter::address`](super::emitter::Emitter::address)
/// can compute.
pub(super) fn is_near_memory(i: &Instruction, op: &Op) -> bool {
    (0..i.op_count()).any(|k| is_memory(i, k)) && op.scale & ADDRESS_32 == 0
}

/// Returns the instruction's operation, if the translation can store operands from which the instruction's flags can be
/// computed later. Returns `None` for all other instructions.
pub(super) fn operation(i: &Instruction) -> Option<Operation> {
    Some(match i.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Cmp | Mnemonic::Neg if names_second_byte(i) => {
            Operation::Host
        }
        Mnemonic::Add => Operation::Add,
        Mnemonic::Sub | Mnemonic::Cmp | Mnemonic::Neg => Operation::Sub,
        _ if is_logic(i) => {
            if names_second_byte(i) {
                Operation::Host
            } else {
                Operation::Logic
            }
        }
        Mnemonic::Shl | Mnemonic::Sal if is_immediate(i, 1) => Operation::Shl,
        Mnemonic::Shr if is_immediate(i, 1) => Operation::Shr,
        Mnemonic::Sar if is_immediate(i, 1) => Operation::Sar,
        Mnemonic::Inc
        | Mnemonic::Dec
        | Mnemonic::Adc
        | Mnemonic::Sbb
        | Mnemonic::Cmpxchg
        | Mnemonic::Xadd => Operation::Host,
        _ => return None,
    })
}

/// True for bitwise operations, which leave AF undefined.
pub(super) fn is_logic(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test)
}

/// True for AH, CH, DH and BH.
pub(super) fn is_second_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}

fn names_second_byte(i: &Instruction) -> bool {
    (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Register && is_second_byte(i.op_register(k)))
}

/// True if an instruction that names AH, CH, DH or BH can be encoded for the host. An instruction with a REX prefix
/// cannot name these registers. The prefix is needed for host registers 8 to 15. All other registers must therefore be
/// in host registers 0 to 7, and no operand may be in memory, because its address would be in R13. SPL, BPL, SIL and
/// DIL also need the prefix, but no guest instruction combines them with AH, CH, DH or BH.
fn needs_no_prefix(i: &Instruction) -> bool {
    let register = |register: Register| {
        let host = FIXED.get(usize::from(gpr(register)));
        is_second_byte(register) || host.is_some_and(|host| host.0 < 8)
    };
    (0..i.op_count()).all(|k| is_immediate(i, k) || is_gpr(i, k) && register(i.op_register(k)))
}

/// True if an instruction needs the old CF: as an input, or because it writes other flags and leaves CF unchanged.
pub(super) fn needs_carry(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Adc | Mnemonic::Sbb)
}

/// True if the instruction writes the whole first operand, a register, without reading it.
pub(super) fn writes_whole(i: &Instruction) -> bool {
    let same = is_gpr(i, 1) && gpr(i.op1_register()) & 15 == gpr(i.op0_register());
    let whole = match i.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movbe | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => !same,
        Mnemonic::Imul => i.op_count() == 3 && !same,
        // The result is zero, whatever the register contains.
        Mnemonic::Xor => same,
        _ => false,
    };
    whole && i.op0_register().size() >= 4
}

/// True if [`Emitter::plain`](super::emitter::Emitter::plain()) can translate the instruction.
fn can_be_plain(i: &Instruction, op: &Op) -> bool {
    let simple = |k: u32| match i.op_kind(k) {
        OpKind::Register => i.op_register(k).is_gpr(),
        OpKind::Memory => is_near_memory(i, op),
        _ => is_immediate(i, k),
    };
    if !(0..i.op_count()).all(simple) || names_second_byte(i) && !needs_no_prefix(i) {
        return false;
    }
    match i.mnemonic() {
        Mnemonic::Mov => !is_absolute_move(i),
        Mnemonic::Lea => i.op0_register().size() >= 4 && op.scale & ADDRESS_32 == 0,
        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Not => true,
        Mnemonic::Movbe => std::is_x86_feature_detected!("movbe"),
        // Hosts differ in the number of bytes that the 16-bit form reads from memory.
        Mnemonic::Movsxd => i.op0_register().size() >= 4,
        Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor
        | Mnemonic::Cmp
        | Mnemonic::Test
        | Mnemonic::Neg => true,
        Mnemonic::Bswap => i.op0_register().size() >= 4,
        Mnemonic::Xchg if is_memory(i, 0) => true,
        Mnemonic::Xchg => !names_second_byte(i) && is_gpr(i, 1) && i.op0_register() != i.op1_register(),
        Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Adc | Mnemonic::Sbb => true,
        Mnemonic::Cmpxchg | Mnemonic::Xadd => is_memory(i, 0),
        Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar if is_immediate(i, 1) => {
            is_gpr(i, 0) && !names_second_byte(i) && {
                let bits = 8 * width(i, 0) as u64;
                let count = i.immediate(1) & if bits == 64 { 63 } else { 31 };
                // If the count reaches the width, processors leave some flags undefined.
                count == i.immediate(1) && (1..bits).contains(&count)
            }
        }
        _ => {
            let cc = i.condition_code() != ConditionCode::None;
            cc && !i.is_jcc_short_or_near() && matches!(i.op0_kind(), OpKind::Register | OpKind::Memory)
        }
    }
}

/// True for MOV of the accumulator from or to an absolute address.
fn is_absolute_move(i: &Instruction) -> bool {
    matches!(
        i.code(),
        Code::Mov_AL_moffs8
            | Code::Mov_AX_moffs16
            | Code::Mov_EAX_moffs32
            | Code::Mov_RAX_moffs64
            | Code::Mov_moffs8_AL
            | Code::Mov_moffs16_AX
            | Code::Mov_moffs32_EAX
            | Code::Mov_moffs64_RAX
    )
}

/// True if [`Emitter::arithmetic`](super::emitter::Emitter::arithmetic()) translates the instruction.
pub(super) fn can_be_arithmetic(i: &Instruction, op: &Op) -> bool {
    let operand = |k: u32| is_gpr(i, k) || is_immediate(i, k) || is_memory(i, k) && is_near_memory(i, op);
    if !(0..i.op_count()).all(operand) || names_second_byte(i) && !needs_no_prefix(i) {
        return false;
    }
    match i.mnemonic() {
        Mnemonic::Mul | Mnemonic::Imul => true,
        Mnemonic::Div | Mnemonic::Idiv | Mnemonic::Bsf | Mnemonic::Bsr => width(i, 0) >= 4,
        Mnemonic::Popcnt => width(i, 0) >= 4 && std::is_x86_feature_detected!("popcnt"),
        _ => is_shift_by_cl(i) && is_gpr(i, 0) && !names_second_byte(i),
    }
}

/// True if [`Emitter::partial`](super::emitter::Emitter::partial()) translates the instruction. It then changes only CF,
/// or CF and OF.
pub(super) fn can_be_partial(i: &Instruction, op: &Op) -> bool {
    match i.mnemonic() {
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => {
            is_gpr(i, 0) || width(i, 0) >= 4 && is_near_memory(i, op)
        }
        Mnemonic::Rol | Mnemonic::Ror => {
            let count_mask = if width(i, 0) == 8 { 63 } else { 31 };
            let changes_flags = !is_immediate(i, 1) || i.immediate(1) & count_mask != 0;
            is_gpr(i, 0) && !names_second_byte(i) && changes_flags
        }
        _ => false,
    }
}

/// Mnemonics of BMI1, BMI2 and LZCNT instructions that the host executes directly.
const BMI_LISTED: &[Mnemonic] = {
    use Mnemonic::*;
    &[Andn, Bextr, Blsi, Blsmsk, Blsr, Bzhi, Lzcnt, Mulx, Pdep, Pext, Rorx, Sarx, Shlx, Shrx, Tzcnt]
};

/// True if the host supports an instruction of BMI1, BMI2 or LZCNT.
fn host_has_bmi(i: &Instruction) -> bool {
    i.cpuid_features().iter().all(|feature| match feature {
        CpuidFeature::BMI1 => std::is_x86_feature_detected!("bmi1"),
        CpuidFeature::BMI2 => std::is_x86_feature_detected!("bmi2"),
        CpuidFeature::LZCNT => std::is_x86_feature_detected!("lzcnt"),
        _ => false,
    })
}

/// True if [`Emitter::bmi`](super::emitter::Emitter::bmi()) translates the instruction.
pub(super) fn can_be_bmi(i: &Instruction, op: &Op, model: CpuModel) -> bool {
    let operand = |k: u32| is_gpr(i, k) || is_immediate(i, k) || is_memory(i, k) && is_near_memory(i, op);
    BMI_LISTED.contains(&i.mnemonic())
        && (0..i.op_count()).all(operand)
        && width(i, 0) >= 4
        && model.has(i)
        && host_has_bmi(i)
}

/// True for a shift whose count is in CL. If the count is zero, it leaves all flags unchanged.
fn is_shift_by_cl(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar)
        && !is_immediate(i, 1)
}

/// True for bit tests and rotations, which change only CF, or CF and OF. Not all of their forms are translated.
fn is_partial(i: &Instruction) -> bool {
    matches!(
        i.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc | Mnemonic::Rol | Mnemonic::Ror
    )
}

/// True for a division. It can raise #DE, and leaves all flags unchanged.
fn is_division(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
}

/// True for an instruction after which the host's flags are the guest's, except AF.
fn leaves_flags_in_host(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Bsf | Mnemonic::Bsr | Mnemonic::Popcnt)
}

/// Decisions about one instruction of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
    /// True if [`Emitter::plain`](super::emitter::Emitter::plain()) or
    /// [`Emitter::arithmetic`](super::emitter::Emitter::arithmetic()) translates the instruction.
    pub translated: bool,
    /// True if the instruction's flags must be stored, because a reader may exist that cannot use the host's flags.
    pub seen: bool,
}

/// Makes the decisions about all instructions of a block. Begins with the last instruction, because the decision about
/// an instruction depends on the decisions about later instructions, which may observe its flags.
pub(super) fn plain(instructions: &[Instruction], ops: &[Op], model: CpuModel) -> Vec<Plain> {
    let mut all = vec![Plain { translated: false, seen: true }; ops.len()];
    for n in (0..ops.len()).rev() {
        let i = &instructions[n];
        let seen = flags_are_seen(n, instructions, &all);
        let writes = i.rflags_modified() & ARITH != 0;
        let told = operation(i).is_some() || !writes;
        let plain = can_be_plain(i, &ops[n]) && (told || !seen);
        let other =
            can_be_arithmetic(i, &ops[n]) || can_be_partial(i, &ops[n]) || can_be_bmi(i, &ops[n], model);
        all[n] = Plain { translated: plain || other, seen };
    }
    all
}

/// Computes [`Plain::seen`] of instruction `n`.
fn flags_are_seen(n: usize, instructions: &[Instruction], all: &[Plain]) -> bool {
    let mut read = false;
    for (i, plain) in instructions.iter().zip(all).skip(n + 1) {
        if !is_quiet(i, *plain) {
            return true;
        }
        read |= i.rflags_read() & ARITH != 0;
        // A shift by a count of zero leaves the flags of instruction `n` unchanged. If nothing observes the flags after
        // the shift, this does not matter, and the shift counts as an instruction that writes all flags.
        if is_shift_by_cl(i) && plain.seen {
            return true;
        }
        // The stored flags of instruction `n` remain in use beside those of a translated BT or rotation.
        if is_partial(i) && plain.seen {
            return true;
        }
        if i.rflags_modified() & ARITH == ARITH {
            return read && !leaves_all_in_host(&instructions[n]);
        }
    }
    true
}

/// True if a translated instruction leaves all arithmetic flags in the host's flags.
pub(super) fn leaves_all_in_host(i: &Instruction) -> bool {
    match operation(i) {
        None => leaves_flags_in_host(i),
        Some(Operation::Shl | Operation::Shr | Operation::Sar) => i.immediate(1) == 1,
        // The instruction leaves CF unchanged, and the host's old CF need not be the guest's.
        Some(Operation::Host) if i.rflags_modified() & ARITH != ARITH => false,
        Some(_) => true,
    }
}

/// True if execution always continues with the next instruction: the instruction cannot fault, and the block does not
/// call the instruction's handler (its function in the interpreter).
fn is_quiet(i: &Instruction, plain: Plain) -> bool {
    let no_memory = (0..i.op_count()).all(|k| !is_memory(i, k));
    (no_memory && !is_division(i) || i.mnemonic() == Mnemonic::Lea) && plain.translated
        || matches!(i.mnemonic(), Mnemonic::Cdqe | Mnemonic::Cwde | Mnemonic::Cdq | Mnemonic::Cqo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::block::decode;
    use iced_x86::Decoder;

    /// Returns for each instruction of a block: whether its flags are observed, and whether it is translated.
    fn choices(bytes: &[u8]) -> Vec<(bool, bool)> {
        choices_of(CpuModel::V2, bytes)
    }

    fn choices_of(model: CpuModel, bytes: &[u8]) -> Vec<(bool, bool)> {
        let mut ops = Vec::new();
        decode(bytes, 0, 64, model, &mut ops);
        let mut decoder = Decoder::with_ip(64, bytes, 0, model.decoder_options());
        let instructions: Vec<Instruction> = ops.iter().map(|_| decoder.decode()).collect();
        plain(&instructions, &ops, model).iter().map(|plain| (plain.seen, plain.translated)).collect()
    }

    #[test]
    fn flags_are_seen_until_they_are_overwritten() {
        // add eax, ebx; add eax, ecx; end of the block.
        assert_eq!(choices(&[0x01, 0xd8, 0x01, 0xc8]), [(false, true), (true, true)]);
        // A load between the two can fault, so the flags are observed.
        assert_eq!(choices(&[0x01, 0xd8, 0x8b, 0x0f, 0x01, 0xc8])[0], (true, true));
        // cmp eax, ebx; setl cl; add eax, ecx: SETL can use the host's flags.
        assert_eq!(choices(&[0x39, 0xd8, 0x0f, 0x9c, 0xc1, 0x01, 0xc8])[0], (false, true));
        // shl eax, 5; setl cl; add eax, ecx: hosts differ in OF, so SETL cannot use the host's flags.
        assert_eq!(choices(&[0xc1, 0xe0, 0x05, 0x0f, 0x9c, 0xc1, 0x01, 0xc8])[0], (true, true));
        // shl eax, cl and imul eax, ebx are translated even if their flags are observed.
        assert_eq!(choices(&[0xd3, 0xe0, 0x01, 0xc8])[0], (false, true));
        assert_eq!(choices(&[0xd3, 0xe0])[0], (true, true));
        assert_eq!(choices(&[0x0f, 0xaf, 0xc3])[0], (true, true));
        // cmp eax, ebx; shl edx, cl: a count of zero leaves the flags of CMP. An addition after the shift hides them.
        assert_eq!(choices(&[0x39, 0xd8, 0xd3, 0xe2])[0], (true, true));
        assert_eq!(choices(&[0x39, 0xd8, 0xd3, 0xe2, 0x01, 0xc8])[0], (false, true));
        // cmp eax, ebx; div ecx; add eax, ecx: DIV can raise #DE, and leaves the flags of CMP.
        assert_eq!(choices(&[0x39, 0xd8, 0xf7, 0xf1, 0x01, 0xc8])[0], (true, true));
        // bsf eax, ebx; setz cl; add eax, ecx: SETZ can use the host's flags.
        assert_eq!(choices(&[0x0f, 0xbc, 0xc3, 0x0f, 0x94, 0xc1, 0x01, 0xc8])[0], (false, true));
        // cmp eax, ebx; rol eax, 3; sete cl; add eax, ecx: SETE observes ZF of CMP, which ROL keeps, but not in the
        // host's flags. Nothing observes the flags without SETE.
        assert_eq!(
            choices(&[0x39, 0xd8, 0xc1, 0xc0, 0x03, 0x0f, 0x94, 0xc1, 0x01, 0xc8])[..2],
            [(true, true), (true, true)]
        );
        assert_eq!(choices(&[0x39, 0xd8, 0xc1, 0xc0, 0x03, 0x01, 0xc8])[..2], [(false, true), (false, true)]);
        // cmp eax, ebx; bt eax, 3; setb cl; add eax, ecx.
        assert_eq!(
            choices(&[0x39, 0xd8, 0x0f, 0xba, 0xe0, 0x03, 0x0f, 0x92, 0xc1, 0x01, 0xc8])[..2],
            [(true, true), (true, true)]
        );
    }

    #[test]
    fn flags_of_bmi_are_not_in_the_hosts_flags() {
        if !std::is_x86_feature_detected!("bmi1") {
            return;
        }
        // add eax, ebx; andn eax, ebx, ecx: on the model v2, ANDN raises #UD, and the flags of ADD are observed.
        let andn = [0x01, 0xd8, 0xc4, 0xe2, 0x60, 0xf2, 0xc1];
        assert_eq!(choices_of(CpuModel::V3, &andn), [(false, true), (true, true)]);
        assert_eq!(choices(&andn), [(true, true), (true, false)]);
        // tzcnt eax, ebx; setb cl; add eax, ecx: SETB needs the flags of TZCNT.
        let tzcnt = [0xf3, 0x0f, 0xbc, 0xc3, 0x0f, 0x92, 0xc1, 0x01, 0xc8];
        assert_eq!(choices_of(CpuModel::V3, &tzcnt)[0], (true, true));
    }

    #[test]
    fn instructions_on_which_hosts_differ_are_not_translated() {
        // add al, 0xe9; adc dh, bl; and movzx edi, bh need no REX prefix, so they are translated.
        assert_eq!(choices(&[0x04, 0xe9, 0x10, 0xde])[..2], [(false, true), (true, true)]);
        assert!(choices(&[0x0f, 0xb6, 0xff])[0].1);
        // movzx esp, ah: RSP is in host register R8, which needs a REX prefix, and AH excludes the prefix. mov [rdi],
        // ah: the address is in R13, which needs the prefix, too. movsxd ax, [rdi] reads two or four bytes. The count
        // of shl ax, 20 is beyond the width. For shl ah, 3, the operand stored for computing the flags later would be
        // AL instead of AH.
        for bytes in [
            &[0x0f, 0xb6, 0xe4][..],
            &[0x88, 0x27],
            &[0x66, 0x63, 0x07],
            &[0x66, 0xc1, 0xe0, 0x14],
            &[0xc0, 0xe4, 0x03],
        ] {
            assert!(!choices(bytes)[0].1, "{bytes:x?}");
        }
    }
}
