//! Compares the outcomes of an instruction on host and guest, and describes test cases for messages.

use std::fmt::Write;
use std::ops::Range;

use everett_cpu::state::FpuState;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::arena;
use crate::encode::Encoded;
use crate::exempt::{AfterFault, after_fault, repeats_short};
use crate::forms::{Family, family};
use crate::host::features::Features;
use crate::place::Case;
use crate::state::{End, GPR_NAMES, Outcome, RCX, flag};
use crate::undefined::{Operands, undefined_flags, undefined_result};

/// Bit of a page fault's error code: the page was present.
const PF_PRESENT: u32 = 1;

/// Bit of the x87 status word: an unmasked exception is pending.
pub(crate) const EXCEPTION_PENDING: u16 = 0x80;

/// Describes the differences between the outcomes on the host and in the guest. The result is empty if there are none.
/// `features` are those of the host. Two kinds of flags are ignored: flags in `undefined`, which were undefined before
/// the instruction, and flags that the instruction leaves undefined.
pub(crate) fn differences(
    case: &Case,
    undefined: u64,
    features: Features,
    host: &Outcome,
    guest: &Outcome,
) -> Vec<String> {
    let i = &case.encoded.instruction;
    let operands = Operands { rcx: case.state.gpr[RCX] };
    let mut out = Vec::new();
    let mut check = |name: &str, host: u128, guest: u128, mask: u128| {
        if (host ^ guest) & mask != 0 {
            out.push(format!("{name}: host {host:#x}, guest {guest:#x}, compared {mask:#x}"));
        }
    };
    let overlooked = if host.end == End::Retired { AfterFault::default() } else { after_fault(i) };
    let whole = u128::MAX;
    end(host.end, guest.end, overlooked, &mut check);
    if host.end == End::Retired && guest.end == End::Retired {
        check("retired", host.retired.into(), guest.retired.into(), whole);
    }
    let (h, g) = (&host.state, &guest.state);
    check("rip", h.rip.into(), g.rip.into(), whole);
    let undefined_register = (undefined_result(i, &operands) && i.op_kind(0) == OpKind::Register)
        .then(|| i.op0_register().full_register().number());
    let mut gpr_mask = u64::MAX;
    if overlooked.string_registers || repeats_short(i) && case.state.gpr[RCX] as u32 == 0 {
        gpr_mask = u32::MAX.into();
    }
    for (n, name) in GPR_NAMES.iter().enumerate() {
        if undefined_register != Some(n) {
            check(name, h.gpr[n].into(), g.gpr[n].into(), gpr_mask.into());
        }
    }
    let mut flags = !undefined;
    if host.end == End::Retired {
        flags &= !undefined_flags(i, &operands);
    }
    if host.end == End::Retired {
        // RF is not compared, because the processor sets it between two iterations of a string instruction. TF is
        // compared only after POPF, which writes TF. After other instructions, TF is set on the host because the test
        // single-steps.
        flags &= !flag::RF;
        if i.mnemonic() != iced_x86::Mnemonic::Popfq && i.mnemonic() != iced_x86::Mnemonic::Popf {
            flags &= !flag::TF;
        }
    } else {
        flags &= !flag::TF;
    }
    if h.rip == case.state.rip && i.is_string_instruction() {
        // The instruction has not finished, so "the EFLAGS value is restored to the state prior to the execution of the
        // instruction" (SDM vol. 2B, REP), however many iterations have retired. The next iteration sets the flags
        // again.
        flags &= !flag::ARITH;
    }
    check("rflags", h.rflags.into(), g.rflags.into(), flags.into());
    let (h, g) = (&h.fpu, &g.fpu);
    for n in 0..16 {
        check(&format!("xmm{n}"), h.xmm[n], g.xmm[n], whole);
        check(&format!("ymm{n}, upper half"), host.state.ymm[n], guest.state.ymm[n], whole);
    }
    check("mxcsr", h.mxcsr.into(), g.mxcsr.into(), whole);
    check("fcw", h.fcw.into(), g.fcw.into(), whole);
    const TOP: u128 = 0x3800;
    let (fsw_mask, ftw_mask) = if overlooked.mmx_state { (!TOP, 0) } else { (whole, whole) };
    check("fsw", h.fsw.into(), g.fsw.into(), fsw_mask);
    check("ftw", h.ftw.into(), g.ftw.into(), ftw_mask);
    for n in 0..8 {
        let both = |(significand, exponent): (u64, u16)| u128::from(significand) | u128::from(exponent) << 64;
        check(&format!("r{n}"), both(h.r[n]), both(g.r[n]), whole);
    }
    let pending = h.fsw & EXCEPTION_PENDING != 0;
    let was_pending = case.state.fpu.fsw & EXCEPTION_PENDING != 0;
    // Some hosts hide the x87 pointers: their FXSAVE stores the pointers only while an exception is pending. FLDCW can
    // make an exception pending, but does not set the pointers. The host's pointers cannot be compared then: they were
    // lost when the state was last saved, because no exception was pending at that time.
    let lost = !was_pending && i.mnemonic() == Mnemonic::Fldcw;
    if features.hides_pointers && (!pending || lost) {
        return out;
    }
    check("fop", h.fop.into(), g.fop.into(), whole);
    // FXRSTOR64 makes the pointers canonical: for linear addresses of 48 bits on the soft CPU (Everett's own CPU), and
    // of 57 bits on some hosts.
    const LINEAR: u128 = (1 << 48) - 1;
    check("fip", h.fip.into(), g.fip.into(), LINEAR);
    // Hosts that hide the pointers clear the data pointer when an instruction without a memory operand makes an
    // exception pending.
    let accesses = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    let cleared = features.hides_pointers && !accesses && !was_pending;
    if (features.data_pointer_of_exceptions || pending) && !cleared {
        check("fdp", h.fdp.into(), g.fdp.into(), LINEAR);
    }
    out
}

