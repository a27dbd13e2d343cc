//! CPUID, model-specific registers, the TSC, HLT, and instructions that flush caches and TLBs.

use super::{nothing, ring0};
use crate::core::{Core, cr4};
use crate::op::{Handler, Kind, Op};
use crate::stop::{Flow, Stop};
use crate::{cpuid, msr};
use iced_x86::{Instruction, Mnemonic};

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let (run, kind): (Handler, Kind) = match i.mnemonic() {
        Mnemonic::Cpuid => (cpuid_op, Kind::Straight),
        Mnemonic::Rdmsr => (rdmsr, Kind::Straight),
        // WRMSR can change which code is executable, so it ends the block.
        Mnemonic::Wrmsr => (wrmsr, Kind::Ends),
        Mnemonic::Rdtsc => (rdtsc, Kind::Straight),
        Mnemonic::Rdtscp => (rdtscp, Kind::Straight),
        Mnemonic::Rdpmc => (no_counter, Kind::Straight),
        Mnemonic::Hlt => (hlt, Kind::Ends),
        // The TLB drops an entry as soon as its page tables change, and the modelled CPU has no data caches. So only
        // the privilege check remains.
        Mnemonic::Invlpg | Mnemonic::Invd | Mnemonic::Wbinvd => (ring0_only, Kind::Straight),
        // The modelled CPU has no CET, so these instructions do nothing.
        Mnemonic::Endbr64 | Mnemonic::Endbr32 | Mnemonic::Rdsspd | Mnemonic::Rdsspq => {
            (nothing, Kind::Straight)
        }
        _ => return None,
    };
    op.run = run;
    Some(kind)
}

fn set_pair(core: &mut Core, v: u64) {
    core.regs[0] = v & 0xffff_ffff;
    core.regs[2] = v >> 32;
}

fn cpuid_op(core: &mut Core, _op: &Op) -> Flow {
    if core.panics_from.is_some_and(|icount| core.icount >= icount) {
        panic!("a planted panic of CPUID");
    }
    let seen = cpuid::CpuidInputs {
        apic_base: core.msrs.apic_base,
        osxsave: core.cr4 & cr4::OSXSAVE != 0,
        xcr0: core.xcr0,
    };
    let [a, b, c, d] = cpuid::leaf(core.model, core.regs[0] as u32, core.regs[1] as u32, seen);
    core.regs[0] = u64::from(a);
    core.regs[3] = u64::from(b);
    core.regs[1] = u64::from(c);
    core.regs[2] = u64::from(d);
    Ok(())
}

fn rdmsr(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    match msr::read(core, op, core.regs[1] as u32) {
        Some(v) => {
            set_pair(core, v);
            Ok(())
        }
        None => Err(core.gp()),
    }
}

fn wrmsr(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let v = core.regs[0] & 0xffff_ffff | core.regs[2] << 32;
    if !msr::write(core, op, core.regs[1] as u32, v) {
        return Err(core.gp());
    }
    if core.dead.is_some() {
        core.rip = op.rip(core);
        return Err(Stop::Leave);
    }
    Ok(())
}

fn time_stamp_allowed(core: &mut Core) -> Flow {
    if core.cr4 & cr4::TSD != 0 && core.cpl != 0 { Err(core.gp()) } else { Ok(()) }
}

fn rdtsc(core: &mut Core, op: &Op) -> Flow {
    time_stamp_allowed(core)?;
    let tsc = core.read_tsc(op);
    set_pair(core, tsc);
    Ok(())
}

fn rdtscp(core: &mut Core, op: &Op) -> Flow {
    rdtsc(core, op)?;
    core.regs[1] = core.msrs.tsc_aux & 0xffff_ffff;
    Ok(())
}

/// RDPMC. The modelled CPU has no performance counters, so every index raises #GP.
fn no_counter(core: &mut Core, _op: &Op) -> Flow {
    Err(core.gp())
}

fn hlt(core: &mut Core, _op: &Op) -> Flow {
    ring0(core)?;
    core.halted = true;
    Err(Stop::Leave)
}

fn ring0_only(core: &mut Core, _op: &Op) -> Flow {
    ring0(core)
}
