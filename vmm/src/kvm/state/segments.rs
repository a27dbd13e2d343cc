//! Segment registers with their hidden parts (base, limit and access rights).
//!
//! In 64-bit mode, the hidden part of a register with a null selector is invisible, except for the bases of FS and GS.
//! Hosts leave different values in it. After an IRET to a null SS, for example, some hosts clear the access rights and
//! others leave those of a flat segment. The canonical form is therefore zero, with the selector's RPL as DPL, as in
//! the soft CPU.

use everett_cpu::state::Segment;
use kvm_bindings::kvm_segment;

/// Descriptor type of a local descriptor table.
const LDT: u16 = 2;
/// Access right of a segment that is present.
const PRESENT: u16 = 1 << 7;
/// Limit that marks an LDTR in KVM as not loaded since reset. The table is too short for a descriptor, as with a limit
/// of zero. No guest can read the limit.
const UNLOADED_LIMIT: u32 = 6;

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

/// Returns the canonical form of a segment register. `has_base` is true for FS and GS, whose base survives a null
/// selector. In real mode (`long_mode` is false), selector 0 is a segment like any other.
pub(super) fn segment_or_null(s: &kvm_segment, has_base: bool, long_mode: bool) -> Segment {
    let null = is_null(s) || long_mode && has_null_selector(s.selector);
    if !null {
        return from_kvm(s);
    }
    let base = if has_base { s.base } else { 0 };
    Segment { selector: s.selector, base, limit: 0, access: (s.selector & 3) << 5 }
}

/// Returns LDTR in KVM's form. An LDTR that was not loaded since reset gets [`UNLOADED_LIMIT`], which [`local_table`]
/// recognises.
pub(super) fn local_table_to_kvm(s: &Segment) -> kvm_segment {
    let mut shown = to_kvm(s);
    if s.present() && has_null_selector(s.selector) {
        shown.limit = UNLOADED_LIMIT;
    }
    shown
}

/// Returns the canonical form of LDTR. With a null selector, it keeps the type of a local descriptor table, as on the
/// soft CPU.
///
/// After LLDT with a null selector, some processors report the table as unusable, and others leave its access rights
/// unchanged. In the canonical form, the table is not present, base and limit are zero, and only the type is left. An
/// LDTR that was not loaded since reset has the access rights of reset: it is present.
pub(super) fn local_table(s: &kvm_segment) -> Segment {
    if !has_null_selector(s.selector) && !is_null(s) {
        return from_kvm(s);
    }
    let unloaded = !is_null(s) && s.limit == UNLOADED_LIMIT;
    let access = if unloaded { LDT | PRESENT } else { LDT };
    Segment { selector: s.selector, base: 0, limit: 0, access }
}

fn has_null_selector(selector: u16) -> bool {
    selector & !3 == 0
}

#[cfg(test)]
mod tests {
    use everett_cpu::CpuState;

    use super::*;

    fn null() -> Segment {
        Segment { selector: 0, base: 0, limit: 0, access: LDT }
    }

    #[test]
    fn an_ldtr_comes_back_as_it_was_loaded() {
        let table =
            Segment { selector: 0x48, base: 0xffff_8000_0000_1000, limit: 0xfff, access: LDT | PRESENT };
        for ldtr in [CpuState::default().ldtr, null(), table] {
            assert_eq!(local_table(&local_table_to_kvm(&ldtr)), ldtr);
        }
    }

    #[test]
    fn lldt_of_a_null_selector_leaves_one_form_on_every_make() {
        let before = local_table_to_kvm(&CpuState::default().ldtr);
        let unusable = kvm_segment { limit: 0, unusable: 1, present: 0, ..before };
        let with_its_rights = kvm_segment { limit: 0, ..before };
        for after in [unusable, with_its_rights, kvm_segment { type_: 0, ..unusable }] {
            assert_eq!(local_table(&after), null());
        }
    }

    #[test]
    fn a_null_selector_has_one_form_on_every_make() {
        let flat = Segment { selector: 0, base: 0, limit: u32::MAX, access: 0xc093 };
        let with_rights = to_kvm(&flat);
        let unusable = kvm_segment { unusable: 1, present: 0, limit: 0, ..with_rights };
        for after in [with_rights, unusable] {
            let null = Segment { selector: 0, base: 0, limit: 0, access: 0 };
            assert_eq!(segment_or_null(&after, false, true), null);
            let based = kvm_segment { base: 0x1000, ..after };
            assert_eq!(segment_or_null(&based, true, true), Segment { base: 0x1000, ..null });
        }
        assert_eq!(segment_or_null(&with_rights, false, false), flat, "real mode");
        let loaded = Segment { selector: 0x18, ..flat };
        assert_eq!(segment_or_null(&to_kvm(&loaded), false, true), loaded);
    }

    #[test]
    fn a_table_that_is_marked_has_no_room_for_a_descriptor() {
        assert!(local_table_to_kvm(&CpuState::default().ldtr).limit < 7);
    }
}
