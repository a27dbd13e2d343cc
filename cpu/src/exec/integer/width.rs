//! Operand widths: reading and writing registers of 8, 16, 32 and 64 bits.

use crate::core::Core;
use crate::mem::Prim;

/// One of the four integer widths.
pub(crate) trait Width: Prim {
    /// Number of bits.
    const BITS: u32;
    /// Mask with one bit for each bit of the width.
    const MASK: u64;
    /// Reads a register, zero-extended. `slot` is a register number; for `u8`, bit 4 selects AH, CH, DH or BH.
    fn read(core: &Core, slot: u8) -> u64;
    /// Writes a register as x86 does: a 32-bit write clears the upper half, and 8-bit and 16-bit writes keep all other
    /// bits. `slot` is as in [`Width::read`].
    fn write(core: &mut Core, slot: u8, v: u64);
    /// Sign-extends the low bits of `v` from this width.
    fn sext(v: u64) -> u64;
    /// Truncates to this width.
    fn from_u64(v: u64) -> Self;
    /// Zero-extends to 64 bits.
    fn to_u64(self) -> u64;
}

macro_rules! common {
    ($t:ty, $s:ty) => {
        const BITS: u32 = <$t>::BITS;
        const MASK: u64 = <$t>::MAX as u64;
        #[inline(always)]
        fn sext(v: u64) -> u64 {
            v as $s as i64 as u64
        }
        #[inline(always)]
        fn from_u64(v: u64) -> Self {
            v as $t
        }
        #[inline(always)]
        fn to_u64(self) -> u64 {
            self as u64
        }
    };
}

impl Width for u8 {
    common!(u8, i8);
    #[inline(always)]
    fn read(core: &Core, slot: u8) -> u64 {
        core.regs[(slot & 15) as usize] >> ((slot >> 4 & 1) * 8) & 0xff
    }
    #[inline(always)]
    fn write(core: &mut Core, slot: u8, v: u64) {
        let shift = (slot >> 4 & 1) * 8;
        let r = &mut core.regs[(slot & 15) as usize];
        *r = *r & !(0xff << shift) | (v & 0xff) << shift;
    }
}
impl Width for u16 {
    common!(u16, i16);
    #[inline(always)]
    fn read(core: &Core, slot: u8) -> u64 {
        core.regs[(slot & 15) as usize] & 0xffff
    }
    #[inline(always)]
    fn write(core: &mut Core, slot: u8, v: u64) {
        let r = &mut core.regs[(slot & 15) as usize];
        *r = *r & !0xffff | v & 0xffff;
    }
}
impl Width for u32 {
    common!(u32, i32);
    #[inline(always)]
    fn read(core: &Core, slot: u8) -> u64 {
        u64::from(core.regs[(slot & 15) as usize] as u32)
    }
    #[inline(always)]
    fn write(core: &mut Core, slot: u8, v: u64) {
        core.regs[(slot & 15) as usize] = u64::from(v as u32);
    }
}
impl Width for u64 {
    common!(u64, i64);
    #[inline(always)]
    fn read(core: &Core, slot: u8) -> u64 {
        core.regs[(slot & 15) as usize]
    }
    #[inline(always)]
    fn write(core: &mut Core, slot: u8, v: u64) {
        core.regs[(slot & 15) as usize] = v;
    }
}
