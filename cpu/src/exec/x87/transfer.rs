//! Loads, stores, constants and exchanges of x87 registers.

use super::integer::{extended, from_decimal};
use super::stack::{
    BEFORE, BEFORE_STORE, IE, INDEFINITE, OVERFLOW, UNDERFLOW, enter, full, pop, push, set_st, settle, st,
};
use crate::core::Core;
use crate::host_fp::x87::{self as host, Extended};
use crate::mem::Prim;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind};

/// Rounding-control bits of the control word.
const RC: u16 = 0xc00;
const RC_DOWN: u16 = 0x400;
const RC_UP: u16 = 0x800;
const RC_CHOP: u16 = 0xc00;

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    macro_rules! run {
        ($f:expr) => {{
            op.run = $f;
            Some(Kind::Straight)
        }};
    }
    /// Loads a constant. The arguments are its significand rounded down, its exponent, and the increments of the
    /// significand for upward and nearest rounding.
    macro_rules! constant {
        ($significand:literal, $exponent:literal, $up:literal, $nearest:literal) => {
            run!(|core, op| {
                enter(core)?;
                let more = match core.fpu.fcw & RC {
                    RC_UP => $up,
                    RC_DOWN | RC_CHOP => 0,
                    _ => $nearest,
                };
                load(core, op, ($significand + more, $exponent), 0)
            })
        };
    }
    let register = i.op_kind(0) == OpKind::Register;
    let size = i.memory_size();
    use Mnemonic::*;
    match i.mnemonic() {
        Fld if register => run!(load_register),
        Fld => match size {
            MemorySize::Float32 => run!(|core, op| {
                enter(core)?;
                let va = op.ea(core);
                let (v, status) = host::load_single(core.fpu.fcw, core.mem.load::<u32>(va)?);
                load(core, op, v, status)
            }),
            MemorySize::Float64 => run!(|core, op| {
                enter(core)?;
                let va = op.ea(core);
                let (v, status) = host::load_double(core.fpu.fcw, core.mem.load::<u64>(va)?);
                load(core, op, v, status)
            }),
            _ => run!(|core, op| {
                enter(core)?;
                let v = load_ten(core, op)?;
                load(core, op, (v as u64, (v >> 64) as u16), 0)
            }),
        },
        Fild => match size {
            MemorySize::Int16 => run!(|core, op| load_integer::<u16>(core, op, |v| v as i16 as i64)),
            MemorySize::Int32 => run!(|core, op| load_integer::<u32>(core, op, |v| v as i32 as i64)),
            _ => run!(|core, op| load_integer::<u64>(core, op, |v| v as i64)),
        },
        Fbld => run!(|core, op| {
            enter(core)?;
            let v = load_ten(core, op)?;
            load(core, op, from_decimal(v), 0)
        }),
        Fst if register => run!(|core, op| store_register(core, op, false)),
        Fstp if register => run!(|core, op| store_register(core, op, true)),
        // FSTPNCE differs from FSTP only if ST(0) is empty: it then raises no exception, stores nothing and pops.
        Fstpnce => run!(|core, op| {
            enter(core)?;
            if st(core, 0).is_some() {
                return store_register(core, op, true);
            }
            settle(core, op, 0, 0);
            pop(core);
            Ok(())
        }),
        Fst | Fstp if size == MemorySize::Float80 => run!(store_extended),
        Fst if size == MemorySize::Float32 => {
            run!(|core, op| store(core, op, host::store_single, 0xffc0_0000, false))
        }
        Fstp if size == MemorySize::Float32 => {
            run!(|core, op| store(core, op, host::store_single, 0xffc0_0000, true))
        }
        Fst => run!(|core, op| store(core, op, host::store_double, 0xfff8 << 48, false)),
        Fstp => run!(|core, op| store(core, op, host::store_double, 0xfff8 << 48, true)),
        Fist if size == MemorySize::Int16 => {
            run!(|core, op| store(core, op, host::store_int16, 1 << 15, false))
        }
        Fist => run!(|core, op| store(core, op, host::store_int32, 1 << 31, false)),
        Fistp => match size {
            MemorySize::Int16 => run!(|core, op| store(core, op, host::store_int16, 1 << 15, true)),
            MemorySize::Int32 => run!(|core, op| store(core, op, host::store_int32, 1 << 31, true)),
            _ => run!(|core, op| store(core, op, host::store_int64, 1 << 63, true)),
        },
        Fisttp => match size {
            MemorySize::Int16 => run!(|core, op| {
                store(core, op, |cw, a| host::store_int16(cw | RC_CHOP, a), 1 << 15, true)
            }),
            MemorySize::Int32 => run!(|core, op| {
                store(core, op, |cw, a| host::store_int32(cw | RC_CHOP, a), 1 << 31, true)
            }),
            _ => run!(|core, op| {
                store(core, op, |cw, a| host::store_int64(cw | RC_CHOP, a), 1 << 63, true)
            }),
        },
        Fbstp => run!(store_decimal),
        Fxch => run!(exchange),
        Fld1 => constant!(0x8000_0000_0000_0000, 0x3fff, 0, 0),
        Fldz => constant!(0, 0, 0, 0),
        Fldl2t => constant!(0xd49a_784b_cd1b_8afe, 0x4000, 1, 0),
        Fldl2e => constant!(0xb8aa_3b29_5c17_f0bb, 0x3fff, 1, 1),
        Fldpi => constant!(0xc90f_daa2_2168_c234, 0x4000, 1, 1),
        Fldlg2 => constant!(0x9a20_9a84_fbcf_f798, 0x3ffd, 1, 1),
        Fldln2 => constant!(0xb172_17f7_d1cf_79ab, 0x3ffe, 1, 1),
        _ => None,
    }
}

