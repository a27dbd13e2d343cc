//! Access to operands, the checks that the guest may use SSE and MMX, and macros for the most common operand forms.

use crate::core::{Core, cr0, cr4};
use crate::mem::Prim;
use crate::op::Op;
use crate::stop::{Flow, Stop, vector};

/// Bit of the x87 status word: an unmasked exception is pending.
const ES: u16 = 0x80;
/// Bits of the x87 status word: TOP.
const TOP: u16 = 0x3800;

/// Raises #UD or #NM under the conditions that all SSE instructions share (SDM vol. 3A, 14.1 and table 2-2).
#[inline(always)]
pub(super) fn usable(core: &mut Core) -> Flow {
    if core.cr0 & (cr0::EM | cr0::TS) | (!core.cr4 & cr4::OSFXSR) == 0 { Ok(()) } else { Err(unusable(core)) }
}

#[cold]
#[inline(never)]
fn unusable(core: &mut Core) -> Stop {
    if core.cr0 & cr0::EM != 0 || core.cr4 & cr4::OSFXSR == 0 { core.ud() } else { core.raise(vector::NM) }
}

/// Raises #UD, #NM or #MF under the conditions that all MMX instructions share (SDM vol. 3A, 13.1 and 13.5).
#[inline(always)]
pub(super) fn mmx_usable(core: &mut Core) -> Flow {
    if core.cr0 & (cr0::EM | cr0::TS) == 0 && core.fpu.fsw & ES == 0 {
        Ok(())
    } else {
        Err(mmx_unusable(core))
    }
}

#[cold]
#[inline(never)]
fn mmx_unusable(core: &mut Core) -> Stop {
    match core.cr0 {
        c if c & cr0::EM != 0 => core.ud(),
        c if c & cr0::TS != 0 => core.raise(vector::NM),
        _ => core.raise(vector::MF),
    }
}

/// Applies the effect of every MMX instruction on the x87 state: TOP becomes 0 and all registers become valid (SDM vol.
/// 3A, table 13-1).
#[inline(always)]
pub(super) fn enter_mmx(core: &mut Core) {
    core.fpu.fsw &= !TOP;
    core.fpu.ftw = 0xff;
}

/// Returns an XMM register.
#[inline(always)]
pub(super) fn xmm(core: &Core, n: u8) -> u128 {
    core.fpu.xmm[(n & 15) as usize]
}

/// Replaces an XMM register.
#[inline(always)]
pub(super) fn set_xmm(core: &mut Core, n: u8, v: u128) {
    core.fpu.xmm[(n & 15) as usize] = v;
}

/// Returns an MMX register.
#[inline(always)]
pub(super) fn mm(core: &Core, n: u8) -> u64 {
    core.fpu.r[(n & 7) as usize].0
}

/// Replaces an MMX register and enters the MMX state ([`enter_mmx`]).
#[inline(always)]
pub(super) fn set_mm(core: &mut Core, n: u8, v: u64) {
    enter_mmx(core);
    core.fpu.r[(n & 7) as usize] = (v, 0xffff);
}

/// Returns `old` with its low `BITS` bits replaced by the low bits of `new`.
#[inline(always)]
pub(crate) fn merge<const BITS: u32>(old: u128, new: u128) -> u128 {
    let mask = (1u128 << BITS) - 1;
    old & !mask | new & mask
}

/// Loads a memory operand, zero-extended. Raises #GP if an operand of sixteen bytes is not aligned.
#[inline(always)]
pub(super) fn load<T: Prim>(core: &mut Core, op: &Op) -> Result<u128, Stop> {
    let va = op.ea(core);
    if T::SIZE == 16 && va & 15 != 0 {
        return Err(core.gp());
    }
    Ok(core.mem.load::<T>(va)?.widen())
}

/// Loads sixteen bytes from any address.
#[inline(always)]
pub(super) fn load_unaligned(core: &mut Core, op: &Op) -> Result<u128, Stop> {
    let va = op.ea(core);
    core.mem.load::<u128>(va)
}

