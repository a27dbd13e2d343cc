//! The choice of an encoding for an instruction and its operands.
//!
//! Most mnemonics have several encodings, and the operands often fit more than one. The following rules compare the
//! encodings that fit. The first rule that prefers one of them decides:
//! 1. The size of the encoding's memory operand is the size that the program gives.
//! 2. The encoding is for one register only, such as `add rax, imm32` or `mov eax, moffs`.
//! 3. The operand size is not 16 bits. A `push` of an immediate therefore pushes 64 bits.
//! 4. The encoding is the shortest. An immediate therefore has one byte if it fits into one byte.
//! 5. The encoding is the first in the order of opcodes. A `mov` between registers is therefore 89 and not 8B.

use std::sync::OnceLock;

use iced_x86::{Code, Encoder, Instruction, Mnemonic, OpCodeOperandKind, OpKind};

use crate::error::Error;
use crate::operand::{MemoryOperand, Operand};

/// Encodings of a mnemonic in 64-bit mode, in the order of opcodes.
fn encodings(mnemonic: Mnemonic) -> &'static [Code] {
    static TABLE: OnceLock<Vec<Vec<Code>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table = vec![Vec::new(); Mnemonic::values().len()];
        for code in Code::values().filter(|code| code.op_code().mode64()) {
            table[code.mnemonic() as usize].push(code);
        }
        table
    });
    &table[mnemonic as usize]
}

/// Returns the instruction in its best encoding. Labels and branch targets are encoded as address 0. `prefixes` is an
/// instruction that contains only the prefixes.
///
/// # Errors
///
/// Returns an error if no encoding has these operands. Also returns an error if the fitting encodings differ in the
/// size of the memory operand, and the program gives none of these sizes.
pub(crate) fn choose(
    mnemonic: Mnemonic,
    operands: &[Operand],
    prefixes: &Instruction,
) -> Result<Instruction, Error> {
    let fail = |why: &str| Error(format!("{mnemonic:?} {operands:?}: {why}"));
    let mut encoder = Encoder::new(64);
    let mut fits = Vec::new();
    for &code in encodings(mnemonic) {
        let Some(instruction) = fill(code, operands, prefixes) else { continue };
        if let Ok(length) = encoder.encode(&instruction, 0) {
            let is_general = !code.op_code().op_kinds().iter().any(is_one_register);
            // The keys compare the encodings by rules 2 to 4. If keys are equal, `min_by_key` below returns the first
            // (rule 5).
            fits.push(((is_general, code.op_code().operand_size() == 16, length), instruction));
        }
    }
    let size = operands.iter().find_map(|operand| match operand {
        Operand::Memory(memory) => Some(memory.size),
        _ => None,
    });
    if let Some(size) = size {
        let of = |instruction: &Instruction| instruction.code().op_code().memory_size().size();
        if fits.iter().any(|(_, instruction)| of(instruction) == size) {
            fits.retain(|(_, instruction)| of(instruction) == size);
        } else if fits.iter().any(|(_, instruction)| of(instruction) != of(&fits[0].1)) {
            return Err(fail("no encoding has a memory operand of this size"));
        }
    }
    let best = fits.into_iter().min_by_key(|(key, _)| *key);
    best.map(|(_, instruction)| instruction).ok_or_else(|| fail("no encoding has these operands"))
}

/// True for kinds of operand that stand for one register only, and for absolute addresses, which only instructions with
/// the accumulator have.
fn is_one_register(kind: &OpCodeOperandKind) -> bool {
    use OpCodeOperandKind::{al, ax, eax, mem_offs, rax};
    matches!(kind, al | ax | eax | rax | mem_offs)
}

