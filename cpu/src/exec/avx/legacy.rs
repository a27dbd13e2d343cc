//! VEX encodings of SSE, AES-NI and PCLMULQDQ instructions. For each half of its operands, such an instruction executes
//! the handler of the legacy encoding on scratch registers.

use std::sync::LazyLock;

use super::operand::{Ymm, handler, in_memory, other, rm, set, set_ymm, wide, ymm};
use crate::core::{Core, cr0, cr4};
use crate::exec::sse::{self, float};
use crate::exec::undefined::undefined;
use crate::op::operand::is_immediate;
use crate::op::{Handler, Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Code, EncodingKind, Instruction, Mnemonic, OpCodeOperandKind, OpKind, Register};

/// Position in `Op::imm` of the number of bits by which the immediate moves for the upper half.
const IMMEDIATE_SHIFT: u32 = 16;
/// Position in `Op::imm` of the number of bits of the source that the lower half of a widening instruction uses.
const PIECE: u32 = 24;
/// Position in `Op::imm` of the index of the legacy handler.
const INDEX: u32 = 32;
/// Scratch registers: numbers of the first and second operand of the legacy handler.
const FIRST: u8 = 1;
const SECOND: u8 = 2;

macro_rules! pairs {
    ($($vex:ident $legacy:ident)*) => { &[$((Mnemonic::$vex, Mnemonic::$legacy)),*] };
}

