//! Control and status words, the environment, FSAVE, FRSTOR, and stack management.

use super::stack::{
    EXCEPTIONS, PENDING, TOP_SHIFT, available, enter, free, physical, pop, rotate, settle, update_pending,
};
use crate::core::{Core, cr0};
use crate::op::{Kind, Op};
use crate::state::FpuState;
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Code, Instruction, Mnemonic, OpKind};

/// Bits of the control word that software can set. Bit 6 always reads as set.
const CONTROL: u16 = 0x1f7f;
const CONTROL_FIXED: u16 = 0x40;

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    macro_rules! run {
        ($f:expr) => {{
            op.run = $f;
            Some(Kind::Straight)
        }};
    }
    use Mnemonic::*;
    match i.mnemonic() {
        Fnstcw => run!(|core, op| {
            available(core)?;
            let va = op.ea(core);
            let v = core.fpu.fcw;
            core.mem.store(va, v)
        }),
        Fldcw => run!(|core, op| {
            enter(core)?;
            let va = op.ea(core);
            core.fpu.fcw = core.mem.load::<u16>(va)? & CONTROL | CONTROL_FIXED;
            update_pending(core);
            Ok(())
        }),
        Fnstsw if i.op_kind(0) == OpKind::Register => run!(|core, _| {
            available(core)?;
            core.regs[0] = core.regs[0] & !0xffff | u64::from(core.fpu.fsw);
            Ok(())
        }),
        Fnstsw => run!(|core, op| {
            available(core)?;
            let va = op.ea(core);
            let v = core.fpu.fsw;
            core.mem.store(va, v)
        }),
        Fnclex => run!(|core, _| {
            available(core)?;
            core.fpu.fsw &= 0x7f00;
            Ok(())
        }),
        Fninit => run!(|core, _| {
            available(core)?;
            initialise(core);
            Ok(())
        }),
        Fincstp => run!(|core, op| turn(core, op, 1)),
        Fdecstp => run!(|core, op| turn(core, op, 7)),
        Ffree => run!(|core, op| {
            enter(core)?;
            settle(core, op, 0, 0);
            free(core, op.dst);
            Ok(())
        }),
        Ffreep => run!(|core, op| {
            enter(core)?;
            settle(core, op, 0, 0);
            free(core, op.dst);
            pop(core);
            Ok(())
        }),
        Fnop => run!(|core, op| {
            enter(core)?;
            core.fpu.fip = op.rip(core);
            Ok(())
        }),
        // Instructions of the 8087 and the 80287. They have had no effect since the 80387.
        Fneni | Fndisi | Fnsetpm => run!(|core, _| available(core)),
        Wait => run!(|core, _| {
            if core.cr0 & (cr0::MP | cr0::TS) == cr0::MP | cr0::TS {
                return Err(core.raise(vector::NM));
            }
            if core.fpu.fsw & PENDING != 0 { Err(core.raise(vector::MF)) } else { Ok(()) }
        }),
        Fnstenv if i.code() == Code::Fnstenv_m14byte => run!(|core, op| store_environment(core, op, Short)),
        Fnstenv => run!(|core, op| store_environment(core, op, Long)),
        Fldenv if i.code() == Code::Fldenv_m14byte => run!(|core, op| load_environment(core, op, Short)),
        Fldenv => run!(|core, op| load_environment(core, op, Long)),
        Fnsave if i.code() == Code::Fnsave_m94byte => run!(|core, op| save(core, op, Short)),
        Fnsave => run!(|core, op| save(core, op, Long)),
        Frstor if i.code() == Code::Frstor_m94byte => run!(|core, op| restore(core, op, Short)),
        Frstor => run!(|core, op| restore(core, op, Long)),
        _ => None,
    }
}

/// FNINIT: marks all registers as empty, but keeps their contents.
fn initialise(core: &mut Core) {
    let fresh = FpuState::default();
    let f = &mut core.fpu;
    (f.fcw, f.fsw, f.ftw, f.fop, f.fip, f.fdp) = (fresh.fcw, fresh.fsw, fresh.ftw, 0, 0, 0);
}

fn turn(core: &mut Core, op: &Op, by: u16) -> Flow {
    enter(core)?;
    settle(core, op, 0, 0);
    rotate(core, by);
    Ok(())
}

/// Layout of the environment: 16-bit or 32-bit (SDM vol. 1, figures 8-11 and 8-9).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Short,
    Long,
}
use Layout::{Long, Short};

impl Layout {
    fn bytes(self) -> u64 {
        if self == Short { 14 } else { 28 }
    }
}

