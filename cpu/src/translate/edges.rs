//! Code that records edges (executed jumps), in translations for CPUs that record them ([`crate::edges`]).
//!
//! A jump stores its location in [`slot::FROM`], and the code that it leads to records the edge. Both are needless once
//! the edge is recorded. A jump within a page, or to the likely target on another, knows its edge, and therefore checks
//! a byte that stands for the edge, and skips the store. The code of each block skips its part if no location is
//! stored. A trace checks one byte for the edges between all of its blocks. While one of them may not be recorded, the
//! trace goes on with the first block's own code.

use super::asm::{Alu, EQUAL, Label, NOT_EQUAL, R10, R11, R15};
use super::emitter::{Behind, Emitter, Unrecorded};
use super::frame::{EDGE_CHECK, slot as at_slot};
use super::memory::REDIRECT_BYTES;
use crate::edges::word;
use crate::op::{JUMP, Op, slot};

impl Emitter<'_> {
    /// Returns the location of a branch of the current block, if edges are recorded.
    pub(super) fn location(&self, op: &Op) -> Option<u64> {
        let named = self.block().expected.named;
        debug_assert!(op.aux & JUMP != 0);
        (named != 0).then(|| word(named >> 12, u64::from(op.off)))
    }
    /// Emits code that compares the byte of a check with 0. Leaves the address of the table of checks in R11.
    fn compare(&mut self, check: u32) {
        self.asm.load(R11, R15, at_slot(slot::EDGES));
        self.asm.alu8_memory_imm(Alu::Cmp, R11, check as i32, 0);
    }
    /// Emits code that stores the location of a branch, which the next block reads, in [`slot::FROM`], if there is one.
    /// The caller then emits the branch itself, which retires or faults. The emitted code changes no flags, and no
    /// register except R11.
    pub(super) fn depart(&mut self, from: Option<u64>) {
        if let Some(from) = from {
            self.asm.set(R11, from);
            self.asm.store(R15, at_slot(slot::FROM), R11);
        }
    }
    /// Emits code that stores the location of a branch in [`slot::FROM`] unless the edge to location `to` is recorded.
    /// The caller then emits the jump itself, with which nothing can interfere. Clobbers R11 and the host's flags.
    pub(super) fn depart_to(&mut self, from: u64, to: u64) {
        let check = self.check_edge(from, to);
        self.unrecorded.push(Unrecorded { from: Some(from), ..check });
    }
    /// Emits code that clears [`slot::FROM`] if the edge to location `to` is recorded. [`slot::FROM`] must contain `from`.
    /// Clobbers R11 and the host's flags.
    pub(super) fn departed_to(&mut self, from: u64, to: u64) {
        let check = self.check_edge(from, to);
        self.asm.store_imm(R15, at_slot(slot::FROM), 0);
        let back = self.asm.label();
        self.asm.bind(back);
        self.unrecorded.push(Unrecorded { back, ..check });
    }
    fn check_edge(&mut self, from: u64, to: u64) -> Unrecorded {
        let check = self.checks.of_edge(from, to);
        let (here, back) = (self.asm.label(), self.asm.label());
        self.compare(check);
        self.asm.jump_if(EQUAL, here);
        self.asm.bind(back);
        Unrecorded { here, back, check, from: None }
    }
    /// Emits the code behind all checks so far.
    pub(super) fn unrecorded(&mut self) {
        for Unrecorded { here, back, check, from } in std::mem::take(&mut self.unrecorded) {
            self.asm.bind(here);
            self.depart(from);
            self.asm.store_imm(R15, EDGE_CHECK, check as i32);
            self.asm.jump(back);
        }
    }
    /// Emits code that records the edge that led to this translation, and the check of the edges in it, if edges are
    /// recorded. At this point no guest register is in a host register of the pool (`registers::POOL`). Returns the
    /// positions of code behind the trace.
    pub(super) fn arrive(&mut self) -> Option<Behind> {
        if self.block().expected.named == 0 {
            return None;
        }
        let (branch, nowhere) = (self.asm.label(), self.asm.label());
        self.asm.alu_memory_imm(Alu::Cmp, R15, at_slot(slot::FROM), 0);
        self.asm.jump_if(NOT_EQUAL, branch);
        self.asm.bind(nowhere);
        let check = self.source.alone.map(|alone| {
            let check = self.checks.of_trace();
            let (here, back) = (self.asm.label(), self.asm.label());
            self.compare(check);
            self.asm.jump_if(EQUAL, here);
            self.asm.bind(back);
            (here, back, check, alone)
        });
        Some(Behind { branch, nowhere, check })
    }
    /// Emits the usual case of an arrival: it goes to `nowhere` if the branch at `from` has led here and this edge is
    /// recorded.
    fn arrived_from(&mut self, from: u64, nowhere: Label) {
        let check = self.checks.of_edge(from, self.block().expected.named);
        let (unknown, other) = (self.asm.label(), self.asm.label());
        self.asm.set(R10, from);
        self.asm.alu_memory(Alu::Cmp, R10, R15, at_slot(slot::FROM));
        self.asm.jump_short_if(NOT_EQUAL, other);
        self.compare(check);
        self.asm.jump_short_if(EQUAL, unknown);
        self.asm.store_imm(R15, at_slot(slot::FROM), 0);
        self.asm.jump(nowhere);
        self.asm.bind(unknown);
        self.asm.store_imm(R15, EDGE_CHECK, check as i32);
        self.asm.bind(other);
    }
    /// Emits the code behind the trace to which the start of the trace leads.
    pub(super) fn arrived(&mut self, behind: Behind) {
        self.part = 0;
        let first = self.block();
        self.asm.bind(behind.branch);
        if first.expected.from != 0 {
            self.arrived_from(first.expected.from, behind.nowhere);
        }
        self.asm.set(R11, first.expected.named);
        self.asm.call_to(self.places.routines.edge);
        self.asm.jump(behind.nowhere);
        let Some((here, back, check, alone)) = behind.check else { return };
        self.asm.bind(here);
        let other = self.asm.label();
        for pair in self.source.parts.windows(2) {
            let [from, to] = pair else { continue };
            let branch = from.ops.last().filter(|op| op.aux & JUMP != 0);
            if let Some(op) = branch {
                let from = word(from.expected.named >> 12, u64::from(op.off));
                let edge = self.checks.of_edge(from, to.expected.named);
                self.asm.alu8_memory_imm(Alu::Cmp, R11, edge as i32, 0);
                self.asm.jump_if(EQUAL, other);
            }
        }
        self.asm.store8_imm(R11, check as i32, 1);
        self.asm.jump(back);
        self.asm.bind(other);
        // The start of the trace has subtracted all of its instructions from the number of instructions left. The first
        // instruction of the block's own code subtracts those of the block, and is skipped.
        let rest = self.ops.len() - first.ops.len();
        self.asm.alu_memory_imm(Alu::Add, R15, at_slot(slot::LEFT), rest as i8);
        self.asm.jump_to(alone + REDIRECT_BYTES as u64);
    }
}
