//! SSE and AES-NI instructions that the host executes directly: moves, packed integers, and floating-point arithmetic.
//!
//! Floating-point arithmetic depends on MXCSR. It is executed while the guest's MXCSR is in the host's register, in which
//! the guest must have masked all exceptions. The results and exception flags are then those of the interpreter, which
//! executes the same instruction under the same MXCSR (`exec::sse::float`). The first floating-point instruction loads
//! the guest's MXCSR. It stays loaded from block to block, until translated code is left or calls a function
//! (`routines`). The approximations of reciprocals are not listed here, because hosts differ in them.

use iced_x86::{CpuidFeature, Instruction, Mnemonic, OpKind};

use super::asm::{NOT_EQUAL, R15};
use super::choice::is_near_memory;
use super::emitter::{Emitter, InHost};
use super::frame::MXCSR_IS_GUESTS;
use super::instruction::{named, on_r13};
use super::lazy_flags::Operation;
use crate::model::CpuModel;
use crate::op::Op;
use crate::op::operand::{gpr, is_memory};

/// True if the host supports the instruction. Hosts may differ here, because the guest cannot observe which
/// instructions are translated.
fn host_has(i: &Instruction) -> bool {
    i.cpuid_features().iter().all(|feature| match feature {
        CpuidFeature::SSE | CpuidFeature::SSE2 | CpuidFeature::X64 => true,
        CpuidFeature::SSE3 => std::is_x86_feature_detected!("sse3"),
        CpuidFeature::SSSE3 => std::is_x86_feature_detected!("ssse3"),
        CpuidFeature::SSE4_1 => std::is_x86_feature_detected!("sse4.1"),
        CpuidFeature::SSE4_2 => std::is_x86_feature_detected!("sse4.2"),
        CpuidFeature::AES => std::is_x86_feature_detected!("aes"),
        CpuidFeature::PCLMULQDQ => std::is_x86_feature_detected!("pclmulqdq"),
        _ => false,
    })
}

/// True for instructions whose memory operand of sixteen bytes may be at any address.
fn is_unaligned(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(mnemonic, Movups | Movupd | Movdqu | Lddqu)
}

/// True if the instruction writes the whole first operand, a register, without reading it.
fn writes_whole(i: &Instruction) -> bool {
    use Mnemonic::*;
    let moves = match i.mnemonic() {
        Movaps | Movapd | Movdqa | Movups | Movupd | Movdqu | Lddqu | Movd | Movq | Pshufd | Pshuflw
        | Pshufhw | Aesimc | Aeskeygenassist => true,
        Movss | Movsd => is_memory(i, 1),
        _ => false,
    };
    moves && i.op0_register() != i.op1_register()
}

/// Mnemonics that the host executes directly.
const LISTED: &[Mnemonic] = {
    use Mnemonic::*;
    &[
        Movaps, Movapd, Movdqa, Movups, Movupd, Movdqu, Lddqu, Movd, Movq, Movss, Movsd, Movlps, Movhps,
        Movlpd, Movhpd, Movhlps, Movlhps, Movddup, Movshdup, Movsldup, Pxor, Por, Pand, Pandn, Xorps, Xorpd,
        Orps, Orpd, Andps, Andpd, Andnps, Andnpd, Paddb, Paddw, Paddd, Paddq, Psubb, Psubw, Psubd, Psubq,
        Paddsb, Paddsw, Paddusb, Paddusw, Psubsb, Psubsw, Psubusb, Psubusw, Pcmpeqb, Pcmpeqw, Pcmpeqd,
        Pcmpeqq, Pcmpgtb, Pcmpgtw, Pcmpgtd, Pcmpgtq, Pmaxub, Pmaxsw, Pminub, Pminsw, Pmaxsb, Pmaxuw, Pmaxsd,
        Pmaxud, Pminsb, Pminuw, Pminsd, Pminud, Pavgb, Pavgw, Psadbw, Pabsb, Pabsw, Pabsd, Pmullw, Pmulhw,
        Pmulhuw, Pmuludq, Pmulld, Pmuldq, Pmaddwd, Pmaddubsw, Punpcklbw, Punpcklwd, Punpckldq, Punpcklqdq,
        Punpckhbw, Punpckhwd, Punpckhdq, Punpckhqdq, Unpcklps, Unpcklpd, Unpckhps, Unpckhpd, Packsswb,
        Packssdw, Packuswb, Packusdw, Psllw, Pslld, Psllq, Psrlw, Psrld, Psrlq, Psraw, Psrad, Pslldq, Psrldq,
        Pshufd, Pshuflw, Pshufhw, Shufps, Shufpd, Pshufb, Palignr, Pmovmskb, Movmskps, Movmskpd,
    ]
};

/// Mnemonics of AES-NI and PCLMULQDQ, which the host executes directly.
const CIPHERS: &[Mnemonic] = {
    use Mnemonic::*;
    &[Aesenc, Aesenclast, Aesdec, Aesdeclast, Aesimc, Aeskeygenassist, Pclmulqdq]
};

