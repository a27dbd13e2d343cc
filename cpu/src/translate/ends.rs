//! How a block ends: branches, calls and returns, and the ways to the next block.

use std::mem::offset_of;

use iced_x86::{Code, Instruction, Mnemonic, OpKind};

use super::Return;
use super::asm::{Alu, EQUAL, NOT_EQUAL, R10, R11, R13, R15, RAX, RCX, RDI, RSI};
use super::block::{Emitter, GUEST_RSP};
use super::choice::is_near_memory;
use super::frame::slot as at_slot;
use crate::decode::operand::{gpr, is_gpr, is_memory};
use crate::edges::{self, TABLE_SHIFT};
use crate::op::{JUMP, Op, slot};

impl Emitter<'_> {
    /// The last instruction, which decides what comes next.
    pub(super) fn end(&mut self, i: &Instruction, n: usize) {
        let op = &self.source.ops[n];
        let after = i32::from(op.off) + i32::from(op.len);
        let direct =
            matches!(i.op0_kind(), OpKind::NearBranch64) && i32::try_from(i.near_branch64() as i64).is_ok();
        match i.mnemonic() {
            Mnemonic::Jmp if direct => {
                self.registers.save(self.asm);
                self.branch(op, op.disp, 0, Some(n));
            }
            _ if i.is_jcc_short_or_near() && direct => {
                self.need_flags(i.condition_code() as u8 - 1);
                self.registers.save(self.asm);
                let taken = self.asm.label();
                self.asm.jump_short_if(i.condition_code() as u8 - 1, taken);
                self.branch(op, after, 0, None);
                self.asm.bind(taken);
                self.branch(op, op.disp, 1, Some(n));
            }
            Mnemonic::Call if direct => {
                self.registers.save(self.asm);
                self.push_return(after, n);
                if in_page(op.disp) {
                    self.asm.store(R15, at_slot(GUEST_RSP), RSI);
                    self.branch(op, op.disp, 0, Some(n));
                } else {
                    self.depart(op);
                    self.asm.load(R13, R15, at_slot(slot::PAGE));
                    self.asm.add_to(R13, R13, op.disp);
                    self.far_direct(Some(n), true, 0);
                }
            }
            Mnemonic::Call if i.code() == Code::Call_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.asm.copy(RDI, R13);
                if is_memory(i, 0) {
                    // The return address may overwrite the operand: nothing is left to the interpreter behind that.
                    self.asm.call_to(self.places.routines.executable);
                    self.site(n);
                }
                self.push_return(after, n);
                self.asm.copy(R13, RDI);
                self.depart(op);
                self.far(Some(n), true);
            }
            Mnemonic::Jmp if i.code() == Code::Jmp_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.depart(op);
                self.far(Some(n), false);
            }
            Mnemonic::Ret => {
                self.registers.save(self.asm);
                self.asm.load(RSI, R15, at_slot(GUEST_RSP));
                self.asm.copy(R13, RSI);
                self.check(8, false, n);
                self.asm.load(R13, R13, 0);
                self.asm.add_to(RSI, RSI, 8 + op.imm as i32);
                self.depart(op);
                self.far_back(n);
            }
            _ if i.is_string_instruction() => {
                self.call(n, self.places.routines.string);
                self.go_on(after, 0, None);
            }
            _ => self.interpret(n),
        }
    }
    /// Tell the next block where the branch was, if edges are asked for: it retires, or faults without anything between. No
    /// flags are changed, and no register but R11.
    fn depart(&mut self, op: &Op) {
        if self.source.named != 0 {
            debug_assert!(op.aux & JUMP != 0);
            let offset = u64::from(op.off);
            self.asm.set(R11, self.source.named & !0xfff | offset);
            self.asm.store(R15, at_slot(slot::FROM), R11);
        }
    }
    /// A direct branch to an offset from the page's start: an edge that is known here, if that is on this page. All registers
    /// are saved.
    fn branch(&mut self, op: &Op, offset: i32, cell: usize, n: Option<usize>) {
        if self.source.named != 0 && in_page(offset) {
            let place = |offset: u64| self.source.named & !0xfff | offset;
            let number = edges::number(place(u64::from(op.off)), place(offset as u64));
            let known = self.asm.label();
            self.asm.load(R11, R15, at_slot(slot::EDGES));
            self.asm.set(R10, number);
            self.asm.alu_memory(Alu::Cmp, R10, R11, (edges::first_slot(number) << TABLE_SHIFT) as i32);
            self.asm.jump_short_if(EQUAL, known);
            self.depart(op);
            self.asm.bind(known);
        } else {
            self.depart(op);
        }
        self.go_on(offset, cell, n);
    }
    /// R13 = where an indirect branch leads.
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
    /// Store a return address below the stack pointer, which stays as it is; RSI = what it is to be. RDI keeps its value. All
    /// registers are saved, and no longer held.
    fn push_return(&mut self, after: i32, n: usize) {
        self.asm.load(RSI, R15, at_slot(GUEST_RSP));
        self.asm.add_to(RSI, RSI, -8);
        self.asm.copy(R13, RSI);
        self.check(8, true, n);
        self.asm.load(R10, R15, at_slot(slot::PAGE));
        self.asm.add_to(R10, R10, after);
        self.asm.store(R13, 0, R10);
        self.asm.address(RCX, self.places.cells[1]);
        self.asm.call_to(self.places.routines.called);
    }
    /// Go on at an offset from the page's start. All registers are saved.
    pub(super) fn go_on(&mut self, offset: i32, cell: usize, n: Option<usize>) {
        if !in_page(offset) {
            self.asm.load(R13, R15, at_slot(slot::PAGE));
            self.asm.add_to(R13, R13, offset);
            return self.far_direct(n, false, cell);
        }
        self.asm.address(R11, self.places.cells[cell]);
        self.asm.jump_memory(R11, 0);
        self.leads_to[cell] = offset as u16;
    }
    /// Go to the linear address in R13, whatever page that is on; with `stack`, RSI is the stack pointer then. All registers
    /// are saved. `n` is the instruction that does it, which the interpreter executes where the address is not canonical.
    fn far(&mut self, n: Option<usize>, stack: bool) {
        let site = self.site_of_jump(n);
        self.asm.set(R11, u64::from(site));
        self.asm.call_to(self.places.routines.far[usize::from(stack)]);
        // Here and not in the routine, so that the host's predictor can tell one from the other.
        self.asm.jump_memory(RAX, 8);
    }
    /// The same for a return, to where the last call came from. RSI is the stack pointer then.
    fn far_back(&mut self, n: usize) {
        let site = self.site_of_jump(Some(n));
        self.asm.set(R11, u64::from(site));
        self.asm.call_to(self.places.routines.returns);
        self.asm.alu_memory(Alu::Cmp, RDI, RCX, offset_of!(Return, place) as i32);
        self.asm.jump_to_if(NOT_EQUAL, self.places.routines.unpaired);
        self.asm.jump_memory(RCX, offset_of!(Return, code) as i32);
    }
    /// The same, where that is always at the same distance: a cell tells where it was gone to before.
    fn far_direct(&mut self, n: Option<usize>, stack: bool, cell: usize) {
        let site = self.site_of_jump(n);
        self.asm.set(R11, u64::from(site));
        self.asm.call_to(self.places.routines.place[usize::from(stack)]);
        self.asm.address(RCX, self.places.cells[cell]);
        self.asm.alu_memory(Alu::Cmp, RDI, RCX, 8);
        self.asm.jump_to_if(NOT_EQUAL, self.places.routines.link);
        self.asm.jump_memory(RCX, 0);
    }
}

/// Whether an offset from the page's start is in it.
fn in_page(offset: i32) -> bool {
    (0..4096).contains(&offset)
}
