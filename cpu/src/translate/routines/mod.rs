//! Code that all translations share: entry and exit, accesses to guest memory that miss the TLB, jumps to other pages,
//! and calls of handlers (functions of the CPU that execute one operation). Sharing keeps translations small: a guest
//! with varied code is faster if more of its translations fit into the host's caches.
//!
//! Each kind of routine has a module:
//! - [`mxcsr`]: the routines before SSE instructions, and the exchange of the guest's MXCSR for the host's
//! - [`uppers`]: the routines for AVX, and the host's vector registers around a call of a function
//! - [`boundary`]: entry to translated code, the ways to leave it, and calls of the host's functions
//! - [`access`]: accesses to guest memory that miss the TLB
//! - [`constants`]: constants that translated code reads
//! - [`code_pages`]: checks of pages before their code is executed
//! - [`jumps`]: calls, returns and jumps to other pages
//! - [`handlers`]: calls of handlers
//! - [`edges`]: records of edges (executed jumps)
//! - [`interrupt_flag`]: CLI and STI
//! - [`flags`]: the guest's arithmetic flags
//!
//! Register use: R15 points into the middle of the CPU's fields ([`super::frame`]). R10, R11 and R13 are scratch. At
//! the end of a block R9, R12 and R14 are scratch, too. The other registers hold guest registers
//! ([`super::registers`]).

mod access;
mod boundary;
mod code_pages;
mod constants;
mod edges;
mod flags;
mod handlers;
mod interrupt_flag;
pub(super) mod jumps;
mod mxcsr;
mod uppers;

pub(super) use access::{Access, quick_entry};
pub(super) use constants::{DOUBLES_AT, MASKS_AT};

use super::asm::{Asm, R11};
use super::memory::CodeMemory;
use super::{FULL, UNLINKED};

/// Addresses of all shared routines. Each field's comment says what its routine does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Routines {
    /// Entry to translated code: `extern fn(core, code) -> word`. The low byte of the word is the reason why translated
    /// code returned, e.g. `FULL`.
    pub enter: u64,
    /// Leaves translated code. R11 is the word to return.
    pub leave: u64,
    /// Serves an access that misses the TLB: replaces the linear address in R13 by the host address, after a page walk.
    /// R10 is the access ([`Access::word`]), and R11 the address of the TLB entry that does not permit it. If a page walk cannot help, leaves the instruction to the interpreter.
    pub miss: u64,
    /// Checks that the TLB permits execution at the linear address in R13. If it does not, leaves the instruction to
    /// the interpreter. Clobbers R13.
    pub executable: u64,
    /// Leaves the instruction to the interpreter.
    pub interpret: u64,
    /// Executes CLI. If the guest is not in ring 0, leaves the instruction to the interpreter.
    pub cli: u64,
    /// Executes STI, which must not be the last instruction of its block. If the guest is not in ring 0, or the run must
    /// stop as soon as an interrupt can be taken, leaves the instruction to the interpreter.
    pub sti: u64,
    /// R10 = the guest's arithmetic flags as bits of RFLAGS, exactly as in the interpreter. Preserves R13.
    pub flag_bits: u64,
    /// Checks that the guest may use XMM registers. If it may not, leaves the instruction to the interpreter.
    pub vectors: u64,
    /// Loads the guest's MXCSR into the host's register. If the guest may not use XMM registers, or has unmasked an
    /// exception, leaves the instruction to the interpreter.
    pub floating: u64,
    /// Checks that the guest may use AVX. If it may not, leaves the instruction to the interpreter.
    pub avx: u64,
    /// Sets the upper halves of all guest YMM registers in [`Core`](crate::core::Core) to zero. Changes no flags.
    pub zero_uppers: u64,
    /// No routine, but a table of constants ([`constants::constants`]).
    pub constants: u64,
    /// Prepares a jump to the linear address in R13: R12 = address of its translation. R11 is the number of the jump's
    /// site (see `sites`). The routine with index 1 also sets the stack pointer from R14.
    pub hop: [u64; 2],
    /// Like `hop`, for targets that the table of recent jumps does not have.
    pub far: [u64; 2],
    /// Like `hop`, for a target page that should have the content number in R12. A content number stands for the bytes
    /// of a page. If the routine cannot confirm the number, it jumps to the target itself and does not return.
    pub direct: [u64; 2],
    /// Records a call in the ring of recent calls. R10 is the return address. R12 is the address of the translation of
    /// the code at the return address, or 0. Preserves R9 and R14.
    pub called: u64,
    /// Like `hop` with index 1, for a return.
    pub returns: u64,
    /// Calls the handler of an operation. R11 is the result of `handler_word` for the operation.
    pub handler: u64,
    /// Like `handler`, for a repeated string instruction.
    pub string: u64,
    /// Serves blocks that continue on a second page. Checks that the page at the linear address in R13 is executable
    /// and has the content number in R11. If not, leaves with the reason `SECOND`.
    pub second: u64,
    /// Records the edge from the branch in [`slot::FROM`](crate::op::slot::FROM) to the next executed instruction, unless
    /// the table of edges already has this edge. R11 is the location of that instruction. Clobbers R9, R10 and R12.
    pub edge: u64,
    /// Makes the host's flags equal the guest's, for all flags that conditions read.
    pub flags: u64,
    /// Makes the host's CF equal the guest's.
    pub carry: u64,
    /// Leaves with the reason `FULL`: the block has more instructions than the CPU may still execute before it stops.
    /// The start of the block has already subtracted all of the block's instructions from the number of instructions
    /// left.
    pub full: u64,
    /// Leaves with the reason `UNLINKED`: the jump to the next block is not linked to a translation yet.
    pub unlinked: u64,
}