/// Mnemonics of VEX encodings, each with that of the legacy encoding.
const PAIRS: &[(Mnemonic, Mnemonic)] = pairs! {
    Vaddps Addps Vaddpd Addpd Vaddss Addss Vaddsd Addsd Vsubps Subps Vsubpd Subpd Vsubss Subss Vsubsd Subsd
    Vmulps Mulps Vmulpd Mulpd Vmulss Mulss Vmulsd Mulsd Vdivps Divps Vdivpd Divpd Vdivss Divss Vdivsd Divsd
    Vminps Minps Vminpd Minpd Vminss Minss Vminsd Minsd Vmaxps Maxps Vmaxpd Maxpd Vmaxss Maxss Vmaxsd Maxsd
    Vsqrtps Sqrtps Vsqrtpd Sqrtpd Vsqrtss Sqrtss Vsqrtsd Sqrtsd
    Vaddsubps Addsubps Vaddsubpd Addsubpd Vhaddps Haddps Vhaddpd Haddpd Vhsubps Hsubps Vhsubpd Hsubpd
    Vdpps Dpps Vdppd Dppd Vrcpps Rcpps Vrcpss Rcpss Vrsqrtps Rsqrtps Vrsqrtss Rsqrtss
    Vroundps Roundps Vroundpd Roundpd Vroundss Roundss Vroundsd Roundsd
    Vandps Andps Vandpd Andpd Vandnps Andnps Vandnpd Andnpd Vorps Orps Vorpd Orpd Vxorps Xorps Vxorpd Xorpd
    Vunpcklps Unpcklps Vunpcklpd Unpcklpd Vunpckhps Unpckhps Vunpckhpd Unpckhpd
    Vshufps Shufps Vshufpd Shufpd Vblendps Blendps Vblendpd Blendpd
    Vmovddup Movddup Vmovsldup Movsldup Vmovshdup Movshdup
    Vcvtdq2ps Cvtdq2ps Vcvtps2dq Cvtps2dq Vcvttps2dq Cvttps2dq Vcvtpd2dq Cvtpd2dq Vcvttpd2dq Cvttpd2dq
    Vcvtdq2pd Cvtdq2pd Vcvtps2pd Cvtps2pd Vcvtpd2ps Cvtpd2ps Vcvtss2sd Cvtss2sd Vcvtsd2ss Cvtsd2ss
    Vcvtss2si Cvtss2si Vcvtsd2si Cvtsd2si Vcvttss2si Cvttss2si Vcvttsd2si Cvttsd2si
    Vcomiss Comiss Vcomisd Comisd Vucomiss Ucomiss Vucomisd Ucomisd
    Vpaddb Paddb Vpaddw Paddw Vpaddd Paddd Vpaddq Paddq Vpsubb Psubb Vpsubw Psubw Vpsubd Psubd Vpsubq Psubq
    Vpaddsb Paddsb Vpaddsw Paddsw Vpaddusb Paddusb Vpaddusw Paddusw
    Vpsubsb Psubsb Vpsubsw Psubsw Vpsubusb Psubusb Vpsubusw Psubusw
    Vpmullw Pmullw Vpmulhw Pmulhw Vpmulhuw Pmulhuw Vpmuludq Pmuludq Vpmulhrsw Pmulhrsw Vpmaddwd Pmaddwd
    Vpmaddubsw Pmaddubsw Vpmulld Pmulld Vpmuldq Pmuldq Vpsadbw Psadbw Vpavgb Pavgb Vpavgw Pavgw
    Vpminub Pminub Vpminuw Pminuw Vpminud Pminud Vpminsb Pminsb Vpminsw Pminsw Vpminsd Pminsd
    Vpmaxub Pmaxub Vpmaxuw Pmaxuw Vpmaxud Pmaxud Vpmaxsb Pmaxsb Vpmaxsw Pmaxsw Vpmaxsd Pmaxsd
    Vpcmpeqb Pcmpeqb Vpcmpeqw Pcmpeqw Vpcmpeqd Pcmpeqd Vpcmpeqq Pcmpeqq
    Vpcmpgtb Pcmpgtb Vpcmpgtw Pcmpgtw Vpcmpgtd Pcmpgtd Vpcmpgtq Pcmpgtq
    Vpabsb Pabsb Vpabsw Pabsw Vpabsd Pabsd Vpsignb Psignb Vpsignw Psignw Vpsignd Psignd
    Vpand Pand Vpandn Pandn Vpor Por Vpxor Pxor
    Vpacksswb Packsswb Vpackssdw Packssdw Vpackuswb Packuswb Vpackusdw Packusdw
    Vphaddw Phaddw Vphaddd Phaddd Vphaddsw Phaddsw Vphsubw Phsubw Vphsubd Phsubd Vphsubsw Phsubsw
    Vpunpcklbw Punpcklbw Vpunpcklwd Punpcklwd Vpunpckldq Punpckldq Vpunpcklqdq Punpcklqdq
    Vpunpckhbw Punpckhbw Vpunpckhwd Punpckhwd Vpunpckhdq Punpckhdq Vpunpckhqdq Punpckhqdq
    Vpsllw Psllw Vpslld Pslld Vpsllq Psllq Vpsrlw Psrlw Vpsrld Psrld Vpsrlq Psrlq Vpsraw Psraw Vpsrad Psrad
    Vpslldq Pslldq Vpsrldq Psrldq
    Vpshufd Pshufd Vpshuflw Pshuflw Vpshufhw Pshufhw Vpshufb Pshufb Vpalignr Palignr
    Vphminposuw Phminposuw Vmpsadbw Mpsadbw Vpblendw Pblendw
    Vpmovsxbw Pmovsxbw Vpmovsxbd Pmovsxbd Vpmovsxbq Pmovsxbq Vpmovsxwd Pmovsxwd Vpmovsxwq Pmovsxwq
    Vpmovsxdq Pmovsxdq Vpmovzxbw Pmovzxbw Vpmovzxbd Pmovzxbd Vpmovzxbq Pmovzxbq Vpmovzxwd Pmovzxwd
    Vpmovzxwq Pmovzxwq Vpmovzxdq Pmovzxdq
    Vpcmpistri Pcmpistri Vpcmpistrm Pcmpistrm Vpcmpestri Pcmpestri Vpcmpestrm Pcmpestrm
    Vpcmpestri64 Pcmpestri64 Vpcmpestrm64 Pcmpestrm64
    Vaesenc Aesenc Vaesenclast Aesenclast Vaesdec Aesdec Vaesdeclast Aesdeclast Vaesimc Aesimc
    Vaeskeygenassist Aeskeygenassist Vpclmulqdq Pclmulqdq
};

/// Operands of a legacy encoding, besides a source of 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An XMM register, which may also be the first source.
    Vector,
    /// An XMM register, which is the first source, and an immediate as the second.
    Shift,
    /// A general register of 32 or 64 bits.
    General(usize),
}

