//! Segment registers: MOV, PUSH, POP, LFS, LGS, LSS. Queries of descriptors: LAR, LSL, VERR, VERW.

use super::descriptor::{Descriptor, is_null, null_segment, selector_error};
use super::sized::load_sized;
use super::{MEMORY, SIZE, register_size, set_register, single_operand, source16, store16};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::op::operand::gpr;
use crate::op::{Kind, Op, STACK_SEGMENT};
use crate::state::{Segment, seg};
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Code, Instruction, Mnemonic, Register};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    match i.code() {
        Code::Mov_rm16_Sreg | Code::Mov_r32m16_Sreg | Code::Mov_r64m16_Sreg => {
            single_operand(i, 0, op);
            op.dst = index(i.op1_register()) as u8;
            op.run = move_from;
            return Some(Kind::Straight);
        }
        Code::Mov_Sreg_rm16 | Code::Mov_Sreg_r32m16 | Code::Mov_Sreg_r64m16 => {
            let which = index(i.op0_register());
            if which == seg::CS {
                return None;
            }
            single_operand(i, 1, op);
            op.dst = which as u8;
            op.run = move_to;
            return Some(Kind::Ends);
        }
        Code::Pushw_FS | Code::Pushq_FS | Code::Pushw_GS | Code::Pushq_GS => {
            op.dst = index(i.op0_register()) as u8;
            op.aux |= STACK_SEGMENT | if matches!(i.code(), Code::Pushq_FS | Code::Pushq_GS) { 8 } else { 2 };
            op.run = push;
            return Some(Kind::Straight);
        }
        Code::Popw_FS | Code::Popq_FS | Code::Popw_GS | Code::Popq_GS => {
            op.dst = index(i.op0_register()) as u8;
            op.aux |= STACK_SEGMENT | if matches!(i.code(), Code::Popq_FS | Code::Popq_GS) { 8 } else { 2 };
            op.run = pop;
            return Some(Kind::Straight);
        }
        _ => {}
    }
    let far = |op: &mut Op, which: usize| {
        op.dst = gpr(i.op0_register());
        op.aux |= register_size(i, 0);
        op.imm = which as u64;
        op.run = load_far;
        Some(Kind::Straight)
    };
    let look = |op: &mut Op, run: crate::op::Handler| {
        op.dst = gpr(i.op0_register());
        single_operand(i, 1, op);
        // The destination determines the operand size. The source is a selector.
        op.aux = op.aux & !SIZE | register_size(i, 0);
        op.run = run;
        Some(Kind::Straight)
    };
    match i.mnemonic() {
        Mnemonic::Lss => far(op, seg::SS),
        Mnemonic::Lfs => far(op, seg::FS),
        Mnemonic::Lgs => far(op, seg::GS),
        Mnemonic::Lar => look(op, lar),
        Mnemonic::Lsl => look(op, lsl),
        Mnemonic::Verr | Mnemonic::Verw => {
            single_operand(i, 0, op);
            op.run = if i.mnemonic() == Mnemonic::Verr { verr } else { verw };
            Some(Kind::Straight)
        }
        _ => None,
    }
}

/// Returns the index of a segment register in `Core::seg`.
fn index(r: Register) -> usize {
    match r {
        Register::ES => seg::ES,
        Register::CS => seg::CS,
        Register::SS => seg::SS,
        Register::DS => seg::DS,
        Register::FS => seg::FS,
        _ => seg::GS,
    }
}

fn move_from(core: &mut Core, op: &Op) -> Flow {
    let selector = core.seg[usize::from(op.dst)].selector;
    store16(core, op, u64::from(selector))
}

fn move_to(core: &mut Core, op: &Op) -> Flow {
    let selector = source16(core, op)?;
    let which = usize::from(op.dst);
    let segment = load_segment(core, which, selector)?;
    set_segment(core, which, segment);
    if which == seg::SS {
        core.shadow = true;
        return Err(Stop::Leave);
    }
    Ok(())
}

fn push(core: &mut Core, op: &Op) -> Flow {
    let selector = core.seg[usize::from(op.dst)].selector;
    let size = op.aux & SIZE;
    let rsp = core.regs[4].wrapping_sub(u64::from(size));
    if size == 2 {
        core.mem.store(rsp, selector)?;
    } else {
        core.mem.store(rsp, u64::from(selector))?;
    }
    core.regs[4] = rsp;
    Ok(())
}

