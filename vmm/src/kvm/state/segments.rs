//! Segment registers with their hidden parts.
//!
//! The hidden part of a register with a null selector is invisible in 64-bit mode, except for the bases of FS and GS.
//! Hosts leave different values there; the canonical form is zero with the selector's RPL as DPL, as in the soft CPU.

use everett_cpu::state::Segment;
use kvm_bindings::kvm_segment;

/// Descriptor type of a local descriptor table.
const LDT: u16 = 2;

pub(super) fn to_kvm(s: &Segment) -> kvm_segment {
    let bit = |n: u16| (s.access >> n & 1) as u8;
    kvm_segment {
        base: s.base,
        limit: s.limit,
        selector: s.selector,
        type_: (s.access & 0xf) as u8,
        s: bit(4),
        dpl: s.dpl(),
        present: bit(7),
        avl: bit(12),
        l: bit(13),
        db: bit(14),
        g: bit(15),
        unusable: u8::from(!s.present()),
        padding: 0,
    }
}

pub(super) fn from_kvm(s: &kvm_segment) -> Segment {
    let bit = |value: u8, n: u16| u16::from(value & 1) << n;
    let access = u16::from(s.type_ & 0xf)
        | bit(s.s, 4)
        | u16::from(s.dpl & 3) << 5
        | bit(s.present, 7)
        | bit(s.avl, 12)
        | bit(s.l, 13)
        | bit(s.db, 14)
        | bit(s.g, 15);
    Segment { selector: s.selector, base: s.base, limit: s.limit, access }
}

fn is_null(s: &kvm_segment) -> bool {
    s.unusable != 0 || s.present == 0
}

/// Returns the canonical form of a segment register. With a null selector only FS and GS have a base.
pub(super) fn segment_or_null(s: &kvm_segment, has_base: bool) -> Segment {
    if !is_null(s) {
        return from_kvm(s);
    }
    let base = if has_base { s.base } else { 0 };
    Segment { selector: s.selector, base, limit: 0, access: (s.selector & 3) << 5 }
}

/// Returns the canonical form of LDTR. With a null selector it keeps the type, which some code reads from the hidden
/// part.
pub(super) fn local_table(s: &kvm_segment) -> Segment {
    if is_null(s) { Segment { selector: s.selector, base: 0, limit: 0, access: LDT } } else { from_kvm(s) }
}
