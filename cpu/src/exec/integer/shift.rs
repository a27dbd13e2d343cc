//! Shifts and rotates: SHL, SHR, SAR, ROL, ROR, RCL, RCR, SHLD, SHRD.
//!
//! Counts are masked to 5 bits, or to 6 for 64-bit operands. A masked count of zero changes no flags. The manual
//! defines OF only for counts of one. For other counts OF has the value of hardware where processors agree.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::Flags;
use crate::op::operand::{gpr, is_immediate, is_memory, width};
use crate::op::{Address, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

trait Shift {
    /// Returns the result and the flags. The bits of the result above the width `W` are undefined. `count` is masked
    /// and not zero; `a` is zero-extended.
    fn apply<W: Width>(a: u64, count: u32, f: &Flags) -> (u64, Flags);
}
struct Shl;
struct Shr;
struct Sar;
struct Rol;
struct Ror;
struct Rcl;
struct Rcr;

#[inline(always)]
fn top<W: Width>(v: u64) -> bool {
    v >> (W::BITS - 1) & 1 != 0
}

impl Shift for Shl {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, _: &Flags) -> (u64, Flags) {
        let r = a << count;
        let cf = if W::BITS == 64 { a >> (64 - count) & 1 != 0 } else { r >> W::BITS & 1 != 0 };
        let r = r & W::MASK;
        (r, Flags::result(W::sext(r), cf, cf ^ top::<W>(r)))
    }
}
impl Shift for Shr {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, _: &Flags) -> (u64, Flags) {
        let cf = a >> (count - 1) & 1 != 0;
        let r = a >> count;
        // For a count of one, OF is the operand's top bit. For greater counts, hardware behaves as if it shifted by one
        // bit `count` times: OF is the top bit before the last of these steps. This bit is 0, because an earlier step has
        // shifted in a zero.
        let of = top::<W>(a) && count == 1;
        (r, Flags::result(W::sext(r), cf, of))
    }
}
impl Shift for Sar {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, _: &Flags) -> (u64, Flags) {
        let v = W::sext(a) as i64;
        let cf = v >> (count - 1) & 1 != 0;
        let r = (v >> count) as u64;
        (r, Flags::result(W::sext(r), cf, false))
    }
}
impl Shift for Rol {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, f: &Flags) -> (u64, Flags) {
        let n = count % W::BITS;
        let r = if n == 0 { a } else { (a << n | a >> (W::BITS - n)) & W::MASK };
        let cf = r & 1 != 0;
        (r, f.with_cf_of(cf, cf ^ top::<W>(r)))
    }
}
impl Shift for Ror {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, f: &Flags) -> (u64, Flags) {
        let n = count % W::BITS;
        let r = if n == 0 { a } else { (a >> n | a << (W::BITS - n)) & W::MASK };
        let cf = top::<W>(r);
        (r, f.with_cf_of(cf, cf ^ (r >> (W::BITS - 2) & 1 != 0)))
    }
}
impl Shift for Rcl {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, f: &Flags) -> (u64, Flags) {
        let n = count % (W::BITS + 1);
        let wide = u128::from(a) | u128::from(f.cf()) << W::BITS;
        let bits = W::BITS + 1;
        let r = if n == 0 { wide } else { wide << n | wide >> (bits - n) };
        let cf = r >> W::BITS & 1 != 0;
        let r = r as u64 & W::MASK;
        (r, f.with_cf_of(cf, cf ^ top::<W>(r)))
    }
}
impl Shift for Rcr {
    #[inline(always)]
    fn apply<W: Width>(a: u64, count: u32, f: &Flags) -> (u64, Flags) {
        let n = count % (W::BITS + 1);
        let wide = u128::from(a) | u128::from(f.cf()) << W::BITS;
        let bits = W::BITS + 1;
        let r = if n == 0 { wide } else { wide >> n | wide << (bits - n) };
        let cf = r >> W::BITS & 1 != 0;
        let r = r as u64 & W::MASK;
        (r, f.with_cf_of(cf, top::<W>(r) ^ (r >> (W::BITS - 2) & 1 != 0)))
    }
}

/// Returns the flags of `a << count`. `a` must be zero-extended, `count` masked and not zero.
pub(crate) fn flags_of_shl<W: Width>(a: u64, count: u32) -> Flags {
    Shl::apply::<W>(a, count, &Flags::logic(0)).1
}
/// Returns the flags of the unsigned `a >> count`. The arguments are those of [`flags_of_shl`].
pub(crate) fn flags_of_shr<W: Width>(a: u64, count: u32) -> Flags {
    Shr::apply::<W>(a, count, &Flags::logic(0)).1
}
/// Returns the flags of the signed `a >> count`. The arguments are those of [`flags_of_shl`].
pub(crate) fn flags_of_sar<W: Width>(a: u64, count: u32) -> Flags {
    Sar::apply::<W>(a, count, &Flags::logic(0)).1
}

#[inline(always)]
fn masked<W: Width>(count: u64) -> u32 {
    count as u32 & if W::BITS == 64 { 63 } else { 31 }
}

