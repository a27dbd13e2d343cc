//! Translates instructions that are no control flow. Emitted code executes them re-encoded on other registers, or as a
//! hand-written sequence, or by a call of their handler (the interpreter's function for the instruction).

use iced_x86::{Code, ConditionCode, Encoder, Instruction, Mnemonic, OpKind, Register};

use super::asm::{Alu, Host, R10, R11, R13, R15};
use super::choice::{
    ARITH, is_logic, is_second_byte, leaves_all_in_host, needs_carry, operation, writes_whole,
};
use super::emitter::{Emitter, InHost};
use super::enter::handler_word;
use super::frame::RFLAGS;
use super::lazy_flags::Operation;
use super::pending::Pending;
use super::registers::GUEST_RSP;
use crate::flags::bits;
use crate::op::operand::{gpr, is_gpr, is_immediate, is_memory, width};
use crate::op::{Op, slot};

impl Emitter<'_> {
    /// Emits an instruction that the host executes re-encoded on other registers. It must have explicit operands only;
    /// CMPXCHG, which also uses the accumulator, is the exception.
    pub(super) fn plain(&mut self, i: &Instruction, n: usize) {
        let op = &self.ops[n];
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
        let seen = operation(i).is_some() && self.plain[n].seen;
        if needs_carry(i) && (seen || i.rflags_read() & ARITH != 0) {
            self.need_carry();
        }
        let mut out = *i;
        let mut hosts = [None; 3];
        for k in 0..i.op_count() {
            if i.op_kind(k) != OpKind::Register {
                continue;
            }
            let register = i.op_register(k);
            let load = !(k == 0 && writes_whole(i));
            let host = self.registers.get(self.asm, gpr(register) & 15, load);
            // AH, CH, DH or BH keeps its name, because its guest register is in the host register of the same name.
            if !is_second_byte(register) {
                out.set_op_register(k, named(host, register.size()));
            }
            hosts[k as usize] = Some(host);
        }
        if i.mnemonic() == Mnemonic::Cmpxchg {
            self.registers.get(self.asm, 0, true);
        }
        if memory.is_some() {
            on_r13(&mut out);
        }
        without_prefixes(&mut out);
        if !self.encode(&out) {
            return self.handler(n);
        }
        let log2 = width(i, 0).trailing_zeros() as u8;
        let operation = operation(i);
        let pending = operation.filter(|_| seen && self.source.hot);
        let pending = pending.and_then(|operation| Pending::after(i, operation, log2, &hosts));
        if let Some(operation) = operation.filter(|_| seen && pending.is_none()) {
            self.keep_operands(i, operation, log2, &hosts);
        }
        self.emit_encoded();
        if is_gpr(i, 0) && !only_reads {
            self.registers.wrote(gpr(i.op0_register()) & 15);
        }
        match i.mnemonic() {
            Mnemonic::Xchg | Mnemonic::Xadd => self.registers.wrote(gpr(i.op1_register())),
            Mnemonic::Cmpxchg => self.registers.wrote(0),
            _ => {}
        }
        match operation {
            Some(Operation::Host) if seen => {
                self.pending = None;
                self.in_host = InHost::All;
                self.keep_host_flags(is_logic(i));
                self.keep_kind(Operation::Host, 3);
            }
            Some(operation) if operation != Operation::Host || leaves_all_in_host(i) => {
                self.in_host = if leaves_all_in_host(i) { InHost::All } else { InHost::AllButOverflow };
                self.pending = pending;
                let stores = seen && pending.is_none();
                if stores && operation == Operation::Logic && !only_reads {
                    self.keep_result(log2, hosts[0]);
                }
                if stores {
                    self.keep_kind(operation, log2);
                } else {
                    self.known = None;
                }
            }
            // Nothing observes the flags of an instruction that reaches this arm. If `operation` is `None`,
            // `choice::plain` has checked that the flags are not observed. If `operation` is `Host`, the first arm has
            // handled the instructions whose flags are observed.
            _ if i.rflags_modified() & ARITH != 0 => {
                (self.in_host, self.known, self.pending) = (InHost::Nothing, None, None);
            }
            _ => {}
        }
    }
    /// Encodes an instruction whose only explicit register is its destination, which it also reads. Returns the guest register
    /// and its host register. Returns `None` if there is no encoding (see [`Emitter::encode`]).
    pub(super) fn encode_on_destination(&mut self, i: &Instruction) -> Option<(u8, Host)> {
        let dst = gpr(i.op0_register());
        let host = self.registers.get(self.asm, dst, true);
        let mut out = *i;
        out.set_op0_register(named(host, width(i, 0)));
        self.encode(&out).then_some((dst, host))
    }
    /// Encodes a guest instruction on host registers, for [`Emitter::emit_encoded`]. Returns false if there is no
    /// encoding, which would be a bug in the choice of translated instructions.
    pub(super) fn encode(&mut self, i: &Instruction) -> bool {
        let encoded = self.encoder.encode(i, 0).is_ok();
        debug_assert!(encoded, "{i:?} has no encoding");
        if !encoded {
            self.encoder = Encoder::new(64);
        }
        encoded
    }
    /// Appends the encoded instruction.
    pub(super) fn emit_encoded(&mut self) {
        let mut code = self.encoder.take_buffer();
        self.asm.raw(&code);
        code.clear();
        self.encoder.set_buffer(code);
    }
    fn lea(&mut self, i: &Instruction, op: &Op) {
        // LEA ignores the segment base.
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
    /// Emits an instruction with implicit operands. Returns false for instructions that this function does not know.
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
            Mnemonic::Cli => self.flag_routine(self.places.routines.cli, n),
            Mnemonic::Sti => self.flag_routine(self.places.routines.sti, n),
            Mnemonic::Pushfq => {
                let sp = self.registers.get(self.asm, GUEST_RSP, true);
                self.asm.add_to(R13, sp, -8);
                self.check(8, true, n);
                // The routine may call a function, which preserves general registers only.
                self.registers.vectors.save(self.asm);
                self.registers.vectors.forget();
                self.asm.call_to(self.places.routines.flag_bits);
                self.asm.alu_memory(Alu::Or, R10, R15, RFLAGS);
                self.asm.and32(R10, !bits::RF as u32);
                self.asm.store(R13, 0, R10);
                self.asm.add_to(sp, sp, -8);
                self.registers.wrote(GUEST_RSP);
                (self.in_host, self.known) = (InHost::Nothing, None);
            }
            // Guest and host have RAX and RDX in common.
            Mnemonic::Cdq => self.asm.raw(&[0x99]),
            Mnemonic::Cqo => self.asm.raw(&[0x48, 0x99]),
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Pause => {}
            _ => return false,
        }
        true
    }

    /// Emits a call of a routine that executes instruction `n`, which changes IF.
    fn flag_routine(&mut self, routine: u64, n: usize) {
        self.asm.call_to(routine);
        self.site(n);
        self.in_host = InHost::Nothing;
    }
    /// Emits a call of the instruction's handler.
    pub(super) fn handler(&mut self, n: usize) {
        self.call(n, self.places.routines.handler);
    }
    /// Emits a call of the instruction's handler through `routine`.
    pub(super) fn call(&mut self, n: usize, routine: u64) {
        self.registers.save(self.asm);
        self.registers.forget();
        let index = self.block().ops_start + (n - self.first) as u32;
        self.asm.set(R11, handler_word(index, self.charged));
        self.asm.call_to(routine);
        self.site(n);
        self.in_host = InHost::Nothing;
        self.known = None;
    }
}

/// Removes prefixes that have no effect here but may have one on some host. LOCK is unnecessary with one vCPU, segment
/// bases are already part of the addresses, and the other prefixes are hints.
pub(super) fn without_prefixes(i: &mut Instruction) {
    i.set_has_lock_prefix(false);
    i.set_has_xacquire_prefix(false);
    i.set_has_xrelease_prefix(false);
    i.set_has_rep_prefix(false);
    i.set_has_repne_prefix(false);
    i.set_segment_prefix(Register::None);
}

/// Makes R13 the address of the memory operand.
pub(super) fn on_r13(i: &mut Instruction) {
    i.set_memory_base(Register::R13);
    i.set_memory_index(Register::None);
    i.set_memory_index_scale(1);
    i.set_memory_displacement64(0);
    i.set_memory_displ_size(0);
    i.set_segment_prefix(Register::None);
}

/// Returns the decoder's register for a host register and a width in bytes.
pub(super) fn named(host: Host, bytes: usize) -> Register {
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
