//! Conversion ("lowering") of a decoded instruction to an [`Op`]: the choice of a handler and its operands.
//!
//! Each family of instructions under `exec/` has its own `lower`, which returns `None` for mnemonics of other families.

use crate::exec::{self, undefined};
use crate::model::{CpuModel, MissingInstruction};
use crate::op::{Kind, Op};
use iced_x86::{Instruction, Mnemonic};

/// Converts ("lowers") one instruction to an operation. An instruction that is invalid, or that the model lacks, becomes
/// an operation that raises #UD.
pub(crate) fn lower(i: &Instruction, model: CpuModel) -> (Op, Kind) {
    let mut op = undefined::undefined();
    if i.mnemonic() == Mnemonic::INVALID || !lock_allowed(i) {
        return (op, Kind::Ends);
    }
    if !model.has(i) {
        return (MissingInstruction::in_model(i, model).map_or(op, undefined::missing), Kind::Ends);
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
    (undefined::undefined(), Kind::Ends)
}

/// True if the instruction has no LOCK prefix or may have one. LOCK requires a destination in memory (SDM vol. 2A,
/// LOCK). The decoder has already rejected mnemonics that never allow LOCK.
fn lock_allowed(i: &Instruction) -> bool {
    !i.has_lock_prefix() || i.op_kind(0) == iced_x86::OpKind::Memory
}

#[cfg(test)]
mod tests {
    use super::lower;
    use crate::exec::undefined::undefined;
    use crate::model::CpuModel;
    use iced_x86::{Code, EncodingKind, Instruction, OpCodeOperandKind, OpKind, Register};

    /// Returns an instruction of a form, on registers where it can be.
    fn instruction(code: Code) -> Instruction {
        use OpCodeOperandKind as Kind;
        let mut i = Instruction::default();
        i.set_code(code);
        for (n, &kind) in code.op_code().op_kinds().iter().enumerate() {
            let n = n as u32;
            let register = match kind {
                Kind::ymm_reg | Kind::ymm_vvvv | Kind::ymm_or_mem | Kind::ymm_rm | Kind::ymm_is4 => {
                    Register::YMM1
                }
                Kind::r32_reg | Kind::r32_vvvv | Kind::r32_or_mem | Kind::r32_rm => Register::EAX,
                Kind::r64_reg | Kind::r64_vvvv | Kind::r64_or_mem | Kind::r64_rm => Register::RAX,
                Kind::imm8 => {
                    i.set_op_kind(n, OpKind::Immediate8);
                    continue;
                }
                Kind::mem | Kind::mem_vsib32x | Kind::mem_vsib32y | Kind::mem_vsib64x | Kind::mem_vsib64y => {
                    i.set_op_kind(n, OpKind::Memory);
                    i.set_memory_base(Register::RBX);
                    if kind != Kind::mem {
                        i.set_memory_index(Register::XMM2);
                    }
                    continue;
                }
                _ => Register::XMM1,
            };
            i.set_op_kind(n, OpKind::Register);
            i.set_op_register(n, register);
        }
        i
    }

    #[test]
    fn every_vex_form_of_the_model_has_a_handler() {
        let model = CpuModel::LARGEST;
        let of_model = |code: &Code| {
            let info = code.op_code();
            info.encoding() == EncodingKind::VEX && info.mode64() && model.has(&instruction(*code))
        };
        let forms: Vec<Code> = Code::values().filter(of_model).collect();
        assert!(forms.len() > 600);
        let undefined = undefined().run;
        let lacking: Vec<&Code> = forms
            .iter()
            .filter(|code| std::ptr::fn_addr_eq(lower(&instruction(**code), model).0.run, undefined))
            .collect();
        assert!(lacking.is_empty(), "{lacking:?}");
    }
}
