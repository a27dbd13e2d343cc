//! Near control flow: JMP, Jcc, CALL, RET, LOOP, JRCXZ.
//!
//! A decoded direct branch contains its target as an offset from the start of its page. The decoded block is therefore
//! valid at every virtual address at which the guest maps the page.

use crate::core::Core;
use crate::exec::integer::{Condition, number, with_condition};
use crate::mem::canonical;
use crate::op::operand::{gpr, is_gpr, is_memory};
use crate::op::{Address, CONDITIONAL, Full, Handler, JUMP, Kind, Op, STACK_SEGMENT, slot};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic, OpKind};

const RSP: usize = 4;

/// Returns the target of a direct branch.
#[inline(always)]
fn target(core: &Core, op: &Op) -> u64 {
    core.regs[slot::PAGE as usize].wrapping_add(op.disp as i64 as u64)
}
/// Sets RIP. Raises #GP(0) if `rip` is not canonical (SDM vol. 2A, JMP).
#[inline(always)]
fn go(core: &mut Core, rip: u64) -> Flow {
    if !canonical(rip) {
        return Err(core.gp());
    }
    core.rip = rip;
    Ok(())
}

fn jmp(core: &mut Core, op: &Op) -> Flow {
    let rip = target(core, op);
    go(core, rip)
}
fn jcc<C: Condition>(core: &mut Core, op: &Op) -> Flow {
    if C::holds(&core.flags) {
        let rip = target(core, op);
        return go(core, rip);
    }
    Ok(())
}
fn jmp_reg(core: &mut Core, op: &Op) -> Flow {
    let rip = core.regs[(op.src & 15) as usize];
    go(core, rip)
}
fn jmp_mem(core: &mut Core, op: &Op) -> Flow {
    let rip = core.mem.load::<u64>(Full::of(core, op))?;
    go(core, rip)
}
#[inline(always)]
fn call_to(core: &mut Core, op: &Op, rip: u64) -> Flow {
    // The order is that of hardware: a stack fault takes precedence over a bad target, and a bad target faults after
    // the return address was stored.
    let sp = core.regs[RSP].wrapping_sub(8);
    core.mem.store(sp, op.next_rip(core))?;
    go(core, rip)?;
    core.regs[RSP] = sp;
    Ok(())
}
fn call(core: &mut Core, op: &Op) -> Flow {
    let rip = target(core, op);
    call_to(core, op, rip)
}
fn call_reg(core: &mut Core, op: &Op) -> Flow {
    let rip = core.regs[(op.src & 15) as usize];
    call_to(core, op, rip)
}
fn call_mem(core: &mut Core, op: &Op) -> Flow {
    match core.mem.load::<u64>(Full::of(core, op)) {
        Ok(rip) => call_to(core, op, rip),
        Err(stop) => Err(core.operand_stop(op, stop)),
    }
}
/// RET. `imm` is the number of bytes to release besides the return address.
fn ret(core: &mut Core, op: &Op) -> Flow {
    let sp = core.regs[RSP];
    let rip = core.mem.load::<u64>(sp)?;
    go(core, rip)?;
    core.regs[RSP] = sp.wrapping_add(8).wrapping_add(op.imm);
    Ok(())
}

/// LOOP, LOOPE and LOOPNE. Bit 0 of `aux` selects the counter ECX instead of RCX. `imm` is 0 for LOOP, 1 for LOOPE, 2
/// for LOOPNE.
fn loop_cx(core: &mut Core, op: &Op) -> Flow {
    let short = op.aux & 1 != 0;
    let count = core.regs[1].wrapping_sub(1);
    let count = if short { count & 0xffff_ffff } else { count };
    let goes_on = count != 0
        && match op.imm {
            0 => true,
            1 => core.flags.zf(),
            _ => !core.flags.zf(),
        };
    if goes_on {
        let rip = target(core, op);
        go(core, rip)?;
    }
    core.regs[1] = count;
    Ok(())
}
/// JRCXZ, or JECXZ if bit 0 of `aux` is set.
fn jump_if_zero(core: &mut Core, op: &Op) -> Flow {
    let count = if op.aux & 1 != 0 { core.regs[1] & 0xffff_ffff } else { core.regs[1] };
    if count == 0 {
        let rip = target(core, op);
        return go(core, rip);
    }
    Ok(())
}

