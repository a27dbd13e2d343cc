//! The lookup of the block of instructions at RIP, and what the run loop does when a block ends early.

use crate::core::Core;
use crate::decode::cache::{Cache, Extent, Guess};
use crate::exit::Exit;
use crate::mem::Access;
use crate::op::{Op, STACK_SEGMENT};
use crate::state::Unsupported;
use crate::stop::{Stop, vector};

/// How the run loop continues after a block or instruction.
pub(crate) enum Ended {
    /// The run loop checks limits and interrupts, and then continues.
    Check,
    /// The next instruction must be executed alone.
    Single,
    /// The run ends.
    Exit(Exit),
}

/// Returns the slot, in the block cache, of the block at RIP. Decodes the block if it is not cached. For
/// [`Extent::Block`], returns `Stop::Single` if the page has a breakpoint.
#[inline(always)]
pub(crate) fn find(cache: &mut Cache, core: &mut Core, extent: Extent) -> Result<usize, Stop> {
    let rip = core.rip;
    let gpa = match core.mem.exec_gpa(rip) {
        Some(gpa) => gpa,
        None if extent == Extent::Block && core.mem.page_has_breakpoint(rip) => return Err(Stop::Single),
        None => fetch(core, rip)?,
    };
    match cache.find(&core.mem, gpa, extent) {
        Some(index) => Ok(index),
        None => find_slow(cache, core, gpa, extent),
    }
}

/// Returns the slot of the block at RIP like [`find`], on a page with breakpoints.
pub(crate) fn find_past_breakpoints(cache: &mut Cache, core: &mut Core) -> Result<usize, Stop> {
    let gpa = fetch(core, core.rip)?;
    match cache.find(&core.mem, gpa, Extent::Block) {
        Some(index) => Ok(index),
        None => find_slow(cache, core, gpa, Extent::Block),
    }
}

/// Returns the slot of the block at RIP if the guess (the block that the CPU expected next) is that block.
#[inline(always)]
pub(crate) fn guessed(cache: &Cache, core: &Core, guess: Guess) -> Option<usize> {
    cache.guessed(&core.mem, guess, core.mem.exec_gpa(core.rip)?)
}

#[cold]
#[inline(never)]
fn fetch(core: &mut Core, rip: u64) -> Result<u64, Stop> {
    let mode = core.mem.tlb.mode();
    let gpa = core.mem.translate(rip, Access::Exec, mode)?;
    if !core.mem.ram.contains(gpa & !0xfff, 4096) {
        core.unsupported(Unsupported::FetchOutsideRam);
        return Err(Stop::Exit);
    }
    Ok(gpa)
}

#[cold]
#[inline(never)]
fn find_slow(cache: &mut Cache, core: &mut Core, gpa: u64, extent: Extent) -> Result<usize, Stop> {
    let next_page = (core.rip | 0xfff).wrapping_add(1);
    let mut outside = false;
    let found = cache.find_or_decode(&mut core.mem, gpa, extent, |mem| {
        if let Some(page) = mem.exec_gpa(next_page) {
            return Ok(page);
        }
        let mode = mem.tlb.mode();
        let page = mem.translate(next_page, Access::Exec, mode)?;
        if mem.ram.contains(page & !0xfff, 4096) {
            return Ok(page);
        }
        outside = true;
        Err(Stop::Exit)
    });
    if outside {
        core.unsupported(Unsupported::FetchOutsideRam);
    }
    found
}

/// Handles a failed fetch of the next instruction. If the fetch raised a fault, delivers the fault. A fetch outside RAM
/// raises none: it has marked the CPU as dead, and the run loop's check then ends the run. On a page with breakpoints,
/// the run loop takes over, too.
#[cold]
pub(crate) fn not_fetched(core: &mut Core, stop: Stop) -> Ended {
    if stop == Stop::Fault {
        let fault = core.mem.fault;
        core.deliver_fault(fault, core.rip);
    }
    Ended::Check
}

/// Handles an instruction that ended its block early: corrects RIP and the instruction count, and delivers faults.
#[cold]
#[inline(never)]
pub(crate) fn stopped(core: &mut Core, op: &Op, stop: Stop) -> Ended {
    core.icount += u64::from(op.idx);
    if stop == Stop::Leave {
        core.icount += 1;
        return Ended::Check;
    }
    core.rip = op.rip(core);
    match stop {
        Stop::Leave => Ended::Check,
        Stop::Single => Ended::Single,
        Stop::Fault => {
            let mut fault = core.mem.fault;
            if fault.non_canonical && op.aux & STACK_SEGMENT != 0 {
                fault.vector = vector::SS;
            }
            core.deliver_fault(fault, core.rip);
            Ended::Check
        }
        Stop::Exit => match core.mem.mmio.pending {
            // The CPU executes the instruction again once the device has answered. If the instruction was executed
            // alone, `step` restores the interrupt shadow and RF, so that the second execution has them, too.
            Some(request) => Ended::Exit(Exit::Device(request)),
            None => Ended::Check,
        },
    }
}
