//! Common parts of far jumps, far calls, far returns and IRET: checking the code and stack segments, and loading them
//! (SDM vol. 3A, 5.8).

use super::descriptor::{Descriptor, is_null, null_segment, selector_error};
use crate::core::Core;
use crate::state::{Segment, seg};
use crate::stop::{Flow, Stop, vector};

/// Raises an exception unless the target of a transfer is a present and reachable code segment. The segment must not be
/// marked as both 64-bit and 32-bit code.
pub(super) fn check_code(core: &mut Core, selector: u16, d: Descriptor, reachable: bool) -> Flow {
    if !d.is_code() || !reachable || (d.long() && d.default_32()) {
        return Err(core.raise_with(vector::GP, selector_error(selector)));
    }
    if !d.present() {
        return Err(core.raise_with(vector::NP, selector_error(selector)));
    }
    Ok(())
}

/// Reads and checks the code segment that a far return or IRET returns to. Its RPL must not be below the CPL.
pub(super) fn return_code(core: &mut Core, cs: u16) -> Result<Descriptor, Stop> {
    if is_null(cs) {
        return Err(core.gp());
    }
    let d = core.descriptor(cs, vector::GP, 0)?;
    let rpl = cs as u8 & 3;
    let fits = if d.is_conforming() { d.dpl() <= rpl } else { d.dpl() == rpl };
    check_code(core, cs, d, rpl >= core.cpl && fits)?;
    Ok(d)
}

/// Reads and checks the stack segment that a far return or IRET returns to. If 64-bit code in ring 0, 1 or 2 is the
/// target, the selector may be null.
pub(super) fn return_stack(
    core: &mut Core,
    ss: u16,
    rpl: u8,
    code: Descriptor,
) -> Result<Option<Descriptor>, Stop> {
    if is_null(ss) {
        return if code.long() && rpl != 3 && ss as u8 & 3 == rpl { Ok(None) } else { Err(core.gp()) };
    }
    core.stack_descriptor(ss, rpl, vector::GP).map(Some)
}

/// Loads CS and SS, and enters the ring of CS. On a switch to an outer ring, clears the segment registers that this
/// ring may not use. Afterwards the caller must set RFLAGS or call `update_mode`.
pub(super) fn enter_ring(
    core: &mut Core,
    (cs, code): (u16, Descriptor),
    (ss, stack): (u16, Option<Descriptor>),
) {
    let rpl = cs as u8 & 3;
    let outward = rpl > core.cpl;
    core.seg[seg::CS] = code.loaded(cs);
    core.seg[seg::SS] = match stack {
        Some(d) => d.loaded(ss),
        None => null_segment(ss),
    };
    core.cpl = rpl;
    if !outward {
        return;
    }
    for which in [seg::ES, seg::DS, seg::FS, seg::GS] {
        let s = &mut core.seg[which];
        let conforming = s.access & 0x1c == 0x1c;
        if is_null(s.selector) || (s.dpl() < rpl && !conforming) {
            // The base stays, because 64-bit programs have null selectors in FS and GS, and bases from MSRs.
            *s = Segment { base: s.base, ..null_segment(0) };
        }
    }
}