fn pop(core: &mut Core, op: &Op) -> Flow {
    let size = op.aux & SIZE;
    let rsp = core.regs[4];
    let selector = load_sized(core, rsp, size)? as u16;
    let which = usize::from(op.dst);
    let segment = load_segment(core, which, selector)?;
    set_segment(core, which, segment);
    core.regs[4] = rsp.wrapping_add(u64::from(size));
    Ok(())
}

fn load_far(core: &mut Core, op: &Op) -> Flow {
    let size = op.aux & SIZE;
    let va = op.ea(core);
    let offset = load_sized(core, va, size)?;
    let selector = core.mem.load::<u16>(va.wrapping_add(u64::from(size)))?;
    let which = op.imm as usize;
    let segment = load_segment(core, which, selector)?;
    set_segment(core, which, segment);
    set_register(core, op.dst, size, offset);
    Ok(())
}

/// Checks a selector for a data or stack segment register, and returns the register's new content (SDM vol. 3A, 5.6 and
/// 5.7).
fn load_segment(core: &mut Core, which: usize, selector: u16) -> Result<Segment, Stop> {
    let rpl = selector as u8 & 3;
    if is_null(selector) {
        if which == seg::SS && (core.cpl == 3 || rpl != core.cpl) {
            return Err(core.gp());
        }
        return Ok(null_segment(selector));
    }
    let d = if which == seg::SS {
        let cpl = core.cpl;
        core.stack_descriptor(selector, cpl, vector::GP)?
    } else {
        let d = core.descriptor(selector, vector::GP, 0)?;
        let privileged = d.is_conforming() || (rpl <= d.dpl() && core.cpl <= d.dpl());
        if !d.is_readable() || !privileged {
            return Err(core.raise_with(vector::GP, selector_error(selector)));
        }
        if !d.present() {
            return Err(core.raise_with(vector::NP, selector_error(selector)));
        }
        d
    };
    core.touch_descriptor(selector, d)?;
    Ok(d.loaded(selector))
}

fn set_segment(core: &mut Core, which: usize, segment: Segment) {
    core.seg[which] = segment;
    core.set_segment_base(which, segment.base);
}

/// Returns the descriptor that LAR, LSL, VERR or VERW queries, or `None` if the selector is null or outside its table.
fn looked_at(core: &mut Core, selector: u16) -> Result<Option<Descriptor>, Stop> {
    match core.descriptor_address(selector, 8) {
        Some(at) if !is_null(selector) => core.load_table(at).map(|d| Some(Descriptor(d))),
        _ => Ok(None),
    }
}

fn visible(core: &Core, selector: u16, d: Descriptor) -> bool {
    d.is_conforming() || (core.cpl <= d.dpl() && selector as u8 & 3 <= d.dpl())
}

fn set_zf(core: &mut Core, on: bool) {
    let others = core.flags.to_bits() & !bits::ZF;
    core.flags = Flags::from_bits(others | if on { bits::ZF } else { 0 });
}

fn lar(core: &mut Core, op: &Op) -> Flow {
    let selector = source16(core, op)?;
    let d = looked_at(core, selector)?
        .filter(|d| visible(core, selector, *d) && (d.is_segment() || matches!(d.kind(), 2 | 9 | 0xb | 0xc)));
    if let Some(d) = d {
        set_register(core, op.dst, op.aux & SIZE, d.0 >> 32 & 0x00f0_ff00);
    }
    set_zf(core, d.is_some());
    Ok(())
}

fn lsl(core: &mut Core, op: &Op) -> Flow {
    let selector = source16(core, op)?;
    let d = looked_at(core, selector)?
        .filter(|d| visible(core, selector, *d) && (d.is_segment() || matches!(d.kind(), 2 | 9 | 0xb)));
    if let Some(d) = d {
        set_register(core, op.dst, op.aux & SIZE, u64::from(d.limit()));
    }
    set_zf(core, d.is_some());
    Ok(())
}

fn verr(core: &mut Core, op: &Op) -> Flow {
    let selector = source16(core, op)?;
    let ok = looked_at(core, selector)?.is_some_and(|d| visible(core, selector, d) && d.is_readable());
    set_zf(core, ok);
    Ok(())
}

fn verw(core: &mut Core, op: &Op) -> Flow {
    let selector = source16(core, op)?;
    let ok = looked_at(core, selector)?.is_some_and(|d| visible(core, selector, d) && d.is_writable());
    set_zf(core, ok);
    Ok(())
}

const _: () = assert!(MEMORY & SIZE == 0);
