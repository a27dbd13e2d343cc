//! Entry to translated code, the return from it, and the functions that it calls.
#![allow(unsafe_code)]

use super::registers::POOL;
use super::sites::{Site, WAYS};
use super::{
    FULL, INTERPRET, MISSED, MISSED_FAR, NEXT, NO_SITE, SECOND, STOP_SHIFT, STOPPED, Translated, Translator,
    UNLINKED, lazy_flags,
};
use crate::core::Core;
use crate::core::native::Near;
use crate::failure::caught;
use crate::host_fp;
use crate::mem::{Access, Mode};
use crate::op::{FAR_PAGE, Op, slot};
use crate::stop::Stop;

/// Outcome of a run of translated code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// Execution continues at RIP. RIP and the instruction count are exact.
    Next,
    /// The interpreter must execute the rest of a block. The fields are the index of the block's first operation, the
    /// number of its operations, the next operation, and the block's location (its page's digest and offset), by which
    /// recorded edges (executed jumps) name the block.
    Interpret { ops_start: u32, count: u16, n: usize, named: u64 },
    /// Execution continues at RIP, and the block there is a sample of what the guest executes most.
    Sample,
    /// The next instruction must be executed alone, not in a block. RIP and the instruction count are exact.
    Alone,
    /// The CPU's own code has panicked.
    Failed,
    /// A handler ended its block at operation `n`.
    Stopped { ops_start: u32, n: usize, stop: Stop },
}

impl Translator {
    /// Executes a translation, and the translations that it jumps to. RIP must be the address of the block.
    #[inline]
    pub(super) fn run(&mut self, core: &mut Core, id: u32, ops: *const Op) -> Back {
        core.regs[slot::PAGE as usize] = core.rip & !0xfff;
        leave_at(core, core.icount);
        core.regs[slot::CONTENTS as usize] = core.mem.contents_address();
        core.regs[slot::RAM as usize] = core.mem.ram.base_address();
        core.regs[slot::JUMPS as usize] = self.jumps.as_ptr() as u64;
        core.native.ops = ops as u64;
        core.native.host_mxcsr = host_fp::sse::HOST;
        if core.native.generation != self.generation {
            core.native.generation = self.generation;
            (core.native.returns, core.native.near) = Default::default();
            core.native.edge_check = 0;
            if let Some(edges) = &mut core.edges {
                edges.forget_checks();
            }
        }
        if let Some(edges) = &mut core.edges {
            edges.checks = self.checks.used();
            core.regs[slot::EDGES as usize] = edges.known.as_ptr() as u64;
            core.native.edges = edges.table();
            core.native.edges_recent = edges.recent.as_ptr() as u64;
        }
        let near = core.native.near.get_or_insert_with(Near::new);
        core.regs[slot::HOPS as usize] = near.hops.as_ptr() as u64;
        core.regs[slot::PAGES as usize] = near.pages.as_ptr() as u64;
        let code = self.get(id).code;
        // SAFETY: `enter` is the entry routine. It takes these arguments and keeps to the ABI: it saves the registers
        // that it must preserve, and leaves the stack as it was. `code` is a translation; the documentation of
        // the module `translate` explains why a translation stays within `core` and its tables. `core` and all that it
        // owns are borrowed exclusively.
        let word = unsafe {
            let enter: extern "sysv64" fn(*mut Core, u64) -> u64 =
                std::mem::transmute(self.routines.enter as *const ());
            enter(&raw mut *core, code)
        };
        if core.failure.is_some() {
            return Back::Failed;
        }
        lazy_flags::settle(core);
        self.back(core, word)
    }
    /// Decodes the word with which translated code returned.
    #[inline]
    fn back(&self, core: &mut Core, word: u64) -> Back {
        let number = (word >> 8) as u32;
        match word as u8 {
            NEXT => self.next(core),
            UNLINKED => {
                let site = self.sites.find(number);
                let way = usize::from(usize::from(site.n) != WAYS[0]);
                core.rip = at(core, self.get(site.block).leads_to[way]);
                self.next(core)
            }
            FULL => self.full(core, self.sites.find(number).block),
            MISSED_FAR if number == NO_SITE => self.next(core),
            INTERPRET => self.interpret(core, number, (word >> 40 & 0xff) as usize),
            MISSED => self.interpret_from(core, self.sites.find(number)),
            MISSED_FAR => {
                let site = self.sites.get(number);
                // The branch was counted before it faulted. A fault does not retire it.
                core.regs[slot::BRANCHES as usize] -= u64::from(self.get(site.block).counts);
                // What is behind the branch in its trace is already counted as left.
                let block = self.get(site.block);
                core.regs[slot::LEFT as usize] -= u64::from(block.charged - block.count);
                self.interpret_from(core, site)
            }
            SECOND => {
                let block = self.get(self.sites.find(number).block);
                core.rip = at(core, block.offset);
                core.regs[slot::LEFT as usize] += u64::from(block.charged);
                core.icount = executed(core);
                Back::Alone
            }
            STOPPED.. => {
                let site = self.sites.find(number);
                let block = self.leaves(core, site.block);
                let stop = match word >> STOP_SHIFT {
                    1 => Stop::Leave,
                    2 => Stop::Fault,
                    3 => Stop::Exit,
                    _ => Stop::Single,
                };
                Back::Stopped { ops_start: block.ops_start, n: usize::from(site.n), stop }
            }
        }
    }
    fn next(&self, core: &mut Core) -> Back {
        core.icount = executed(core);
        Back::Next
    }
    /// Handles a trace that has more instructions than were left. Its first block is translation `id`.
    fn full(&self, core: &mut Core, id: u32) -> Back {
        let block = self.get(id);
        core.regs[slot::LEFT as usize] += u64::from(block.charged);
        core.icount = executed(core);
        if core.native.end == core.limit && core.regs[slot::LEFT as usize] >= u64::from(block.count) {
            // The run stops within the trace, but not within its first block.
            core.rip = at(core, block.offset).wrapping_add(u64::from(block.len));
            note_far_page(core);
            core.arrive(block.named);
            return Back::Interpret {
                ops_start: block.ops_start,
                count: block.count,
                n: 0,
                named: block.named,
            };
        }
        core.rip = at(core, block.offset);
        if core.native.end == core.limit { Back::Next } else { Back::Sample }
    }
    fn interpret_from(&self, core: &mut Core, site: Site) -> Back {
        for (guest, host) in site.unsaved() {
            core.regs[guest] = core.native.hosts[host];
        }
        for n in (0..16).filter(|n| site.vectors & 1 << n != 0) {
            core.fpu.xmm[n] = core.native.vectors[n][0];
        }
        for n in (0..16).filter(|n| site.uppers & 1 << n != 0) {
            core.ymm[n] = core.native.vectors[n][1];
        }
        self.interpret(core, site.block, usize::from(site.n))
    }
    fn interpret(&self, core: &mut Core, id: u32, n: usize) -> Back {
        let block = self.leaves(core, id);
        Back::Interpret { ops_start: block.ops_start, count: block.count, n, named: block.named }
    }
    /// Sets the state that the interpreter expects within a block: RIP is the address after the block, and the
    /// instruction count excludes the block's instructions and those behind it.
    fn leaves(&self, core: &mut Core, id: u32) -> &Translated {
        let block = self.get(id);
        core.icount = executed(core) - u64::from(block.charged);
        core.rip = at(core, block.offset).wrapping_add(u64::from(block.len));
        note_far_page(core);
        block
    }
}

