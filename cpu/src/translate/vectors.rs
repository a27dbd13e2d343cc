//! SSE instructions that the host executes directly: moves and packed integers.
//!
//! Instructions that depend on MXCSR are not listed here. Translated code calls the interpreter's handlers for them.

use iced_x86::{CpuidFeature, Instruction, Mnemonic, OpKind};

use super::choice::is_near_memory;
use super::emitter::{Emitter, InHost};
use super::instruction::{named, on_r13};
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
        | Pshufhw => true,
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

/// True if [`Emitter::vector`] can translate the instruction.
pub(super) fn can_be_vector(i: &Instruction, op: &Op) -> bool {
    let operand = |k: u32| match i.op_kind(k) {
        OpKind::Register => i.op_register(k).is_xmm() || i.op_register(k).is_gpr(),
        OpKind::Memory => is_near_memory(i, op),
        OpKind::Immediate8 => true,
        _ => false,
    };
    LISTED.contains(&i.mnemonic()) && (0..i.op_count()).all(operand) && host_has(i)
}

impl Emitter<'_> {
    pub(super) fn vector(&mut self, i: &Instruction, n: usize) {
        if !self.registers.vectors.usable {
            self.asm.call_to(self.places.routines.vectors);
            self.site(n);
            self.in_host = InHost::Nothing;
            self.registers.vectors.usable = true;
        }
        let memory = (0..i.op_count()).find(|&k| is_memory(i, k));
        if let Some(k) = memory {
            self.address(&self.source.ops[n]);
            let size = i.memory_size().size();
            if size == 16 && !is_unaligned(i.mnemonic()) {
                self.check_aligned(k == 0, n);
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
        if i.op_kind(0) == OpKind::Register {
            let register = i.op_register(0);
            if register.is_xmm() {
                self.registers.vectors.dirty |= 1 << register.number();
            } else {
                self.registers.wrote(gpr(register));
            }
        }
    }
}
