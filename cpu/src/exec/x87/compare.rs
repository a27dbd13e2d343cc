//! Compares, FTST, FXAM and FCMOVcc.

use super::integer::extended;
use super::stack::{
    BEFORE, C0, C1, C2, C3, CONDITION, INDEFINITE, UNDERFLOW, enter, physical, pop, set_st, settle, st,
};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::host_fp::x87::{self as host, Extended};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind};

/// Chooses the handler of a compare. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    macro_rules! run {
        ($f:expr) => {{
            op.run = $f;
            Some(Kind::Straight)
        }};
    }
    macro_rules! move_if {
        (|$f:ident| $condition:expr) => {
            run!(|core, op| {
                let $f = core.flags;
                conditional(core, op, $condition)
            })
        };
    }
    if matches!(i.mnemonic(), Mnemonic::Fcompp | Mnemonic::Fucompp) {
        op.src = 1;
    }
    let register = i.op_kind(0) == OpKind::Register;
    let single = i.memory_size() == MemorySize::Float32;
    let word = i.memory_size() == MemorySize::Int16;
    use Mnemonic::*;
    match i.mnemonic() {
        Fcom if register => run!(|core, op| registers(core, op, host::com, 0)),
        Fcomp if register => run!(|core, op| registers(core, op, host::com, 1)),
        Fcompp => run!(|core, op| registers(core, op, host::com, 2)),
        Fucom => run!(|core, op| registers(core, op, host::ucom, 0)),
        Fucomp => run!(|core, op| registers(core, op, host::ucom, 1)),
        Fucompp => run!(|core, op| registers(core, op, host::ucom, 2)),
        Fcom if single => run!(|core, op| with_single(core, op, 0)),
        Fcom => run!(|core, op| with_double(core, op, 0)),
        Fcomp if single => run!(|core, op| with_single(core, op, 1)),
        Fcomp => run!(|core, op| with_double(core, op, 1)),
        Ficom if word => run!(|core, op| with_int16(core, op, 0)),
        Ficom => run!(|core, op| with_int32(core, op, 0)),
        Ficomp if word => run!(|core, op| with_int16(core, op, 1)),
        Ficomp => run!(|core, op| with_int32(core, op, 1)),
        Ftst => run!(|core, op| {
            enter(core)?;
            condition(core, op, 0, |cw, a| host::com(cw, a, (0, 0)))
        }),
        Fcomi => run!(|core, op| flags(core, op, host::com, false)),
        Fcomip => run!(|core, op| flags(core, op, host::com, true)),
        Fucomi => run!(|core, op| flags(core, op, host::ucom, false)),
        Fucomip => run!(|core, op| flags(core, op, host::ucom, true)),
        Fxam => run!(examine),
        Fcmovb => move_if!(|f| f.cf()),
        Fcmove => move_if!(|f| f.zf()),
        Fcmovbe => move_if!(|f| f.cf() || f.zf()),
        Fcmovu => move_if!(|f| f.pf()),
        Fcmovnb => move_if!(|f| !f.cf()),
        Fcmovne => move_if!(|f| !f.zf()),
        Fcmovnbe => move_if!(|f| !f.cf() && !f.zf()),
        Fcmovnu => move_if!(|f| !f.pf()),
        _ => None,
    }
}

/// Sets C0, C2 and C3 from a compare of ST(0), then pops `pops` times. An unmasked exception suppresses only the pops.
fn condition(core: &mut Core, op: &Op, pops: u8, f: impl Fn(u16, Extended) -> u16) -> Flow {
    let status = match st(core, 0) {
        Some(a) => f(core.fpu.fcw, a),
        None => UNDERFLOW | CONDITION,
    };
    let completes = settle(core, op, status & !C1, BEFORE);
    core.fpu.fsw = core.fpu.fsw & !CONDITION | status & CONDITION;
    if completes {
        (0..pops).for_each(|_| pop(core));
    }
    Ok(())
}

fn registers(core: &mut Core, op: &Op, f: fn(u16, Extended, Extended) -> u16, pops: u8) -> Flow {
    enter(core)?;
    let b = st(core, op.src);
    condition(core, op, pops, |cw, a| b.map_or(UNDERFLOW | CONDITION, |b| f(cw, a, b)))
}

fn with_single(core: &mut Core, op: &Op, pops: u8) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    let b = core.mem.load::<u32>(va)?;
    condition(core, op, pops, |cw, a| host::com_single(cw, a, b))
}

fn with_double(core: &mut Core, op: &Op, pops: u8) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    let b = core.mem.load::<u64>(va)?;
    condition(core, op, pops, |cw, a| host::com_double(cw, a, b))
}

fn with_int16(core: &mut Core, op: &Op, pops: u8) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    let b = extended(i64::from(core.mem.load::<u16>(va)? as i16));
    condition(core, op, pops, |cw, a| host::com(cw, a, b))
}

fn with_int32(core: &mut Core, op: &Op, pops: u8) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    let b = extended(i64::from(core.mem.load::<u32>(va)? as i32));
    condition(core, op, pops, |cw, a| host::com(cw, a, b))
}

/// FCOMI, FCOMIP, FUCOMI and FUCOMIP, which set RFLAGS. They change C1 only after a stack fault.
fn flags(core: &mut Core, op: &Op, f: fn(u16, Extended, Extended) -> u16, pops: bool) -> Flow {
    enter(core)?;
    let status = match (st(core, 0), st(core, op.src)) {
        (Some(a), Some(b)) => f(core.fpu.fcw, a, b) & !C1 | core.fpu.fsw & C1,
        _ => UNDERFLOW | CONDITION,
    };
    let bit = |c: u16, b: u64| if status & c != 0 { b } else { 0 };
    core.flags = Flags::from_bits(bit(C3, bits::ZF) | bit(C2, bits::PF) | bit(C0, bits::CF));
    if settle(core, op, status, BEFORE) && pops {
        pop(core);
    }
    Ok(())
}

/// FXAM: reports class and sign of ST(0), or that ST(0) is empty.
fn examine(core: &mut Core, op: &Op) -> Flow {
    enter(core)?;
    let n = physical(core, 0);
    let (significand, exponent) = core.fpu.r[n];
    let normal = significand >> 63 != 0;
    let class = match exponent & 0x7fff {
        _ if core.fpu.ftw >> n & 1 == 0 => C3 | C0,
        0 if significand == 0 => C3,
        0 => C3 | C2,
        _ if !normal => 0,
        0x7fff if significand << 1 == 0 => C2 | C0,
        0x7fff => C0,
        _ => C2,
    };
    let sign = if exponent & 0x8000 != 0 { C1 } else { 0 };
    settle(core, op, 0, 0);
    core.fpu.fsw = core.fpu.fsw & !CONDITION | class | sign;
    Ok(())
}

/// FCMOVcc. It changes C1 only if one of the two registers is empty.
fn conditional(core: &mut Core, op: &Op, holds: bool) -> Flow {
    enter(core)?;
    match (st(core, 0), st(core, op.src)) {
        (Some(_), Some(b)) => {
            core.fpu.fip = op.rip(core);
            if holds {
                set_st(core, 0, b);
            }
        }
        _ => {
            if settle(core, op, UNDERFLOW, BEFORE) {
                set_st(core, 0, INDEFINITE);
            }
        }
    }
    Ok(())
}
