//! Arithmetic: sums, products and quotients, square root, rounding, scaling, FXTRACT, sign changes.

use super::integer::extended;
use super::stack::{
    BEFORE, C1, EXCEPTIONS, INDEFINITE, OVERFLOW, UNDERFLOW, enter, full, pop, push, set_st, settle, st,
};
use crate::core::Core;
use crate::host_fp::x87::{self as host, Extended};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind};

/// Result of an operation that the host's x87 unit executed: value and status word.
type Outcome = (Extended, u16);

/// One of the six arithmetic operations. The source is a register or a number in memory.
trait Arithmetic {
    fn register(cw: u16, a: Extended, b: Extended) -> Outcome;
    fn single(cw: u16, a: Extended, b: u32) -> Outcome;
    fn double(cw: u16, a: Extended, b: u64) -> Outcome;
}

macro_rules! operations {
    ($($name:ident $register:ident $single:ident $double:ident;)*) => {$(
        struct $name;
        impl Arithmetic for $name {
            fn register(cw: u16, a: Extended, b: Extended) -> Outcome {
                host::$register(cw, a, b)
            }
            fn single(cw: u16, a: Extended, b: u32) -> Outcome {
                host::$single(cw, a, b)
            }
            fn double(cw: u16, a: Extended, b: u64) -> Outcome {
                host::$double(cw, a, b)
            }
        }
    )*};
}
operations! {
    Sum add add_single add_double;
    Difference sub sub_single sub_double;
    ReverseDifference subr subr_single subr_double;
    Product mul mul_single mul_double;
    Quotient div div_single div_double;
    ReverseQuotient divr divr_single divr_double;
}

/// Chooses the handler of an arithmetic instruction. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Fadd => arithmetic::<Sum>(i, op),
        Fsub => arithmetic::<Difference>(i, op),
        Fsubr => arithmetic::<ReverseDifference>(i, op),
        Fmul => arithmetic::<Product>(i, op),
        Fdiv => arithmetic::<Quotient>(i, op),
        Fdivr => arithmetic::<ReverseQuotient>(i, op),
        Faddp => run(op, register::<Sum, true>),
        Fsubp => run(op, register::<Difference, true>),
        Fsubrp => run(op, register::<ReverseDifference, true>),
        Fmulp => run(op, register::<Product, true>),
        Fdivp => run(op, register::<Quotient, true>),
        Fdivrp => run(op, register::<ReverseQuotient, true>),
        Fiadd => with_integer::<Sum>(i, op),
        Fisub => with_integer::<Difference>(i, op),
        Fisubr => with_integer::<ReverseDifference>(i, op),
        Fimul => with_integer::<Product>(i, op),
        Fidiv => with_integer::<Quotient>(i, op),
        Fidivr => with_integer::<ReverseQuotient>(i, op),
        Fsqrt => run(op, |core, op| top(core, op, host::sqrt)),
        Frndint => run(op, |core, op| top(core, op, host::round)),
        Fabs => run(op, |core, op| top(core, op, |_, (m, e)| ((m, e & 0x7fff), 0))),
        Fchs => run(op, |core, op| top(core, op, |_, (m, e)| ((m, e ^ 0x8000), 0))),
        Fscale => run(op, |core, op| two(core, op, 0, 1, false, host::scale)),
        Fxtract => run(op, extract),
        _ => None,
    }
}

fn run(op: &mut Op, f: fn(&mut Core, &Op) -> Flow) -> Option<Kind> {
    op.run = f;
    Some(Kind::Straight)
}

fn arithmetic<A: Arithmetic>(i: &Instruction, op: &mut Op) -> Option<Kind> {
    match (i.op_kind(0), i.memory_size()) {
        (OpKind::Register, _) => run(op, register::<A, false>),
        (_, MemorySize::Float32) => run(op, |core, op| {
            enter(core)?;
            let va = op.ea(core);
            let b = core.mem.load::<u32>(va)?;
            top_entered(core, op, |cw, a| A::single(cw, a, b))
        }),
        _ => run(op, |core, op| {
            enter(core)?;
            let va = op.ea(core);
            let b = core.mem.load::<u64>(va)?;
            top_entered(core, op, |cw, a| A::double(cw, a, b))
        }),
    }
}

fn with_integer<A: Arithmetic>(i: &Instruction, op: &mut Op) -> Option<Kind> {
    if i.memory_size() == MemorySize::Int16 {
        run(op, |core, op| {
            enter(core)?;
            let va = op.ea(core);
            let b = extended(i64::from(core.mem.load::<u16>(va)? as i16));
            top_entered(core, op, |cw, a| A::register(cw, a, b))
        })
    } else {
        run(op, |core, op| {
            enter(core)?;
            let va = op.ea(core);
            let b = extended(i64::from(core.mem.load::<u32>(va)? as i32));
            top_entered(core, op, |cw, a| A::register(cw, a, b))
        })
    }
}

fn register<A: Arithmetic, const POP: bool>(core: &mut Core, op: &Op) -> Flow {
    two(core, op, op.dst, op.src, POP, A::register)
}

/// Sets ST(`dst`) to `f` of ST(`dst`) and ST(`src`).
fn two(
    core: &mut Core,
    op: &Op,
    dst: u8,
    src: u8,
    pops: bool,
    f: fn(u16, Extended, Extended) -> Outcome,
) -> Flow {
    enter(core)?;
    let (r, status) = match (st(core, dst), st(core, src)) {
        (Some(a), Some(b)) => f(core.fpu.fcw, a, b),
        _ => (INDEFINITE, UNDERFLOW),
    };
    if settle(core, op, status & (EXCEPTIONS | C1 | UNDERFLOW), BEFORE) {
        set_st(core, dst, r);
        if pops {
            pop(core);
        }
    }
    Ok(())
}

/// Sets ST(0) to `f` of ST(0).
fn top(core: &mut Core, op: &Op, f: impl Fn(u16, Extended) -> Outcome) -> Flow {
    enter(core)?;
    top_entered(core, op, f)
}

fn top_entered(core: &mut Core, op: &Op, f: impl Fn(u16, Extended) -> Outcome) -> Flow {
    let (r, status) = match st(core, 0) {
        Some(a) => f(core.fpu.fcw, a),
        None => (INDEFINITE, UNDERFLOW),
    };
    if settle(core, op, status, BEFORE) {
        set_st(core, 0, r);
    }
    Ok(())
}

/// FXTRACT: replaces ST(0) by its exponent, and pushes its significand.
fn extract(core: &mut Core, op: &Op) -> Flow {
    enter(core)?;
    let (exponent, significand, status) = match st(core, 0) {
        None => (INDEFINITE, INDEFINITE, UNDERFLOW),
        Some(_) if full(core) => (INDEFINITE, INDEFINITE, OVERFLOW),
        Some(a) => host::extract(core.fpu.fcw, a),
    };
    if settle(core, op, status, BEFORE) {
        set_st(core, 0, exponent);
        push(core, significand);
    }
    Ok(())
}
