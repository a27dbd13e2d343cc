//! One-operand arithmetic (INC, DEC, NEG, NOT, BSWAP), sign extensions of the accumulator, and flag instructions.

use super::alu::{add_flags, sub_flags};
use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::op::operand::{gpr, is_memory, width};
use crate::op::{Address, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

trait Unary {
    fn apply<W: Width>(a: u64, flags: &Flags) -> (u64, Flags);
}
struct Inc;
struct Dec;
struct Neg;
struct Not;

impl Unary for Inc {
    #[inline(always)]
    fn apply<W: Width>(a: u64, f: &Flags) -> (u64, Flags) {
        let r = a.wrapping_add(1);
        (r, add_flags::<W>(a, 1, r).with_cf(f.cf()))
    }
}
impl Unary for Dec {
    #[inline(always)]
    fn apply<W: Width>(a: u64, f: &Flags) -> (u64, Flags) {
        let r = a.wrapping_sub(1);
        (r, sub_flags::<W>(a, 1, r).with_cf(f.cf()))
    }
}
impl Unary for Neg {
    #[inline(always)]
    fn apply<W: Width>(a: u64, _: &Flags) -> (u64, Flags) {
        let r = a.wrapping_neg();
        (r, sub_flags::<W>(0, a, r))
    }
}
impl Unary for Not {
    #[inline(always)]
    fn apply<W: Width>(a: u64, f: &Flags) -> (u64, Flags) {
        (!a, *f)
    }
}

fn on_register<W: Width, K: Unary>(core: &mut Core, op: &Op) -> Flow {
    let (r, flags) = K::apply::<W>(W::read(core, op.dst), &core.flags);
    W::write(core, op.dst, r);
    core.flags = flags;
    Ok(())
}
fn on_memory<W: Width, A: Address, K: Unary>(core: &mut Core, op: &Op) -> Flow {
    let flags = core.flags;
    core.flags = core.mem.update::<W, Flags>(A::of(core, op), |a| {
        let (r, f) = K::apply::<W>(a.to_u64(), &flags);
        (W::from_u64(r), f)
    })?;
    Ok(())
}
fn forms<K: Unary>(i: &Instruction, op: &mut Op) -> Handler {
    if is_memory(i, 0) {
        return by_memory!(op, width(i, 0), on_memory, K);
    }
    op.dst = gpr(i.op0_register());
    by_width!(width(i, 0), on_register, K)
}

fn bswap32(core: &mut Core, op: &Op) -> Flow {
    let v = (u32::read(core, op.dst) as u32).swap_bytes();
    u32::write(core, op.dst, u64::from(v));
    Ok(())
}
fn bswap64(core: &mut Core, op: &Op) -> Flow {
    let v = u64::read(core, op.dst).swap_bytes();
    u64::write(core, op.dst, v);
    Ok(())
}
/// BSWAP with a 16-bit operand. The manual leaves the result undefined; hardware writes zero.
fn bswap16(core: &mut Core, op: &Op) -> Flow {
    u16::write(core, op.dst, 0);
    Ok(())
}

fn cbw(core: &mut Core, _: &Op) -> Flow {
    let v = u8::sext(core.regs[0]);
    u16::write(core, 0, v);
    Ok(())
}
fn cwde(core: &mut Core, _: &Op) -> Flow {
    let v = u16::sext(core.regs[0]);
    u32::write(core, 0, v);
    Ok(())
}
fn cdqe(core: &mut Core, _: &Op) -> Flow {
    core.regs[0] = u32::sext(core.regs[0]);
    Ok(())
}
/// CWD, CDQ, CQO.
fn sign_to_rdx<W: Width>(core: &mut Core, _: &Op) -> Flow {
    let sign = (W::sext(core.regs[0]) as i64) >> 63;
    W::write(core, 2, sign as u64);
    Ok(())
}

fn lahf(core: &mut Core, _: &Op) -> Flow {
    let v = core.rflags() & 0xff;
    u8::write(core, 0x10, v);
    Ok(())
}
fn sahf(core: &mut Core, _: &Op) -> Flow {
    let low = bits::CF | bits::PF | bits::AF | bits::ZF | bits::SF;
    let v = u8::read(core, 0x10) & low | core.flags.to_bits() & bits::OF;
    core.flags = Flags::from_bits(v);
    Ok(())
}
fn clc(core: &mut Core, _: &Op) -> Flow {
    core.flags = core.flags.with_cf(false);
    Ok(())
}
fn stc(core: &mut Core, _: &Op) -> Flow {
    core.flags = core.flags.with_cf(true);
    Ok(())
}
fn cmc(core: &mut Core, _: &Op) -> Flow {
    core.flags = core.flags.with_cf(!core.flags.cf());
    Ok(())
}
fn cld(core: &mut Core, _: &Op) -> Flow {
    core.rflags &= !bits::DF;
    Ok(())
}
fn std(core: &mut Core, _: &Op) -> Flow {
    core.rflags |= bits::DF;
    Ok(())
}
fn nop(_: &mut Core, _: &Op) -> Flow {
    Ok(())
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Inc => forms::<Inc>(i, op),
        Mnemonic::Dec => forms::<Dec>(i, op),
        Mnemonic::Neg => forms::<Neg>(i, op),
        Mnemonic::Not => forms::<Not>(i, op),
        Mnemonic::Bswap => {
            op.dst = gpr(i.op0_register());
            match width(i, 0) {
                2 => bswap16,
                4 => bswap32,
                _ => bswap64,
            }
        }
        Mnemonic::Cbw => cbw,
        Mnemonic::Cwde => cwde,
        Mnemonic::Cdqe => cdqe,
        Mnemonic::Cwd => sign_to_rdx::<u16>,
        Mnemonic::Cdq => sign_to_rdx::<u32>,
        Mnemonic::Cqo => sign_to_rdx::<u64>,
        Mnemonic::Lahf => lahf,
        Mnemonic::Sahf => sahf,
        Mnemonic::Clc => clc,
        Mnemonic::Stc => stc,
        Mnemonic::Cmc => cmc,
        Mnemonic::Cld => cld,
        Mnemonic::Std => std,
        Mnemonic::Nop | Mnemonic::Reservednop | Mnemonic::Pause | Mnemonic::Endbr64 | Mnemonic::Endbr32 => {
            nop
        }
        _ => return None,
    };
    Some(Kind::Straight)
}
