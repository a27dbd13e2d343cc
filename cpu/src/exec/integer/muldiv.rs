//! Multiplication and division: MUL, IMUL, DIV, IDIV.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::Flags;
use crate::op::operand::{gpr, is_immediate, is_memory, width};
use crate::op::{Address, Handler, Kind, Op};
use crate::stop::{Flow, vector};
use iced_x86::{Instruction, Mnemonic};

/// One-operand form. A multiplication multiplies AL or rAX by a value, and writes the product to the accumulator pair
/// (AX, or rDX and rAX). A division divides the accumulator pair by a value.
trait Wide {
    fn apply<W: Width>(core: &mut Core, v: u64) -> Flow;
}
struct Mul;
struct Imul;
struct Div;
struct Idiv;

/// Writes the halves of a product, or quotient and remainder, to AL and AH or to rAX and rDX.
#[inline(always)]
fn write_pair<W: Width>(core: &mut Core, low: u64, high: u64) {
    if W::BITS == 8 {
        u16::write(core, 0, low & 0xff | high << 8 & 0xff00);
    } else {
        W::write(core, 0, low);
        W::write(core, 2, high);
    }
}
/// Reads the accumulator pair as one number.
#[inline(always)]
fn read_pair<W: Width>(core: &Core) -> u128 {
    if W::BITS == 8 {
        u128::from(core.regs[0] & 0xffff)
    } else {
        u128::from(W::read(core, 2)) << W::BITS | u128::from(W::read(core, 0))
    }
}

impl Wide for Mul {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, v: u64) -> Flow {
        let r = u128::from(W::read(core, 0)) * u128::from(v);
        let (low, high) = (r as u64 & W::MASK, (r >> W::BITS) as u64 & W::MASK);
        write_pair::<W>(core, low, high);
        let over = high != 0;
        core.flags = Flags::result(W::sext(low), over, over);
        Ok(())
    }
}
impl Wide for Imul {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, v: u64) -> Flow {
        let r = i128::from(W::sext(W::read(core, 0)) as i64) * i128::from(W::sext(v) as i64);
        let (low, high) = (r as u64 & W::MASK, (r >> W::BITS) as u64 & W::MASK);
        write_pair::<W>(core, low, high);
        let over = i128::from(W::sext(low) as i64) != r;
        core.flags = Flags::result(W::sext(low), over, over);
        Ok(())
    }
}
impl Wide for Div {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, v: u64) -> Flow {
        if W::BITS == 64 && core.regs[2] == 0 && v != 0 {
            // The common case needs no 128-bit division.
            let a = core.regs[0];
            core.regs[0] = a / v;
            core.regs[2] = a % v;
            return Ok(());
        }
        let a = read_pair::<W>(core);
        if v == 0 || a / u128::from(v) > u128::from(W::MASK) {
            return Err(core.raise(vector::DE));
        }
        let b = u128::from(v);
        write_pair::<W>(core, (a / b) as u64, (a % b) as u64);
        Ok(())
    }
}
impl Wide for Idiv {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, v: u64) -> Flow {
        let bits = 2 * W::BITS;
        let a = (read_pair::<W>(core) << (128 - bits)) as i128 >> (128 - bits);
        let b = i128::from(W::sext(v) as i64);
        // The division overflows only for i128::MIN / -1, which is out of range for every operand width.
        let quotient = if b == 0 { None } else { a.checked_div(b) };
        match quotient {
            Some(q) if i128::from(W::sext(q as u64) as i64) == q => {
                write_pair::<W>(core, q as u64, (a % b) as u64);
                Ok(())
            }
            _ => Err(core.raise(vector::DE)),
        }
    }
}

fn by_reg<W: Width, K: Wide>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.src);
    K::apply::<W>(core, v)
}
fn by_mem<W: Width, A: Address, K: Wide>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<W>(A::of(core, op))?.to_u64();
    K::apply::<W>(core, v)
}
fn forms<K: Wide>(i: &Instruction, op: &mut Op) -> Handler {
    let w = width(i, 0);
    if is_memory(i, 0) {
        return by_memory!(op, w, by_mem, K);
    }
    op.src = gpr(i.op0_register());
    by_width!(w, by_reg, K)
}

#[inline(always)]
fn product<W: Width>(core: &mut Core, dst: u8, a: u64, b: u64) {
    let r = i128::from(W::sext(a) as i64) * i128::from(W::sext(b) as i64);
    let low = r as u64 & W::MASK;
    W::write(core, dst, low);
    let over = i128::from(W::sext(low) as i64) != r;
    core.flags = Flags::result(W::sext(low), over, over);
}
fn two_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let (a, b) = (W::read(core, op.dst), W::read(core, op.src));
    product::<W>(core, op.dst, a, b);
    Ok(())
}
fn two_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let b = core.mem.load::<W>(A::of(core, op))?.to_u64();
    let a = W::read(core, op.dst);
    product::<W>(core, op.dst, a, b);
    Ok(())
}
fn three_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let a = W::read(core, op.src);
    product::<W>(core, op.dst, a, op.imm);
    Ok(())
}
fn three_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let a = core.mem.load::<W>(A::of(core, op))?.to_u64();
    product::<W>(core, op.dst, a, op.imm);
    Ok(())
}
fn lower_imul(i: &Instruction, op: &mut Op) -> Handler {
    if i.op_count() == 1 {
        return forms::<Imul>(i, op);
    }
    let w = width(i, 0);
    op.dst = gpr(i.op0_register());
    let from_memory = is_memory(i, 1);
    if !from_memory {
        op.src = gpr(i.op1_register());
    }
    if i.op_count() == 3 && is_immediate(i, 2) {
        op.imm = i.immediate(2);
        return if from_memory { by_memory!(op, w, three_mem) } else { by_width!(w, three_reg) };
    }
    if from_memory { by_memory!(op, w, two_mem) } else { by_width!(w, two_reg) }
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Mul => forms::<Mul>(i, op),
        Mnemonic::Imul => lower_imul(i, op),
        Mnemonic::Div => forms::<Div>(i, op),
        Mnemonic::Idiv => forms::<Idiv>(i, op),
        _ => return None,
    };
    Some(Kind::Straight)
}