/// Sets the number of instructions left until translated code returns, when `icount` instructions are executed.
#[inline]
fn leave_at(core: &mut Core, icount: u64) {
    core.native.end = core.limit.min(icount.saturating_add(core.native.period));
    core.regs[slot::LEFT as usize] = core.native.end - icount;
}

/// Returns the instruction count, as far as translated code has counted instructions.
#[inline(always)]
fn executed(core: &Core) -> u64 {
    core.native.end - core.regs[slot::LEFT as usize]
}

/// Sets [`slot::PAGE_FAR`], the base of distant RIP-relative operands, for handlers. Translated code maintains only
/// [`slot::PAGE`], the base of all other RIP-relative operands.
#[inline(always)]
fn note_far_page(core: &mut Core) {
    core.regs[slot::PAGE_FAR as usize] = core.regs[slot::PAGE as usize].wrapping_add(FAR_PAGE);
}

/// Returns the linear address of an offset in the current page.
fn at(core: &Core, offset: u16) -> u64 {
    core.regs[slot::PAGE as usize].wrapping_add(u64::from(offset))
}

/// Returns the argument of `routines::handlers::handler`: an operation's index in the arena (the array with the
/// operations of all cached blocks), and the number of operations from the start of its block to
/// the end of its trace, which the start of the trace has subtracted from the number of instructions left.
pub(super) fn handler_word(index: u32, charged: usize) -> u64 {
    u64::from(index) << 8 | charged as u64
}

/// Calls the handler of an operation. Returns 0, or the number of the handler's [`Stop`].
pub(super) extern "sysv64" fn call_op(core: *mut Core, word: u64) -> u64 {
    // SAFETY: translated code passes the `core` with which `run` entered it. `run` has borrowed `core` exclusively and
    // does not access it until translated code returns.
    let core = unsafe { &mut *core };
    // SAFETY: translated code passes a word that `handler_word` returned.
    caught(core, |core| unsafe { op(core, word) }).unwrap_or(FAILED)
}

/// # Safety
/// `word` must refer to an operation of a translated block, and the caller must be translated code.
unsafe fn op(core: &mut Core, word: u64) -> u64 {
    lazy_flags::settle(core);
    note_far_page(core);
    core.icount = executed(core) - (word & 0xff);
    // SAFETY: `native.ops` is the address of the cache's first operation. The word holds the index of an operation that
    // was in the cache when its block was translated. The cache drops operations only together with all translations,
    // and never while translated code runs.
    let op = unsafe { &*(core.native.ops as *const Op).add((word >> 8) as usize) };
    (op.run)(core, op).map_or_else(stop_number, |()| 0)
}

