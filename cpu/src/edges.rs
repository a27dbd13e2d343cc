//! Edges of the guest's code: which near branch went where, of binaries that nobody has instrumented.
//!
//! An edge is a near branch (Jcc, JMP, CALL, RET, LOOP, JRCXZ), taken or not, and the instruction that was fetched next. Both
//! are told by what their page holds and where they lie in it. So an edge of a program is the same edge in every process, at
//! every base address, on every machine. Where an interrupt, an exception or a device's write to memory comes between the two
//! there is no edge: so the target of a branch within a page is on the page that the branch was on.
//!
//! A branch leaves its place in [`slot::FROM`]; the next block takes it from there. The interpreter does so in
//! [`Core::depart`] and [`Core::arrive`]; translated code looks at the first place of an edge in the table of all edges itself,
//! where it can before the branch leaves anything, and calls for those that are not there.
//!
//! **Invariants.** Which edges are noted, and in which order, depends on what the guest executes and on nothing else: not on
//! where runs stop, on caches, or on what is translated. Where they are not asked for, translated code has no trace of them.

use crate::core::Core;
pub use crate::core::edges::{EDGES_MAX, Edge, Place, page_name};
pub(crate) use crate::core::edges::{
    Edges, NUMBER_ROTATION, OFFSET, TABLE_MASK, TABLE_SHIFT, first_slot, number, word,
};
use crate::op::{JUMP, Op, slot};

impl Core {
    /// The last instruction of a block at a place has retired: count it, and note where the next one comes from, as far as
    /// either is asked for.
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
    /// A block at a place was fetched.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, block: u64) {
        if self.regs[slot::FROM as usize] != 0 {
            self.note_edge(block);
        }
    }
    /// The same, where something has departed. The block's page is the one in [`slot::PAGE`].
    pub(crate) fn note_edge(&mut self, to: u64) {
        let from = std::mem::take(&mut self.regs[slot::FROM as usize]);
        let address = self.regs[slot::PAGE as usize] | to & OFFSET;
        let user = self.cpl == 3;
        if let Some(edges) = &mut self.edges {
            edges.note(from, to, address, user);
        }
    }
    /// What comes next is no branch's doing.
    pub(crate) fn stray(&mut self) {
        self.regs[slot::FROM as usize] = 0;
    }
}
