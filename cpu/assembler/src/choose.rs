//! The encoding of an instruction that fits its operands.
//!
//! Most mnemonics have several encodings, and the operands often fit more than one. The first of these rules that tells
//! them apart decides:
//! 1. The memory operand has the size of the encoding.
//! 2. The encoding is for one register, such as `add rax, imm32` or `mov eax, moffs`.
//! 3. The operand size is not 16 bits, so `push` of an immediate pushes 64.
//! 4. It is the shortest, so an immediate has one byte if it fits.
//! 5. It is the first in the order of opcodes, so `mov` between registers is 89, not 8B.

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

/// Returns the instruction with the best encoding. Labels and branch targets count as address 0. `prefixes` is an
/// instruction that has the prefixes and nothing else.
///
/// # Errors
///
/// If no encoding fits, or the size of a memory operand is missing.
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
            // Of equal keys, the first wins.
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

/// True if an operand of this kind is always the same register, or memory that only the accumulator is loaded from.
fn is_one_register(kind: &OpCodeOperandKind) -> bool {
    use OpCodeOperandKind::{al, ax, eax, mem_offs, rax};
    matches!(kind, al | ax | eax | rax | mem_offs)
}

/// Returns the instruction, or None if an operand cannot be one of the encoding. The encoder finds the other mistakes.
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

/// Sets the operands of a string instruction, which are always the same. Returns false if it is none.
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

/// Sets the parts of the memory operand.
fn fill_memory(instruction: &mut Instruction, memory: MemoryOperand) {
    let has_register = [memory.base, memory.index] != [iced_x86::Register::None; 2];
    instruction.set_memory_base(memory.base);
    instruction.set_memory_index(memory.index);
    instruction.set_memory_index_scale(memory.scale);
    instruction.set_memory_displacement64(memory.displacement as u64);
    // With a register, 1 stands for the shortest displacement that fits.
    instruction.set_memory_displ_size(if has_register { u32::from(memory.displacement != 0) } else { 8 });
    instruction.set_segment_prefix(memory.segment);
}

/// Returns the kind of an immediate that the encoding has as this operand, or None if `value` does not fit.
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
        // Of 32 bits, signed or not.
        Kind::imm8sex32 => return byte.contains(&(value as i32).into()).then_some(OpKind::Immediate8to32),
        _ => return None,
    };
    range.contains(&value).then_some(kind)
}
