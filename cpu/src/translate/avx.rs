//! VEX instructions on vectors that the host executes directly: the counterparts of those in [`super::vectors`], and
//! instructions of AVX and AVX2 whose results the manual defines completely.
//!
//! An instruction of 128 bits sets the upper half of its destination to zero, on the host as in the guest. Handlers
//! execute the other VEX instructions: approximations, conversions of half precision, gathers, masked moves, and moves
//! with non-temporal hints.

use iced_x86::{CpuidFeature, Instruction, Mnemonic, OpKind, Register};

use super::choice::is_near_memory;
use super::emitter::{Emitter, InHost};
use super::instruction::{named, on_r13};
use super::lazy_flags::Operation;
use super::xmm::host_has_uppers;
use crate::model::CpuModel;
use crate::op::Op;
use crate::op::operand::{gpr, is_memory};

/// True if the host supports the instruction. It must have AVX2 in any case, because the routines then preserve whole
/// YMM registers ([`host_has_uppers`]).
fn host_has(i: &Instruction) -> bool {
    let has = |feature: &CpuidFeature| match feature {
        CpuidFeature::AVX | CpuidFeature::AVX2 => true,
        CpuidFeature::AES => std::is_x86_feature_detected!("aes"),
        CpuidFeature::PCLMULQDQ => std::is_x86_feature_detected!("pclmulqdq"),
        _ => false,
    };
    host_has_uppers() && i.cpuid_features().iter().all(has)
}

/// True if a memory operand must be aligned to its size. Other VEX instructions access any address.
fn is_aligned(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(mnemonic, Vmovaps | Vmovapd | Vmovdqa)
}

macro_rules! mnemonics {
    ($($name:ident)*) => { &[$(Mnemonic::$name),*] };
}

/// Mnemonics that the host executes directly.
const VEX_LISTED: &[Mnemonic] = mnemonics! {
    Vmovaps Vmovapd Vmovdqa Vmovups Vmovupd Vmovdqu Vlddqu Vmovd Vmovq Vmovss Vmovsd Vmovlps Vmovhps Vmovlpd
    Vmovhpd Vmovhlps Vmovlhps Vmovddup Vmovshdup Vmovsldup Vpxor Vpor Vpand Vpandn Vxorps Vxorpd Vorps Vorpd
    Vandps Vandpd Vandnps Vandnpd Vpaddb Vpaddw Vpaddd Vpaddq Vpsubb Vpsubw Vpsubd Vpsubq Vpaddsb Vpaddsw
    Vpaddusb Vpaddusw Vpsubsb Vpsubsw Vpsubusb Vpsubusw Vpcmpeqb Vpcmpeqw Vpcmpeqd Vpcmpeqq Vpcmpgtb Vpcmpgtw
    Vpcmpgtd Vpcmpgtq Vpmaxub Vpmaxsw Vpminub Vpminsw Vpmaxsb Vpmaxuw Vpmaxsd Vpmaxud Vpminsb Vpminuw Vpminsd
    Vpminud Vpavgb Vpavgw Vpsadbw Vpabsb Vpabsw Vpabsd Vpsignb Vpsignw Vpsignd Vpmullw Vpmulhw Vpmulhuw
    Vpmulhrsw Vpmuludq Vpmulld Vpmuldq Vpmaddwd Vpmaddubsw Vphaddw Vphaddd Vphaddsw Vphsubw Vphsubd Vphsubsw
    Vphminposuw Vmpsadbw Vpunpcklbw Vpunpcklwd Vpunpckldq Vpunpcklqdq Vpunpckhbw Vpunpckhwd Vpunpckhdq
    Vpunpckhqdq Vunpcklps Vunpcklpd Vunpckhps Vunpckhpd Vpacksswb Vpackssdw Vpackuswb Vpackusdw Vpsllw Vpslld
    Vpsllq Vpsrlw Vpsrld Vpsrlq Vpsraw Vpsrad Vpslldq Vpsrldq Vpsllvd Vpsllvq Vpsrlvd Vpsrlvq Vpsravd Vpshufd
    Vpshuflw Vpshufhw Vshufps Vshufpd Vpshufb Vpalignr Vpermilps Vpermilpd Vpermq Vpermpd Vpermd Vpermps
    Vperm2f128 Vperm2i128 Vpblendw Vpblendd Vblendps Vblendpd Vpblendvb Vblendvps Vblendvpd Vbroadcastss
    Vbroadcastsd Vbroadcastf128 Vbroadcasti128 Vpbroadcastb Vpbroadcastw Vpbroadcastd Vpbroadcastq Vinsertf128
    Vinserti128 Vextractf128 Vextracti128 Vinsertps Vextractps Vpinsrb Vpinsrw Vpinsrd Vpinsrq Vpextrb Vpextrw
    Vpextrd Vpextrq Vpmovsxbw Vpmovsxbd Vpmovsxbq Vpmovsxwd Vpmovsxwq Vpmovsxdq Vpmovzxbw Vpmovzxbd Vpmovzxbq
    Vpmovzxwd Vpmovzxwq Vpmovzxdq Vpmovmskb Vmovmskps Vmovmskpd Vptest Vtestps Vtestpd Vzeroupper Vaesenc
    Vaesenclast Vaesdec Vaesdeclast Vaesimc Vaeskeygenassist Vpclmulqdq
};

