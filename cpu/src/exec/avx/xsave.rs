//! XSAVE, XSAVEOPT, XSAVEC, XRSTOR, XGETBV and XSETBV (SDM vol. 1, chapter 13) for the x87, SSE and AVX components.
//!
//! A component is *in use* exactly if its registers differ from their initial values (XINUSE). XSAVEOPT and XSAVEC
//! do not save components that are not in use. XSAVEOPT saves all others, modified or not.

use crate::core::{Core, cr0, cr4};
use crate::exec::sse::fxsave::{self, Image};
use crate::op::{Kind, Op};
use crate::state::{AVX_AT, AVX_LEN, FpuState, MXCSR_MASK, xcr0};
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Instruction, Mnemonic};

/// Offset in the XSAVE area of XSTATE_BV, the first word of the header.
const HEADER: u64 = 512;
/// Bit of XCOMP_BV: the area has the compacted format.
const COMPACTED: u64 = 1 << 63;
/// Value of MXCSR after a reset.
const MXCSR_INITIAL: u32 = 0x1f80;

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    op.run = match i.mnemonic() {
        Xsave => |core, op| save(core, op, SaveForm::All, false),
        Xsave64 => |core, op| save(core, op, SaveForm::All, true),
        Xsaveopt => |core, op| save(core, op, SaveForm::InUse, false),
        Xsaveopt64 => |core, op| save(core, op, SaveForm::InUse, true),
        Xsavec => |core, op| save(core, op, SaveForm::Compacted, false),
        Xsavec64 => |core, op| save(core, op, SaveForm::Compacted, true),
        Xrstor => |core, op| restore(core, op, false),
        Xrstor64 => |core, op| restore(core, op, true),
        Xgetbv => xgetbv,
        Xsetbv => xsetbv,
        _ => return None,
    };
    Some(Kind::Straight)
}

/// The saving instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SaveForm {
    /// XSAVE.
    All,
    /// XSAVEOPT.
    InUse,
    /// XSAVEC.
    Compacted,
}

/// Raises #UD unless CR4.OSXSAVE is set.
fn enabled(core: &mut Core) -> Flow {
    if core.cr4 & cr4::OSXSAVE != 0 { Ok(()) } else { Err(core.ud()) }
}

/// Returns the address of the XSAVE area, and the components that EDX:EAX and XCR0 select (RFBM). Raises #UD, #NM, or
/// #GP if the address is not aligned to 64 bytes.
fn area(core: &mut Core, op: &Op) -> Result<(u64, u64), Stop> {
    enabled(core)?;
    if core.cr0 & cr0::TS != 0 {
        return Err(core.raise(vector::NM));
    }
    let va = op.ea(core);
    if !crate::mem::canonical(va) {
        return Err(core.mem.non_canonical());
    }
    if va & 63 != 0 {
        return Err(core.gp());
    }
    Ok((va, selected(core) & core.xcr0))
}

/// Returns EDX:EAX.
fn selected(core: &Core) -> u64 {
    core.regs[0] & 0xffff_ffff | core.regs[2] << 32
}

/// Returns the components that are in use (XINUSE, SDM vol. 1, 13.6), without regard to MXCSR.
fn in_use(core: &Core) -> u64 {
    let (now, initial) = (&core.fpu, FpuState::default());
    let x87 = now.r != initial.r
        || (now.fcw, now.fsw, now.ftw) != (initial.fcw, initial.fsw, initial.ftw)
        || (now.fop, now.fip, now.fdp) != (initial.fop, initial.fip, initial.fdp);
    let bit = |used: bool, bit: u64| if used { bit } else { 0 };
    bit(x87, xcr0::X87) | bit(now.xmm != [0; 16], xcr0::SSE) | bit(core.ymm != [0; 16], xcr0::AVX)
}

fn save(core: &mut Core, op: &Op, form: SaveForm, wide: bool) -> Flow {
    let (va, wanted) = area(core, op)?;
    let mut used = in_use(core);
    if form == SaveForm::Compacted && core.fpu.mxcsr != MXCSR_INITIAL {
        used |= xcr0::SSE;
    }
    let saved = if form == SaveForm::All { wanted } else { wanted & used };
    let control = if form == SaveForm::Compacted { saved & xcr0::SSE } else { wanted & xcr0::AVX_STATE };
    // The instruction writes the header, and the part before it only for the components that it saves. It may fault
    // anywhere in that part (SDM vol. 1, 13.13).
    let first = if saved & (xcr0::X87 | xcr0::SSE) | control != 0 { 0 } else { HEADER };
    let end = if saved & xcr0::AVX != 0 { AVX_AT + AVX_LEN } else { AVX_AT };
    core.mem.probe_write(va.wrapping_add(first), end - first)?;
    let header = if form == SaveForm::Compacted {
        wanted & used
    } else {
        core.mem.load::<u64>(va.wrapping_add(HEADER))? & !wanted | wanted & used
    };
    let image = Image::new(&core.fpu, wide);
    if saved & xcr0::X87 != 0 {
        image.store_x87(core, va)?;
    }
    if control != 0 {
        image.store_control(core, va)?;
    }
    if saved & xcr0::SSE != 0 {
        image.store_xmm(core, va)?;
    }
    if saved & xcr0::AVX != 0 {
        let at = va.wrapping_add(AVX_AT);
        for n in 0..16 {
            let v = core.ymm[n];
            core.mem.store(at.wrapping_add(16 * n as u64), v)?;
        }
    }
    core.mem.store(va.wrapping_add(HEADER), header)?;
    if form == SaveForm::Compacted {
        core.mem.store(va.wrapping_add(HEADER + 8), wanted | COMPACTED)?;
    }
    Ok(())
}

