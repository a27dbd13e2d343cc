//! Routines that compute the guest's arithmetic flags from lazy flags whose kind is known only at run time.

use super::boundary::{fill, spill};
use super::mxcsr::give_mxcsr_back;
use crate::flags::bits;
use crate::op::slot::{KIND, X};
use crate::translate::asm::{Alu, Asm, EQUAL, Label, NOT_EQUAL, R9, R10, R15, RAX, RDI};
use crate::translate::enter::read_flags;
use crate::translate::frame::{MIDDLE, slot};
use crate::translate::lazy_flags::{self, CARRY_BYTE, GUEST_FLAGS, OWN_CARRY, Operation};

/// The most frequent kinds of lazy flags, in the order in which the code compares them.
const USUAL: [(Operation, u8); 11] = [
    (Operation::Sub, 3),
    (Operation::Logic, 3),
    (Operation::Sub, 2),
    (Operation::Logic, 2),
    (Operation::Host, 3),
    (Operation::Sub, 0),
    (Operation::Logic, 0),
    (Operation::Add, 3),
    (Operation::Add, 2),
    (Operation::Sub, 1),
    (Operation::Logic, 1),
];

/// Kinds that the routine `flag_bits` computes itself, in the order in which it compares them. The manual defines all
/// flags of these operations, except AF of a bitwise operation.
const WITH_ALL_BITS: [(Operation, u8); 5] = [
    (Operation::Host, 3),
    (Operation::Sub, 3),
    (Operation::Sub, 2),
    (Operation::Logic, 3),
    (Operation::Logic, 2),
];

/// Emits the routine `flags`. `unusual` is the routine for all kinds but the [`USUAL`] ones.
pub(super) fn flags(asm: &mut Asm, unusual: u64) {
    let labels = jumps_by_kind(asm, USUAL);
    asm.jump_to(unusual);
    for ((operation, log2), label) in USUAL.into_iter().zip(labels) {
        asm.bind(label);
        compute(asm, operation, log2);
        asm.ret();
    }
}

/// Emits the part of `flags` and `carry` for unusual kinds.
pub(super) fn unusual_flags(asm: &mut Asm) {
    read_by_function(asm, |asm| {
        asm.push(RAX);
        asm.pop_flags();
    });
}

/// Emits the routine `flag_bits`. The interpreter clears AF after a bitwise operation, and so does this routine.
pub(super) fn flag_bits(asm: &mut Asm) {
    let labels = jumps_by_kind(asm, WITH_ALL_BITS);
    read_by_function(asm, |asm| {
        asm.copy(R10, RAX);
        asm.and32(R10, GUEST_FLAGS);
    });
    for ((operation, log2), label) in WITH_ALL_BITS.into_iter().zip(labels) {
        asm.bind(label);
        if operation == Operation::Host {
            asm.load(R10, R15, slot(X));
        } else {
            compute(asm, operation, log2);
            asm.push_flags();
            asm.pop(R10);
        }
        let cleared = if operation == Operation::Logic { bits::AF as u32 } else { 0 };
        asm.and32(R10, GUEST_FLAGS & !cleared);
        asm.ret();
    }
}

/// Emits the routine `carry`. Its fast paths serve loops in which INC or DEC keeps the old CF, and a CF that BT or a
/// rotation stored beside the operands.
pub(super) fn carry(asm: &mut Asm, unusual: u64) {
    let (own, other) = (asm.label(), asm.label());
    asm.load_by_width(0, R10, R15, slot(KIND));
    asm.test_byte(R10, OWN_CARRY);
    asm.jump_if(NOT_EQUAL, own);
    asm.alu_imm(Alu::Cmp, R10, i32::from(lazy_flags::kind(Operation::Host, 3)));
    asm.jump_if(NOT_EQUAL, other);
    lazy_flags::carry_of_host(asm);
    asm.ret();
    asm.bind(own);
    asm.bit_test(R15, slot(KIND), 8 * CARRY_BYTE);
    asm.ret();
    asm.bind(other);
    asm.jump_to(unusual);
}

/// Emits code that jumps to the label of the current kind of lazy flags, if it is one of `kinds`. Clobbers R10.
fn jumps_by_kind<const N: usize>(asm: &mut Asm, kinds: [(Operation, u8); N]) -> [Label; N] {
    asm.load_by_width(0, R10, R15, slot(KIND));
    kinds.map(|(operation, log2)| {
        let label = asm.label();
        asm.alu_imm(Alu::Cmp, R10, i32::from(lazy_flags::kind(operation, log2)));
        asm.jump_if(EQUAL, label);
        label
    })
}

/// Emits code that sets the host's flags to those of an operation for which such code is possible.
fn compute(asm: &mut Asm, operation: Operation, log2: u8) {
    let computed = lazy_flags::compute(asm, operation, log2);
    debug_assert!(computed);
}

/// Emits the rest of a routine that calls [`read_flags`]. RAX is the result when the code of `take` runs. This code
/// must leave the stack as it was, and must not change the guest registers in [`Core`](crate::core::Core).
fn read_by_function(asm: &mut Asm, take: impl FnOnce(&mut Asm)) {
    spill(asm);
    give_mxcsr_back(asm);
    // R9, R12 and R14 may hold guest registers here (`POOL`). The ABI makes a call preserve R12 and R14, but not R9.
    asm.push(R9);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.set(RAX, read_flags as *const () as u64);
    asm.call(RAX);
    take(asm);
    asm.pop(R9);
    fill(asm);
    asm.ret();
}
