//! Bit instructions: BT, BTS, BTR, BTC, BSF, BSR, TZCNT, LZCNT, POPCNT, CRC32.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::op::operand::{gpr, is_immediate, is_memory, width};
use crate::op::{ADDRESS_32, Address, Full, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

trait BitOp {
    const STORES: bool = true;
    fn apply(v: u64, bit: u64) -> u64;
}
struct Bt;
struct Bts;
struct Btr;
struct Btc;
impl BitOp for Bt {
    const STORES: bool = false;
    fn apply(v: u64, _: u64) -> u64 {
        v
    }
}
impl BitOp for Bts {
    fn apply(v: u64, bit: u64) -> u64 {
        v | bit
    }
}
impl BitOp for Btr {
    fn apply(v: u64, bit: u64) -> u64 {
        v & !bit
    }
}
impl BitOp for Btc {
    fn apply(v: u64, bit: u64) -> u64 {
        v ^ bit
    }
}

#[inline(always)]
fn on_register<W: Width, K: BitOp>(core: &mut Core, op: &Op, n: u64) -> Flow {
    let bit = 1u64 << (n & u64::from(W::BITS - 1));
    let v = W::read(core, op.dst);
    if K::STORES {
        W::write(core, op.dst, K::apply(v, bit));
    }
    core.flags = core.flags.with_cf(v & bit != 0);
    Ok(())
}
fn reg_reg<W: Width, K: BitOp>(core: &mut Core, op: &Op) -> Flow {
    let n = W::read(core, op.src);
    on_register::<W, K>(core, op, n)
}
fn reg_imm<W: Width, K: BitOp>(core: &mut Core, op: &Op) -> Flow {
    on_register::<W, K>(core, op, op.imm)
}
#[inline(always)]
fn at<W: Width, K: BitOp>(core: &mut Core, va: u64, n: u64) -> Flow {
    let bit = 1u64 << (n & u64::from(W::BITS - 1));
    let cf = if K::STORES {
        core.mem.update::<W, bool>(va, |v| {
            let v = v.to_u64();
            (W::from_u64(K::apply(v, bit)), v & bit != 0)
        })?
    } else {
        core.mem.load::<W>(va)?.to_u64() & bit != 0
    };
    core.flags = core.flags.with_cf(cf);
    Ok(())
}
fn mem_imm<W: Width, A: Address, K: BitOp>(core: &mut Core, op: &Op) -> Flow {
    at::<W, K>(core, A::of(core, op), op.imm)
}
/// BT, BTS, BTR or BTC on memory, with a bit offset from a register. The offset is signed, and may select a bit outside
/// the memory operand (SDM vol. 2A, BT).
fn mem_reg<W: Width, K: BitOp>(core: &mut Core, op: &Op) -> Flow {
    let n = W::sext(W::read(core, op.src));
    let step = ((n as i64) >> W::BITS.trailing_zeros()) * i64::from(W::BITS / 8);
    let va = if op.scale & ADDRESS_32 != 0 {
        let offset = op.offset(core).wrapping_add(step as u64) & 0xffff_ffff;
        offset.wrapping_add(core.regs[(op.seg & 31) as usize])
    } else {
        Full::of(core, op).wrapping_add(step as u64)
    };
    at::<W, K>(core, va, n)
}
fn forms<K: BitOp>(i: &Instruction, op: &mut Op) -> Handler {
    let w = width(i, 0);
    let by_imm = is_immediate(i, 1);
    if by_imm {
        op.imm = i.immediate(1);
    } else {
        op.src = gpr(i.op1_register());
    }
    if is_memory(i, 0) {
        return if by_imm { by_memory!(op, w, mem_imm, K) } else { by_width!(w, mem_reg, K) };
    }
    op.dst = gpr(i.op0_register());
    if by_imm { by_width!(w, reg_imm, K) } else { by_width!(w, reg_reg, K) }
}

trait Scan {
    fn apply<W: Width>(core: &mut Core, dst: u8, v: u64);
}
struct Bsf;
struct Bsr;
struct Tzcnt;
struct Lzcnt;
struct Popcnt;
impl Scan for Bsf {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, dst: u8, v: u64) {
        // If the source is zero, the whole destination register keeps its value.
        if v != 0 {
            W::write(core, dst, u64::from(v.trailing_zeros()));
        }
        core.flags = Flags { res: v, carry: 0, aux: 0 };
    }
}
impl Scan for Bsr {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, dst: u8, v: u64) {
        if v != 0 {
            W::write(core, dst, u64::from(63 - v.leading_zeros()));
        }
        core.flags = Flags { res: v, carry: 0, aux: 0 };
    }
}
/// Writes the number of zeros, and sets ZF and CF. The other arithmetic flags, which the manual leaves undefined, are
/// clear.
#[inline(always)]
fn count_zeros<W: Width>(core: &mut Core, dst: u8, zeros: u32) {
    W::write(core, dst, u64::from(zeros));
    let zf = if zeros == 0 { bits::ZF } else { 0 };
    let cf = if zeros == W::BITS { bits::CF } else { 0 };
    core.flags = Flags::from_bits(zf | cf);
}
impl Scan for Tzcnt {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, dst: u8, v: u64) {
        count_zeros::<W>(core, dst, v.trailing_zeros().min(W::BITS));
    }
}
impl Scan for Lzcnt {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, dst: u8, v: u64) {
        count_zeros::<W>(core, dst, v.leading_zeros() - (u64::BITS - W::BITS));
    }
}
impl Scan for Popcnt {
    #[inline(always)]
    fn apply<W: Width>(core: &mut Core, dst: u8, v: u64) {
        W::write(core, dst, u64::from(v.count_ones()));
        // POPCNT clears all arithmetic flags except ZF.
        core.flags = Flags::from_bits(if v == 0 { bits::ZF } else { 0 });
    }
}
fn scan_reg<W: Width, K: Scan>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.src);
    K::apply::<W>(core, op.dst, v);
    Ok(())
}
fn scan_mem<W: Width, A: Address, K: Scan>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<W>(A::of(core, op))?.to_u64();
    K::apply::<W>(core, op.dst, v);
    Ok(())
}
fn scan_forms<K: Scan>(i: &Instruction, op: &mut Op) -> Handler {
    let w = width(i, 0);
    op.dst = gpr(i.op0_register());
    if is_memory(i, 1) {
        return by_memory!(op, w, scan_mem, K);
    }
    op.src = gpr(i.op1_register());
    by_width!(w, scan_reg, K)
}

