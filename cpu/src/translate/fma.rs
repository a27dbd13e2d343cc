//! Fused multiply-add, executed by the host. The result of an operation on numbers is rounded once and therefore the same
//! on all processors, and so are its exception flags. Which of several NaN operands becomes the result is left to the
//! interpreter: if an element of the result is a NaN, translated code restores the destination and MXCSR, and the
//! interpreter executes the instruction.

use iced_x86::{Code, CpuidFeature, Instruction, MemoryOperand, OpKind, Register};

use super::asm::{Alu, BELOW_OR_EQUAL, EQUAL, R10, R11, R15};
use super::choice::is_near_memory;
use super::emitter::{Emitter, InHost};
use super::frame::{OLD_MXCSR, SPILLED};
use super::instruction::on_r13;
use super::routines::{DOUBLES_AT, MASKS_AT};
use super::xmm::host_has_uppers;
use crate::model::CpuModel;
use crate::op::Op;
use crate::op::operand::is_memory;

/// True if [`Emitter::fma`] can translate the instruction.
pub(super) fn can_be_fma(i: &Instruction, op: &Op, model: CpuModel) -> bool {
    let operand = |k: u32| i.op_kind(k) == OpKind::Register || is_memory(i, k) && is_near_memory(i, op);
    i.cpuid_features() == [CpuidFeature::FMA]
        && model.has(i)
        && (0..i.op_count()).all(operand)
        && host_has_uppers()
        && std::is_x86_feature_detected!("fma")
}

impl Emitter<'_> {
    /// Emits an instruction of this module.
    pub(super) fn fma(&mut self, i: &Instruction, n: usize) {
        self.check_avx(n);
        self.load_mxcsr(n);
        let element = i.code().op_code().memory_size();
        let mut out = *i;
        if (0..i.op_count()).any(|k| is_memory(i, k)) {
            self.address(&self.ops[n]);
            self.check(i.memory_size().size(), false, n);
            on_r13(&mut out);
        }
        for k in (0..i.op_count()).filter(|&k| i.op_kind(k) == OpKind::Register) {
            self.hold_vector(i.op_register(k));
        }
        if !self.encode(&out) {
            return self.handler(n);
        }
        let dst = i.op0_register().number() as u8;
        let [old, spilled] = SPILLED;
        self.registers.vectors.spill(self.asm, dst, old);
        self.asm.store_mxcsr(R15, OLD_MXCSR);
        self.emit_encoded();
        let fine = self.asm.label();
        let double = element.element_size() == 8;
        if element.is_packed() {
            let scratch = dst ^ 1;
            self.registers.vectors.spill(self.asm, scratch, spilled);
            self.find_nans(i.op0_register(), scratch, double);
            self.registers.vectors.unspill(self.asm, scratch, spilled);
            self.asm.jump_short_if(EQUAL, fine);
        } else {
            self.asm.move_low(R10, dst, double);
            self.asm.alu_by_width(Alu::Add, if double { 3 } else { 2 }, R10, R10);
            // Twice an infinity, without its sign.
            self.asm.set(R11, if double { 0xffe0_0000_0000_0000 } else { 0xff00_0000 });
            self.asm.alu(Alu::Cmp, R10, R11);
            self.asm.jump_short_if(BELOW_OR_EQUAL, fine);
        }
        self.registers.vectors.unspill(self.asm, dst, old);
        self.asm.load_mxcsr(R15, OLD_MXCSR);
        self.asm.call_to(self.places.routines.interpret);
        self.site(n);
        self.asm.bind(fine);
        self.in_host = InHost::Nothing;
        self.registers.vectors.wrote_whole(dst);
    }
    /// Emits code that sets the host's ZF if no element of `vector` is a NaN. It uses no instruction that depends on MXCSR.
    fn find_nans(&mut self, vector: Register, scratch: u8, double: bool) {
        let table = self.places.routines.constants + if double { DOUBLES_AT } else { 0 };
        self.asm.address(R10, table);
        let wide = vector.is_ymm();
        let (and, compare, signs) = match (wide, double) {
            (false, false) => (
                Code::VEX_Vpand_xmm_xmm_xmmm128,
                Code::VEX_Vpcmpgtd_xmm_xmm_xmmm128,
                Code::VEX_Vpmovmskb_r32_xmm,
            ),
            (false, true) => (
                Code::VEX_Vpand_xmm_xmm_xmmm128,
                Code::VEX_Vpcmpgtq_xmm_xmm_xmmm128,
                Code::VEX_Vpmovmskb_r32_xmm,
            ),
            (true, false) => (
                Code::VEX_Vpand_ymm_ymm_ymmm256,
                Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256,
                Code::VEX_Vpmovmskb_r32_ymm,
            ),
            (true, true) => (
                Code::VEX_Vpand_ymm_ymm_ymmm256,
                Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256,
                Code::VEX_Vpmovmskb_r32_ymm,
            ),
        };
        let scratch = if wide { Register::YMM0 } else { Register::XMM0 } + u32::from(scratch);
        let at = |displacement| MemoryOperand::with_base_displ(Register::R10, displacement);
        let all = [
            Instruction::with3(and, scratch, vector, at(MASKS_AT)),
            Instruction::with3(compare, scratch, scratch, at(0)),
            Instruction::with2(signs, Register::R10D, scratch),
        ];
        for instruction in all {
            let encoded = instruction.is_ok_and(|instruction| self.encode(&instruction));
            debug_assert!(encoded);
            if encoded {
                self.emit_encoded();
            }
        }
        self.asm.test(2, R10, R10);
    }
}
