//! IRET in 64-bit mode, which always pops SS:RSP (SDM vol. 2A, IRET).

use super::descriptor::is_null;
use super::sized::load_sized;
use super::transfer::{enter_ring, return_code, return_stack};
use super::{SIZE, code_32_bit};
use crate::core::Core;
use crate::flags::bits;
use crate::mem::canonical;
use crate::op::{Kind, Op, STACK_SEGMENT};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let size = match i.mnemonic() {
        Mnemonic::Iret => 2,
        Mnemonic::Iretd => 4,
        Mnemonic::Iretq => 8,
        _ => return None,
    };
    op.aux |= STACK_SEGMENT | size;
    op.run = iret;
    Some(Kind::Ends)
}

fn iret(core: &mut Core, op: &Op) -> Flow {
    if core.rflags & bits::NT != 0 {
        return Err(core.gp());
    }
    let size = op.aux & SIZE;
    let mut frame = [0u64; 5];
    let mut at = core.regs[4];
    for word in &mut frame {
        *word = load_sized(core, at, size)?;
        at = at.wrapping_add(u64::from(size));
    }
    let [rip, cs, popped, rsp, ss] = frame;
    let (cs, ss) = (cs as u16, ss as u16);

    let code = return_code(core, cs)?;
    let rpl = cs as u8 & 3;
    let stack = return_stack(core, ss, rpl, code)?;
    if !code.long() {
        return Err(code_32_bit(core, op));
    }
    if !canonical(rip) {
        return Err(core.gp());
    }
    core.touch_descriptor(cs, code)?;
    if let Some(d) = stack {
        core.touch_descriptor(ss, d)?;
    }

    let mut mask = bits::ARITH | bits::TF | bits::DF | bits::NT;
    if size > 2 {
        mask |= bits::RF | bits::AC | bits::ID;
    }
    if core.cpl == 0 {
        mask |= bits::IOPL;
    }
    if u64::from(core.cpl) <= (core.rflags & bits::IOPL) >> 12 {
        mask |= bits::IF;
    }
    let rflags = core.rflags() & !mask | popped & mask;
    debug_assert!(!is_null(cs));
    enter_ring(core, (cs, code), (ss, stack));
    core.regs[4] = rsp;
    core.rip = rip;
    core.set_rflags(rflags);
    Err(Stop::Leave)
}