/// Byte table of the reflected CRC-32C, computed at compile time.
const CRC32C: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut k = 0;
        while k < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 };
            k += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};
fn crc_of<W: Width>(core: &mut Core, dst: u8, mut v: u64) {
    let mut crc = core.regs[(dst & 15) as usize] as u32;
    for _ in 0..W::BITS / 8 {
        crc = crc >> 8 ^ CRC32C[((crc ^ v as u32) & 0xff) as usize];
        v >>= 8;
    }
    core.regs[(dst & 15) as usize] = u64::from(crc);
}
fn crc_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.src);
    crc_of::<W>(core, op.dst, v);
    Ok(())
}
fn crc_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<W>(A::of(core, op))?.to_u64();
    crc_of::<W>(core, op.dst, v);
    Ok(())
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Bt => forms::<Bt>(i, op),
        Mnemonic::Bts => forms::<Bts>(i, op),
        Mnemonic::Btr => forms::<Btr>(i, op),
        Mnemonic::Btc => forms::<Btc>(i, op),
        Mnemonic::Bsf => scan_forms::<Bsf>(i, op),
        Mnemonic::Bsr => scan_forms::<Bsr>(i, op),
        Mnemonic::Tzcnt => scan_forms::<Tzcnt>(i, op),
        Mnemonic::Lzcnt => scan_forms::<Lzcnt>(i, op),
        Mnemonic::Popcnt => scan_forms::<Popcnt>(i, op),
        Mnemonic::Crc32 => {
            op.dst = gpr(i.op0_register());
            let w = width(i, 1);
            if is_memory(i, 1) {
                by_memory!(op, w, crc_mem)
            } else {
                op.src = gpr(i.op1_register());
                by_width!(w, crc_reg)
            }
        }
        _ => return None,
    };
    Some(Kind::Straight)
}
