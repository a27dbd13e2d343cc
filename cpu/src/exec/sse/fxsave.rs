//! MXCSR, FXSAVE, FXRSTOR, EMMS, fences and hints.

use super::operand::{enter_mmx, handler, mmx_usable, usable};
use crate::core::{Core, cr0};
use crate::mem::canonical;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Instruction, Mnemonic};

use crate::state::{FpuState, MXCSR_MASK};

/// Size of the FXSAVE area in bytes (SDM vol. 1, 10.5.1).
const AREA: u64 = 512;
/// Offset of MXCSR in the FXSAVE area.
pub(crate) const MXCSR_AT: u64 = 24;
/// Offset of ST0 in the FXSAVE area. Each x87 register occupies sixteen bytes.
const ST: u64 = 32;
/// Offset of XMM0 in the FXSAVE area.
const XMM: u64 = 160;

/// Loads MXCSR from memory.
pub(crate) fn load_mxcsr(core: &mut Core, op: &Op) -> Flow {
    let va = op.ea(core);
    let v = core.mem.load::<u32>(va)?;
    if v & !MXCSR_MASK != 0 {
        return Err(core.gp());
    }
    core.fpu.mxcsr = v;
    Ok(())
}

/// Stores MXCSR to memory.
pub(crate) fn store_mxcsr(core: &mut Core, op: &Op) -> Flow {
    let (va, v) = (op.ea(core), core.fpu.mxcsr);
    core.mem.store(va, v)
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Ldmxcsr => handler!(op, |core, o| {
            usable(core)?;
            load_mxcsr(core, o)
        }),
        Stmxcsr => handler!(op, |core, o| {
            usable(core)?;
            store_mxcsr(core, o)
        }),
        Fxsave => handler!(op, |core, o| save(core, o, false)),
        Fxsave64 => handler!(op, |core, o| save(core, o, true)),
        Fxrstor => handler!(op, |core, o| restore(core, o, false)),
        Fxrstor64 => handler!(op, |core, o| restore(core, o, true)),
        Emms => handler!(op, |core, o| {
            mmx_usable(core)?;
            enter_mmx(core);
            core.fpu.ftw = 0;
            Ok(())
        }),
        Lfence | Sfence | Mfence | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchnta | Prefetch
        | Prefetchw => {
            handler!(op, |core, o| Ok(()))
        }
        Clflush => handler!(op, |core, o| {
            let va = o.ea(core);
            core.mem.probe_read(va)
        }),
        _ => None,
    }
}

/// Returns the address of the FXSAVE area. Raises #NM, or #GP if the address is not canonical or not aligned.
fn area(core: &mut Core, op: &Op) -> Result<u64, Stop> {
    if core.cr0 & (cr0::EM | cr0::TS) != 0 {
        return Err(core.raise(vector::NM));
    }
    let va = op.ea(core);
    match va & 15 {
        _ if !canonical(va) => Err(core.mem.non_canonical()),
        0 => Ok(va),
        _ => Err(core.gp()),
    }
}

/// Registers in the form of the FXSAVE area.
pub(crate) struct Image {
    /// Bytes 0-15 of the area.
    head: u128,
    /// Bytes 16-31 of the area: the data pointer, MXCSR and its mask.
    second: u128,
    registers: [u128; 8],
    xmm: [u128; 16],
}

