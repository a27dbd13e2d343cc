//! Translates the ends of blocks: branches, calls, returns, and the jumps to the next block.
//!
//! Some functions require that all registers are *saved*: emitted code has stored all changed guest registers in the
//! CPU's register array, except the fixed registers (RAX to RDI), which stay in their host registers.

use iced_x86::{Code, Instruction, Mnemonic, OpKind};

use super::asm::{Alu, Label, R9, R10, R11, R12, R13, R14, R15};
use super::choice::is_near_memory;
use super::emitter::{Emitter, Expected, FarPath, SideExit, Way};
use super::frame::slot as at_slot;
use super::registers::STACK;
use super::routines::jumps;
use super::{INTERPRET, NO_SITE};
use crate::edges::word;
use crate::op::operand::{gpr, is_gpr, is_memory};
use crate::op::{Op, slot};

impl Emitter<'_> {
    /// Emits the branch that ends a block, if the trace goes on with the block at `place`. If the branch leads elsewhere,
    /// it leaves the trace.
    pub(super) fn go_through(&mut self, i: &Instruction, n: usize, place: u64) {
        if !i.is_jcc_short_or_near() {
            return;
        }
        let op = &self.ops[n];
        let condition = i.condition_code() as u8 - 1;
        self.need_flags(condition);
        self.count_branch();
        let here = self.asm.label();
        let taken = !(in_page(op.disp) && place == self.place_at(op.disp));
        // The lowest bit of a condition inverts it.
        self.asm.jump_if(if taken { condition } else { condition ^ 1 }, here);
        let unsaved = self.registers.unsaved().collect();
        let vectors = self.registers.vectors;
        self.side_exits.push(SideExit {
            here,
            part: self.part,
            n,
            taken,
            unsaved,
            vectors,
            pending: self.pending,
        });
    }
    /// Emits the code of all exits from the trace.
    pub(super) fn side_exits(&mut self) {
        for mut exit in std::mem::take(&mut self.side_exits) {
            self.asm.bind(exit.here);
            for (guest, host) in exit.unsaved {
                self.asm.store(R15, at_slot(guest), host);
            }
            exit.vectors.save(self.asm);
            if let Some(pending) = exit.pending {
                pending.store(self.asm);
            }
            // The start of the trace has subtracted all of its instructions from the number of instructions left.
            let rest = self.ops.len() - 1 - exit.n;
            self.asm.alu_memory_imm(Alu::Add, R15, at_slot(slot::LEFT), rest as i8);
            (self.part, self.first) = (exit.part, exit.n + 1 - self.source.parts[exit.part].ops.len());
            let op = &self.ops[exit.n];
            if exit.taken {
                self.branch(op, op.disp, 1, Some(exit.n));
            } else {
                self.branch(op, i32::from(op.off) + i32::from(op.len), 0, None);
            }
        }
    }
    /// Emits the last instruction of a trace, e.g. a branch, a call or a string instruction.
    pub(super) fn end(&mut self, i: &Instruction, n: usize) {
        let op = &self.ops[n];
        let after = i32::from(op.off) + i32::from(op.len);
        let direct = is_direct(i);
        match i.mnemonic() {
            Mnemonic::Jmp if direct => {
                self.registers.save(self.asm);
                self.branch(op, op.disp, 0, Some(n));
            }
            _ if i.is_jcc_short_or_near() && direct => {
                self.need_flags(i.condition_code() as u8 - 1);
                self.registers.save(self.asm);
                self.count_branch();
                let condition = i.condition_code() as u8 - 1;
                if self.block().expected.named == 0 && in_page(op.disp) {
                    self.go_to(Some(condition), self.place_at(op.disp), 1);
                    self.go_on(after, 0, None);
                } else {
                    let taken = self.asm.label();
                    self.asm.jump_short_if(condition, taken);
                    self.branch(op, after, 0, None);
                    self.asm.bind(taken);
                    self.branch(op, op.disp, 1, Some(n));
                }
            }
            Mnemonic::Call if direct => {
                self.registers.save(self.asm);
                self.push_return(after, n);
                if in_page(op.disp) {
                    self.asm.copy(STACK, R14);
                    self.branch(op, op.disp, 0, Some(n));
                } else {
                    let from = self.location(op);
                    self.far_direct(Some(n), true, op.disp, 0, from);
                }
            }
            Mnemonic::Call if i.code() == Code::Call_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.asm.copy(R9, R13);
                if is_memory(i, 0) {
                    // The return address may overwrite the memory operand, i.e. the call's target. After that the
                    // interpreter could not execute the call, so the target is checked before the return address is
                    // stored.
                    self.asm.call_to(self.places.routines.executable);
                    self.site(n);
                }
                self.push_return(after, n);
                self.asm.copy(R13, R9);
                self.far(Some(n), true, self.location(op));
            }
            Mnemonic::Jmp if i.code() == Code::Jmp_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.far(Some(n), false, self.location(op));
            }
            Mnemonic::Ret => {
                self.registers.save(self.asm);
                self.asm.copy(R13, STACK);
                self.check(8, false, n);
                self.asm.load(R13, R13, 0);
                self.asm.add_to(R14, STACK, 8 + op.imm as i32);
                self.depart(self.location(op));
                self.far_back(n);
            }
            _ if i.is_string_instruction() => {
                self.call(n, self.places.routines.string);
                self.go_on(after, 0, None);
            }
            _ => self.interpret(n),
        }
    }
    /// Emits code that counts a branch, if branches are counted. The caller then emits the branch itself. If the branch
    /// faults, [`Translator::run`](super::Translator::run) undoes the count. The emitted code changes no flags, and no
    /// register except R11.
    fn count_branch(&mut self) {
        if self.block().expected.counts {
            self.asm.load(R11, R15, at_slot(slot::BRANCHES));
            self.asm.add_to(R11, R11, 1);
            self.asm.store(R15, at_slot(slot::BRANCHES), R11);
        }
    }
    /// Emits a direct branch to an offset from the start of the page. All registers must be saved.
    fn branch(&mut self, op: &Op, offset: i32, way: usize, n: Option<usize>) {
        let from = self.location(op);
        if !in_page(offset) {
            return self.far_direct(n, false, offset, way, from);
        }
        if let Some(from) = from {
            self.depart_to(from, word(from >> 12, offset as u64));
        }
        self.go_to(None, self.place_at(offset), way);
    }
    /// Emits code that loads the target of an indirect branch into R13.
    fn target(&mut self, i: &Instruction, op: &Op, n: usize) {
        if is_memory(i, 0) {
            self.address(op);
            self.check(8, false, n);
            self.asm.load(R13, R13, 0);
        } else {
            let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
            self.asm.copy(R13, host);
        }
    }
    /// Emits the store of a return address below the stack pointer, and sets R14 to the new stack pointer. The guest's
    /// stack pointer itself stays unchanged. Preserves R9. All registers must be saved. Afterwards no guest register is
    /// in a host register of the pool (`registers::POOL`).
    fn push_return(&mut self, after: i32, n: usize) {
        self.asm.add_to(R14, STACK, -8);
        self.asm.copy(R13, R14);
        self.check(8, true, n);
        self.asm.load(R10, R15, at_slot(slot::PAGE));
        self.asm.add_to(R10, R10, after);
        self.asm.store(R13, 0, R10);
        self.code_behind(after);
        if self.source.hot {
            jumps::record_call(self.asm);
        } else {
            self.asm.call_to(self.places.routines.called);
        }
    }
    /// Emits code that loads R12 with the address of the translation at a call's return address. While there is no such
    /// translation, R12 is the address of code that leaves the block. If the return address is on another page, R12 is
    /// 0.
    fn code_behind(&mut self, after: i32) {
        if !in_page(after) {
            return self.asm.set(R12, 0);
        }
        let place = self.place_at(after);
        let open = match self.code_at(place) {
            Some(code) => {
                self.asm.address(R12, code);
                None
            }
            None => {
                let label = self.asm.label();
                self.asm.address_of(R12, label);
                Some((self.asm.here() - 4, label))
            }
        };
        self.refer(1, place, open);
    }
    /// Returns the place (page content number and offset) of an offset in the block's page.
    fn place_at(&self, offset: i32) -> u64 {
        self.block().place & !0xfff | offset as u64
    }
    /// Returns the address of the translation at a place, if there is one or the place is that of the current block.
    fn code_at(&self, place: u64) -> Option<u64> {
        let there = self.places.links.code(place);
        there.or_else(|| (place == self.source.parts[0].place).then_some(self.places.next))
    }
    /// Emits a jump to an offset from the start of the page, on this page or another. All registers must be saved.
    pub(super) fn go_on(&mut self, offset: i32, way: usize, n: Option<usize>) {
        if !in_page(offset) {
            return self.far_direct(n, false, offset, way, None);
        }
        self.go_to(None, self.place_at(offset), way);
    }
    /// Emits a jump to the block at a place. [`slot::PAGE`] must be the target's page when the jump is executed. The
    /// jump is conditional if `condition` is given.
    fn go_to(&mut self, condition: Option<u8>, place: u64, way: usize) {
        let open = match (self.code_at(place), condition) {
            (Some(code), Some(condition)) => {
                self.asm.jump_to_if(condition, code);
                None
            }
            (Some(code), None) => {
                self.asm.jump_to(code);
                None
            }
            (None, condition) => {
                let label = self.asm.label();
                match condition {
                    Some(condition) => self.asm.jump_if(condition, label),
                    None => self.asm.jump(label),
                }
                Some((self.asm.here() - 4, label))
            }
        };
        self.refer(way, place, open);
    }
    fn refer(&mut self, number: usize, place: u64, open: Option<(u64, Label)>) {
        self.ways.push(Way { part: self.part, number, place, open });
    }
    /// Emits a jump to the linear address in R13, on any page. With `stack`, the stack pointer is set from R14. All
    /// registers must be saved. If the address is not canonical, the interpreter executes the jump, which is
    /// instruction `n`. `from` is the location of the branch, if the edge must be recorded.
    fn far(&mut self, n: Option<usize>, stack: bool, from: Option<u64>) {
        self.depart(from);
        let site = self.site_of_jump(n);
        if self.source.hot {
            let other = self.far_path(site, self.places.routines.far[usize::from(stack)], None);
            jumps::find_hop(self.asm, stack, other);
        } else {
            self.asm.set(R11, u64::from(site));
            self.asm.call_to(self.places.routines.hop[usize::from(stack)]);
        }
        // The routine only computes the target. The jump instruction is here, so the host predicts it separately for
        // each block.
        self.asm.jump_register(R12);
    }
    /// Emits a jump to another page. `offset` is the target's offset from the start of the current page. The likely
    /// target is the block that was last executed after the current block. If that block has the right offset in its
    /// page, the emitted code checks that the page at the jump's address has the same contents as the block's page, and
    /// then jumps directly to the block. `from` is the location of the branch, if the edge must be recorded.
    fn far_direct(&mut self, n: Option<usize>, stack: bool, offset: i32, way: usize, from: Option<u64>) {
        self.asm.load(R13, R15, at_slot(slot::PAGE));
        self.asm.add_to(R13, R13, offset);
        let Expected { next, next_named, .. } = self.block().expected;
        let Some(place) = next.filter(|place| *place as i32 & 0xfff == offset & 0xfff) else {
            return self.far(n, stack, from);
        };
        let site = self.site_of_jump(n);
        let (routines, k) = (self.places.routines, usize::from(stack));
        if self.source.hot {
            let unknown = self.far_path(site, routines.far[k], from);
            let other = self.far_path(site, routines.hop[k], from);
            self.asm.set(R12, place >> 12);
            jumps::check_page(self.asm, stack, unknown, other);
            if let Some(from) = from {
                self.depart_to(from, next_named);
            }
        } else {
            self.depart(from);
            self.asm.set(R11, u64::from(site));
            self.asm.set(R12, place >> 12);
            self.asm.call_to(routines.direct[k]);
            if let Some(from) = from {
                self.departed_to(from, next_named);
            }
        }
        self.go_to(None, place, way);
    }
    /// Emits a return to the linear address in R13. Sets the stack pointer from R14.
    fn far_back(&mut self, n: usize) {
        let site = self.site_of_jump(Some(n));
        if self.source.hot {
            let other = self.far_path(site, self.places.routines.hop[1], None);
            jumps::take_return(self.asm, other);
        } else {
            self.asm.set(R11, u64::from(site));
            self.asm.call_to(self.places.routines.returns);
        }
        self.asm.jump_register(R12);
    }
    /// Adds code behind the trace that jumps to the linear address in R13 by way of a routine. Returns its position.
    fn far_path(&mut self, site: u32, routine: u64, from: Option<u64>) -> Label {
        let here = self.asm.label();
        self.far_paths.push(FarPath { here, site, routine, from });
        here
    }
    /// Emits the code of all jumps so far that the tables of recent targets do not have.
    pub(super) fn far_paths(&mut self) {
        for FarPath { here, site, routine, from } in std::mem::take(&mut self.far_paths) {
            self.asm.bind(here);
            self.depart(from);
            self.asm.set(R11, u64::from(site));
            self.asm.call_to(routine);
            self.asm.jump_register(R12);
        }
    }
    /// Returns the number of a new site (a position at which the block can be left) for the jump that instruction `n`
    /// makes, or [`NO_SITE`] if `n` is `None`. All registers must be saved.
    fn site_of_jump(&mut self, n: Option<usize>) -> u32 {
        n.map_or(NO_SITE, |n| {
            let number = self.sites.next();
            self.site(n);
            number
        })
    }
    /// Emits code that leaves the block, so that the interpreter executes it from instruction `n` on.
    fn interpret(&mut self, n: usize) {
        self.registers.save(self.asm);
        self.asm.set(R11, leave_word(INTERPRET, self.id(), (n - self.first) as u32));
        self.asm.jump_to(self.places.routines.leave);
    }
}

/// True for a branch to a fixed distance that a displacement from the start of the page can express.
pub(super) fn is_direct(i: &Instruction) -> bool {
    matches!(i.op0_kind(), OpKind::NearBranch64) && i32::try_from(i.near_branch64() as i64).is_ok()
}

/// True if an offset from the start of the page is within the page.
pub(super) fn in_page(offset: i32) -> bool {
    (0..4096).contains(&offset)
}

/// Returns the word with which translated code returns: the reason `why`, the translation's number and the instruction.
fn leave_word(why: u8, id: u32, n: u32) -> u64 {
    u64::from(why) | u64::from(id) << 8 | u64::from(n) << 40
}
