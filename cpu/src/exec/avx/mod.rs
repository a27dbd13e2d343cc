//! AVX, AVX2, F16C and FMA, and the VEX encodings of SSE, AES-NI and PCLMULQDQ.
//!
//! - `operand`: access to operands, the check that the guest may use AVX, and macros for operand forms
//! - `legacy`: VEX encodings of SSE instructions, which execute the handlers of the legacy encodings
//! - `moves`, `masked`: moves of all kinds
//! - `permute`: permutations, broadcasts, blends and variable shifts
//! - `element`: insertion and extraction of single elements
//! - `compare`: compares with the 32 predicates of AVX, and tests of sign bits
//! - `gather`: gathers
//! - `half`: F16C
//! - `fma`, `soft`: fused multiply-add, in software arithmetic
//! - `xsave`: XSAVE and its relatives
//!
//! **Invariants.** An instruction of 128 bits clears the upper half of its destination. An instruction of 256 bits that
//! raises #XM sets the flags of both halves, and stores no result.

mod compare;
mod element;
mod fma;
mod gather;
mod half;
mod legacy;
mod masked;
mod moves;
mod operand;
mod permute;
mod soft;
pub(crate) mod xsave;

use crate::op::{Kind, Op};
use iced_x86::{EncodingKind, Instruction};

/// Chooses the handler of a VEX instruction on vectors, or of XSAVE and its relatives. Returns `None` for other
/// instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    if i.code().op_code().encoding() != EncodingKind::VEX {
        return xsave::lower(i, op);
    }
    let mut candidate = *op;
    operand::operands(i, &mut candidate);
    let files: [fn(&Instruction, &mut Op) -> Option<Kind>; 9] = [
        moves::lower,
        masked::lower,
        element::lower,
        permute::lower,
        compare::lower,
        gather::lower,
        half::lower,
        fma::lower,
        legacy::lower,
    ];
    let kind = files.iter().find_map(|lower| lower(i, &mut candidate))?;
    *op = candidate;
    Some(kind)
}

#[cfg(test)]
mod tests {
    use crate::decode::lower::lower;
    use crate::exec;
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
        let undefined = crate::decode::lower::undefined().run;
        assert!(std::ptr::fn_addr_eq(undefined, exec::undefined as crate::op::Handler));
        let lacking: Vec<&Code> = forms
            .iter()
            .filter(|code| std::ptr::fn_addr_eq(lower(&instruction(**code), model).0.run, undefined))
            .collect();
        assert!(lacking.is_empty(), "{lacking:?}");
    }
}
