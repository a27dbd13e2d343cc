//! Bits of RFLAGS. The tests of the KVM engine use this file, too.

pub(crate) const CF: u64 = 1;
pub(crate) const PF: u64 = 1 << 2;
pub(crate) const AF: u64 = 1 << 4;
pub(crate) const ZF: u64 = 1 << 6;
pub(crate) const SF: u64 = 1 << 7;
pub(crate) const TF: u64 = 1 << 8;
pub(crate) const DF: u64 = 1 << 10;
pub(crate) const OF: u64 = 1 << 11;
pub(crate) const RF: u64 = 1 << 16;
pub(crate) const AC: u64 = 1 << 18;
/// The six arithmetic flags.
pub(crate) const ARITH: u64 = CF | PF | AF | ZF | SF | OF;