/// Mnemonics of floating-point instructions that the host executes directly, under the guest's MXCSR.
const VEX_FLOATING: &[Mnemonic] = mnemonics! {
    Vaddss Vaddsd Vaddps Vaddpd Vsubss Vsubsd Vsubps Vsubpd Vmulss Vmulsd Vmulps Vmulpd Vdivss Vdivsd Vdivps
    Vdivpd Vsqrtss Vsqrtsd Vsqrtps Vsqrtpd Vminss Vminsd Vminps Vminpd Vmaxss Vmaxsd Vmaxps Vmaxpd Vcmpss Vcmpsd
    Vcmpps Vcmppd Vcomiss Vcomisd Vucomiss Vucomisd Vcvtsi2ss Vcvtsi2sd Vcvtss2si Vcvtsd2si Vcvttss2si
    Vcvttsd2si Vcvtss2sd Vcvtsd2ss Vcvtps2pd Vcvtpd2ps Vcvtdq2ps Vcvtdq2pd Vcvtps2dq Vcvtpd2dq Vcvttps2dq
    Vcvttpd2dq
};

/// True for a floating-point instruction that depends on MXCSR.
fn is_floating(i: &Instruction) -> bool {
    VEX_FLOATING.contains(&i.mnemonic())
}

/// True for an instruction that sets RFLAGS, and writes no register.
fn sets_flags(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(i.mnemonic(), Vcomiss | Vcomisd | Vucomiss | Vucomisd | Vptest | Vtestps | Vtestpd)
}

/// True if the immediate of a compare has only bits that the manual defines. The predicates that are always true or
/// always false are left to handlers.
fn is_defined(i: &Instruction) -> bool {
    use Mnemonic::*;
    let compares = matches!(i.mnemonic(), Vcmpss | Vcmpsd | Vcmpps | Vcmppd);
    !compares || i.immediate8() < 32 && !matches!(i.immediate8() & 15, 0xb | 0xf)
}

/// True if [`Emitter::avx`] can translate the instruction.
pub(super) fn can_be_avx(i: &Instruction, op: &Op, model: CpuModel) -> bool {
    let operand = |k: u32| match i.op_kind(k) {
        OpKind::Register => {
            let register = i.op_register(k);
            register.is_xmm() || register.is_ymm() || register.is_gpr()
        }
        OpKind::Memory => is_near_memory(i, op),
        OpKind::Immediate8 => true,
        _ => false,
    };
    let listed = VEX_LISTED.contains(&i.mnemonic()) || is_floating(i) && is_defined(i);
    listed && model.has(i) && (0..i.op_count()).all(operand) && host_has(i)
}

impl Emitter<'_> {
    /// Emits the check that the guest may use AVX, unless the block has made it.
    pub(super) fn check_avx(&mut self, n: usize) {
        if !self.registers.vectors.avx {
            self.asm.call_to(self.places.routines.avx);
            self.site(n);
            self.in_host = InHost::Nothing;
            self.registers.vectors.avx = true;
        }
    }
    /// Emits the load of a source operand, an XMM or YMM register.
    pub(super) fn hold_vector(&mut self, register: Register) {
        let vector = register.number() as u8;
        if register.is_ymm() {
            self.registers.vectors.hold_whole(self.asm, vector);
        } else {
            self.registers.vectors.hold(self.asm, vector, true);
        }
    }
    /// Emits an instruction of this module.
    pub(super) fn avx(&mut self, i: &Instruction, n: usize) {
        self.check_avx(n);
        if is_floating(i) {
            self.load_mxcsr(n);
        }
        if i.mnemonic() == Mnemonic::Vzeroupper {
            self.registers.vectors.zero_uppers(self.asm);
            return self.asm.call_to(self.places.routines.zero_uppers);
        }
        let memory = (0..i.op_count()).find(|&k| is_memory(i, k));
        if let Some(k) = memory {
            self.address(&self.ops[n]);
            let size = i.memory_size().size();
            if is_aligned(i.mnemonic()) {
                self.check_aligned(size, k == 0, n);
            } else {
                self.check(size, k == 0, n);
            }
        }
        let mut out = *i;
        let mut written = None;
        for k in (0..i.op_count()).filter(|&k| i.op_kind(k) == OpKind::Register) {
            let register = i.op_register(k);
            let vector = register.number() as u8;
            if register.is_gpr() {
                let host = self.registers.get(self.asm, gpr(register), k != 0);
                out.set_op_register(k, named(host, register.size()));
            } else if k == 0 && !sets_flags(i) {
                written = Some((vector, register.is_ymm()));
            } else {
                self.hold_vector(register);
            }
        }
        if memory.is_some() {
            on_r13(&mut out);
        }
        if !self.encode(&out) {
            return self.handler(n);
        }
        if let Some((_, true)) = written {
            self.registers.vectors.use_uppers(self.asm);
        }
        self.emit_encoded();
        if let Some((vector, _)) = written {
            self.registers.vectors.wrote_whole(vector);
        } else if sets_flags(i) {
            self.in_host = InHost::All;
            self.keep_host_flags(false);
            self.keep_kind(Operation::Host, 3);
        } else if i.op_kind(0) == OpKind::Register {
            self.registers.wrote(gpr(i.op0_register()));
        }
    }
}
