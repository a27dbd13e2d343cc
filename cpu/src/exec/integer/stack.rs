//! Stack instructions: PUSH, POP, LEAVE, ENTER. PUSHF, POPF and segment registers are in `system`.

use super::width::Width;
use crate::core::Core;
use crate::op::operand::{gpr, is_gpr, is_immediate, is_memory};
use crate::op::{Address, Full, Handler, Kind, Op, STACK_SEGMENT};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

const RSP: usize = 4;
const RBP: usize = 5;

#[inline(always)]
fn push<W: Width>(core: &mut Core, v: u64) -> Flow {
    let sp = core.regs[RSP].wrapping_sub(W::SIZE);
    core.mem.store(sp, W::from_u64(v))?;
    core.regs[RSP] = sp;
    Ok(())
}
fn push_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.src);
    push::<W>(core, v)
}
fn push_imm<W: Width>(core: &mut Core, op: &Op) -> Flow {
    push::<W>(core, op.imm)
}
fn push_mem<W: Width>(core: &mut Core, op: &Op) -> Flow {
    match core.mem.load::<W>(Full::of(core, op)) {
        Ok(v) => push::<W>(core, v.to_u64()),
        Err(stop) => Err(core.operand_stop(op, stop)),
    }
}
fn pop_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let sp = core.regs[RSP];
    let v = core.mem.load::<W>(sp)?;
    core.regs[RSP] = sp.wrapping_add(W::SIZE);
    W::write(core, op.dst, v.to_u64());
    Ok(())
}
/// POP to memory. If RSP is the base of the address, its value after the increment counts (SDM vol. 2B, POP).
fn pop_mem<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let sp = core.regs[RSP];
    let v = core.mem.load::<W>(sp)?;
    core.regs[RSP] = sp.wrapping_add(W::SIZE);
    let va = Full::of(core, op);
    core.mem.store(va, v).map_err(|stop| {
        core.regs[RSP] = sp;
        core.operand_stop(op, stop)
    })
}
fn leave<W: Width>(core: &mut Core, _: &Op) -> Flow {
    let sp = core.regs[RBP];
    let v = core.mem.load::<W>(sp)?;
    core.regs[RSP] = sp.wrapping_add(W::SIZE);
    W::write(core, RBP as u8, v.to_u64());
    Ok(())
}
/// ENTER with nesting level `aux` and frame size `imm` (SDM vol. 2A, ENTER).
fn enter<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let level = op.aux & 31;
    if level > 0 {
        core.alone()?;
    }
    let mut sp = core.regs[RSP].wrapping_sub(W::SIZE);
    core.mem.store(sp, W::from_u64(core.regs[RBP]))?;
    let frame = sp;
    if level > 0 {
        let mut bp = core.regs[RBP];
        for _ in 1..level {
            bp = bp.wrapping_sub(W::SIZE);
            let v = core.mem.load::<W>(bp)?;
            sp = sp.wrapping_sub(W::SIZE);
            core.mem.store(sp, v)?;
        }
        sp = sp.wrapping_sub(W::SIZE);
        core.mem.store(sp, W::from_u64(frame))?;
    }
    let sp = sp.wrapping_sub(op.imm);
    core.mem.probe_write(sp, W::SIZE)?;
    W::write(core, RBP as u8, frame);
    core.regs[RSP] = sp;
    Ok(())
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    // The stack pointer has 64 bits. The operand has 64 bits, or 16 bits with an operand-size prefix.
    let small = i.stack_pointer_increment().unsigned_abs() == 2;
    macro_rules! wide {
        ($f:ident) => {
            if small { $f::<u16> as Handler } else { $f::<u64> }
        };
    }
    let run: Handler = match i.mnemonic() {
        Mnemonic::Push if is_gpr(i, 0) => {
            op.src = gpr(i.op0_register());
            wide!(push_reg)
        }
        Mnemonic::Push if is_immediate(i, 0) => {
            op.imm = i.immediate(0);
            wide!(push_imm)
        }
        Mnemonic::Push if is_memory(i, 0) => wide!(push_mem),
        Mnemonic::Pop if is_gpr(i, 0) => {
            op.dst = gpr(i.op0_register());
            wide!(pop_reg)
        }
        Mnemonic::Pop if is_memory(i, 0) => wide!(pop_mem),
        Mnemonic::Leave if i.code() == iced_x86::Code::Leavew => leave::<u16>,
        Mnemonic::Leave => leave::<u64>,
        Mnemonic::Enter => {
            op.imm = u64::from(i.immediate16());
            op.aux = u16::from(i.immediate8_2nd()) & 31;
            if i.code() == iced_x86::Code::Enterw_imm16_imm8 { enter::<u16> } else { enter::<u64> }
        }
        _ => return None,
    };
    op.aux |= STACK_SEGMENT;
    op.run = run;
    Some(Kind::Straight)
}
