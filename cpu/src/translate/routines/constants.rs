//! Constants that translated code reads beside the routines.

use crate::translate::asm::Asm;

/// Distance in the table from the infinities to the masks of the same format, in bytes.
pub(in crate::translate) const MASKS_AT: i64 = 32;
/// Distance in the table from the constants of single precision to those of double precision, in bytes.
pub(in crate::translate) const DOUBLES_AT: u64 = 64;

/// Emits the table of constants: vectors of 32 bytes with infinities, and with masks that exclude the sign bit.
pub(super) fn constants(asm: &mut Asm) {
    for word in [0x7f80_0000_7f80_0000, 0x7fff_ffff_7fff_ffff, 0x7ff0_0000_0000_0000, u64::MAX >> 1] {
        (0..4).for_each(|_| asm.raw(&word.to_le_bytes()));
    }
}
