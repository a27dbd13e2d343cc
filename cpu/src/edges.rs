//! Recording of branch edges in guest code, for coverage of binaries without instrumentation.
//!
//! An edge is a pair: a near branch (Jcc, JMP, CALL, RET, LOOP, JRCXZ), taken or not, and the instruction fetched next.
//! Both are identified by the contents of their page and their offset in it. So an edge of a program is the same in
//! every process, at every base address, on every machine. No edge is recorded if an interrupt, an exception or a
//! device's write to memory comes between the two. So a branch within a page and its target always have the same page
//! name.
//!
//! A branch stores its place in [`slot::FROM`], and the next block consumes it. The interpreter does both in
//! [`Core::depart`] and [`Core::arrive`]. Translated code first checks one slot of the edge table itself, if possible
//! before the branch stores anything, and calls [`Core::note_edge`] only if the edge is not in that slot.
//!
//! **Invariants.** The set of recorded edges and their order depend only on what the guest executes: not on the ends
//! of runs, on caches, or on what is translated. If edges are off, translated code contains nothing for them.

use crate::core::Core;
pub use crate::core::edges::{CodeLocation, EDGES_MAX, Edge, page_name};
pub(crate) use crate::core::edges::{
    Edges, NUMBER_ROTATION, OFFSET, TABLE_MASK, TABLE_SHIFT, first_slot, number, word,
};
use crate::op::{JUMP, Op, slot};

impl Core {
    /// Called after the last instruction of the block named `block` has retired. Counts a conditional branch and
    /// stores the place of a branch, if these are enabled.
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
    /// Called when the block named `block` is fetched. Records an edge if a branch led to it.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, block: u64) {
        if self.regs[slot::FROM as usize] != 0 {
            self.note_edge(block);
        }
    }
    /// Records the edge from the pending branch to the block named `to`, which lies on the page in [`slot::PAGE`].
    pub(crate) fn note_edge(&mut self, to: u64) {
        let from = std::mem::take(&mut self.regs[slot::FROM as usize]);
        let address = self.regs[slot::PAGE as usize] | to & OFFSET;
        let user = self.cpl == 3;
        if let Some(edges) = &mut self.edges {
            edges.note(from, to, address, user);
        }
    }
    /// Discards the pending branch, because something else determines the next instruction.
    pub(crate) fn stray(&mut self) {
        self.regs[slot::FROM as usize] = 0;
    }
}
