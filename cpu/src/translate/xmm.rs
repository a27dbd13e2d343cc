//! XMM registers in translated code: which of them are in the host's registers.
//!
//! When a translated block first uses a guest XMM register, the host register of the same number takes its value. The
//! block stores changed values in [`Core`] before other code reads them there.

use std::mem::offset_of;

use super::asm::{Asm, R15};
use super::frame::field;
use crate::core::Core;

/// Returns the displacement of a guest XMM register in [`Core`] from R15, which points into [`Core`]. The register's
/// address is a multiple of 16, because `u128` has that alignment.
const fn place(n: u8) -> i32 {
    field(offset_of!(Core, fpu.xmm) + 16 * n as usize)
}

/// State of the host's XMM registers at one position in a block.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Vectors {
    held: u16,
    /// Registers whose value is only in the host register.
    pub dirty: u16,
    /// True if the block has already checked that the guest may use XMM registers.
    pub usable: bool,
    /// True if the block has already loaded the guest's MXCSR into the host's register.
    pub floating: bool,
}

impl Vectors {
    /// Assigns host register `n` to guest register `n`. With `load`, emits the load of its value.
    pub(super) fn hold(&mut self, asm: &mut Asm, n: u8, load: bool) {
        if load && self.held & 1 << n == 0 {
            asm.load_vector(n, R15, place(n));
        }
        self.held |= 1 << n;
    }
    /// Emits stores of all changed registers. Changes no flags.
    pub(super) fn save(&mut self, asm: &mut Asm) {
        for n in (0..16).filter(|n| self.dirty & 1 << n != 0) {
            asm.store_vector(R15, place(n), n);
        }
        self.dirty = 0;
    }
    /// Forgets all assignments, because other code has used the host registers. That code may also have changed whether
    /// the guest may use XMM registers.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!(self.dirty, 0);
        *self = Vectors::default();
    }
}