fn reg_imm<W: Width, K: Shift>(core: &mut Core, op: &Op) -> Flow {
    let (r, f) = K::apply::<W>(W::read(core, op.dst), op.imm as u32, &core.flags);
    W::write(core, op.dst, r);
    core.flags = f;
    Ok(())
}
fn reg_cl<W: Width, K: Shift>(core: &mut Core, op: &Op) -> Flow {
    let count = masked::<W>(core.regs[1]);
    let a = W::read(core, op.dst);
    if count == 0 {
        // Even a shift by zero writes a 32-bit destination, which clears the upper half of the register.
        W::write(core, op.dst, a);
        return Ok(());
    }
    let (r, f) = K::apply::<W>(a, count, &core.flags);
    W::write(core, op.dst, r);
    core.flags = f;
    Ok(())
}
/// Register shift by an immediate whose masked count is zero. Writing a 32-bit destination clears the upper half of the
/// register.
fn reg_none<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.dst);
    W::write(core, op.dst, v);
    Ok(())
}
/// Shift of a memory operand. `imm` is the count; `u64::MAX` means that the count is in CL.
fn memory<W: Width, A: Address, K: Shift>(core: &mut Core, op: &Op) -> Flow {
    let count = masked::<W>(if op.imm == u64::MAX { core.regs[1] } else { op.imm });
    let flags = core.flags;
    core.flags = core.mem.update::<W, Flags>(A::of(core, op), |a| {
        if count == 0 {
            return (a, flags);
        }
        let (r, f) = K::apply::<W>(a.to_u64(), count, &flags);
        (W::from_u64(r), f)
    })?;
    Ok(())
}

fn forms<K: Shift>(i: &Instruction, op: &mut Op) -> Handler {
    let w = width(i, 0);
    let by_imm = is_immediate(i, 1);
    if is_memory(i, 0) {
        op.imm = if by_imm { i.immediate(1) & 0xff } else { u64::MAX };
        return by_memory!(op, w, memory, K);
    }
    op.dst = gpr(i.op0_register());
    if !by_imm {
        return by_width!(w, reg_cl, K);
    }
    op.imm = i.immediate(1) & if w == 8 { 63 } else { 31 };
    if op.imm == 0 { by_width!(w, reg_none) } else { by_width!(w, reg_imm, K) }
}

/// SHLD if `LEFT`, else SHRD. For 16-bit operands the manual leaves counts above 16 undefined. Hardware then shifts in
/// bits of the destination again.
#[inline(always)]
fn double<W: Width, const LEFT: bool>(a: u64, b: u64, count: u32, f: &Flags) -> (u64, Flags) {
    if count == 0 {
        return (a, *f);
    }
    let (r, cf) = if W::BITS == 16 {
        // 48 bits: the destination, the source, and the destination again.
        let wide = a << 32 | b << 16 | a;
        if LEFT {
            let r = (u128::from(wide) << count) >> 32;
            let cf = wide >> (48 - count) & 1 != 0;
            (r as u64 & W::MASK, cf)
        } else {
            (wide >> count & W::MASK, wide >> (count - 1) & 1 != 0)
        }
    } else if LEFT {
        ((a << count | b >> (W::BITS - count)) & W::MASK, a >> (W::BITS - count) & 1 != 0)
    } else {
        ((a >> count | b << (W::BITS - count)) & W::MASK, a >> (count - 1) & 1 != 0)
    };
    (r, Flags::result(W::sext(r), cf, top::<W>(a) != top::<W>(r)))
}
/// Returns the masked count of a double shift: `imm`, or CL if `imm` is `u64::MAX`.
#[inline(always)]
fn double_count<W: Width>(core: &Core, op: &Op) -> u32 {
    masked::<W>(if op.imm == u64::MAX { core.regs[1] } else { op.imm })
}
fn shld_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let n = double_count::<W>(core, op);
    let (r, f) = double::<W, true>(W::read(core, op.dst), W::read(core, op.src), n, &core.flags);
    W::write(core, op.dst, r);
    core.flags = f;
    Ok(())
}
fn shrd_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let n = double_count::<W>(core, op);
    let (r, f) = double::<W, false>(W::read(core, op.dst), W::read(core, op.src), n, &core.flags);
    W::write(core, op.dst, r);
    core.flags = f;
    Ok(())
}
#[inline(always)]
fn double_mem<W: Width, A: Address, const LEFT: bool>(core: &mut Core, op: &Op) -> Flow {
    let n = double_count::<W>(core, op);
    let b = W::read(core, op.src);
    let flags = core.flags;
    core.flags = core.mem.update::<W, Flags>(A::of(core, op), |a| {
        let (r, f) = double::<W, LEFT>(a.to_u64(), b, n, &flags);
        (W::from_u64(r), f)
    })?;
    Ok(())
}
fn shld_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    double_mem::<W, A, true>(core, op)
}
fn shrd_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    double_mem::<W, A, false>(core, op)
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Shl | Mnemonic::Sal => forms::<Shl>(i, op),
        Mnemonic::Shr => forms::<Shr>(i, op),
        Mnemonic::Sar => forms::<Sar>(i, op),
        Mnemonic::Rol => forms::<Rol>(i, op),
        Mnemonic::Ror => forms::<Ror>(i, op),
        Mnemonic::Rcl => forms::<Rcl>(i, op),
        Mnemonic::Rcr => forms::<Rcr>(i, op),
        Mnemonic::Shld | Mnemonic::Shrd => {
            let left = i.mnemonic() == Mnemonic::Shld;
            let w = width(i, 0);
            op.src = gpr(i.op1_register());
            op.imm = if is_immediate(i, 2) { i.immediate(2) & 0xff } else { u64::MAX };
            if is_memory(i, 0) {
                if left { by_memory!(op, w, shld_mem) } else { by_memory!(op, w, shrd_mem) }
            } else {
                op.dst = gpr(i.op0_register());
                if left { by_width!(w, shld_reg) } else { by_width!(w, shrd_reg) }
            }
        }
        _ => return None,
    };
    Some(Kind::Straight)
}
