//! XMM and YMM registers in translated code: which of them are in the host's registers.
//!
//! When a translated block first uses a guest XMM register, the host register of the same number takes its value. The
//! block stores changed values in [`Core`] before other code reads them there. The two halves of a YMM register are
//! tracked separately. The lower half is the XMM register.
//!
//! **Upper halves.** Where a block begins or ends, and while a legacy SSE instruction executes, all upper halves of the
//! host's registers are zero. SSE instructions are slow otherwise, or wait for older instructions. From the first
//! instruction that may write another value on, until VZEROUPPER, the byte [`UPPERS_IN_USE`] is 1. The routine for
//! accesses that miss the TLB then preserves whole registers.

use std::mem::offset_of;

use super::asm::{Asm, R15};
use super::frame::{UPPERS_IN_USE, field};
use crate::core::Core;

/// True if the host has YMM registers that translated code uses.
pub(super) fn host_has_uppers() -> bool {
    std::is_x86_feature_detected!("avx") && std::is_x86_feature_detected!("avx2")
}

/// Returns the displacement of a guest XMM register in [`Core`] from R15, which points into [`Core`]. The register's
/// address is a multiple of 16, because `u128` has that alignment.
const fn place(n: u8) -> i32 {
    field(offset_of!(Core, fpu.xmm) + 16 * n as usize)
}

/// Returns the displacement of the upper half of a guest YMM register in [`Core`] from R15.
pub(super) const fn upper_place(n: u8) -> i32 {
    field(offset_of!(Core, ymm) + 16 * n as usize)
}

/// State of the host's vector registers at one position in a block.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Vectors {
    /// Registers whose lower half is in the host register.
    held: u16,
    /// Registers whose lower half is only in the host register.
    pub dirty: u16,
    /// Registers whose upper half is in the host register. Their lower half is, too.
    whole: u16,
    /// Registers whose upper half is only in the host register.
    pub upper_dirty: u16,
    /// True if an upper half of a host register may be nonzero. The byte [`UPPERS_IN_USE`] is then 1.
    uppers: bool,
    /// True if the block has already checked that the guest may use XMM registers.
    pub usable: bool,
    /// True if the block has already checked that the guest may use AVX.
    pub avx: bool,
    /// True if the block has already loaded the guest's MXCSR into the host's register.
    pub floating: bool,
}

impl Vectors {
    /// Assigns host register `n` to guest register `n`. With `load`, emits the load of its lower half.
    pub(super) fn hold(&mut self, asm: &mut Asm, n: u8, load: bool) {
        if load && self.held & 1 << n == 0 {
            if self.uppers {
                asm.load_vector_vex(n, R15, place(n));
            } else {
                asm.load_vector(n, R15, place(n));
            }
        }
        self.held |= 1 << n;
    }
    /// Assigns host register `n` to guest register `n`, and emits the load of both halves.
    pub(super) fn hold_whole(&mut self, asm: &mut Asm, n: u8) {
        self.hold(asm, n, true);
        if self.whole & 1 << n == 0 {
            self.use_uppers(asm);
            asm.load_upper(n, R15, upper_place(n));
            self.whole |= 1 << n;
        }
    }
    /// Must be called before code that writes an upper half of a host register. Changes no flags.
    pub(super) fn use_uppers(&mut self, asm: &mut Asm) {
        if !self.uppers {
            asm.store8_imm(R15, UPPERS_IN_USE, 1);
            self.uppers = true;
        }
    }
    /// Records that a VEX instruction has written both halves of a register. The instruction sets the upper half to
    /// zero if it has 128 bits.
    pub(super) fn wrote_whole(&mut self, n: u8) {
        let bit = 1 << n;
        self.held |= bit;
        self.dirty |= bit;
        self.whole |= bit;
        self.upper_dirty |= bit;
    }
    /// Emits the store of host register `n` at a displacement from R15, as far as it holds a guest register.
    pub(super) fn spill(&self, asm: &mut Asm, n: u8, disp: i32) {
        if self.uppers {
            asm.store_whole(R15, disp, n);
        } else {
            asm.store_vector_vex(R15, disp, n);
        }
    }
    /// Emits the load of host register `n` after [`Vectors::spill`].
    pub(super) fn unspill(&self, asm: &mut Asm, n: u8, disp: i32) {
        if self.uppers {
            asm.load_whole(n, R15, disp);
        } else {
            // No upper half differs from zero.
            asm.load_vector_vex(n, R15, disp);
        }
    }
    /// Emits the host's VZEROUPPER, after which the guest's upper halves are zero as well. The caller emits the stores
    /// to [`Core`]. Changes no flags.
    pub(super) fn zero_uppers(&mut self, asm: &mut Asm) {
        self.clear_host(asm);
        self.upper_dirty = 0;
        self.whole = self.held;
    }
    /// Emits code after which the upper halves of the host's registers are zero, as legacy SSE instructions need it.
    /// Changes no flags.
    pub(super) fn leave_uppers(&mut self, asm: &mut Asm) {
        if self.uppers {
            self.save_uppers(asm);
        }
    }
    /// Emits stores of all changed registers. Changes no flags.
    pub(super) fn save(&mut self, asm: &mut Asm) {
        for n in (0..16).filter(|n| self.dirty & 1 << n != 0) {
            if self.uppers {
                asm.store_vector_vex(R15, place(n), n);
            } else {
                asm.store_vector(R15, place(n), n);
            }
        }
        self.dirty = 0;
        if self.uppers || self.upper_dirty != 0 {
            self.save_uppers(asm);
        }
    }
    /// Emits stores of all changed upper halves, and VZEROUPPER.
    fn save_uppers(&mut self, asm: &mut Asm) {
        for n in (0..16).filter(|n| self.upper_dirty & 1 << n != 0) {
            asm.store_upper(R15, upper_place(n), n);
        }
        self.upper_dirty = 0;
        self.whole = 0;
        // Some hosts count even the store of an upper half as the use of it.
        self.clear_host(asm);
    }
    fn clear_host(&mut self, asm: &mut Asm) {
        asm.zero_uppers();
        if self.uppers {
            asm.store8_imm(R15, UPPERS_IN_USE, 0);
            self.uppers = false;
        }
    }
    /// Forgets all assignments, because other code has used the host registers. That code may also have changed whether
    /// the guest may use XMM registers.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!((self.dirty, self.upper_dirty, self.uppers), (0, 0, false));
        *self = Vectors::default();
    }
}