/// Legacy encoding on registers, with its handler.
struct Legacy {
    mnemonic: Mnemonic,
    form: Form,
    run: Handler,
}

/// The legacy encodings of [`PAIRS`].
static LEGACY: LazyLock<Vec<Legacy>> = LazyLock::new(|| {
    let wanted = |code: &Code| PAIRS.iter().any(|(_, legacy)| *legacy == code.mnemonic());
    Code::values().filter(wanted).filter_map(legacy).collect()
});

/// Returns the handler of an encoding's form on registers. Returns `None` if it is not a legacy encoding on XMM
/// registers.
fn legacy(code: Code) -> Option<Legacy> {
    use OpCodeOperandKind as Kind;
    let info = code.op_code();
    if info.encoding() != EncodingKind::Legacy || !info.mode64() {
        return None;
    }
    let mut i = Instruction::default();
    i.set_code(code);
    let mut form = Form::Vector;
    for (n, &kind) in info.op_kinds().iter().enumerate() {
        let register = match kind {
            Kind::xmm_reg => Register::XMM1,
            Kind::xmm_or_mem => Register::XMM2,
            // The destination of a shift by an immediate.
            Kind::xmm_rm => {
                form = Form::Shift;
                Register::XMM1
            }
            Kind::r32_reg => {
                form = Form::General(4);
                Register::EAX
            }
            Kind::r64_reg => {
                form = Form::General(8);
                Register::RAX
            }
            Kind::imm8 => {
                i.set_op_kind(n as u32, OpKind::Immediate8);
                continue;
            }
            _ => return None,
        };
        i.set_op_kind(n as u32, OpKind::Register);
        i.set_op_register(n as u32, register);
    }
    let mut op = undefined();
    sse::lower(&i, &mut op)?;
    Some(Legacy { mnemonic: code.mnemonic(), form, run: op.run })
}

/// Chooses the handler of a VEX encoding. Returns `None` if it has no legacy encoding in [`PAIRS`].
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    let mnemonic = i.mnemonic();
    let legacy = PAIRS.iter().find(|(vex, _)| *vex == mnemonic)?.1;
    let shift = is_immediate(i, 2) && is_shift(legacy);
    let form = match i.op_register(0) {
        r if r.is_gpr() => Form::General(r.size()),
        _ if shift => Form::Shift,
        _ => Form::Vector,
    };
    let index = LEGACY.iter().position(|known| known.mnemonic == legacy && known.form == form)?;
    let immediate = match legacy {
        Shufpd | Blendpd => 2,
        Mpsadbw => 3,
        Blendps => 4,
        _ => 0,
    };
    let piece = match legacy {
        Cvtdq2pd | Cvtps2pd | Pmovsxbw | Pmovzxbw | Pmovsxwd | Pmovzxwd | Pmovsxdq | Pmovzxdq => 64,
        Pmovsxbd | Pmovzxbd | Pmovsxwq | Pmovzxwq => 32,
        Pmovsxbq | Pmovzxbq => 16,
        _ => 0,
    };
    op.imm |= immediate << IMMEDIATE_SHIFT | piece << PIECE | (index as u64) << INDEX;
    match legacy {
        Pcmpistri | Pcmpistrm | Pcmpestri | Pcmpestrm | Pcmpestri64 | Pcmpestrm64 => {
            let mask = matches!(legacy, Pcmpistrm | Pcmpestrm | Pcmpestrm64);
            // The number of a register that an instruction writes besides its explicit operands: XMM0, or none.
            op.imm |= if mask { 1 << PIECE } else { 0 };
            handler!(op, |core, o| strings(core, o))
        }
        Comiss | Comisd | Ucomiss | Ucomisd => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let a = ymm(core, o.dst);
            call(core, o, FIRST, o.imm, a[0], b[0]).map(drop)
        }),
        _ if i.op_register(0).is_gpr() => handler!(op, |core, o| {
            let b = rm(core, o)?;
            call(core, o, o.dst, o.imm, 0, b[0]).map(drop)
        }),
        Cvtpd2ps | Cvtpd2dq | Cvttpd2dq if wide(op) => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let r = both(core, |core, n| call(core, o, FIRST, o.imm, 0, b[n]))?;
            set_ymm(core, o.dst, [r[0] | r[1] << 64, 0]);
            Ok(())
        }),
        _ if piece != 0 => handler!(op, |core, o| {
            let b = rm(core, o)?[0];
            let piece = o.imm >> PIECE & 0xff;
            apply(core, o, [0; 2], [b, b >> piece])
        }),
        _ if shift => handler!(op, |core, o| {
            let a = rm(core, o)?;
            apply(core, o, a, [0; 2])
        }),
        _ if is_shift(legacy) => handler!(op, |core, o| {
            // Both halves have the count in the low half of the source.
            let b = rm(core, o)?[0];
            let a = other(core, o);
            apply(core, o, a, [b; 2])
        }),
        _ => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let a = other(core, o);
            apply(core, o, a, b)
        }),
    }
}