/// Mnemonics of floating-point instructions that the host executes directly, under the guest's MXCSR.
const FLOATING: &[Mnemonic] = {
    use Mnemonic::*;
    &[
        Addss, Addsd, Addps, Addpd, Subss, Subsd, Subps, Subpd, Mulss, Mulsd, Mulps, Mulpd, Divss, Divsd,
        Divps, Divpd, Sqrtss, Sqrtsd, Sqrtps, Sqrtpd, Minss, Minsd, Minps, Minpd, Maxss, Maxsd, Maxps, Maxpd,
        Cmpss, Cmpsd, Cmpps, Cmppd, Comiss, Comisd, Ucomiss, Ucomisd, Cvtsi2ss, Cvtsi2sd, Cvtss2si, Cvtsd2si,
        Cvttss2si, Cvttsd2si, Cvtss2sd, Cvtsd2ss, Cvtps2pd, Cvtpd2ps, Cvtdq2ps, Cvtdq2pd, Cvtps2dq, Cvtpd2dq,
        Cvttps2dq, Cvttpd2dq,
    ]
};

/// True for a floating-point instruction that depends on MXCSR.
fn is_floating(i: &Instruction) -> bool {
    FLOATING.contains(&i.mnemonic())
}

/// True for a compare that sets RFLAGS, and writes no XMM register.
fn sets_flags(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(i.mnemonic(), Comiss | Comisd | Ucomiss | Ucomisd)
}

/// True if the immediate, if there is one, has only bits that the manual defines: of a compare, the predicate.
fn is_defined(i: &Instruction) -> bool {
    use Mnemonic::*;
    !matches!(i.mnemonic(), Cmpss | Cmpsd | Cmpps | Cmppd) || i.immediate8() < 8
}

/// True if [`Emitter::vector`] can translate the instruction.
pub(super) fn can_be_vector(i: &Instruction, op: &Op, model: CpuModel) -> bool {
    let operand = |k: u32| match i.op_kind(k) {
        OpKind::Register => i.op_register(k).is_xmm() || i.op_register(k).is_gpr(),
        OpKind::Memory => is_near_memory(i, op),
        OpKind::Immediate8 => true,
        _ => false,
    };
    let listed =
        LISTED.contains(&i.mnemonic()) || CIPHERS.contains(&i.mnemonic()) || is_floating(i) && is_defined(i);
    listed && model.has(i) && (0..i.op_count()).all(operand) && host_has(i)
}

impl Emitter<'_> {
    pub(super) fn vector(&mut self, i: &Instruction, n: usize) {
        self.registers.vectors.leave_uppers(self.asm);
        if is_floating(i) {
            self.load_mxcsr(n);
        } else if !self.registers.vectors.usable {
            self.asm.call_to(self.places.routines.vectors);
            self.site(n);
            self.in_host = InHost::Nothing;
            self.registers.vectors.usable = true;
        }
        let memory = (0..i.op_count()).find(|&k| is_memory(i, k));
        if let Some(k) = memory {
            self.address(&self.ops[n]);
            let size = i.memory_size().size();
            if size == 16 && !is_unaligned(i.mnemonic()) {
                self.check_aligned(size, k == 0, n);
            } else {
                self.check(size, k == 0, n);
            }
        }
        let mut out = *i;
        for k in 0..i.op_count() {
            if i.op_kind(k) != OpKind::Register {
                continue;
            }
            let register = i.op_register(k);
            if register.is_xmm() {
                let load = !(k == 0 && writes_whole(i));
                self.registers.vectors.hold(self.asm, register.number() as u8, load);
            } else {
                let host = self.registers.get(self.asm, gpr(register), k != 0);
                out.set_op_register(k, named(host, register.size()));
            }
        }
        if memory.is_some() {
            on_r13(&mut out);
        }
        if !self.encode(&out) {
            return self.handler(n);
        }
        self.emit_encoded();
        if sets_flags(i) {
            self.in_host = InHost::All;
            self.keep_host_flags(false);
            self.keep_kind(Operation::Host, 3);
        } else if i.op_kind(0) == OpKind::Register {
            let register = i.op_register(0);
            if register.is_xmm() {
                self.registers.vectors.dirty |= 1 << register.number();
            } else {
                self.registers.wrote(gpr(register));
            }
        }
    }
    /// Emits code that loads the guest's MXCSR into the host's register, unless it is there.
    pub(super) fn load_mxcsr(&mut self, n: usize) {
        if !self.registers.vectors.floating {
            let loaded = self.asm.label();
            self.asm.test_memory(R15, MXCSR_IS_GUESTS, 1);
            self.asm.jump_short_if(NOT_EQUAL, loaded);
            self.asm.call_to(self.places.routines.floating);
            self.site(n);
            self.asm.bind(loaded);
            self.in_host = InHost::Nothing;
            self.registers.vectors.floating = true;
            self.registers.vectors.usable = true;
        }
    }
}
