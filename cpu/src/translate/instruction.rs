//! Instructions that go on to the next one: as they are on other registers, by hand, or left to their handlers.

use iced_x86::{Code, ConditionCode, Encoder, Instruction, Mnemonic, OpKind, Register};

use super::asm::{Alu, EQUAL, Host, R11, R12, R13, R15, RAX, RDI, RDX, RSI};
use super::block::{ARITH, Emitter, GUEST_RSP, InHost, LEFT};
use super::choice::{leaves_all_in_host, operation, writes_whole};
use super::lazy::Operation;
use super::leave_word;
use crate::decode::operand::{gpr, is_gpr, is_immediate, is_memory, width};
use crate::op::{Op, slot};

impl Emitter<'_> {
    /// An instruction whose operands are all it says, and which the host executes as it is, on other registers.
    pub(super) fn plain(&mut self, i: &Instruction, n: usize) {
        let op = &self.source.ops[n];
        let memory = (0..i.op_count()).find(|&k| is_memory(i, k));
        let only_reads = matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        if i.mnemonic() == Mnemonic::Lea {
            return self.lea(i, op);
        }
        if let Some(k) = memory {
            self.address(op);
            self.check(i.memory_size().size(), k == 0 && !only_reads, n);
        }
        let condition = i.condition_code();
        if condition != ConditionCode::None {
            self.need_flags(condition as u8 - 1);
        }
        let mut out = *i;
        let mut hosts = [None; 3];
        for k in 0..i.op_count() {
            if i.op_kind(k) != OpKind::Register {
                continue;
            }
            let register = i.op_register(k);
            let load = !(k == 0 && writes_whole(i));
            let host = self.registers.get(self.asm, gpr(register), load);
            out.set_op_register(k, named(host, register.size()));
            hosts[k as usize] = Some(host);
        }
        if memory.is_some() {
            out.set_memory_base(Register::R13);
            out.set_memory_index(Register::None);
            out.set_memory_index_scale(1);
            out.set_memory_displacement64(0);
            out.set_memory_displ_size(0);
        }
        without_prefixes(&mut out);
        if self.encoder.encode(&out, 0).is_err() {
            // Nothing was changed so far.
            self.encoder = Encoder::new(64);
            return self.handler(n);
        }
        let log2 = width(i, 0).trailing_zeros() as u8;
        let operation = operation(i);
        let whole = leaves_all_in_host(i);
        let seen = operation.is_some() && self.plain[n].seen;
        if let Some(operation) = operation.filter(|_| seen) {
            self.keep_operands(i, operation, log2, &hosts);
        }
        let mut code = self.encoder.take_buffer();
        self.asm.raw(&code);
        code.clear();
        self.encoder.set_buffer(code);
        if is_gpr(i, 0) && !only_reads {
            self.registers.wrote(gpr(i.op0_register()));
        }
        if i.mnemonic() == Mnemonic::Xchg {
            self.registers.wrote(gpr(i.op1_register()));
        }
        if let Some(operation) = operation {
            self.in_host = if whole { InHost::All } else { InHost::AllButOverflow };
            if seen && operation == Operation::Logic && !only_reads {
                self.keep_result(log2, hosts[0]);
            }
            if seen {
                self.keep_kind(operation, log2);
            } else {
                self.known = None;
            }
        } else if i.rflags_modified() & ARITH != 0 {
            // Nobody sees them, or it would not have been translated.
            (self.in_host, self.known) = (InHost::Nothing, None);
        }
    }
    fn lea(&mut self, i: &Instruction, op: &Op) {
        // Its segment base does not count.
        let near = Op { seg: slot::ZERO, ..*op };
        self.address(&near);
        let dst = gpr(i.op0_register());
        let host = self.registers.get(self.asm, dst, false);
        if i.op0_register().size() == 8 {
            self.asm.copy(host, R13);
        } else {
            self.asm.copy32(host, R13);
        }
        self.registers.wrote(dst);
    }
    /// Instructions with operands that they do not name. Whether it was one.
    pub(super) fn special(&mut self, i: &Instruction, n: usize) -> bool {
        match i.mnemonic() {
            Mnemonic::Push if i.stack_pointer_increment() == -8 && (is_gpr(i, 0) || is_immediate(i, 0)) => {
                let sp = self.registers.get(self.asm, GUEST_RSP, true);
                self.asm.add_to(R13, sp, -8);
                self.check(8, true, n);
                if is_immediate(i, 0) {
                    self.asm.store_imm(R13, 0, i.immediate(0) as i64 as i32);
                } else {
                    let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
                    self.asm.store(R13, 0, host);
                }
                self.asm.add_to(sp, sp, -8);
                self.registers.wrote(GUEST_RSP);
            }
            Mnemonic::Pop if i.stack_pointer_increment() == 8 && is_gpr(i, 0) => {
                let sp = self.registers.get(self.asm, GUEST_RSP, true);
                self.asm.copy(R13, sp);
                self.check(8, false, n);
                self.asm.add_to(sp, sp, 8);
                self.registers.wrote(GUEST_RSP);
                let dst = gpr(i.op0_register());
                let host = self.registers.get(self.asm, dst, false);
                self.asm.load(host, R13, 0);
                self.registers.wrote(dst);
            }
            Mnemonic::Leave if i.code() == Code::Leaveq => {
                let bp = self.registers.get(self.asm, 5, true);
                self.asm.copy(R13, bp);
                self.check(8, false, n);
                let sp = self.registers.get(self.asm, GUEST_RSP, false);
                self.asm.add_to(sp, bp, 8);
                self.registers.wrote(GUEST_RSP);
                self.asm.load(bp, R13, 0);
                self.registers.wrote(5);
            }
            Mnemonic::Cdqe => {
                let host = self.registers.get(self.asm, 0, true);
                self.asm.extend32(host, host);
                self.registers.wrote(0);
            }
            Mnemonic::Cwde => {
                let host = self.registers.get(self.asm, 0, true);
                self.asm.extend16(host, host);
                self.registers.wrote(0);
            }
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Pause => {}
            _ => return false,
        }
        true
    }

    /// Have an instruction's handler execute it.
    pub(super) fn handler(&mut self, n: usize) {
        self.registers.save(self.asm);
        self.registers.forget();
        self.asm.store(R15, LEFT, R12);
        self.asm.copy(RDI, R15);
        self.asm.set(RSI, u64::from(self.source.ops_start) + n as u64);
        self.asm.set(RDX, self.source.ops.len() as u64);
        self.asm.set(RAX, self.places.call_op);
        self.asm.call(RAX);
        self.asm.test(2, RAX, RAX);
        let goes_on = self.asm.label();
        self.asm.jump_if(EQUAL, goes_on);
        self.asm.set(R11, leave_word(super::STOPPED, self.source.id, n as u32));
        self.asm.shift_left(RAX, super::STOP_SHIFT);
        self.asm.alu(Alu::Add, RAX, R11);
        self.asm.jump(self.ends);
        self.asm.bind(goes_on);
        self.in_host = InHost::Nothing;
        self.known = None;
    }
}

/// Take away what means nothing here, and may mean something on some host: nobody else is there to be locked out, addresses
/// have their segments already, and the rest are hints.
fn without_prefixes(i: &mut Instruction) {
    i.set_has_lock_prefix(false);
    i.set_has_xacquire_prefix(false);
    i.set_has_xrelease_prefix(false);
    i.set_has_rep_prefix(false);
    i.set_has_repne_prefix(false);
    i.set_segment_prefix(Register::None);
}

/// A host register as the decoder names it, in so many bytes.
fn named(host: Host, bytes: usize) -> Register {
    let n = u32::from(host.0);
    match bytes {
        1 if n < 4 => Register::AL + n,
        1 if n < 8 => Register::SPL + (n - 4),
        1 => Register::R8L + (n - 8),
        2 => Register::AX + n,
        4 => Register::EAX + n,
        _ => Register::RAX + n,
    }
}
