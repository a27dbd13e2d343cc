//! Packed integer instructions in MMX and XMM forms, as calls of functions in [`super::lanes`] and [`super::shuffle`].

use super::operand::{
    enter_mmx, handler, mm, mm_op, mmx_usable, set_mm, set_xmm, to_gpr, usable, xmm, xmm_op,
};
use super::{lanes, shuffle};
use crate::core::Core;
use crate::op::operand::is_immediate;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of a packed integer instruction. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let mmx = i.op_register(0).is_mm() || i.op_register(1).is_mm();
    /// Element-wise operation. The MMX form uses the low half of the XMM operation.
    macro_rules! both {
        ($f:path) => {
            if mmx {
                mm_op!(i, op, u64, |c, o, a, b| $f(a, b))
            } else {
                xmm_op!(i, op, u128, |c, o, a, b| $f(a, b))
            }
        };
    }
    /// Operation that computes the lower half of its result from the first operand, and the upper half from the second,
    /// e.g. PHADDW. The MMX form passes both operands as the halves of `$f`'s first argument. Its result is the low
    /// half of `$f`'s result.
    macro_rules! joined {
        ($f:path) => {
            if mmx {
                mm_op!(i, op, u64, |c, o, a, b| $f(a | b << 64, 0))
            } else {
                xmm_op!(i, op, u128, |c, o, a, b| $f(a, b))
            }
        };
    }
    macro_rules! unpack_low {
        ($f:path) => {
            if mmx {
                mm_op!(i, op, u32, |c, o, a, b| $f(a, b))
            } else {
                xmm_op!(i, op, u128, |c, o, a, b| $f(a, b))
            }
        };
    }
    macro_rules! unpack_high {
        ($high:path, $low:path) => {
            if mmx {
                mm_op!(i, op, u64, |c, o, a, b| $low(a >> 32, b >> 32))
            } else {
                xmm_op!(i, op, u128, |c, o, a, b| $high(a, b))
            }
        };
    }
    /// Shift of all elements. The count is an immediate or the low 64 bits of the source.
    macro_rules! shift {
        ($f:path) => {
            match (is_immediate(i, 1), mmx) {
                (true, true) => handler!(op, |core, o| {
                    mmx_usable(core)?;
                    let r = $f(u128::from(mm(core, o.dst)), u128::from(o.imm)) as u64;
                    set_mm(core, o.dst, r);
                    Ok(())
                }),
                (true, false) => handler!(op, |core, o| {
                    usable(core)?;
                    let r = $f(xmm(core, o.dst), u128::from(o.imm));
                    set_xmm(core, o.dst, r);
                    Ok(())
                }),
                (false, _) => both!($f),
            }
        };
    }
    macro_rules! xmm_only {
        ($f:path) => {
            xmm_op!(i, op, u128, |c, o, a, b| $f(a, b))
        };
    }
    use Mnemonic::*;
    match i.mnemonic() {
        Paddb => both!(lanes::add8),
        Paddw => both!(lanes::add16),
        Paddd => both!(lanes::add32),
        Paddq => both!(lanes::add64),
        Psubb => both!(lanes::sub8),
        Psubw => both!(lanes::sub16),
        Psubd => both!(lanes::sub32),
        Psubq => both!(lanes::sub64),
        Paddsb => both!(lanes::adds8),
        Paddsw => both!(lanes::adds16),
        Paddusb => both!(lanes::addus8),
        Paddusw => both!(lanes::addus16),
        Psubsb => both!(lanes::subs8),
        Psubsw => both!(lanes::subs16),
        Psubusb => both!(lanes::subus8),
        Psubusw => both!(lanes::subus16),
        Pmullw => both!(lanes::mullo16),
        Pmulhw => both!(lanes::mulhi16),
        Pmulhuw => both!(lanes::mulhiu16),
        Pmuludq => both!(lanes::mulu32),
        Pmulhrsw => both!(lanes::mulhrs16),
        Pmaddwd => both!(lanes::madd16),
        Pmaddubsw => both!(lanes::maddubs16),
        Psadbw => both!(lanes::sad8),
        Pavgb => both!(lanes::avg8),
        Pavgw => both!(lanes::avg16),
        Pminub => both!(lanes::minu8),
        Pmaxub => both!(lanes::maxu8),
        Pminsw => both!(lanes::min16),
        Pmaxsw => both!(lanes::max16),
        Pcmpeqb => both!(lanes::eq8),
        Pcmpeqw => both!(lanes::eq16),
        Pcmpeqd => both!(lanes::eq32),
        Pcmpgtb => both!(lanes::gt8),
        Pcmpgtw => both!(lanes::gt16),
        Pcmpgtd => both!(lanes::gt32),
        Pabsb => both!(lanes::abs8),
        Pabsw => both!(lanes::abs16),
        Pabsd => both!(lanes::abs32),
        Psignb => both!(lanes::sign8),
        Psignw => both!(lanes::sign16),
        Psignd => both!(lanes::sign32),
        Pand => both!(core::ops::BitAnd::bitand),
        Por => both!(core::ops::BitOr::bitor),
        Pxor => both!(core::ops::BitXor::bitxor),
        Pandn => both!(and_not),
        Andps | Andpd => xmm_only!(core::ops::BitAnd::bitand),
        Orps | Orpd => xmm_only!(core::ops::BitOr::bitor),
        Xorps | Xorpd => xmm_only!(core::ops::BitXor::bitxor),
        Andnps | Andnpd => xmm_only!(and_not),

        Packsswb => joined!(lanes::packs16),
        Packssdw => joined!(lanes::packs32),
        Packuswb => joined!(lanes::packus16),
        Packusdw => xmm_only!(lanes::packus32),
        Phaddw => joined!(lanes::hadd16),
        Phaddd => joined!(lanes::hadd32),
        Phaddsw => joined!(lanes::hadds16),
        Phsubw => joined!(lanes::hsub16),
        Phsubd => joined!(lanes::hsub32),
        Phsubsw => joined!(lanes::hsubs16),

        Punpcklbw => unpack_low!(lanes::unpacklo8),
        Punpcklwd => unpack_low!(lanes::unpacklo16),
        Punpckldq => unpack_low!(lanes::unpacklo32),
        Punpcklqdq | Unpcklpd => xmm_only!(lanes::unpacklo64),
        Unpcklps => xmm_only!(lanes::unpacklo32),
        Punpckhbw => unpack_high!(lanes::unpackhi8, lanes::unpacklo8),
        Punpckhwd => unpack_high!(lanes::unpackhi16, lanes::unpacklo16),
        Punpckhdq => unpack_high!(lanes::unpackhi32, lanes::unpacklo32),
        Punpckhqdq | Unpckhpd => xmm_only!(lanes::unpackhi64),
        Unpckhps => xmm_only!(lanes::unpackhi32),

        Psllw => shift!(lanes::shl16),
        Pslld => shift!(lanes::shl32),
        Psllq => shift!(lanes::shl64),
        Psrlw => shift!(lanes::shr16),
        Psrld => shift!(lanes::shr32),
        Psrlq => shift!(lanes::shr64),
        Psraw => shift!(lanes::sar16),
        Psrad => shift!(lanes::sar32),
        Pslldq => handler!(op, |core, o| {
            usable(core)?;
            let r = lanes::shl_bytes(xmm(core, o.dst), o.imm);
            set_xmm(core, o.dst, r);
            Ok(())
        }),
        Psrldq => handler!(op, |core, o| {
            usable(core)?;
            let r = lanes::shr_bytes(xmm(core, o.dst), o.imm);
            set_xmm(core, o.dst, r);
            Ok(())
        }),

        Pshufd => xmm_op!(i, op, u128, |c, o, a, b| shuffle::dwords(b, o.imm)),
        Pshuflw => {
            xmm_op!(i, op, u128, |c, o, a, b| { b >> 64 << 64 | u128::from(shuffle::words(b as u64, o.imm)) })
        }
        Pshufhw => xmm_op!(i, op, u128, |c, o, a, b| {
            b & u128::from(u64::MAX) | u128::from(shuffle::words((b >> 64) as u64, o.imm)) << 64
        }),
        Pshufw => mm_op!(i, op, u64, |c, o, a, b| u128::from(shuffle::words(b as u64, o.imm))),
        Shufps => xmm_op!(i, op, u128, |c, o, a, b| shuffle::shufps(a, b, o.imm)),
        Shufpd => xmm_op!(i, op, u128, |c, o, a, b| shuffle::shufpd(a, b, o.imm)),
        Pshufb if mmx => mm_op!(i, op, u64, |c, o, a, b| shuffle::bytes(a, b & 0x8787_8787_8787_8787)),
        Pshufb => xmm_only!(shuffle::bytes),
        Palignr if mmx => mm_op!(i, op, u64, |c, o, a, b| shuffle::align(0, a << 64 | b, o.imm)),
        Palignr => xmm_op!(i, op, u128, |c, o, a, b| shuffle::align(a, b, o.imm)),

        Pmovmskb if mmx => to_gpr!(op, mm, |o, b| lanes::mask8(u128::from(b))),
        Pmovmskb => to_gpr!(op, xmm, |o, b| lanes::mask8(b)),
        Movmskps => to_gpr!(op, xmm, |o, b| (0..4).fold(0, |r, n| r | (b >> (32 * n + 31) & 1) << n) as u64),
        Movmskpd => to_gpr!(op, xmm, |o, b| (b >> 63 & 1 | b >> 126 & 2) as u64),

        Pmulld => xmm_only!(lanes::mullo32),
        Pmuldq => xmm_only!(lanes::mul32),
        Pminsb => xmm_only!(lanes::min8),
        Pmaxsb => xmm_only!(lanes::max8),
        Pminuw => xmm_only!(lanes::minu16),
        Pmaxuw => xmm_only!(lanes::maxu16),
        Pminsd => xmm_only!(lanes::min32),
        Pmaxsd => xmm_only!(lanes::max32),
        Pminud => xmm_only!(lanes::minu32),
        Pmaxud => xmm_only!(lanes::maxu32),
        Pcmpeqq => xmm_only!(lanes::eq64),
        Pcmpgtq => xmm_only!(lanes::gt64),
        Phminposuw => xmm_op!(i, op, u128, |c, o, a, b| lanes::minpos16(b)),
        Mpsadbw => xmm_op!(i, op, u128, |c, o, a, b| lanes::mpsad8(a, b, o.imm)),

        Pblendvb => xmm_op!(i, op, u128, |c, o, a, b| shuffle::blend_bytes(a, b, xmm(c, 0))),
        Blendvps => xmm_op!(i, op, u128, |c, o, a, b| shuffle::blend_dwords(a, b, xmm(c, 0))),
        Blendvpd => xmm_op!(i, op, u128, |c, o, a, b| shuffle::blend_qwords(a, b, xmm(c, 0))),
        Pblendw => xmm_op!(i, op, u128, |c, o, a, b| shuffle::blend_imm::<16>(a, b, o.imm)),
        Blendps => xmm_op!(i, op, u128, |c, o, a, b| shuffle::blend_imm::<32>(a, b, o.imm)),
        Blendpd => xmm_op!(i, op, u128, |c, o, a, b| shuffle::blend_imm::<64>(a, b, o.imm)),

        Pmovsxbw => xmm_op!(i, op, u64, |c, o, a, b| shuffle::extend::<8, 16>(b, true)),
        Pmovsxbd => xmm_op!(i, op, u32, |c, o, a, b| shuffle::extend::<8, 32>(b, true)),
        Pmovsxbq => xmm_op!(i, op, u16, |c, o, a, b| shuffle::extend::<8, 64>(b, true)),
        Pmovsxwd => xmm_op!(i, op, u64, |c, o, a, b| shuffle::extend::<16, 32>(b, true)),
        Pmovsxwq => xmm_op!(i, op, u32, |c, o, a, b| shuffle::extend::<16, 64>(b, true)),
        Pmovsxdq => xmm_op!(i, op, u64, |c, o, a, b| shuffle::extend::<32, 64>(b, true)),
        Pmovzxbw => xmm_op!(i, op, u64, |c, o, a, b| shuffle::extend::<8, 16>(b, false)),
        Pmovzxbd => xmm_op!(i, op, u32, |c, o, a, b| shuffle::extend::<8, 32>(b, false)),
        Pmovzxbq => xmm_op!(i, op, u16, |c, o, a, b| shuffle::extend::<8, 64>(b, false)),
        Pmovzxwd => xmm_op!(i, op, u64, |c, o, a, b| shuffle::extend::<16, 32>(b, false)),
        Pmovzxwq => xmm_op!(i, op, u32, |c, o, a, b| shuffle::extend::<16, 64>(b, false)),
        Pmovzxdq => xmm_op!(i, op, u64, |c, o, a, b| shuffle::extend::<32, 64>(b, false)),
        _ => None,
    }
}

/// PANDN, ANDNPS and ANDNPD, which invert the first operand.
#[inline(always)]
fn and_not(a: u128, b: u128) -> u128 {
    !a & b
}
