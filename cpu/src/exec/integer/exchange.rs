//! XCHG, XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B. A machine has one vCPU, so LOCK needs no code.

use super::alu::{Add, Alu, sub_flags};
use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::op::operand::{gpr, is_memory, width};
use crate::op::{Address, Full, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

fn xchg_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let (a, b) = (W::read(core, op.dst), W::read(core, op.src));
    W::write(core, op.dst, b);
    W::write(core, op.src, a);
    Ok(())
}
fn xchg_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let new = W::from_u64(W::read(core, op.src));
    let old = core.mem.update::<W, W>(A::of(core, op), |old| (new, old))?;
    W::write(core, op.src, old.to_u64());
    Ok(())
}
fn xadd_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let (a, b) = (W::read(core, op.dst), W::read(core, op.src));
    let (r, f) = Add::apply::<W>(a, b, &core.flags);
    W::write(core, op.src, a);
    W::write(core, op.dst, r);
    core.flags = f;
    Ok(())
}
fn xadd_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let b = W::read(core, op.src);
    let flags = core.flags;
    let (old, f) = core.mem.update::<W, (u64, Flags)>(A::of(core, op), |a| {
        let (r, f) = Add::apply::<W>(a.to_u64(), b, &flags);
        (W::from_u64(r), (a.to_u64(), f))
    })?;
    W::write(core, op.src, old);
    core.flags = f;
    Ok(())
}
fn cmpxchg_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let (a, b) = (W::read(core, 0), W::read(core, op.dst));
    core.flags = sub_flags::<W>(a, b, a.wrapping_sub(b));
    if a == b {
        let v = W::read(core, op.src);
        W::write(core, op.dst, v);
    } else {
        W::write(core, 0, b);
    }
    Ok(())
}
/// CMPXCHG on memory. Like hardware, it writes the destination even if the comparison fails (SDM vol. 2A, CMPXCHG).
fn cmpxchg_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let a = W::read(core, 0);
    let new = W::read(core, op.src);
    let old = core.mem.update::<W, u64>(A::of(core, op), |b| {
        let b = b.to_u64();
        (W::from_u64(if a == b { new } else { b }), b)
    })?;
    core.flags = sub_flags::<W>(a, old, a.wrapping_sub(old));
    if a != old {
        W::write(core, 0, old);
    }
    Ok(())
}
fn set_zf(core: &mut Core, zf: bool) {
    let f = core.flags.to_bits() & !bits::ZF | if zf { bits::ZF } else { 0 };
    core.flags = Flags::from_bits(f);
}
fn cmpxchg8b(core: &mut Core, op: &Op) -> Flow {
    let pair = |high: u64, low: u64| high << 32 | low & 0xffff_ffff;
    let expected = pair(core.regs[2], core.regs[0]);
    let new = pair(core.regs[1], core.regs[3]);
    let old =
        core.mem.update::<u64, u64>(Full::of(core, op), |v| (if v == expected { new } else { v }, v))?;
    if old != expected {
        core.regs[0] = old & 0xffff_ffff;
        core.regs[2] = old >> 32;
    }
    set_zf(core, old == expected);
    Ok(())
}
fn cmpxchg16b(core: &mut Core, op: &Op) -> Flow {
    let va = Full::of(core, op);
    if va & 15 != 0 {
        return Err(core.gp());
    }
    let pair = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    let expected = pair(core.regs[2], core.regs[0]);
    let new = pair(core.regs[1], core.regs[3]);
    let old = core.mem.update::<u128, u128>(va, |v| (if v == expected { new } else { v }, v))?;
    if old != expected {
        core.regs[0] = old as u64;
        core.regs[2] = (old >> 64) as u64;
    }
    set_zf(core, old == expected);
    Ok(())
}

macro_rules! two_forms {
    ($i:expr, $op:expr, $reg:ident, $mem:ident) => {{
        let w = width($i, 0);
        $op.src = gpr($i.op1_register());
        if is_memory($i, 0) {
            by_memory!($op, w, $mem)
        } else {
            $op.dst = gpr($i.op0_register());
            by_width!(w, $reg)
        }
    }};
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let run: Handler = match i.mnemonic() {
        Mnemonic::Xchg if is_memory(i, 1) => {
            op.src = gpr(i.op0_register());
            by_memory!(op, width(i, 0), xchg_mem)
        }
        Mnemonic::Xchg => two_forms!(i, op, xchg_reg, xchg_mem),
        Mnemonic::Xadd => two_forms!(i, op, xadd_reg, xadd_mem),
        Mnemonic::Cmpxchg => two_forms!(i, op, cmpxchg_reg, cmpxchg_mem),
        Mnemonic::Cmpxchg8b => cmpxchg8b,
        Mnemonic::Cmpxchg16b => cmpxchg16b,
        _ => return None,
    };
    op.run = run;
    Some(Kind::Straight)
}
