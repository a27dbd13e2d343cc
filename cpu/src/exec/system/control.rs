//! Control registers (SDM vol. 3A, 2.5; vol. 2B, MOV to and from control registers).

use super::table::umip;
use super::{MEMORY, ring0, single_operand, source16, store16};
use crate::core::{Core, cr0, cr4};
use crate::mem::PHYSICAL_BITS;
use crate::mem::mmio::Request;
use crate::op::operand::gpr;
use crate::op::{Handler, Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Code, Instruction, Mnemonic, Register};

/// CR0.ET, which always reads as set.
const CR0_ET: u64 = 1 << 4;
/// Bits that CR0 has besides ET. Other bits of the low half are ignored.
const CR0_KNOWN: u64 =
    cr0::PE | cr0::MP | cr0::EM | cr0::TS | cr0::NE | cr0::WP | cr0::AM | cr0::NW | cr0::CD | cr0::PG;
/// CR4.PSE enables large pages outside long mode. It has no effect here.
const CR4_PSE: u64 = 1 << 4;
/// CR4.PCE permits RDPMC in ring 3. The bit exists, although the modelled CPU has no counters.
const CR4_PCE: u64 = 1 << 8;
/// Bits that CR4 has in all models. `v3` also has OSXSAVE. Other bits raise #GP.
const CR4_KNOWN: u64 = cr4::TSD
    | cr4::DE
    | CR4_PSE
    | cr4::PAE
    | cr4::PGE
    | CR4_PCE
    | cr4::OSFXSR
    | cr4::OSXMMEXCPT
    | cr4::UMIP
    | cr4::SMEP
    | cr4::SMAP;
/// Offset of the task priority register in the local APIC's page.
const APIC_TPR: u64 = 0x80;
const APIC_BASE_ADDRESS: u64 = !0xfff;

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    match i.code() {
        Code::Mov_r64_cr => {
            op.dst = gpr(i.op0_register());
            op.run = match i.op1_register() {
                Register::CR0 => read_cr0,
                Register::CR2 => read_cr2,
                Register::CR3 => read_cr3,
                Register::CR4 => read_cr4,
                Register::CR8 => read_cr8,
                _ => return None,
            };
            return Some(Kind::Straight);
        }
        Code::Mov_cr_r64 => {
            op.src = gpr(i.op1_register());
            op.run = match i.op0_register() {
                Register::CR0 => write_cr0,
                Register::CR2 => write_cr2,
                Register::CR3 => write_cr3,
                Register::CR4 => write_cr4,
                Register::CR8 => write_cr8,
                _ => return None,
            };
            return Some(Kind::Ends);
        }
        _ => {}
    }
    let run: Handler = match i.mnemonic() {
        Mnemonic::Clts => clts,
        Mnemonic::Lmsw => lmsw,
        Mnemonic::Smsw => smsw,
        _ => return None,
    };
    if i.mnemonic() != Mnemonic::Clts {
        single_operand(i, 0, op);
    }
    op.run = run;
    Some(Kind::Straight)
}

fn read(core: &mut Core, op: &Op, v: u64) -> Flow {
    ring0(core)?;
    core.regs[(op.dst & 15) as usize] = v;
    Ok(())
}
fn read_cr0(core: &mut Core, op: &Op) -> Flow {
    read(core, op, core.cr0)
}
fn read_cr2(core: &mut Core, op: &Op) -> Flow {
    read(core, op, core.cr2)
}
fn read_cr3(core: &mut Core, op: &Op) -> Flow {
    read(core, op, core.cr3)
}
fn read_cr4(core: &mut Core, op: &Op) -> Flow {
    read(core, op, core.cr4)
}

/// MOV from CR8. CR8 is bits 4-7 of the local APIC's task priority register. The machine, and not the CPU, models the
/// APIC, so the machine answers the read.
fn read_cr8(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let gpa = (core.msrs.apic_base & APIC_BASE_ADDRESS) | APIC_TPR;
    let tpr = core.mem.mmio.ask(Request::MmioRead { gpa, size: 4 }).ok_or(Stop::Exit)?;
    core.regs[(op.dst & 15) as usize] = tpr >> 4 & 0xf;
    Ok(())
}

fn write_cr8(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let v = core.regs[(op.src & 15) as usize];
    if v > 0xf {
        return Err(core.gp());
    }
    let gpa = (core.msrs.apic_base & APIC_BASE_ADDRESS) | APIC_TPR;
    core.mem.mmio.ask(Request::MmioWrite { gpa, size: 4, value: v << 4 }).ok_or(Stop::Exit)?;
    Err(Stop::Leave)
}

fn write_cr0(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let v = core.regs[(op.src & 15) as usize];
    // Code in 64-bit mode cannot turn off paging or protected mode.
    let impossible = v & (cr0::PE | cr0::PG) != cr0::PE | cr0::PG;
    if v >> 32 != 0 || impossible || (v & cr0::NW != 0 && v & cr0::CD == 0) {
        return Err(core.gp());
    }
    set_cr0(core, v);
    Ok(())
}

fn set_cr0(core: &mut Core, v: u64) {
    let new = v & CR0_KNOWN | CR0_ET;
    let changed = new ^ core.cr0;
    core.cr0 = new;
    if changed & cr0::WP != 0 {
        core.update_paging();
    } else if changed & cr0::AM != 0 {
        core.update_mode();
    }
}

fn write_cr2(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    core.cr2 = core.regs[(op.src & 15) as usize];
    Ok(())
}

fn write_cr3(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let v = core.regs[(op.src & 15) as usize];
    if v >> PHYSICAL_BITS != 0 {
        return Err(core.gp());
    }
    // On hardware, a write of the same value flushes the TLB. The TLB of this CPU has no stale entries, so it needs no
    // flush.
    if v != core.cr3 {
        core.cr3 = v;
        core.mem.set_root(v);
    }
    Ok(())
}

fn write_cr4(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let v = core.regs[(op.src & 15) as usize];
    let known = CR4_KNOWN | if core.model.is_v3() { cr4::OSXSAVE } else { 0 };
    if v & !known != 0 || v & cr4::PAE == 0 {
        return Err(core.gp());
    }
    let changed = v ^ core.cr4;
    core.cr4 = v;
    if changed & (cr4::SMEP | cr4::SMAP) != 0 {
        core.update_paging();
    }
    Ok(())
}

fn clts(core: &mut Core, _op: &Op) -> Flow {
    ring0(core)?;
    core.cr0 &= !cr0::TS;
    Ok(())
}

/// LMSW writes PE, MP, EM and TS, but cannot clear PE.
fn lmsw(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let v = u64::from(source16(core, op)?) & (cr0::PE | cr0::MP | cr0::EM | cr0::TS);
    core.cr0 = core.cr0 & !(cr0::MP | cr0::EM | cr0::TS) | v;
    Ok(())
}

fn smsw(core: &mut Core, op: &Op) -> Flow {
    umip(core)?;
    let v = core.cr0;
    debug_assert!(op.aux & MEMORY != 0 || v >> 32 == 0);
    store16(core, op, v)
}