/// Stores a direct branch's target in `Op::disp`. Returns false if the target does not fit.
fn lower_direct(i: &Instruction, op: &mut Op) -> bool {
    // The decoder numbers addresses from the start of the page, so the target is already relative to the page.
    match i32::try_from(i.near_branch64() as i64) {
        Ok(disp) => op.disp = disp,
        // The instruction's displacement has 32 bits, but its sum with the page offset may need more.
        Err(_) => return false,
    }
    true
}
fn far_direct(core: &mut Core, op: &Op) -> Flow {
    let rip = core.regs[slot::PAGE as usize].wrapping_add(op.imm);
    if op.aux & 1 != 0 { call_to(core, op, rip) } else { go(core, rip) }
}
fn far_conditional<C: Condition>(core: &mut Core, op: &Op) -> Flow {
    if C::holds(&core.flags) {
        let rip = core.regs[slot::PAGE as usize].wrapping_add(op.imm);
        return go(core, rip);
    }
    Ok(())
}

/// True if the instruction is a near branch with a direct target. If it has an operand-size prefix, AMD processors
/// truncate RIP to 16 bits. Intel processors and this CPU ignore the prefix.
fn is_near_branch(i: &Instruction) -> bool {
    matches!(i.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

/// Chooses the handler of a near branch. Returns `None` for other instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let short_counter = i.code().op_code_uses_ecx();
    let run: Handler = match i.mnemonic() {
        Mnemonic::Jmp if is_near_branch(i) => {
            if lower_direct(i, op) {
                jmp
            } else {
                far_target(i, op, false)
            }
        }
        Mnemonic::Jmp if is_gpr(i, 0) => {
            op.src = gpr(i.op0_register());
            jmp_reg
        }
        Mnemonic::Jmp if is_memory(i, 0) && !i.is_jmp_far_indirect() => jmp_mem,
        Mnemonic::Call if is_near_branch(i) => {
            op.aux |= STACK_SEGMENT;
            if lower_direct(i, op) { call } else { far_target(i, op, true) }
        }
        Mnemonic::Call if is_gpr(i, 0) => {
            op.aux |= STACK_SEGMENT;
            op.src = gpr(i.op0_register());
            call_reg
        }
        Mnemonic::Call if is_memory(i, 0) && !i.is_call_far_indirect() => {
            op.aux |= STACK_SEGMENT;
            call_mem
        }
        Mnemonic::Ret => {
            op.aux |= STACK_SEGMENT;
            op.imm = if i.op_count() == 1 { u64::from(i.immediate16()) } else { 0 };
            ret
        }
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne if lower_direct(i, op) => {
            op.aux = u16::from(short_counter);
            op.imm = match i.mnemonic() {
                Mnemonic::Loop => 0,
                Mnemonic::Loope => 1,
                _ => 2,
            };
            loop_cx
        }
        Mnemonic::Jrcxz | Mnemonic::Jecxz if lower_direct(i, op) => {
            op.aux = u16::from(i.mnemonic() == Mnemonic::Jecxz);
            jump_if_zero
        }
        _ if i.is_jcc_short_or_near() => {
            let number = number(i)?;
            if lower_direct(i, op) {
                with_condition!(number, C => jcc::<C> as Handler)
            } else {
                op.imm = i.near_branch64();
                with_condition!(number, C => far_conditional::<C> as Handler)
            }
        }
        _ => return None,
    };
    op.run = run;
    op.aux |= JUMP;
    if !matches!(i.mnemonic(), Mnemonic::Jmp | Mnemonic::Call | Mnemonic::Ret) {
        op.aux |= CONDITIONAL;
    }
    Some(Kind::Ends)
}

/// Stores the target, relative to the page, in `Op::imm`, because it does not fit into `Op::disp`. Returns the handler
/// for this form.
fn far_target(i: &Instruction, op: &mut Op, is_call: bool) -> Handler {
    op.imm = i.near_branch64();
    op.aux |= u16::from(is_call);
    far_direct
}

trait CounterWidth {
    fn op_code_uses_ecx(self) -> bool;
}
impl CounterWidth for iced_x86::Code {
    fn op_code_uses_ecx(self) -> bool {
        use iced_x86::Code::*;
        matches!(self, Loop_rel8_64_ECX | Loope_rel8_64_ECX | Loopne_rel8_64_ECX)
    }
}
