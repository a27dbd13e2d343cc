//! XMM registers in translated code: which of them the host's registers hold.
//!
//! The host's XMM register of the same number holds the guest's, from its first use in a block until other code must
//! see it.

use std::mem::offset_of;

use super::asm::{Asm, R15};
use super::frame::field;
use crate::core::Core;

/// Returns the displacement of an XMM register from R15. Its address must be a multiple of 16, which the alignment of
/// `u128` ensures.
const fn place(n: u8) -> i32 {
    field(offset_of!(Core, fpu.xmm) + 16 * n as usize)
}

/// State of the host's XMM registers at one position in a block.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Vectors {
    held: u16,
    /// Registers whose value is only in the host's register.
    pub dirty: u16,
    /// True if this block has checked that the guest may use XMM registers.
    pub usable: bool,
}

impl Vectors {
    /// Makes the host's register number `n` hold the guest's. With `load`, its value is loaded.
    pub(super) fn hold(&mut self, asm: &mut Asm, n: u8, load: bool) {
        if load && self.held & 1 << n == 0 {
            asm.load_vector(n, R15, place(n));
        }
        self.held |= 1 << n;
    }
    /// Emits the stores of all changed registers. Changes no flags.
    pub(super) fn save(&mut self, asm: &mut Asm) {
        for n in (0..16).filter(|n| self.dirty & 1 << n != 0) {
            asm.store_vector(R15, place(n), n);
        }
        self.dirty = 0;
    }
    /// Forgets all registers, because other code used the host's, and may have changed whether the guest may use
    /// them.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!(self.dirty, 0);
        *self = Vectors::default();
    }
}
