//! Operands of VEX instructions, the check that the guest may use AVX, and macros for the most common operand forms.

use crate::core::{Core, cr0, cr4};
use crate::mem::Mode;
use crate::op::Op;
use crate::op::operand::is_memory;
use crate::state::xcr0;
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Instruction, OpKind};

/// Mask of the bits of `Op::aux` that hold the register besides `Op::dst` and the operand `rm`.
const OTHER: u16 = 0xf;
/// Bit of `Op::aux`: the operation has 256 bits.
const WIDE: u16 = 0x10;
/// Bit of `Op::aux`: the operand `rm` is in memory.
const MEMORY: u16 = 0x20;
/// Position in `Op::aux` of the binary logarithm of the memory operand's size in bytes.
const SIZE: u32 = 6;
/// Position in `Op::imm` of the fourth register, which the immediate of VBLENDVPS and its relatives encodes.
const FOURTH: u32 = 8;

/// Halves of a YMM register, the lower first.
pub(super) type Ymm = [u128; 2];

/// Raises #UD or #NM under the conditions that all AVX instructions share (SDM vol. 2A, 2.4; vol. 1, 14.3).
#[inline(always)]
pub(super) fn usable(core: &mut Core) -> Flow {
    let enabled = core.cr4 & cr4::OSXSAVE != 0 && core.xcr0 & xcr0::AVX_STATE == xcr0::AVX_STATE;
    if enabled && core.cr0 & cr0::TS == 0 { Ok(()) } else { Err(unusable(core, enabled)) }
}

#[cold]
#[inline(never)]
fn unusable(core: &mut Core, enabled: bool) -> Stop {
    if enabled { core.raise(vector::NM) } else { core.ud() }
}

/// Stores the register numbers, the immediate, and the kind of the operand `rm` in `op`. With three register or memory
/// operands, the second is `other` and the third is `rm` ("RVM" in SDM vol. 2); with two, the second is `rm`.
pub(super) fn operands(i: &Instruction, op: &mut Op) {
    let mut registers = [0; 4];
    let mut places = 0;
    for n in 0..i.op_count().min(4) {
        match i.op_kind(n) {
            OpKind::Register => {
                registers[n as usize] = i.op_register(n).number() as u8;
                op.aux |= if i.op_register(n).is_ymm() { WIDE } else { 0 };
                places += 1;
            }
            OpKind::Memory => {
                let size = i.memory_size().size().max(1);
                op.aux |= MEMORY | (size.ilog2() as u16) << SIZE | if size == 32 { WIDE } else { 0 };
                places += 1;
            }
            OpKind::Immediate8 => op.imm |= u64::from(i.immediate8()),
            _ => {}
        }
    }
    op.dst = registers[0];
    if places == 2 {
        op.src = registers[1];
    } else {
        op.aux |= u16::from(registers[1]);
        op.src = registers[2];
        op.imm |= u64::from(registers[3]) << FOURTH;
    }
    debug_assert!(places <= 4 && !(is_memory(i, 3)));
}

/// True if the operation has 256 bits.
#[inline(always)]
pub(super) fn wide(op: &Op) -> bool {
    op.aux & WIDE != 0
}

/// True if the operand `rm` is in memory.
#[inline(always)]
pub(super) fn in_memory(op: &Op) -> bool {
    op.aux & MEMORY != 0
}

/// Returns the immediate of eight bits.
#[inline(always)]
pub(super) fn immediate(op: &Op) -> u64 {
    op.imm & 0xff
}

/// Returns a YMM register.
#[inline(always)]
pub(super) fn ymm(core: &Core, n: u8) -> Ymm {
    let n = usize::from(n & 15);
    [core.fpu.xmm[n], core.ymm[n]]
}

/// Replaces a YMM register.
#[inline(always)]
pub(super) fn set_ymm(core: &mut Core, n: u8, v: Ymm) {
    let n = usize::from(n & 15);
    [core.fpu.xmm[n], core.ymm[n]] = v;
}

/// Writes the destination register. An operation of 128 bits clears the upper half.
#[inline(always)]
pub(super) fn set(core: &mut Core, op: &Op, v: Ymm) {
    set_ymm(core, op.dst, [v[0], if wide(op) { v[1] } else { 0 }]);
}

/// Returns the register that is neither the destination nor `rm`.
#[inline(always)]
pub(super) fn other(core: &Core, op: &Op) -> Ymm {
    ymm(core, (op.aux & OTHER) as u8)
}

/// Returns the fourth register operand.
#[inline(always)]
pub(super) fn fourth(core: &Core, op: &Op) -> Ymm {
    ymm(core, (op.imm >> FOURTH & 15) as u8)
}

/// Returns the operand `rm`. A memory operand may have any address, and is zero-extended.
#[inline(always)]
pub(super) fn rm(core: &mut Core, op: &Op) -> Result<Ymm, Stop> {
    if !in_memory(op) {
        return Ok(ymm(core, op.src));
    }
    let va = op.ea(core);
    match op.aux >> SIZE & 7 {
        0 => Ok([core.mem.load::<u8>(va)?.into(), 0]),
        1 => Ok([core.mem.load::<u16>(va)?.into(), 0]),
        2 => Ok([core.mem.load::<u32>(va)?.into(), 0]),
        3 => Ok([core.mem.load::<u64>(va)?.into(), 0]),
        4 => Ok([core.mem.load::<u128>(va)?, 0]),
        _ => Ok([core.mem.load::<u128>(va)?, core.mem.load::<u128>(va.wrapping_add(16))?]),
    }
}

/// Accesses memory without alignment checks, which gathers, masked moves and F16C do not make (SDM vol. 2C, VMASKMOV and
/// VCVTPH2PS).
#[inline(always)]
pub(super) fn unchecked<R>(core: &mut Core, f: impl FnOnce(&mut Core) -> R) -> R {
    if core.mem.tlb.mode() != Mode::UserAligned {
        return f(core);
    }
    core.mem.tlb.set_mode(Mode::User);
    let r = f(core);
    core.update_mode();
    r
}

/// Stores 16 or 32 bytes. If a part of them cannot be stored, nothing is stored.
#[inline(always)]
pub(super) fn store(core: &mut Core, va: u64, v: Ymm, wide: bool) -> Flow {
    if !wide {
        return core.mem.store(va, v[0]);
    }
    if va & 0xfff > 4096 - 32 {
        core.mem.probe_write(va, 32)?;
    }
    core.mem.store(va, v[0])?;
    core.mem.store(va.wrapping_add(16), v[1])
}

/// Defines the handler of an instruction. Its code is `$body`, after the check that AVX is usable.
macro_rules! handler {
    ($op:expr, |$core:ident, $o:ident| $body:expr) => {{
        fn run($core: &mut $crate::core::Core, $o: &$crate::op::Op) -> $crate::stop::Flow {
            $crate::exec::avx::operand::usable($core)?;
            $body
        }
        $op.run = run;
        Some($crate::op::Kind::Straight)
    }};
}

/// Defines the handler of an instruction that applies `$body` to each half of `other` and `rm`. `$imm` is the
/// immediate.
macro_rules! halves {
    ($op:expr, |$a:ident, $b:ident, $imm:ident| $body:expr) => {
        handler!($op, |core, o| {
            let b = rm(core, o)?;
            let a = other(core, o);
            #[allow(unused_variables)]
            let half = |n: usize| {
                let ($a, $b, $imm) = (a[n], b[n], immediate(o));
                $body
            };
            let r = [half(0), if wide(o) { half(1) } else { 0 }];
            set(core, o, r);
            Ok(())
        })
    };
}

pub(super) use {halves, handler};
