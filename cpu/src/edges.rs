//! Records which instruction follows each branch of guest code (branch edges), for coverage of binaries without
//! instrumentation.
//!
//! An edge is a pair: a near branch (Jcc, JMP, CALL, RET, LOOP, JRCXZ), taken or not, and the instruction fetched next.
//! Each of the two is identified by the name of its page, i.e. a digest of the page's contents, and its offset in the
//! page. An edge of a program is therefore the same in every process, at every base address, on every machine. If an
//! interrupt, an exception or a device's write to memory comes between the two instructions, no edge is recorded. If a
//! device's write did not discard the edge, it could change the page between a branch and its target in the same page.
//! The edge would then contain two names of one page.
//!
//! A branch stores its location in [`slot::FROM`], and the next block reads and clears this slot. The interpreter calls
//! [`Core::depart`] to store the location, and [`Core::arrive`] to read and clear it. Translated code has instructions
//! of its own for both. Translated code looks for the edge in one slot of the edge table, and calls [`Core::note_edge`]
//! only if the edge is not in that slot.
//!
//! **Invariants.** The recorded edges and their order depend only on the instructions that the guest executes. It makes
//! no difference where the CPU stops, what its caches contain, or which blocks are translated. If edges are off,
//! translated code contains nothing for them.

use crate::core::Core;
pub use crate::core::edges::{CodeLocation, EDGES_MAX, Edge, page_name};
pub(crate) use crate::core::edges::{Edges, NUMBER_ROTATION, OFFSET, TABLE_SHIFT, number, word};
use crate::op::{JUMP, Op, slot};

impl Core {
    /// Does the bookkeeping after the last instruction of a block has retired: counts a conditional branch, and stores
    /// the location of a near branch, if the configuration enables these. `block` is the location of the block.
    #[inline(always)]
    pub(crate) fn retire(&mut self, last: &Op, block: u64) {
        if self.branches && last.is_conditional() {
            self.regs[slot::BRANCHES as usize] += 1;
        }
        if self.edges.is_some() {
            self.depart(last, block);
        }
    }
    #[inline(always)]
    fn depart(&mut self, last: &Op, block: u64) {
        if last.aux & JUMP != 0 {
            self.regs[slot::FROM as usize] = block & !OFFSET | u64::from(last.off);
        }
    }
    /// Records an edge if a near branch led to the block at location `block`, which has just been fetched.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, block: u64) {
        if self.regs[slot::FROM as usize] != 0 {
            self.note_edge(block);
        }
    }
    /// Records the edge from the pending branch (whose location is in [`slot::FROM`]) to location `to`. [`slot::PAGE`]
    /// has the linear address of the page of `to`.
    pub(crate) fn note_edge(&mut self, to: u64) {
        let from = std::mem::take(&mut self.regs[slot::FROM as usize]);
        let check = std::mem::take(&mut self.native.edge_check);
        let address = self.regs[slot::PAGE as usize] | to & OFFSET;
        let user = self.cpl == 3;
        if let Some(edges) = &mut self.edges {
            edges.note(from, to, address, user);
            edges.known[check as usize] = 1;
            self.native.edges = edges.table();
        }
    }
    /// Discards the pending branch. Callers use it when something other than the branch determines the next
    /// instruction.
    pub(crate) fn stray(&mut self) {
        self.regs[slot::FROM as usize] = 0;
        self.native.edge_check = 0;
    }
}