/// Stop number of a handler that panicked. Translated code then returns, and [`Translator::run`] sees the panic.
const FAILED: u64 = 5;

fn stop_number(stop: Stop) -> u64 {
    match stop {
        Stop::Leave => 1,
        Stop::Fault => 2,
        Stop::Exit => 3,
        Stop::Single => 4,
    }
}

/// Calls the handler of a repeated string instruction, which counts its own iterations and is the last of its block.
/// Returns 0 if the instruction is finished, 1 if it must continue at RIP, or else the number of its stop.
pub(super) extern "sysv64" fn call_string(core: *mut Core, word: u64) -> u64 {
    // SAFETY: as in `call_op`.
    let core = unsafe { &mut *core };
    // SAFETY: as in `call_op`.
    caught(core, |core| unsafe { string(core, word) }).unwrap_or(FAILED)
}

/// # Safety
/// As for [`op`].
unsafe fn string(core: &mut Core, word: u64) -> u64 {
    lazy_flags::settle(core);
    note_far_page(core);
    let charged = word & 0xff;
    core.icount = executed(core) - charged;
    // SAFETY: as in `op`.
    let op = unsafe { &*(core.native.ops as *const Op).add((word >> 8) as usize) };
    let behind = op.rip(core).wrapping_add(u64::from(op.len));
    core.rip = behind;
    match (op.run)(core, op) {
        Ok(()) => 0,
        Err(Stop::Leave) => {
            leave_at(core, core.icount + charged);
            u64::from(core.rip != behind)
        }
        Err(stop) => stop_number(stop),
    }
}

/// Host registers at an access that missed the TLB, in the order in which `routines::access::miss` pushes them.
#[repr(C)]
pub(super) struct Held {
    /// YMM registers. The upper halves are arbitrary unless `Native::uppers_in_use` is 1.
    pub vectors: [[u128; 2]; 16],
    /// General registers, in the order of [`POOL`].
    pub general: [u64; POOL.len()],
}

/// Handles an access that misses the TLB. `what` is the access (`routines::access::Access::word`). Does the
/// page walk that the interpreter would do first for the instruction, and returns the host address. If the interpreter
/// must execute the instruction, stores the host registers in [`crate::core::native::Native`] and returns 0.
pub(super) extern "sysv64" fn missed(core: *mut Core, held: *const Held, va: u64, what: u64) -> u64 {
    // SAFETY: as in `call_op`.
    let core = unsafe { &mut *core };
    let size = what >> 2;
    let misaligned = what & 2 != 0 && va & (size - 1) != 0;
    let access = if what & 1 == 0 { Access::Read } else { Access::Write };
    let mode = core.mem.tlb.mode();
    // If alignment checks are on, #AC takes precedence over page faults, so no walk may happen here.
    if size != 0 && !misaligned && va & 0xfff <= 4096 - size && mode != Mode::UserAligned {
        let walked = caught(core, |core| core.mem.translate(va, access, mode));
        if walked.is_some_and(|walked| walked.is_ok())
            && let Some(host) = core.mem.tlb.host(va, access)
        {
            return host;
        }
    }
    // SAFETY: `routines::access::miss` has pushed these registers and passes their address.
    let held = unsafe { &*held };
    core.native.vectors = held.vectors;
    if core.native.uppers_in_use == 0 {
        // Registers whose upper half translated code relies on have zero there.
        core.native.vectors.iter_mut().for_each(|vector| vector[1] = 0);
    }
    for (host, &value) in POOL.iter().zip(&held.general) {
        core.native.hosts[usize::from(host.0)] = value;
    }
    0
}

/// Walks the page tables for the next block's page. Returns 1 if the TLB then permits execution of the page, otherwise
/// 0.
pub(super) extern "sysv64" fn missed_exec(core: *mut Core, va: u64) -> u64 {
    // SAFETY: as in `call_op`.
    let core = unsafe { &mut *core };
    let mode = core.mem.tlb.mode();
    let walked = caught(core, |core| core.mem.translate(va, Access::Exec, mode));
    u64::from(walked.is_some_and(|walked| walked.is_ok()) && core.mem.tlb.host(va, Access::Exec).is_some())
}

/// Records the edge (executed jump) from the last executed branch to location `to`, if the edge is new.
pub(super) extern "sysv64" fn note_edge(core: *mut Core, to: u64) {
    // SAFETY: as in `call_op`.
    let core = unsafe { &mut *core };
    caught(core, |core| core.note_edge(to));
}

/// Returns the arithmetic flags as bits of RFLAGS, in which bit 1 is set.
pub(super) extern "sysv64" fn read_flags(core: *mut Core) -> u64 {
    // SAFETY: as in `call_op`.
    let core = unsafe { &mut *core };
    let flags = caught(core, |core| {
        lazy_flags::settle(core);
        core.flags.to_bits()
    });
    flags.unwrap_or(0) | 2
}
