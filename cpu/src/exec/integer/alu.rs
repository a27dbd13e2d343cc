//! Two-operand arithmetic and logic: ADD, OR, ADC, SBB, AND, SUB, XOR, CMP, TEST.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::Flags;
use crate::op::operand::{gpr, is_immediate, is_memory, width};
use crate::op::{Address, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Arithmetic or logic operation on two values.
pub(crate) trait Alu {
    /// True if the operation writes its result to the destination.
    const STORES: bool = true;
    /// Returns the result and the flags. The bits of the result above the width `W` are undefined.
    fn apply<W: Width>(a: u64, b: u64, flags: &Flags) -> (u64, Flags);
}

pub(crate) struct Add;
pub(crate) struct Or;
pub(crate) struct Adc;
pub(crate) struct Sbb;
pub(crate) struct And;
pub(crate) struct Sub;
pub(crate) struct Xor;
pub(crate) struct Cmp;
pub(crate) struct Test;

/// Returns the flags of `r = a + b + carry`.
#[inline(always)]
pub(crate) fn add_flags<W: Width>(a: u64, b: u64, r: u64) -> Flags {
    Flags { res: W::sext(r), carry: ((a & b) | ((a | b) & !r)) << (64 - W::BITS), aux: (a ^ b ^ r) & 0x10 }
}
/// Returns the flags of `r = a - b - borrow`.
#[inline(always)]
pub(crate) fn sub_flags<W: Width>(a: u64, b: u64, r: u64) -> Flags {
    Flags { res: W::sext(r), carry: ((!a & b) | ((!a | b) & r)) << (64 - W::BITS), aux: (a ^ b ^ r) & 0x10 }
}

impl Alu for Add {
    #[inline(always)]
    fn apply<W: Width>(a: u64, b: u64, _: &Flags) -> (u64, Flags) {
        let r = a.wrapping_add(b);
        (r, add_flags::<W>(a, b, r))
    }
}
impl Alu for Adc {
    #[inline(always)]
    fn apply<W: Width>(a: u64, b: u64, f: &Flags) -> (u64, Flags) {
        let r = a.wrapping_add(b).wrapping_add(f.cf() as u64);
        (r, add_flags::<W>(a, b, r))
    }
}
impl Alu for Sub {
    #[inline(always)]
    fn apply<W: Width>(a: u64, b: u64, _: &Flags) -> (u64, Flags) {
        let r = a.wrapping_sub(b);
        (r, sub_flags::<W>(a, b, r))
    }
}
impl Alu for Sbb {
    #[inline(always)]
    fn apply<W: Width>(a: u64, b: u64, f: &Flags) -> (u64, Flags) {
        let r = a.wrapping_sub(b).wrapping_sub(f.cf() as u64);
        (r, sub_flags::<W>(a, b, r))
    }
}
impl Alu for Cmp {
    const STORES: bool = false;
    #[inline(always)]
    fn apply<W: Width>(a: u64, b: u64, f: &Flags) -> (u64, Flags) {
        Sub::apply::<W>(a, b, f)
    }
}
macro_rules! logic {
    ($name:ident, $stores:expr, $op:tt) => {
        impl Alu for $name {
            const STORES: bool = $stores;
            #[inline(always)]
            fn apply<W: Width>(a: u64, b: u64, _: &Flags) -> (u64, Flags) {
                let r = a $op b;
                (r, Flags::logic(W::sext(r)))
            }
        }
    };
}
logic!(Or, true, |);
logic!(And, true, &);
logic!(Xor, true, ^);
logic!(Test, false, &);

fn reg_reg<W: Width, K: Alu>(core: &mut Core, op: &Op) -> Flow {
    let (r, flags) = K::apply::<W>(W::read(core, op.dst), W::read(core, op.src), &core.flags);
    if K::STORES {
        W::write(core, op.dst, r);
    }
    core.flags = flags;
    Ok(())
}
fn reg_imm<W: Width, K: Alu>(core: &mut Core, op: &Op) -> Flow {
    let (r, flags) = K::apply::<W>(W::read(core, op.dst), op.imm, &core.flags);
    if K::STORES {
        W::write(core, op.dst, r);
    }
    core.flags = flags;
    Ok(())
}
fn reg_mem<W: Width, A: Address, K: Alu>(core: &mut Core, op: &Op) -> Flow {
    let b = core.mem.load::<W>(A::of(core, op))?.to_u64();
    let (r, flags) = K::apply::<W>(W::read(core, op.dst), b, &core.flags);
    if K::STORES {
        W::write(core, op.dst, r);
    }
    core.flags = flags;
    Ok(())
}
#[inline(always)]
fn on_memory<W: Width, K: Alu>(core: &mut Core, va: u64, b: u64) -> Flow {
    if K::STORES {
        let flags = core.flags;
        core.flags = core.mem.update::<W, Flags>(va, |a| {
            let (r, f) = K::apply::<W>(a.to_u64(), b, &flags);
            (W::from_u64(r), f)
        })?;
    } else {
        let a = core.mem.load::<W>(va)?.to_u64();
        core.flags = K::apply::<W>(a, b, &core.flags).1;
    }
    Ok(())
}
fn mem_reg<W: Width, A: Address, K: Alu>(core: &mut Core, op: &Op) -> Flow {
    let b = W::read(core, op.src);
    on_memory::<W, K>(core, A::of(core, op), b)
}
fn mem_imm<W: Width, A: Address, K: Alu>(core: &mut Core, op: &Op) -> Flow {
    on_memory::<W, K>(core, A::of(core, op), op.imm)
}
/// XOR of a register with itself, which compilers use to write zero.
fn zero<W: Width>(core: &mut Core, op: &Op) -> Flow {
    W::write(core, op.dst, 0);
    core.flags = Flags::logic(0);
    Ok(())
}

/// Fills in the operands of a two-operand instruction, and returns the handler for their form, e.g. register and
/// immediate.
fn forms<K: Alu>(i: &Instruction, op: &mut Op) -> Handler {
    let w = width(i, 0);
    let mask = if w == 8 { u64::MAX } else { (1 << (8 * w)) - 1 };
    if is_memory(i, 0) {
        if is_immediate(i, 1) {
            op.imm = i.immediate(1) & mask;
            return by_memory!(op, w, mem_imm, K);
        }
        op.src = gpr(i.op1_register());
        return by_memory!(op, w, mem_reg, K);
    }
    op.dst = gpr(i.op0_register());
    if is_immediate(i, 1) {
        op.imm = i.immediate(1) & mask;
        return by_width!(w, reg_imm, K);
    }
    if is_memory(i, 1) {
        return by_memory!(op, w, reg_mem, K);
    }
    op.src = gpr(i.op1_register());
    by_width!(w, reg_reg, K)
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Xor
            if i.op0_register() == i.op1_register()
                && !is_memory(i, 0)
                && !is_memory(i, 1)
                && !is_immediate(i, 1) =>
        {
            op.dst = gpr(i.op0_register());
            by_width!(width(i, 0), zero)
        }
        Mnemonic::Add => forms::<Add>(i, op),
        Mnemonic::Or => forms::<Or>(i, op),
        Mnemonic::Adc => forms::<Adc>(i, op),
        Mnemonic::Sbb => forms::<Sbb>(i, op),
        Mnemonic::And => forms::<And>(i, op),
        Mnemonic::Sub => forms::<Sub>(i, op),
        Mnemonic::Xor => forms::<Xor>(i, op),
        Mnemonic::Cmp => forms::<Cmp>(i, op),
        Mnemonic::Test => forms::<Test>(i, op),
        _ => return None,
    };
    Some(Kind::Straight)
}
