//! INT n, INT3 and INT1, which enter the guest's handler of an interrupt or exception.

use crate::core::Core;
use crate::exec::event::Event;
use crate::flags::bits;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Instruction, Mnemonic};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    match i.mnemonic() {
        Mnemonic::Int => {
            op.imm = u64::from(i.immediate8());
            op.run = int_n;
        }
        Mnemonic::Int3 => {
            op.imm = u64::from(vector::BP);
            op.run = int_n;
        }
        Mnemonic::Int1 => op.run = int1,
        _ => return None,
    }
    Some(Kind::Ends)
}

fn int_n(core: &mut Core, op: &Op) -> Flow {
    enter(core, op, op.imm as u8, true)
}

/// INT1 raises #DB. It sets no bit in DR6, and delivery does not check the gate's DPL.
fn int1(core: &mut Core, op: &Op) -> Flow {
    enter(core, op, vector::DB, false)
}

fn enter(core: &mut Core, op: &Op, vector: u8, software: bool) -> Flow {
    core.alone()?;
    let next = op.next_rip(core);
    let stepping = core.rflags & bits::TF != 0;
    core.enter(Event { vector, error: None, software, resume: false }, next)?;
    // Entering the handler cleared TF, so no single-step trap follows this instruction.
    core.no_trap = stepping;
    Err(Stop::Leave)
}
