//! SYSCALL, SYSENTER, their returns, and SWAPGS (SDM vol. 2B; vol. 3A, 5.8.7 and 5.8.8).

use super::{code_32_bit, ring0};
use crate::core::{Core, efer};
use crate::flags::bits;
use crate::mem::canonical;
use crate::op::{Kind, Op, slot};
use crate::state::{Segment, seg};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Syscall => syscall,
        Mnemonic::Sysretq => sysret,
        Mnemonic::Sysret => sysret_32,
        Mnemonic::Sysenter => sysenter,
        Mnemonic::Sysexitq => sysexit,
        Mnemonic::Sysexit => sysexit_32,
        Mnemonic::Swapgs => swapgs,
        _ => return None,
    };
    Some(if i.mnemonic() == Mnemonic::Swapgs { Kind::Straight } else { Kind::Ends })
}

/// Loads CS with flat 64-bit code and SS with flat data, at privilege level `cpl`. Reads no descriptors.
fn load_flat(core: &mut Core, cs: u16, ss: u16, cpl: u8) {
    let dpl = u16::from(cpl) << 5;
    core.seg[seg::CS] = Segment { selector: cs, base: 0, limit: u32::MAX, access: 0xa09b | dpl };
    core.seg[seg::SS] = Segment { selector: ss, base: 0, limit: u32::MAX, access: 0xc093 | dpl };
    core.cpl = cpl;
}

fn syscall(core: &mut Core, op: &Op) -> Flow {
    if core.efer & efer::SCE == 0 {
        return Err(core.ud());
    }
    let rflags = core.rflags() & !bits::RF;
    core.regs[1] = op.next_rip(core);
    core.regs[11] = rflags;
    core.rip = core.msrs.lstar;
    let base = (core.msrs.star >> 32) as u16;
    load_flat(core, base & 0xfffc, base.wrapping_add(8), 0);
    core.set_rflags(rflags & !core.msrs.fmask);
    // A single-step trap follows SYSCALL only if FMASK leaves TF set.
    core.no_trap = core.rflags & bits::TF == 0 && rflags & bits::TF != 0;
    leave_if_observed(core)
}

fn sysret(core: &mut Core, _op: &Op) -> Flow {
    check_sysret(core)?;
    let rip = core.regs[1];
    if !canonical(rip) {
        return Err(core.gp());
    }
    let base = (core.msrs.star >> 48) as u16;
    core.rip = rip;
    load_flat(core, base.wrapping_add(16) | 3, base.wrapping_add(8) | 3, 3);
    core.set_rflags(core.regs[11] & !bits::RF);
    Err(Stop::Leave)
}

fn sysret_32(core: &mut Core, op: &Op) -> Flow {
    check_sysret(core)?;
    Err(code_32_bit(core, op))
}

fn check_sysret(core: &mut Core) -> Flow {
    if core.efer & efer::SCE == 0 {
        return Err(core.ud());
    }
    ring0(core)
}

fn sysenter(core: &mut Core, _op: &Op) -> Flow {
    let cs = core.msrs.sysenter_cs as u16 & 0xfffc;
    if cs == 0 {
        return Err(core.gp());
    }
    core.rip = core.msrs.sysenter_eip;
    core.regs[4] = core.msrs.sysenter_esp;
    load_flat(core, cs, cs.wrapping_add(8), 0);
    core.rflags &= !bits::IF;
    core.update_mode();
    leave_if_observed(core)
}

/// Ends the block of an instruction that has entered ring 0, if changes of the mode end runs. Otherwise the next block
/// follows at once.
fn leave_if_observed(core: &Core) -> Flow {
    if core.observed_user.is_some() { Err(Stop::Leave) } else { Ok(()) }
}

fn sysexit(core: &mut Core, _op: &Op) -> Flow {
    let cs = check_sysexit(core)?;
    let (rip, rsp) = (core.regs[2], core.regs[1]);
    if !canonical(rip) || !canonical(rsp) {
        return Err(core.gp());
    }
    core.rip = rip;
    core.regs[4] = rsp;
    load_flat(core, cs.wrapping_add(32) | 3, cs.wrapping_add(40) | 3, 3);
    core.update_mode();
    Err(Stop::Leave)
}

fn sysexit_32(core: &mut Core, op: &Op) -> Flow {
    check_sysexit(core)?;
    Err(code_32_bit(core, op))
}

fn check_sysexit(core: &mut Core) -> Result<u16, Stop> {
    let cs = core.msrs.sysenter_cs as u16 & 0xfffc;
    if cs == 0 || core.cpl != 0 {
        return Err(core.gp());
    }
    Ok(cs)
}

fn swapgs(core: &mut Core, _op: &Op) -> Flow {
    ring0(core)?;
    let user = core.regs[slot::GS as usize];
    let kernel = std::mem::replace(&mut core.msrs.kernel_gs_base, user);
    core.set_segment_base(seg::GS, kernel);
    Ok(())
}
