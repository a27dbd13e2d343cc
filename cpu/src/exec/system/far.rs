//! Far jumps, calls and returns (SDM vol. 2A, CALL and JMP; vol. 2B, RET; vol. 3A, 5.8).

use super::descriptor::{Descriptor, is_null, null_segment, selector_error};
use super::sized::load_sized;
use super::transfer::{check_code, enter_ring, return_code, return_stack};
use super::{SIZE, code_32_bit};
use crate::core::Core;
use crate::mem::{Mode, canonical};
use crate::op::{Kind, Op, STACK_SEGMENT};
use crate::state::seg;
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Code, Instruction, Mnemonic};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let size = match i.code() {
        Code::Jmp_m1616 | Code::Call_m1616 => 2,
        Code::Jmp_m1632 | Code::Call_m1632 => 4,
        Code::Jmp_m1664 | Code::Call_m1664 => 8,
        Code::Retfw | Code::Retfw_imm16 => 2,
        Code::Retfd | Code::Retfd_imm16 => 4,
        Code::Retfq | Code::Retfq_imm16 => 8,
        _ => return None,
    };
    op.aux |= size;
    op.run = match i.mnemonic() {
        Mnemonic::Jmp => jump,
        Mnemonic::Call => call,
        _ => {
            op.imm = if i.op_count() == 1 { u64::from(i.immediate16()) } else { 0 };
            op.aux |= STACK_SEGMENT;
            ret
        }
    };
    Some(Kind::Ends)
}

/// Target of a far jump or call.
struct Target {
    selector: u16,
    code: Descriptor,
    rip: u64,
    /// True if the target was reached through a call gate. Pushes then have 64 bits, and a call may switch to an inner
    /// ring.
    gate: bool,
}

fn jump(core: &mut Core, op: &Op) -> Flow {
    let target = target(core, op, false)?;
    core.touch_descriptor(target.selector, target.code)?;
    let cpl = core.cpl;
    core.seg[seg::CS] = target.code.loaded(target.selector & !3 | u16::from(cpl));
    core.rip = target.rip;
    Err(Stop::Leave)
}

fn call(core: &mut Core, op: &Op) -> Flow {
    core.alone()?;
    let target = target(core, op, true)?;
    let next = op.next_rip(core);
    let cs = u64::from(core.seg[seg::CS].selector);
    let cpl = if target.code.is_conforming() { core.cpl } else { target.code.dpl() };
    let mut rsp = core.regs[4];
    let pushed = if cpl < core.cpl {
        let ss = u64::from(core.seg[seg::SS].selector);
        let frame = [ss, rsp, cs, next];
        rsp = core.tss_stack(4 + u64::from(cpl) * 8, 0)?;
        let mode = core.inner_mode();
        push(core, mode, &mut rsp, 8, &frame)
    } else {
        let mode = core.mem.tlb.mode();
        let size = if target.gate { 8 } else { op.aux & SIZE };
        push(core, mode, &mut rsp, size, &[cs, next])
    };
    pushed.map_err(|stop| core.stack_fault(stop, 0))?;
    core.touch_descriptor(target.selector, target.code)?;
    core.seg[seg::CS] = target.code.loaded(target.selector & !3 | u16::from(cpl));
    if cpl < core.cpl {
        core.seg[seg::SS] = null_segment(u16::from(cpl));
        core.cpl = cpl;
        core.update_mode();
    }
    core.regs[4] = rsp;
    core.rip = target.rip;
    Err(Stop::Leave)
}

fn push(core: &mut Core, mode: Mode, rsp: &mut u64, size: u16, words: &[u64]) -> Flow {
    core.with_mode(mode, |mem| {
        for word in words {
            *rsp = rsp.wrapping_sub(u64::from(size));
            match size {
                2 => mem.store(*rsp, *word as u16)?,
                4 => mem.store(*rsp, *word as u32)?,
                _ => mem.store(*rsp, *word)?,
            }
        }
        Ok(())
    })
}

/// Reads the far pointer, and checks its target.
fn target(core: &mut Core, op: &Op, call: bool) -> Result<Target, Stop> {
    let size = op.aux & SIZE;
    let va = op.ea(core);
    let rip = load_sized(core, va, size)?;
    let selector = core.mem.load::<u16>(va.wrapping_add(u64::from(size)))?;
    if is_null(selector) {
        return Err(core.gp());
    }
    let d = core.descriptor(selector, vector::GP, 0)?;
    if !d.is_segment() {
        return gate_target(core, selector, d, call);
    }
    let rpl = selector as u8 & 3;
    let reachable =
        if d.is_conforming() { d.dpl() <= core.cpl } else { rpl <= core.cpl && d.dpl() == core.cpl };
    check_code(core, selector, d, reachable)?;
    if !d.long() {
        return Err(code_32_bit(core, op));
    }
    if !canonical(rip) {
        return Err(core.gp());
    }
    Ok(Target { selector, code: d, rip, gate: false })
}

/// Reads and checks a 64-bit call gate. Long mode supports no other gates and no tasks as targets.
fn gate_target(core: &mut Core, gate: u16, low: Descriptor, call: bool) -> Result<Target, Stop> {
    let error = selector_error(gate);
    if low.kind() != 0xc || low.dpl() < core.cpl || low.dpl() < gate as u8 & 3 {
        return Err(core.raise_with(vector::GP, error));
    }
    if !low.present() {
        return Err(core.raise_with(vector::NP, error));
    }
    let Some(at) = core.descriptor_address(gate, 16) else {
        return Err(core.raise_with(vector::GP, error));
    };
    let high = core.load_table(at.wrapping_add(8))?;
    if high & 0x1f00_0000_0000 != 0 {
        return Err(core.raise_with(vector::GP, error));
    }
    let selector = (low.0 >> 16) as u16;
    if is_null(selector) {
        return Err(core.gp());
    }
    let code = core.descriptor(selector, vector::GP, 0)?;
    let reachable =
        if call || code.is_conforming() { code.dpl() <= core.cpl } else { code.dpl() == core.cpl };
    check_code(core, selector, code, reachable && code.long())?;
    let rip = low.0 & 0xffff | (low.0 >> 32) & 0xffff_0000 | high << 32;
    if !canonical(rip) {
        return Err(core.gp());
    }
    Ok(Target { selector, code, rip, gate: true })
}

fn ret(core: &mut Core, op: &Op) -> Flow {
    let size = op.aux & SIZE;
    let word = u64::from(size);
    let at = core.regs[4];
    let rip = load_sized(core, at, size)?;
    let cs = load_sized(core, at.wrapping_add(word), size)? as u16;
    let code = return_code(core, cs)?;
    let rpl = cs as u8 & 3;
    let mut rsp = at.wrapping_add(2 * word).wrapping_add(op.imm);
    if rpl == core.cpl {
        if !code.long() {
            return Err(code_32_bit(core, op));
        }
        if !canonical(rip) {
            return Err(core.gp());
        }
        core.touch_descriptor(cs, code)?;
        core.seg[seg::CS] = code.loaded(cs);
    } else {
        let outer = load_sized(core, rsp, size)?;
        let ss = load_sized(core, rsp.wrapping_add(word), size)? as u16;
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
        enter_ring(core, (cs, code), (ss, stack));
        core.update_mode();
        rsp = outer.wrapping_add(op.imm);
    }
    core.regs[4] = rsp;
    core.rip = rip;
    Err(Stop::Leave)
}