impl Routines {
    /// Emits all routines. `mask` is the number of TLB entries per mode, minus one.
    pub(super) fn new(memory: &mut CodeMemory, mask: usize) -> Routines {
        let (mut asm, mut routines) = (Asm::default(), Routines::default());
        let base = memory.base();
        let mut emit = |body: &mut dyn FnMut(&mut Asm)| {
            asm.clear(memory.next());
            body(&mut asm);
            memory.put(asm.finish())
        };
        routines.enter = emit(&mut boundary::enter);
        let leave = emit(&mut boundary::leave);
        routines.leave = leave;
        let miss = emit(&mut |asm| access::miss(asm, mask, base, leave));
        routines.miss = miss;
        routines.executable = emit(&mut |asm| code_pages::executable(asm, mask, miss));
        let interpret = emit(&mut |asm| access::interpret(asm, miss));
        routines.interpret = interpret;
        routines.cli = emit(&mut |asm| interrupt_flag::cli(asm, interpret));
        routines.sti = emit(&mut |asm| interrupt_flag::sti(asm, interpret));
        routines.flag_bits = emit(&mut flags::flag_bits);
        routines.vectors = emit(&mut |asm| mxcsr::vectors(asm, interpret));
        routines.floating = emit(&mut |asm| mxcsr::floating(asm, interpret));
        routines.constants = emit(&mut constants::constants);
        routines.avx = emit(&mut |asm| uppers::avx(asm, interpret));
        routines.zero_uppers = emit(&mut uppers::zero);
        for stack in [false, true] {
            let far = emit(&mut |asm| jumps::far(asm, mask, stack, leave));
            let hop = emit(&mut |asm| {
                jumps::or_elsewhere(asm, far, |asm, other| jumps::find_hop(asm, stack, other));
            });
            let k = usize::from(stack);
            (routines.far[k], routines.hop[k]) = (far, hop);
            routines.direct[k] = emit(&mut |asm| jumps::direct(asm, stack, hop, far));
        }
        routines.called = emit(&mut |asm| {
            jumps::record_call(asm);
            asm.ret();
        });
        let elsewhere = routines.hop[1];
        routines.returns = emit(&mut |asm| jumps::or_elsewhere(asm, elsewhere, jumps::take_return));
        routines.handler = emit(&mut |asm| handlers::handler(asm, base, leave));
        routines.string = emit(&mut |asm| handlers::string(asm, base, leave));
        routines.second = emit(&mut |asm| code_pages::second(asm, mask, base, leave));
        routines.edge = emit(&mut edges::edge);
        let unusual = emit(&mut flags::unusual_flags);
        routines.flags = emit(&mut |asm| flags::flags(asm, unusual));
        routines.carry = emit(&mut |asm| flags::carry(asm, unusual));
        for (why, routine) in [(FULL, &mut routines.full), (UNLINKED, &mut routines.unlinked)] {
            *routine = emit(&mut |asm| {
                boundary::leave_from_site(asm, R11, base);
                boundary::leave_with(asm, why, 8, leave);
            });
        }
        routines
    }
}