/// True for shifts of all elements by one count.
fn is_shift(legacy: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(legacy, Psllw | Pslld | Psllq | Psrlw | Psrld | Psrlq | Psraw | Psrad | Pslldq | Psrldq)
}

/// Applies the legacy handler to each half, and writes the destination.
fn apply(core: &mut Core, op: &Op, a: Ymm, b: Ymm) -> Flow {
    let shift = op.imm >> IMMEDIATE_SHIFT & 0xff;
    let r = compute(core, op, |core, n| {
        let immediate = (op.imm & 0xff) >> (shift * n as u64);
        call(core, op, FIRST, immediate, a[n], b[n])
    })?;
    set(core, op, r);
    Ok(())
}

/// Computes a result of 128 or 256 bits. The function `f` gets the number of the half.
pub(super) fn compute(
    core: &mut Core,
    op: &Op,
    f: impl Fn(&mut Core, usize) -> Result<u128, Stop>,
) -> Result<Ymm, Stop> {
    if wide(op) { both(core, f) } else { Ok([f(core, 0)?, 0]) }
}

/// Computes both halves of a result. The function `f` gets the number of the half. Sets the exception flags of both
/// halves together.
fn both(core: &mut Core, f: impl Fn(&mut Core, usize) -> Result<u128, Stop>) -> Result<Ymm, Stop> {
    let before = core.fpu.mxcsr;
    if float::all_masked(before) {
        return Ok([f(core, 0)?, f(core, 1)?]);
    }
    let mut raised = 0;
    let mut half = |n| {
        core.fpu.mxcsr = before & !float::FLAGS;
        let r = f(core, n);
        raised |= core.fpu.mxcsr & float::FLAGS;
        r
    };
    let (low, high) = (half(0), half(1));
    core.fpu.mxcsr = before;
    float::settle(core, raised)?;
    Ok([low?, high?])
}

/// Executes the legacy handler on `a` and `b`, and returns its first operand afterwards. `dst` is the number of the
/// destination that the handler sees. SSE's own conditions in CR0 and CR4 do not apply.
fn call(core: &mut Core, op: &Op, dst: u8, imm: u64, a: u128, b: u128) -> Result<u128, Stop> {
    let (first, second) = (usize::from(FIRST), usize::from(SECOND));
    let saved = (core.fpu.xmm[first], core.fpu.xmm[second], core.cr0, core.cr4);
    (core.fpu.xmm[first], core.fpu.xmm[second]) = (a, b);
    core.cr0 &= !cr0::EM;
    core.cr4 |= cr4::OSFXSR;
    let scratch = Op { imm: imm & 0xff, dst, src: SECOND, ..*op };
    let run = LEGACY[(op.imm >> INDEX) as usize].run;
    let done = run(core, &scratch);
    let r = core.fpu.xmm[first];
    (core.fpu.xmm[first], core.fpu.xmm[second], core.cr0, core.cr4) = saved;
    done.map(|()| r)
}

/// VPCMPISTRI and its relatives, which write RCX or XMM0.
fn strings(core: &mut Core, op: &Op) -> Flow {
    let b = rm(core, op)?;
    let a = ymm(core, op.dst);
    debug_assert!(!in_memory(op) || b[1] == 0);
    call(core, op, FIRST, op.imm, a[0], b[0])?;
    if op.imm >> PIECE & 0xff != 0 {
        core.ymm[0] = 0;
    }
    Ok(())
}
