//! BMI1 and BMI2 with VEX encodings: ANDN, BEXTR, BLSI, BLSMSK, BLSR, BZHI, MULX, PDEP, PEXT, RORX, SARX, SHLX, SHRX
//! (SDM vol. 2). The manual leaves AF and PF undefined. They are clear, as on Intel's processors.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::op::operand::{gpr, is_immediate, is_memory};
use crate::op::{Address, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Mask of the bits of `Op::aux` that hold the operand register besides the destination and `rm`.
const OTHER: u16 = 15;

/// Instruction with a destination register, an operand `rm` (a register or in memory), and possibly one more register.
trait Bmi {
    /// Executes the instruction. `v` is the value of `rm`.
    fn apply<W: Width>(core: &mut Core, op: &Op, v: u64);
}

/// Returns the value of the register that is neither the destination nor `rm`.
#[inline(always)]
fn other<W: Width>(core: &Core, op: &Op) -> u64 {
    W::read(core, (op.aux & OTHER) as u8)
}

/// Writes the result, and sets CF, and ZF and SF by the result. Clears the other arithmetic flags.
#[inline(always)]
fn finish<W: Width>(core: &mut Core, op: &Op, r: u64, cf: bool) {
    W::write(core, op.dst, r);
    let low = r as u8;
    let flags = Flags::result(W::sext(r), cf, false);
    // PF is clear if the low byte of `res` has odd parity. Bit 8 of `aux` inverts bit 0 of this byte.
    core.flags = Flags { aux: u64::from(low.count_ones() & 1 == 0) << 8, ..flags };
}

/// Returns a mask of the low `n` bits. A number above 63 gives all bits.
#[inline(always)]
fn low(n: u64) -> u64 {
    if n > 63 { u64::MAX } else { (1 << n) - 1 }
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $name:ident |$core:ident, $op:ident, $v:ident, $w:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        struct $name;
        impl Bmi for $name {
            #[inline(always)]
            fn apply<$w: Width>($core: &mut Core, $op: &Op, $v: u64) {
                $body
            }
        }
    )*};
}

instructions! {
    Andn |core, op, v, W| {
        let r = !other::<W>(core, op) & v;
        finish::<W>(core, op, r, false);
    };
    /// BEXTR: bits 0-7 of the control are the first bit, and bits 8-15 the number of bits. All flags but ZF are clear.
    Bextr |core, op, v, W| {
        let control = other::<W>(core, op);
        let start = control & 0xff;
        let r = if start > 63 { 0 } else { v >> start & low(control >> 8 & 0xff) };
        W::write(core, op.dst, r);
        core.flags = Flags::from_bits(if r == 0 { bits::ZF } else { 0 });
    };
    Blsi |core, op, v, W| finish::<W>(core, op, v & v.wrapping_neg(), v != 0);
    Blsmsk |core, op, v, W| finish::<W>(core, op, (v ^ v.wrapping_sub(1)) & W::MASK, v == 0);
    Blsr |core, op, v, W| finish::<W>(core, op, v & v.wrapping_sub(1), v == 0);
    /// BZHI: CF is set if the index is not below the width.
    Bzhi |core, op, v, W| {
        let index = other::<W>(core, op) & 0xff;
        finish::<W>(core, op, v & low(index), index >= u64::from(W::BITS));
    };
    /// MULX: multiplies RDX by `rm`. The upper half of the product goes to the destination, which wins if the
    /// destination is also the register of the lower half.
    Mulx |core, op, v, W| {
        let r = u128::from(W::read(core, 2)) * u128::from(v);
        W::write(core, (op.aux & OTHER) as u8, r as u64);
        W::write(core, op.dst, (r >> W::BITS) as u64);
    };
    /// PDEP: moves the low bits of the register to the places of the mask's bits.
    Pdep |core, op, v, W| {
        let (mut from, mut mask, mut r) = (other::<W>(core, op), v, 0);
        while mask != 0 {
            let place = mask & mask.wrapping_neg();
            r |= place * (from & 1);
            from >>= 1;
            mask ^= place;
        }
        W::write(core, op.dst, r);
    };
    /// PEXT: moves the bits at the places of the mask's bits to the low bits.
    Pext |core, op, v, W| {
        let (from, mut mask, mut r, mut n) = (other::<W>(core, op), v, 0, 0);
        while mask != 0 {
            let place = mask & mask.wrapping_neg();
            r |= u64::from(from & place != 0) << n;
            n += 1;
            mask ^= place;
        }
        W::write(core, op.dst, r);
    };
    Rorx |core, op, v, W| {
        let n = op.imm as u32 & (W::BITS - 1);
        let r = v >> n | v.checked_shl(W::BITS - n).unwrap_or(0);
        W::write(core, op.dst, r);
    };
    Sarx |core, op, v, W| {
        let n = other::<W>(core, op) as u32 & (W::BITS - 1);
        W::write(core, op.dst, (W::sext(v) as i64 >> n) as u64);
    };
    Shlx |core, op, v, W| {
        let n = other::<W>(core, op) as u32 & (W::BITS - 1);
        W::write(core, op.dst, v << n);
    };
    Shrx |core, op, v, W| {
        let n = other::<W>(core, op) as u32 & (W::BITS - 1);
        W::write(core, op.dst, v >> n);
    };
}

fn by_reg<W: Width, K: Bmi>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.src);
    K::apply::<W>(core, op, v);
    Ok(())
}
fn by_mem<W: Width, A: Address, K: Bmi>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<W>(A::of(core, op))?.to_u64();
    K::apply::<W>(core, op, v);
    Ok(())
}

/// Fills in the operands of an instruction whose operand `n` is `rm`, and chooses its handler.
fn forms<K: Bmi>(i: &Instruction, op: &mut Op, n: u32) -> Handler {
    op.dst = gpr(i.op0_register());
    for k in 1..i.op_count() {
        if is_immediate(i, k) {
            op.imm = i.immediate(k);
        } else if k != n {
            op.aux |= u16::from(gpr(i.op_register(k)));
        }
    }
    let w = i.op0_register().size();
    if is_memory(i, n) {
        return by_memory!(op, w, by_mem, K);
    }
    debug_assert!(i.op_kind(n) == OpKind::Register);
    op.src = gpr(i.op_register(n));
    by_width!(w, by_reg, K)
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Andn => forms::<Andn>(i, op, 2),
        Mnemonic::Bextr => forms::<Bextr>(i, op, 1),
        Mnemonic::Blsi => forms::<Blsi>(i, op, 1),
        Mnemonic::Blsmsk => forms::<Blsmsk>(i, op, 1),
        Mnemonic::Blsr => forms::<Blsr>(i, op, 1),
        Mnemonic::Bzhi => forms::<Bzhi>(i, op, 1),
        Mnemonic::Mulx => forms::<Mulx>(i, op, 2),
        Mnemonic::Pdep => forms::<Pdep>(i, op, 2),
        Mnemonic::Pext => forms::<Pext>(i, op, 2),
        Mnemonic::Rorx => forms::<Rorx>(i, op, 1),
        Mnemonic::Sarx => forms::<Sarx>(i, op, 1),
        Mnemonic::Shlx => forms::<Shlx>(i, op, 1),
        Mnemonic::Shrx => forms::<Shrx>(i, op, 1),
        _ => return None,
    };
    Some(Kind::Straight)
}
