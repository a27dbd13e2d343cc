//! A set of interrupt vectors, numbered 0 to 255. The registers ISR, TMR and IRR each hold such a set.

use serde::{Deserialize, Serialize};

/// Set of interrupt vectors, one bit per vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Vectors([u32; 8]);

impl Vectors {
    pub(super) fn set(&mut self, vector: u8) {
        self.0[usize::from(vector >> 5)] |= 1 << (vector & 31);
    }
    pub(super) fn clear(&mut self, vector: u8) {
        self.0[usize::from(vector >> 5)] &= !(1 << (vector & 31));
    }
    pub(super) fn get(&self, vector: u8) -> bool {
        self.0[usize::from(vector >> 5)] & 1 << (vector & 31) != 0
    }
    /// Returns the highest vector in the set, if any.
    pub(super) fn highest(&self) -> Option<u8> {
        (0..8u8).rev().find(|&i| self.0[usize::from(i)] != 0).map(|i| {
            let top = 31 - self.0[usize::from(i)].leading_zeros();
            i * 32 + top as u8
        })
    }
    /// Returns vectors 32 * `index` to 32 * `index` + 31 in the format of a LAPIC register.
    pub(super) fn word(&self, index: u64) -> u32 {
        self.0.get(index as usize).copied().unwrap_or(0)
    }
}