/// Returns the instruction in this encoding, or None if an operand does not fit the encoding. The encoder finds all
/// other mistakes.
fn fill(code: Code, operands: &[Operand], prefixes: &Instruction) -> Option<Instruction> {
    let mut instruction = *prefixes;
    instruction.set_code(code);
    let kinds = code.op_code().op_kinds();
    if operands.is_empty() && fill_string(&mut instruction, kinds) {
        return Some(instruction);
    }
    if kinds.len() != operands.len() {
        return None;
    }
    for (at, (&kind, &operand)) in (0..).zip(kinds.iter().zip(operands)) {
        match operand {
            Operand::Register(register) => {
                instruction.set_op_kind(at, OpKind::Register);
                instruction.set_op_register(at, register.0);
            }
            Operand::Memory(memory) => {
                instruction.set_op_kind(at, OpKind::Memory);
                fill_memory(&mut instruction, memory);
            }
            Operand::Immediate(value) => {
                let is_second = at > 0 && matches!(operands[0], Operand::Immediate(_));
                instruction.set_op_kind(at, immediate(kind, value, is_second)?);
                instruction.set_immediate_i64(at, value);
            }
            Operand::Wide(value) if kind == OpCodeOperandKind::imm64 => {
                instruction.set_op_kind(at, OpKind::Immediate64);
                instruction.set_immediate64(value);
            }
            Operand::Wide(_) | Operand::Label(_) => {
                if !matches!(kind, OpCodeOperandKind::br64_1 | OpCodeOperandKind::br64_4) {
                    return None;
                }
                instruction.set_op_kind(at, OpKind::NearBranch64);
            }
        }
    }
    Some(instruction)
}

/// Sets the operands of a string instruction, which are always the same. Returns false for other instructions.
fn fill_string(instruction: &mut Instruction, kinds: &[OpCodeOperandKind]) -> bool {
    use OpCodeOperandKind as Kind;
    for (at, kind) in (0..).zip(kinds) {
        let register = match kind {
            Kind::es_rDI => {
                instruction.set_op_kind(at, OpKind::MemoryESRDI);
                continue;
            }
            Kind::seg_rSI => {
                instruction.set_op_kind(at, OpKind::MemorySegRSI);
                continue;
            }
            Kind::al => iced_x86::Register::AL,
            Kind::ax => iced_x86::Register::AX,
            Kind::eax => iced_x86::Register::EAX,
            Kind::rax => iced_x86::Register::RAX,
            Kind::dx => iced_x86::Register::DX,
            _ => return false,
        };
        instruction.set_op_register(at, register);
    }
    kinds.iter().any(|kind| matches!(kind, Kind::es_rDI | Kind::seg_rSI))
}

/// Sets the memory operand of an instruction.
fn fill_memory(instruction: &mut Instruction, memory: MemoryOperand) {
    let has_register = [memory.base, memory.index] != [iced_x86::Register::None; 2];
    instruction.set_memory_base(memory.base);
    instruction.set_memory_index(memory.index);
    instruction.set_memory_index_scale(memory.scale);
    instruction.set_memory_displacement64(memory.displacement as u64);
    // If there is a register, a size of 1 lets the encoder choose the shortest displacement.
    instruction.set_memory_displ_size(if has_register { u32::from(memory.displacement != 0) } else { 8 });
    instruction.set_segment_prefix(memory.segment);
}

/// Returns the kind of an immediate operand, or None if `value` does not fit the encoding.
fn immediate(kind: OpCodeOperandKind, value: i64, is_second: bool) -> Option<OpKind> {
    use OpCodeOperandKind as Kind;
    let byte = -0x80..=0x7f;
    let (range, kind) = match kind {
        Kind::imm8 if is_second => (0..=0xff, OpKind::Immediate8_2nd),
        Kind::imm8 => (-0x80..=0xff, OpKind::Immediate8),
        Kind::imm8_const_1 => (1..=1, OpKind::Immediate8),
        Kind::imm16 => (-0x8000..=0xffff, OpKind::Immediate16),
        Kind::imm32 => (i32::MIN.into()..=u32::MAX.into(), OpKind::Immediate32),
        Kind::imm32sex64 => (i32::MIN.into()..=i32::MAX.into(), OpKind::Immediate32to64),
        Kind::imm8sex16 => (byte, OpKind::Immediate8to16),
        Kind::imm8sex64 => (byte, OpKind::Immediate8to64),
        // The value may be given as a signed or an unsigned number of 32 bits.
        Kind::imm8sex32 => return byte.contains(&(value as i32).into()).then_some(OpKind::Immediate8to32),
        _ => return None,
    };
    range.contains(&value).then_some(kind)
}