fn end(host: End, guest: End, overlooked: AfterFault, check: &mut impl FnMut(&str, u128, u128, u128)) {
    const RETIRED: u128 = 0x100;
    let vector = |e| match e {
        End::Retired => RETIRED,
        End::Fault { vector, .. } => vector.into(),
    };
    check("vector (0x100: none)", vector(host), vector(guest), u128::MAX);
    if let (End::Fault { error: h, address: ha, .. }, End::Fault { error: g, address: ga, .. }) =
        (host, guest)
        && !overlooked.address
    {
        let mut mask = u32::MAX;
        if arena::is_upper_half(ha) {
            // Linux does not tell user code which kernel pages are present.
            mask &= !PF_PRESENT;
        }
        check("error code", h.into(), g.into(), mask.into());
        check("fault address", ha.into(), ga.into(), u128::MAX);
    }
}

/// Returns the range from the first differing byte to the last, or `None` if all bytes are equal.
pub(crate) fn range_of_difference(host: &[u8], guest: &[u8]) -> Option<Range<u64>> {
    let mut differ = host.iter().zip(guest).enumerate().filter(|(_, (h, g))| h != g).map(|(at, _)| at as u64);
    let first = differ.next()?;
    Some(first..differ.next_back().unwrap_or(first) + 1)
}

/// Describes up to 32 bytes from the first differing byte on.
pub(crate) fn memory_difference(host: &[u8], guest: &[u8]) -> Option<String> {
    let at = host.iter().zip(guest).position(|(h, g)| h != g)?;
    let end = (at + 32).min(host.len());
    Some(format!("memory at data+{at:#x}: host {:02x?}, guest {:02x?}", &host[at..end], &guest[at..end]))
}

/// Returns an instruction's bytes and its `Code` (mnemonic and operand types) as text.
pub(crate) fn listing(encoded: &Encoded) -> String {
    format!("{:02x?}  ({:?})\n", encoded.bytes, encoded.instruction.code())
}

/// Returns the instruction and the initial state of a case as text.
pub(crate) fn describe(case: &Case) -> String {
    let s = &case.state;
    let mut out = listing(&case.encoded);
    let _ = writeln!(out, "  rip {:#x} rflags {:#x}", s.rip, s.rflags);
    for (n, name) in GPR_NAMES.iter().enumerate() {
        let _ = write!(out, "  {name} {:#x}", s.gpr[n]);
    }
    out.push('\n');
    let f = &s.fpu;
    if matches!(
        family(case.encoded.instruction.code()),
        Family::Sse | Family::Mmx | Family::X87 | Family::Vex
    ) {
        fpu(&case.encoded.instruction, f, &mut out);
    }
    for (n, half) in s.ymm.iter().enumerate().filter(|(_, half)| **half != 0) {
        if (0..case.encoded.instruction.op_count())
            .any(|o| case.encoded.instruction.op_register(o).number() == n)
        {
            let _ = writeln!(out, "  ymm{n}, upper half {half:#034x}");
        }
    }
    for (at, bytes) in &case.writes {
        let _ = writeln!(out, "  arena+{at:#x}: {bytes:02x?}");
    }
    out
}

fn fpu(i: &Instruction, f: &FpuState, out: &mut String) {
    let _ = writeln!(out, "  mxcsr {:#x} fcw {:#x} fsw {:#x} ftw {:#x}", f.mxcsr, f.fcw, f.fsw, f.ftw);
    let _ = writeln!(out, "  fip {:#x} fdp {:#x} fop {:#x}", f.fip, f.fdp, f.fop);
    for (n, xmm) in f.xmm.iter().enumerate() {
        if n == 0 || (0..i.op_count()).any(|o| i.op_register(o) == Register::XMM0 + n as u32) {
            let _ = write!(out, "  xmm{n} {xmm:#034x}");
        }
    }
    out.push('\n');
    if matches!(family(i.code()), Family::Sse | Family::Vex) {
        return;
    }
    for (n, (significand, exponent)) in f.r.iter().enumerate() {
        let _ =
            write!(out, "  r{n} {exponent:#06x}:{significand:#018x}{}", if n % 4 == 3 { "\n" } else { "" });
    }
}
