//! Conditional instructions: SETcc and CMOVcc. Conditional branches are in `control`.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::flags::Flags;
use crate::op::operand::{gpr, is_memory, width};
use crate::op::{Address, Full, Handler, Kind, Op};
use crate::stop::Flow;
use iced_x86::{ConditionCode, Instruction};

/// True if condition `CC` holds. `CC` is the low four bits of the opcode.
#[inline(always)]
pub(crate) fn condition<const CC: u8>(f: &Flags) -> bool {
    match CC {
        0 => f.of(),
        1 => !f.of(),
        2 => f.cf(),
        3 => !f.cf(),
        4 => f.zf(),
        5 => !f.zf(),
        6 => f.cf() | f.zf(),
        7 => !(f.cf() | f.zf()),
        8 => f.sf(),
        9 => !f.sf(),
        10 => f.pf(),
        11 => !f.pf(),
        12 => f.lt(),
        13 => !f.lt(),
        14 => f.lt() | f.zf(),
        _ => !(f.lt() | f.zf()),
    }
}

/// A condition as a type, for handlers that are generic over conditions.
pub(crate) trait Condition {
    /// True if the condition holds.
    fn holds(f: &Flags) -> bool;
}
/// The condition with number `CC`.
pub(crate) struct Cc<const CC: u8>;
impl<const CC: u8> Condition for Cc<CC> {
    #[inline(always)]
    fn holds(f: &Flags) -> bool {
        condition::<CC>(f)
    }
}

/// Expands to `$body`, in which `$cc` is the type of the condition with number `$number`.
macro_rules! with_condition {
    ($number:expr, $cc:ident => $body:expr) => {
        $crate::exec::integer::with_condition!(@arms $number, $cc, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    };
    (@arms $number:expr, $cc:ident, $body:expr, $($n:literal)*) => {
        match $number {
            $($n => { type $cc = $crate::exec::integer::Cc<$n>; $body })*
            _ => { type $cc = $crate::exec::integer::Cc<15>; $body }
        }
    };
}
pub(crate) use with_condition;

/// Returns the number of the instruction's condition (the opcode's low four bits), or `None` without a condition.
pub(crate) fn number(i: &Instruction) -> Option<u8> {
    match i.condition_code() {
        ConditionCode::None => None,
        cc => Some(cc as u8 - 1),
    }
}

fn set_register<C: Condition>(core: &mut Core, op: &Op) -> Flow {
    let v = u64::from(C::holds(&core.flags));
    u8::write(core, op.dst, v);
    Ok(())
}
fn set_memory<C: Condition>(core: &mut Core, op: &Op) -> Flow {
    let v = u8::from(C::holds(&core.flags));
    core.mem.store(Full::of(core, op), v)
}
fn cmov_register<W: Width, C: Condition>(core: &mut Core, op: &Op) -> Flow {
    let from = if C::holds(&core.flags) { op.src } else { op.dst };
    // A 32-bit CMOV clears the upper half of the destination even if the condition does not hold.
    let v = W::read(core, from);
    W::write(core, op.dst, v);
    Ok(())
}
fn cmov_memory<W: Width, A: Address, C: Condition>(core: &mut Core, op: &Op) -> Flow {
    // CMOV loads its operand, and may fault, even if the condition does not hold.
    let loaded = core.mem.load::<W>(A::of(core, op))?.to_u64();
    let v = if C::holds(&core.flags) { loaded } else { W::read(core, op.dst) };
    W::write(core, op.dst, v);
    Ok(())
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let number = number(i)?;
    let name = i.code().op_code_is_setcc_or_cmov()?;
    let w = width(i, 0);
    op.run = with_condition!(number, C => lower_one::<C>(i, op, w, name));
    Some(Kind::Straight)
}

fn lower_one<C: Condition>(i: &Instruction, op: &mut Op, w: usize, what: Which) -> Handler {
    match what {
        Which::Set if is_memory(i, 0) => set_memory::<C>,
        Which::Set => {
            op.dst = gpr(i.op0_register());
            set_register::<C>
        }
        Which::Move => {
            op.dst = gpr(i.op0_register());
            if is_memory(i, 1) {
                return by_memory!(op, w, cmov_memory, C);
            }
            op.src = gpr(i.op1_register());
            by_width!(w, cmov_register, C)
        }
    }
}

#[derive(Clone, Copy)]
enum Which {
    Set,
    Move,
}
trait Conditional {
    fn op_code_is_setcc_or_cmov(self) -> Option<Which>;
}
impl Conditional for iced_x86::Code {
    fn op_code_is_setcc_or_cmov(self) -> Option<Which> {
        use iced_x86::Mnemonic::*;
        match self.mnemonic() {
            Seto | Setno | Setb | Setae | Sete | Setne | Setbe | Seta | Sets | Setns | Setp | Setnp
            | Setl | Setge | Setle | Setg => Some(Which::Set),
            Cmovo | Cmovno | Cmovb | Cmovae | Cmove | Cmovne | Cmovbe | Cmova | Cmovs | Cmovns | Cmovp
            | Cmovnp | Cmovl | Cmovge | Cmovle | Cmovg => Some(Which::Move),
            _ => None,
        }
    }
}
