//! How a block ends: branches, calls and returns, and the ways to the next block.

use iced_x86::{Code, Instruction, Mnemonic, OpKind};

use super::asm::{Alu, NOT_EQUAL, R11, R13, R14, R15, RAX, RDI, RDX, RSI};
use super::block::{Emitter, GUEST_RSP, JUMPS, Leave, Stub};
use super::choice::is_near_memory;
use super::registers::slot as at_slot;
use crate::decode::operand::{gpr, is_gpr, is_memory};
use crate::mem::tlb;
use crate::op::{Op, slot};

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
                self.go_on(op.disp, 0, Some(n));
            }
            _ if i.is_jcc_short_or_near() && direct => {
                self.need_flags(i.condition_code() as u8 - 1);
                self.registers.save(self.asm);
                let taken = self.asm.label();
                self.asm.jump_if(i.condition_code() as u8 - 1, taken);
                self.go_on(after, 0, None);
                self.asm.bind(taken);
                self.go_on(op.disp, 1, Some(n));
            }
            Mnemonic::Call if direct => {
                self.registers.save(self.asm);
                self.push_return(after, n);
                if in_page(op.disp) {
                    self.move_stack(-8);
                    self.go_on(op.disp, 0, Some(n));
                } else {
                    self.asm.load(R13, R15, at_slot(slot::PAGE));
                    self.asm.add_to(R13, R13, op.disp);
                    self.far(Some(n), -8);
                }
            }
            Mnemonic::Call if i.code() == Code::Call_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.asm.copy(RSI, R13);
                self.push_return(after, n);
                self.asm.copy(R13, RSI);
                self.far(Some(n), -8);
            }
            Mnemonic::Jmp if i.code() == Code::Jmp_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.far(Some(n), 0);
            }
            Mnemonic::Ret => {
                self.registers.save(self.asm);
                self.asm.load(R13, R15, at_slot(GUEST_RSP));
                self.check(8, false, n);
                self.asm.load(R13, R13, 0);
                self.far(Some(n), 8 + op.imm as i32);
            }
            _ => {
                let label = self.otherwise(n);
                self.asm.jump(label);
            }
        }
    }
    /// R13 = where an indirect branch leads.
    pub(super) fn target(&mut self, i: &Instruction, op: &Op, n: usize) {
        if is_memory(i, 0) {
            self.address(op);
            self.check(8, false, n);
            self.asm.load(R13, R13, 0);
        } else {
            let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
            self.asm.copy(R13, host);
        }
    }
    /// Store a return address below the stack pointer, which stays as it is. RSI keeps its value.
    pub(super) fn push_return(&mut self, after: i32, n: usize) {
        self.asm.load(R13, R15, at_slot(GUEST_RSP));
        self.asm.add_to(R13, R13, -8);
        self.check(8, true, n);
        self.asm.load(R14, R15, at_slot(slot::PAGE));
        self.asm.add_to(R14, R14, after);
        self.asm.store(R13, 0, R14);
    }
    pub(super) fn move_stack(&mut self, by: i32) {
        self.asm.load(R14, R15, at_slot(GUEST_RSP));
        self.asm.add_to(R14, R14, by);
        self.asm.store(R15, at_slot(GUEST_RSP), R14);
    }
    /// Go on at an offset from the page's start. All registers are saved.
    pub(super) fn go_on(&mut self, offset: i32, cell: usize, n: Option<usize>) {
        if !in_page(offset) {
            self.asm.load(R13, R15, at_slot(slot::PAGE));
            self.asm.add_to(R13, R13, offset);
            self.far(n, 0);
            return;
        }
        self.asm.set(R11, self.places.cells[cell]);
        self.asm.jump_memory(R11, 0);
        let label = self.asm.label();
        let cell_number = self.places.first_cell + cell as u32;
        self.stubs.push(Stub {
            label,
            unsaved: Vec::new(),
            leave: Leave::Next { offset, cell: cell_number },
        });
        self.unlinked[cell] = label;
    }
    /// Go to the linear address in R13, whatever page that is on, and change the stack pointer if that is possible. All
    /// registers are saved. `n` is the instruction that does it, which the interpreter executes where the address is not
    /// known to be executable; without one that is found out behind it.
    pub(super) fn far(&mut self, n: Option<usize>, stack: i32) {
        self.entry();
        self.asm.copy(RAX, R13);
        self.asm.alu_imm(Alu::And, RAX, -4096);
        self.asm.alu_memory(Alu::Cmp, RAX, R14, tlb::EXEC as i32);
        let behind = self.asm.label();
        self.stubs.push(Stub { label: behind, unsaved: Vec::new(), leave: Leave::Far });
        let unknown = match n {
            Some(n) => self.otherwise(n),
            None => behind,
        };
        self.asm.jump_if(NOT_EQUAL, unknown);
        if stack != 0 {
            let kept = RSI;
            self.asm.load(kept, R15, at_slot(GUEST_RSP));
            self.asm.add_to(kept, kept, stack);
            self.asm.store(R15, at_slot(GUEST_RSP), kept);
        }
        self.asm.store(R15, at_slot(slot::PAGE), RAX);
        self.asm.add_to(RAX, RAX, 1 << 30);
        self.asm.store(R15, at_slot(slot::PAGE_FAR), RAX);
        self.asm.copy(RDX, R13);
        self.asm.alu_memory(Alu::Add, RDX, R14, tlb::ADDEND as i32);
        self.asm.copy(RDI, RDX);
        self.asm.and32(RDI, super::JUMP_MASK as u32);
        self.asm.shift_left(RDI, super::JUMP_SHIFT);
        self.asm.alu_memory(Alu::Add, RDI, R15, JUMPS);
        self.asm.alu_memory(Alu::Cmp, RDX, RDI, 0);
        self.asm.jump_if(NOT_EQUAL, behind);
        self.asm.jump_memory(RDI, 8);
    }
}

/// Whether an offset from the page's start is in it.
fn in_page(offset: i32) -> bool {
    (0..4096).contains(&offset)
}
