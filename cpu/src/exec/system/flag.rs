//! RFLAGS as a whole, and its bits IF and AC (SDM vol. 2, CLI, STI, PUSHF, POPF, CLAC, STAC).

use super::SIZE;
use crate::core::Core;
use crate::flags::bits;
use crate::op::{Kind, Op, STACK_SEGMENT};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let (run, size, kind): (crate::op::Handler, u16, Kind) = match i.mnemonic() {
        Mnemonic::Cli => (cli, 0, Kind::Straight),
        Mnemonic::Sti => (sti, 0, Kind::Ends),
        Mnemonic::Clac => (set_ac::<false>, 0, Kind::Straight),
        Mnemonic::Stac => (set_ac::<true>, 0, Kind::Straight),
        Mnemonic::Pushf => (pushf, STACK_SEGMENT | 2, Kind::Straight),
        Mnemonic::Pushfq => (pushf, STACK_SEGMENT | 8, Kind::Straight),
        Mnemonic::Popf => (popf, STACK_SEGMENT | 2, Kind::Ends),
        Mnemonic::Popfq => (popf, STACK_SEGMENT | 8, Kind::Ends),
        _ => return None,
    };
    op.run = run;
    op.aux |= size;
    Some(kind)
}

/// True if code at this CPL may change IF and use all ports: CPL is at most IOPL.
#[inline(always)]
pub(super) fn io_privileged(core: &Core) -> bool {
    u64::from(core.cpl) <= (core.rflags & bits::IOPL) >> 12
}

fn cli(core: &mut Core, _op: &Op) -> Flow {
    if !io_privileged(core) {
        return Err(core.gp());
    }
    core.rflags &= !bits::IF;
    Ok(())
}

fn sti(core: &mut Core, _op: &Op) -> Flow {
    if !io_privileged(core) {
        return Err(core.gp());
    }
    if core.rflags & bits::IF != 0 {
        return Ok(());
    }
    core.rflags |= bits::IF;
    // If TF is set, STI starts no interrupt shadow. STI does not delay the single-step trap after it, and entering the
    // trap's handler would end the shadow anyway.
    core.shadow = core.rflags & bits::TF == 0;
    Err(Stop::Leave)
}

/// STI that is not the last instruction of its block. The next instruction executes even if an interrupt is pending,
/// and ends the interrupt shadow. Nothing can observe the shadow, so it is not recorded.
pub(crate) fn sti_within(core: &mut Core, _op: &Op) -> Flow {
    if !io_privileged(core) {
        return Err(core.gp());
    }
    if core.window && core.rflags & bits::IF == 0 {
        // The machine waits for an interrupt window, which opens after the next instruction. The run must be able to
        // end there, so STI must execute in a block of its own.
        return Err(Stop::Single);
    }
    core.rflags |= bits::IF;
    Ok(())
}

/// CLAC and STAC, which raise #UD outside ring 0.
fn set_ac<const ON: bool>(core: &mut Core, _op: &Op) -> Flow {
    if core.cpl != 0 {
        return Err(core.ud());
    }
    if ON {
        core.rflags |= bits::AC;
    } else {
        core.rflags &= !bits::AC;
    }
    core.update_mode();
    Ok(())
}

/// PUSHF. RF is clear in the pushed value.
fn pushf(core: &mut Core, op: &Op) -> Flow {
    let image = core.rflags() & !bits::RF;
    let rsp = core.regs[4].wrapping_sub(u64::from(op.aux & SIZE));
    if op.aux & SIZE == 2 {
        core.mem.store(rsp, image as u16)?;
    } else {
        core.mem.store(rsp, image)?;
    }
    core.regs[4] = rsp;
    Ok(())
}

fn popf(core: &mut Core, op: &Op) -> Flow {
    let size = op.aux & SIZE;
    let rsp = core.regs[4];
    let (popped, mut mask) = if size == 2 {
        (u64::from(core.mem.load::<u16>(rsp)?), 0)
    } else {
        (core.mem.load::<u64>(rsp)? & !bits::RF, bits::AC | bits::ID | bits::RF)
    };
    mask |= bits::ARITH | bits::TF | bits::DF | bits::NT;
    if core.cpl == 0 {
        mask |= bits::IOPL;
    }
    if io_privileged(core) {
        mask |= bits::IF;
    }
    let rflags = core.rflags() & !mask | popped & mask;
    core.regs[4] = rsp.wrapping_add(u64::from(size));
    core.set_rflags(rflags);
    Err(Stop::Leave)
}
