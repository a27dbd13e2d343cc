//! Lookups of addresses in the software TLB, within a block's code.
//!
//! A block accesses guest memory every two or three instructions, so each access has its own lookup: with a call of
//! shared code, SQLite and Redis take a third more time. What an access needs after a miss is behind the block's code, as
//! a *slow path*, so that the usual path has no taken branch.

use super::asm::{Alu, NOT_EQUAL, R10, R11, R13};
use super::emitter::{Emitter, InHost, SlowPath};
use super::routines::{Access, quick_entry};
use crate::mem::tlb;

impl Emitter<'_> {
    /// Emits the conversion of the linear address in R13 to a host address. If neither the TLB nor a page walk yields
    /// the host address, the interpreter executes instruction `n`. Clobbers R10 and R11.
    pub(super) fn look_up(&mut self, access: Access, n: usize) {
        let (here, back) = (self.asm.label(), self.asm.label());
        quick_entry(self.asm, R11, self.places.tlb_mask);
        // The tag must equal the page of the access's last byte. The entry is that of the first byte's page.
        if access.aligned {
            // The bytes are on one page if the address is a multiple of the size. If it is not, no tag matches.
            self.asm.copy(R10, R13);
            self.asm.alu_imm(Alu::And, R10, -4096 | i32::from(access.size - 1));
        } else {
            self.asm.add_to(R10, R13, i32::from(access.size) - 1);
            self.asm.alu_imm(Alu::And, R10, -4096);
        }
        let tag = if access.write { tlb::WRITE } else { tlb::READ };
        self.asm.alu_memory(Alu::Cmp, R10, R11, tag as i32);
        self.asm.jump_if(NOT_EQUAL, here);
        self.asm.alu_memory(Alu::Add, R13, R11, tlb::ADDEND as i32);
        self.asm.bind(back);
        let site = self.site_before(n);
        self.slow_paths.push(SlowPath { here, back, access, pending: self.pending, site });
        self.in_host = InHost::Nothing;
    }
    /// Emits the slow paths of all lookups so far.
    pub(super) fn slow_paths(&mut self) {
        for SlowPath { here, back, access, pending, site } in std::mem::take(&mut self.slow_paths) {
            self.asm.bind(here);
            if let Some(pending) = pending {
                pending.store(self.asm);
            }
            self.asm.set(R10, access.word());
            self.asm.call_to(self.places.routines.miss);
            self.add_site(site);
            self.asm.jump(back);
        }
    }
}
