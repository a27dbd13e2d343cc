//! Entry into code and stack segments, with its checks (SDM vol. 3A, 5.8). Far jumps, far calls, far returns and IRET use
//! it.

use super::descriptor::{Descriptor, is_null, null_segment, selector_error};
use crate::core::Core;
use crate::state::{Segment, seg};
use crate::stop::{Flow, Stop, vector};

/// Checks that the target of a transfer is code, reachable, present, and not marked as both 64-bit and 32-bit.
pub(super) fn check_code(core: &mut Core, selector: u16, d: Descriptor, reachable: bool) -> Flow {
    if !d.is_code() || !reachable || (d.long() && d.default_32()) {
        return Err(core.raise_with(vector::GP, selector_error(selector)));
    }
    if !d.present() {
        return Err(core.raise_with(vector::NP, selector_error(selector)));
    }
    Ok(())
}

/// Reads and checks the code segment to which a far return or IRET returns. Its RPL must not be that of an inner
/// ring.
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

/// Reads and checks the stack segment to which a far return or IRET returns. It may be null for 64-bit code outside
/// of ring 3.
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

/// Loads CS and SS and enters the ring of CS. On a switch to an outer ring, segment registers that this ring may not
/// use are cleared. The caller sets RFLAGS or calls `update_mode`.
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
            // The base is kept: FS and GS of 64-bit programs have a null selector and a base from an MSR.
            *s = Segment { base: s.base, ..null_segment(0) };
        }
    }
}
