//! Conversion ("lowering") of a decoded instruction to an [`Op`]: the choice of a handler and its operands.
//!
//! Each family of instructions under `exec/` has its own `lower`, which returns `None` for mnemonics of other families.

use crate::exec;
use crate::model::CpuModel;
use crate::op::{Kind, Op, slot};
use iced_x86::{Instruction, Mnemonic};

/// Returns an operation that raises #UD.
pub(crate) fn undefined() -> Op {
    Op {
        run: exec::undefined,
        imm: 0,
        disp: 0,
        dst: 0,
        src: 0,
        base: slot::ZERO,
        index: slot::ZERO,
        scale: 0,
        seg: slot::ZERO,
        off: 0,
        len: 0,
        idx: 0,
        aux: 0,
    }
}

/// Returns an operation that raises #GP(0): the instruction is longer than 15 bytes (SDM vol. 3A, 6.15, interrupt
/// 13).
pub(crate) fn too_long() -> Op {
    Op { run: exec::too_long, ..undefined() }
}

/// Converts ("lowers") one instruction to an operation. An instruction that is invalid, or that the model lacks, becomes
/// an operation that raises #UD.
pub(crate) fn lower(i: &Instruction, model: CpuModel) -> (Op, Kind) {
    let mut op = undefined();
    if i.mnemonic() == Mnemonic::INVALID || !model.has(i) || !lock_allowed(i) {
        return (op, Kind::Ends);
    }
    if (0..i.op_count()).any(|n| i.op_kind(n) == iced_x86::OpKind::Memory) {
        crate::op::operand::memory(i, &mut op);
    }
    let families = [
        exec::integer::lower,
        exec::control::lower,
        exec::string::lower,
        exec::system::lower,
        exec::sse::lower,
        exec::x87::lower,
        exec::avx::lower,
    ];
    for family in families {
        if let Some(kind) = family(i, &mut op) {
            return (op, kind);
        }
    }
    (undefined(), Kind::Ends)
}

/// True if the instruction has no LOCK prefix or may have one. LOCK requires a destination in memory (SDM vol. 2A,
/// LOCK). The decoder has already rejected mnemonics that never allow LOCK.
fn lock_allowed(i: &Instruction) -> bool {
    !i.has_lock_prefix() || i.op_kind(0) == iced_x86::OpKind::Memory
}