/// Returns the tag word in its full form, with two bits for each register.
fn tags(core: &Core) -> u16 {
    (0..8).fold(0, |tags, n| {
        let (significand, exponent) = core.fpu.r[n];
        let tag = match exponent & 0x7fff {
            _ if core.fpu.ftw >> n & 1 == 0 => 3,
            0 if significand == 0 => 1,
            0 | 0x7fff => 2,
            _ if significand >> 63 == 0 => 2,
            _ => 0,
        };
        tags | tag << (2 * n)
    })
}

/// Writes the environment to memory. Checks first that `bytes` bytes from `va` are writable.
fn write_environment(core: &mut Core, va: u64, layout: Layout, bytes: u64) -> Flow {
    // Hardware checks the alignment of the first word before it checks pages.
    core.mem.probe_write(va, if layout == Short { 2 } else { 4 })?;
    core.mem.probe_write(va, bytes)?;
    let (tags, f) = (tags(core), core.fpu.clone());
    if layout == Short {
        let words = [f.fcw, f.fsw, tags, f.fip as u16, 0, f.fdp as u16, 0];
        for (n, word) in words.into_iter().enumerate() {
            core.mem.store(va.wrapping_add(2 * n as u64), word)?;
        }
        return Ok(());
    }
    let reserved = 0xffff_0000;
    let words = [
        reserved | u32::from(f.fcw),
        reserved | u32::from(f.fsw),
        reserved | u32::from(tags),
        f.fip as u32,
        u32::from(f.fop & 0x7ff) << 16,
        f.fdp as u32,
        reserved,
    ];
    for (n, word) in words.into_iter().enumerate() {
        core.mem.store(va.wrapping_add(4 * n as u64), word)?;
    }
    Ok(())
}

/// Reads the environment from memory. Returns the new x87 state without loading it.
fn read_environment(core: &mut Core, va: u64, layout: Layout) -> Result<FpuState, Stop> {
    let mut words = [0u32; 7];
    for (n, word) in words.iter_mut().enumerate() {
        *word = match layout {
            Short => u32::from(core.mem.load::<u16>(va.wrapping_add(2 * n as u64))?),
            Long => core.mem.load::<u32>(va.wrapping_add(4 * n as u64))?,
        };
    }
    let mut f = core.fpu.clone();
    f.fcw = words[0] as u16 & CONTROL | CONTROL_FIXED;
    f.fsw = words[1] as u16;
    f.ftw = (0..8).filter(|n| words[2] >> (2 * n) & 3 != 3).fold(0, |tags, n| tags | 1 << n);
    f.fip = u64::from(words[3]);
    f.fop = if layout == Long { (words[4] >> 16) as u16 & 0x7ff } else { 0 };
    f.fdp = u64::from(words[5]);
    Ok(f)
}

/// FNSTENV, which masks all exceptions after the store.
fn store_environment(core: &mut Core, op: &Op, layout: Layout) -> Flow {
    available(core)?;
    let va = op.ea(core);
    write_environment(core, va, layout, layout.bytes())?;
    core.fpu.fcw |= EXCEPTIONS;
    update_pending(core);
    Ok(())
}

fn load_environment(core: &mut Core, op: &Op, layout: Layout) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    core.fpu = read_environment(core, va, layout)?;
    update_pending(core);
    Ok(())
}

/// FNSAVE, which initialises the FPU after the store.
fn save(core: &mut Core, op: &Op, layout: Layout) -> Flow {
    available(core)?;
    let va = op.ea(core);
    write_environment(core, va, layout, layout.bytes() + 80)?;
    for n in 0..8 {
        let (significand, exponent) = core.fpu.r[physical(core, n)];
        let v = u128::from(significand) | u128::from(exponent) << 64;
        let at = va.wrapping_add(layout.bytes() + 10 * u64::from(n));
        // With alignment checks on, a wider store would raise #AC if the image in memory is aligned to only two bytes.
        for word in 0..5 {
            core.mem.store(at.wrapping_add(2 * word), (v >> (16 * word)) as u16)?;
        }
    }
    initialise(core);
    Ok(())
}

fn restore(core: &mut Core, op: &Op, layout: Layout) -> Flow {
    enter(core)?;
    let va = op.ea(core);
    let mut f = read_environment(core, va, layout)?;
    let top = usize::from(f.fsw >> TOP_SHIFT);
    for n in 0..8 {
        let at = va.wrapping_add(layout.bytes() + 10 * n as u64);
        let mut v = 0u128;
        for word in 0..5 {
            v |= u128::from(core.mem.load::<u16>(at.wrapping_add(2 * word))?) << (16 * word);
        }
        f.r[(top + n) & 7] = (v as u64, (v >> 64) as u16);
    }
    core.fpu = f;
    update_pending(core);
    Ok(())
}
