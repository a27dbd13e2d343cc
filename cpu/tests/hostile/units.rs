//! Generates units and functions. Most units are loops of ordinary instructions (`pieces`) and of instructions that try
//! to mislead the translator, such as stores to running code (`attacks`). The other units are random bytes. A unit ends
//! with a jump to a unit or to another branch target.

use crate::attacks::attack;
use crate::code::{Code, Rm};
use crate::extended::extended;
use crate::layout::*;
use crate::pieces::{POINTERS, RCX, piece};
use crate::rng::Rng;
use crate::vectors::vector;
use crate::world::{World, somewhere};

/// Assembles a unit at a linear address.
pub(crate) fn unit(at: u64, rng: &mut Rng, world: &World) -> Code {
    let mut c = Code::new(at);
    if rng.one_in(10) {
        for _ in 0..rng.below(60) {
            c.raw(&[rng.next() as u8]);
        }
        go_on(&mut c, rng, world);
        return c;
    }
    for pointer in POINTERS {
        if rng.one_in(2) {
            c.set(pointer, somewhere(rng));
        }
    }
    // Sometimes the loop has so many rounds that a CPU with default settings translates it.
    let rounds = if rng.one_in(3) { 56 + rng.below(60) } else { 3 + rng.below(30) };
    c.set(RCX, rounds);
    let top = c.here();
    let attacks = rng.below(3);
    let pieces = 1 + rng.below(12);
    for n in 0..pieces {
        ordinary(&mut c, rng, world);
        if n < attacks {
            attack(&mut c, rng, world, top);
        }
    }
    again(&mut c, rng, top);
    go_on(&mut c, rng, world);
    c
}

/// Emits one ordinary, vector or extended instruction.
fn ordinary(c: &mut Code, rng: &mut Rng, world: &World) {
    if world.extended && rng.one_in(3) {
        extended(c, rng);
    } else if world.vectors && rng.one_in(2) {
        vector(c, rng);
    } else {
        piece(c, rng);
    }
}

/// Emits the branch to the top of the loop. It is taken while the counter is not zero.
fn again(c: &mut Code, rng: &mut Rng, top: u64) {
    match rng.below(6) {
        0 => {
            // An indirect jump through a register.
            c.raw(&[0x49, 0xba]);
            c.raw(&top.to_le_bytes()); // mov r10, top
            c.raw(&[0xff, 0xc9, 0x7e, 0x03, 0x41, 0xff, 0xe2]); // dec ecx; jle over; jmp r10
        }
        1 => {
            // LOOP, which reaches at most 128 bytes back.
            let back = top.wrapping_sub(c.here() + 2) as i64;
            if let Ok(back) = i8::try_from(back) {
                c.raw(&[0xe2, back as u8]);
            }
        }
        _ => {
            c.raw(rng.pick(&[&[0xff, 0xc9][..], &[0x83, 0xe9, 0x01], &[0x48, 0xff, 0xc9]]));
            c.branch(&[0x0f, rng.pick(&[0x85, 0x8f])], top);
        }
    }
}

/// Emits a jump to a random branch target, or to the next unit of the table in `FIXED_PAGE`.
fn go_on(c: &mut Code, rng: &mut Rng, world: &World) {
    if rng.one_in(4) {
        let to = world.target(rng);
        c.branch(&[0xe9], to);
        return;
    }
    c.op(4, &[0x8b], 0, Rm::Abs((FIXED + COUNTER) as u32));
    c.op(4, &[0xff], 0, Rm::Abs((FIXED + COUNTER) as u32));
    c.raw(&[0x83, 0xe0, TARGETS_COUNT as u8 - 1]); // and eax
    // jmp [rax * 8 + TARGETS]
    c.raw(&[0xff, 0x24, 0xc5]);
    c.imm32((FIXED + TARGETS) as u32);
}

/// Assembles a short function that returns.
pub(crate) fn function(at: u64, rng: &mut Rng, world: &World) -> Code {
    let mut c = Code::new(at);
    for _ in 0..rng.below(5) {
        ordinary(&mut c, rng, world);
    }
    if rng.one_in(6) {
        attack(&mut c, rng, world, at);
    }
    c.raw(if rng.one_in(8) { &[0xc2, 0, 0] } else { &[0xc3] });
    c
}