/// Pushes `v`. If the stack is full, pushes the default NaN and raises a stack overflow instead.
fn load(core: &mut Core, op: &Op, v: Extended, status: u16) -> Flow {
    let (v, status) = if full(core) { (INDEFINITE, OVERFLOW) } else { (v, status) };
    // A denormal is loaded even if the denormal exception is unmasked.
    if settle(core, op, status, IE) {
        push(core, v);
    }
    Ok(())
}

/// FLD ST(i). If the source is empty and the stack is full, the instruction reports the empty source.
fn load_register(core: &mut Core, op: &Op) -> Flow {
    enter(core)?;
    match st(core, op.dst) {
        Some(v) => load(core, op, v, 0),
        None => {
            if settle(core, op, UNDERFLOW, BEFORE) {
                push(core, INDEFINITE);
            }
            Ok(())
        }
    }
}

fn load_integer<T: Prim>(core: &mut Core, op: &Op, signed: fn(u64) -> i64) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    let v = core.mem.load::<T>(va)?.widen() as u64;
    load(core, op, extended(signed(v)), 0)
}

/// Loads a memory operand of ten bytes.
fn load_ten(core: &mut Core, op: &Op) -> Result<u128, Stop> {
    let va = op.ea(core);
    let low = core.mem.load::<u64>(va)?;
    let high = core.mem.load::<u16>(va.wrapping_add(8))?;
    Ok(u128::from(low) | u128::from(high) << 64)
}

/// Stores a memory operand of ten bytes. A store that faults has changed nothing.
fn store_ten(core: &mut Core, op: &Op, v: u128) -> Flow {
    let va = op.ea(core);
    core.mem.probe_write(va, 10)?;
    core.mem.store(va, v as u64)?;
    core.mem.store(va.wrapping_add(8), (v >> 64) as u16)
}

/// Converts ST(0) and stores the result, unless an unmasked exception prevents the store.
fn store<T: Prim>(
    core: &mut Core,
    op: &Op,
    convert: fn(u16, Extended) -> (T, u16),
    indefinite: T,
    pops: bool,
) -> Flow {
    enter(core)?;
    let (v, status) = match st(core, 0) {
        Some(a) => convert(core.fpu.fcw, a),
        None => (indefinite, UNDERFLOW),
    };
    if status & !core.fpu.fcw & BEFORE_STORE == 0 {
        let va = op.ea(core);
        core.mem.store(va, v)?;
    }
    if settle(core, op, status, BEFORE_STORE) && pops {
        pop(core);
    }
    Ok(())
}

fn store_extended(core: &mut Core, op: &Op) -> Flow {
    enter(core)?;
    let (v, status) = st(core, 0).map_or((INDEFINITE, UNDERFLOW), |v| (v, 0));
    if status & !core.fpu.fcw & BEFORE_STORE == 0 {
        store_ten(core, op, u128::from(v.0) | u128::from(v.1) << 64)?;
    }
    if settle(core, op, status, BEFORE_STORE) {
        pop(core);
    }
    Ok(())
}

/// FBSTP: stores ST(0) as packed decimal digits and pops.
fn store_decimal(core: &mut Core, op: &Op) -> Flow {
    const DECIMAL_INDEFINITE: u128 = 0xffff_c000_0000_0000_0000;
    enter(core)?;
    let (v, status) = match st(core, 0) {
        Some(a) => host::store_bcd(core.fpu.fcw, a),
        None => (DECIMAL_INDEFINITE, UNDERFLOW),
    };
    if status & !core.fpu.fcw & BEFORE_STORE == 0 {
        store_ten(core, op, v)?;
    }
    if settle(core, op, status, BEFORE_STORE) {
        pop(core);
    }
    Ok(())
}

fn store_register(core: &mut Core, op: &Op, pops: bool) -> Flow {
    enter(core)?;
    let (v, status) = st(core, 0).map_or((INDEFINITE, UNDERFLOW), |v| (v, 0));
    if settle(core, op, status, BEFORE) {
        set_st(core, op.dst, v);
        if pops {
            pop(core);
        }
    }
    Ok(())
}

/// FXCH. An empty register counts as the default NaN.
fn exchange(core: &mut Core, op: &Op) -> Flow {
    enter(core)?;
    let (a, b) = (st(core, 0), st(core, op.src));
    let status = if a.is_some() && b.is_some() { 0 } else { UNDERFLOW };
    if settle(core, op, status, BEFORE) {
        set_st(core, 0, b.unwrap_or(INDEFINITE));
        set_st(core, op.src, a.unwrap_or(INDEFINITE));
    }
    Ok(())
}