fn restore(core: &mut Core, op: &Op, wide: bool) -> Flow {
    let (va, wanted) = area(core, op)?;
    // A page fault at the x87 component, at the start of the area, comes before #GP for the header.
    if wanted & xcr0::X87 != 0 {
        core.mem.probe_read(va)?;
    }
    let mut header = [0; 8];
    for (n, word) in header.iter_mut().enumerate() {
        *word = core.mem.load::<u64>(va.wrapping_add(HEADER + 8 * n as u64))?;
    }
    let [saved, layout, ..] = header;
    let compacted = layout & COMPACTED != 0;
    let control = wanted & if compacted { xcr0::SSE } else { xcr0::AVX_STATE } != 0;
    if control && !compacted {
        // A page fault at MXCSR also comes before #GP for the header, in the standard format.
        core.mem.probe_read(va.wrapping_add(fxsave::MXCSR_AT))?;
    }
    let known = if compacted { layout & !COMPACTED } else { core.xcr0 };
    let reserved = if compacted { &header[2..] } else { &header[1..3] };
    if saved & !known != 0 || known & !core.xcr0 != 0 || reserved.iter().any(|&word| word != 0) {
        return Err(core.gp());
    }
    let mut state = core.fpu.clone();
    let mut ymm = core.ymm;
    let initial = FpuState::default();
    if wanted & xcr0::X87 != 0 {
        if saved & xcr0::X87 != 0 {
            fxsave::load_x87(core, va, wide, &mut state)?;
        } else {
            state = FpuState { mxcsr: state.mxcsr, xmm: state.xmm, ..initial.clone() };
        }
    }
    if wanted & xcr0::SSE != 0 {
        if saved & xcr0::SSE != 0 {
            fxsave::load_xmm(core, va, &mut state)?;
        } else {
            state.xmm = initial.xmm;
        }
    }
    // In the compacted format, MXCSR is a part of the SSE component.
    if compacted && wanted & xcr0::SSE != 0 && saved & xcr0::SSE == 0 {
        state.mxcsr = MXCSR_INITIAL;
    } else if control {
        state.mxcsr = core.mem.load::<u32>(va.wrapping_add(fxsave::MXCSR_AT))?;
        if state.mxcsr & !MXCSR_MASK != 0 {
            return Err(core.gp());
        }
    }
    if wanted & xcr0::AVX != 0 {
        for (n, half) in ymm.iter_mut().enumerate() {
            let at = va.wrapping_add(AVX_AT + 16 * n as u64);
            *half = if saved & xcr0::AVX != 0 { core.mem.load::<u128>(at)? } else { 0 };
        }
    }
    (core.fpu, core.ymm) = (state, ymm);
    Ok(())
}

/// XGETBV of XCR0, or of the components of XCR0 that are in use.
fn xgetbv(core: &mut Core, _op: &Op) -> Flow {
    enabled(core)?;
    let mxcsr = if core.fpu.mxcsr != MXCSR_INITIAL { xcr0::SSE } else { 0 };
    let v = match core.regs[1] as u32 {
        0 => core.xcr0,
        1 => core.xcr0 & (in_use(core) | mxcsr),
        _ => return Err(core.gp()),
    };
    core.regs[0] = v & 0xffff_ffff;
    core.regs[2] = v >> 32;
    Ok(())
}

/// XSETBV of XCR0. The x87 component is always enabled, and AVX needs SSE (SDM vol. 1, 13.3).
fn xsetbv(core: &mut Core, _op: &Op) -> Flow {
    enabled(core)?;
    let v = selected(core);
    let known = xcr0::X87 | xcr0::AVX_STATE;
    let avx_alone = v & xcr0::AVX_STATE == xcr0::AVX;
    if core.cpl != 0 || core.regs[1] as u32 != 0 || v & !known != 0 || v & xcr0::X87 == 0 || avx_alone {
        return Err(core.gp());
    }
    core.xcr0 = v;
    Ok(())
}