/// Defines the handler of an instruction with operands `xmm, xmm/mem`. It sets the first operand to the value of
/// `$body`. `$mem` is the type of the memory operand.
macro_rules! xmm_op {
    ($i:expr, $op:expr, $mem:ty, |$core:ident, $o:ident, $a:ident, $b:ident| $body:expr) => {{
        #[allow(unused_variables)]
        fn reg($core: &mut Core, $o: &Op) -> Flow {
            usable($core)?;
            let ($a, $b) = (xmm($core, $o.dst), xmm($core, $o.src));
            let r: u128 = $body;
            set_xmm($core, $o.dst, r);
            Ok(())
        }
        #[allow(unused_variables)]
        fn mem($core: &mut Core, $o: &Op) -> Flow {
            usable($core)?;
            let $b = $crate::exec::sse::operand::load::<$mem>($core, $o)?;
            let $a = xmm($core, $o.dst);
            let r: u128 = $body;
            set_xmm($core, $o.dst, r);
            Ok(())
        }
        $op.run = if $crate::op::operand::is_memory($i, 1) { mem } else { reg };
        Some($crate::op::Kind::Straight)
    }};
}

/// Defines the handler of an instruction with operands `mm, mm/mem`, like `xmm_op`. The values are zero-extended from
/// 64 bits.
macro_rules! mm_op {
    ($i:expr, $op:expr, $mem:ty, |$core:ident, $o:ident, $a:ident, $b:ident| $body:expr) => {{
        #[allow(unused_variables)]
        fn reg($core: &mut Core, $o: &Op) -> Flow {
            mmx_usable($core)?;
            let ($a, $b) = (u128::from(mm($core, $o.dst)), u128::from(mm($core, $o.src)));
            let r: u128 = $body;
            set_mm($core, $o.dst, r as u64);
            Ok(())
        }
        #[allow(unused_variables)]
        fn mem($core: &mut Core, $o: &Op) -> Flow {
            mmx_usable($core)?;
            let $b = $crate::exec::sse::operand::load::<$mem>($core, $o)?;
            let $a = u128::from(mm($core, $o.dst));
            let r: u128 = $body;
            set_mm($core, $o.dst, r as u64);
            Ok(())
        }
        $op.run = if $crate::op::operand::is_memory($i, 1) { mem } else { reg };
        Some($crate::op::Kind::Straight)
    }};
}

/// Defines the handler of an instruction with operands `r32/r64, xmm` or `r32/r64, mm`. It sets a general register to
/// the value of `$body`, a u64.
macro_rules! to_gpr {
    ($op:expr, xmm, |$o:ident, $b:ident| $body:expr) => {{
        #[allow(unused_variables)]
        fn reg(core: &mut Core, $o: &Op) -> Flow {
            usable(core)?;
            let $b = xmm(core, $o.src);
            core.regs[($o.dst & 15) as usize] = $body;
            Ok(())
        }
        $op.run = reg;
        Some($crate::op::Kind::Straight)
    }};
    ($op:expr, mm, |$o:ident, $b:ident| $body:expr) => {{
        #[allow(unused_variables)]
        fn reg(core: &mut Core, $o: &Op) -> Flow {
            mmx_usable(core)?;
            let $b = mm(core, $o.src);
            enter_mmx(core);
            core.regs[($o.dst & 15) as usize] = $body;
            Ok(())
        }
        $op.run = reg;
        Some($crate::op::Kind::Straight)
    }};
}

/// Defines the handler of an instruction. Its code is `$body`.
macro_rules! handler {
    ($op:expr, |$core:ident, $o:ident| $body:expr) => {{
        #[allow(unused_variables)]
        fn run($core: &mut Core, $o: &Op) -> Flow {
            $body
        }
        $op.run = run;
        Some($crate::op::Kind::Straight)
    }};
}

pub(super) use {handler, mm_op, to_gpr, xmm_op};