impl Image {
    /// Creates an image, with pointers of 64 bits if `wide` is true, else of 32 bits. The selectors of the last x87
    /// instruction are zero, as CPUID.7:EBX`[13]` announces.
    pub(crate) fn new(f: &FpuState, wide: bool) -> Image {
        let (fip, fdp) = if wide { (f.fip, f.fdp) } else { (f.fip & 0xffff_ffff, f.fdp & 0xffff_ffff) };
        let head = u128::from(f.fcw)
            | u128::from(f.fsw) << 16
            | u128::from(f.ftw) << 32
            | u128::from(f.fop & 0x7ff) << 48
            | u128::from(fip) << 64;
        let second = u128::from(fdp) | u128::from(f.mxcsr) << 64 | u128::from(MXCSR_MASK) << 96;
        let top = usize::from(f.fsw >> 11 & 7);
        let registers = std::array::from_fn(|n| {
            let (significand, exponent) = f.r[(top + n) & 7];
            u128::from(significand) | u128::from(exponent) << 64
        });
        Image { head, second, registers, xmm: f.xmm }
    }
    /// Stores the x87 component of an XSAVE area at `va`.
    pub(crate) fn store_x87(&self, core: &mut Core, va: u64) -> Flow {
        core.mem.store(va, self.head)?;
        core.mem.store(va + 16, self.second as u64)?;
        self.store_registers(core, va)
    }
    /// Stores MXCSR and its mask.
    pub(crate) fn store_control(&self, core: &mut Core, va: u64) -> Flow {
        core.mem.store(va + MXCSR_AT, (self.second >> 64) as u64)
    }
    /// Stores the XMM registers.
    pub(crate) fn store_xmm(&self, core: &mut Core, va: u64) -> Flow {
        (0..16).try_for_each(|n| core.mem.store(va + XMM + 16 * n as u64, self.xmm[n]))
    }
    fn store_registers(&self, core: &mut Core, va: u64) -> Flow {
        (0..8).try_for_each(|n| core.mem.store(va + ST + 16 * n as u64, self.registers[n]))
    }
}

/// FXSAVE and FXSAVE64.
fn save(core: &mut Core, op: &Op, wide: bool) -> Flow {
    let va = area(core, op)?;
    core.mem.probe_write(va, AREA)?;
    let image = Image::new(&core.fpu, wide);
    core.mem.store(va, image.head)?;
    core.mem.store(va + 16, image.second)?;
    image.store_registers(core, va)?;
    image.store_xmm(core, va)
}

/// Returns a loaded status word with correct ES and B: they are set if an unmasked exception is pending.
fn status(fsw: u16, fcw: u16) -> u16 {
    let pending = fsw & !fcw & 0x3f != 0;
    fsw & 0x7f7f | if pending { 0x8080 } else { 0 }
}

/// Loads the x87 registers of an area at `va` into `f`. Returns the area's MXCSR. The 64-bit instruction pointer is
/// sign-extended from 48 bits, which makes it canonical.
pub(crate) fn load_x87(core: &mut Core, va: u64, wide: bool, f: &mut FpuState) -> Result<u32, Stop> {
    let head = core.mem.load::<u128>(va)?;
    let second = core.mem.load::<u128>(va + 16)?;
    f.fcw = head as u16 & 0x1f7f | 0x40;
    f.fsw = status((head >> 16) as u16, f.fcw);
    f.ftw = (head >> 32) as u8;
    f.fop = (head >> 48) as u16 & 0x7ff;
    if wide {
        f.fip = (((head >> 64) as i64) << 16 >> 16) as u64;
        f.fdp = second as u64;
    } else {
        f.fip = u64::from((head >> 64) as u32);
        f.fdp = u64::from(second as u32);
    }
    let top = usize::from(f.fsw >> 11 & 7);
    for n in 0..8 {
        let v = core.mem.load::<u128>(va + ST + 16 * n as u64)?;
        f.r[(top + n) & 7] = (v as u64, (v >> 64) as u16);
    }
    Ok((second >> 64) as u32)
}

/// Loads the XMM registers of an area at `va` into `f`.
pub(crate) fn load_xmm(core: &mut Core, va: u64, f: &mut FpuState) -> Flow {
    for (n, xmm) in f.xmm.iter_mut().enumerate() {
        *xmm = core.mem.load::<u128>(va + XMM + 16 * n as u64)?;
    }
    Ok(())
}

/// FXRSTOR and FXRSTOR64.
fn restore(core: &mut Core, op: &Op, wide: bool) -> Flow {
    let va = area(core, op)?;
    core.mem.probe_read(va)?;
    core.mem.probe_read(va + (AREA - 1))?;
    let mut f = core.fpu.clone();
    f.mxcsr = load_x87(core, va, wide, &mut f)?;
    load_xmm(core, va, &mut f)?;
    if f.mxcsr & !MXCSR_MASK != 0 {
        return Err(core.gp());
    }
    core.fpu = f;
    Ok(())
}
