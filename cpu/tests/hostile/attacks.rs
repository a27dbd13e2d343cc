//! Attacks on translated code: stores to running code and to the tables that map it, accesses at the edges of pages,
//! and instruction sequences that no compiler emits. A *site* is an immediate operand that attacks may change.

use crate::code::{Code, Rm};
use crate::layout::*;
use crate::pieces::{POINTERS, RSP, free, memory, width};
use crate::rng::Rng;
use crate::world::{World, data_edge, somewhere};

/// Emits one attack. It is part of a loop that begins at `top`.
pub(crate) fn attack(c: &mut Code, rng: &mut Rng, world: &World, top: u64) {
    match rng.below(25) {
        0..=5 => store_to_code(c, rng, world),
        6..=9 => change_table(c, rng, world),
        10..=12 => edge(c, rng),
        13..=18 => transfer(c, rng, world, top),
        19 => random_bytes(c, rng),
        20 => overlap(c, rng),
        21 => mode(c, rng),
        22 => far_operand(c, rng),
        23 => forbid(c, rng, world),
        _ => odd(c, rng),
    }
}

/// Emits a store of a random width to code, through a random mapping. Most of these stores hit an immediate operand.
fn store_to_code(c: &mut Code, rng: &mut Rng, world: &World) {
    let (w, reg) = (width(rng), free(rng));
    let offset = if rng.one_in(8) { rng.below(12) as i32 - 8 } else { 0 };
    match rng.below(8) {
        0..=3 => c.op_at_site(w, &[0x89], reg, offset),
        4 => c.op_at_site(w, &[0xff], rng.below(2) as u8, offset),
        5 => c.op_at_site(rng.pick(&[1, 4]), &[rng.pick(&[0x01, 0x31, 0x87])], reg, offset),
        6 => {
            // A push or a string instruction that stores at the site. The code begins with lea rdi, [site].
            c.op_at_site(8, &[0x8d], 7, offset);
            if rng.one_in(2) {
                c.raw(&[0x49, 0x89, 0xe0]); // mov r8, rsp
                c.op(8, &[0x8d], RSP, Rm::At(7, 8));
                c.push(0);
                c.raw(&[0x4c, 0x89, 0xc4]); // mov rsp, r8
            } else {
                c.raw(&[rng.pick(&[0xaa, 0xab])]);
            }
        }
        _ => {
            // A store to code within 32 bytes of this point, through a random mapping. The store may change opcodes,
            // too.
            let near = c.here().wrapping_add(rng.below(64)).wrapping_sub(32);
            let at = world.alias(rng, near);
            c.op(1, &[rng.pick(&[0x31, 0x89])], reg, Rm::Abs(at as u32));
        }
    }
}

/// Emits a change of the page tables that map the window (`WINDOW`, the pages on which programs run). Often it maps the
/// running page to its twin, i.e. a page with the same code except for a few bits.
fn change_table(c: &mut Code, rng: &mut Rng, world: &World) {
    let own = c.here().wrapping_sub(WINDOW) >> 12;
    let page = match rng.below(4) {
        0 | 1 if own < WINDOW_PAGES => own,
        2 if own + 1 < WINDOW_PAGES => own + 1,
        _ => rng.below(WINDOW_PAGES),
    };
    let entry = (LARGE + window_entry(page)) as u32;
    match rng.below(8) {
        0..=2 => {
            let now = world.code_page(page).unwrap_or(DATA);
            let twin =
                if now < DATA { CODE + (now - CODE + TWIN_PAGES * 4096) % (CODE_PAGES * 4096) } else { now };
            // With XOR, a loop alternates between the page and its twin.
            c.op(8, &[0x81], 6, Rm::Abs(entry));
            c.imm32((now ^ twin) as u32);
        }
        3 => {
            // Swaps two pages.
            let other = (LARGE + window_entry(rng.below(VIEW_PAGES))) as u32;
            c.op(8, &[0x8b], 0, Rm::Abs(entry));
            c.op(8, &[0x87], 0, Rm::Abs(other));
            c.op(8, &[0x89], 0, Rm::Abs(entry));
        }
        4 | 5 => {
            // Toggles an access right, or an accessed or dirty bit.
            c.op(8, &[0x0f, 0xba], 7, Rm::Abs(entry));
            c.raw(&[rng.pick(&[0, 1, 1, 2, 5, 5, 6, 6, 63])]);
        }
        6 => {
            c.op(8, &[0xc7], 0, Rm::Abs(entry));
            let gpa = rng.pick(&[CODE, DATA, PT]) + rng.below(4) * 4096;
            c.imm32((gpa | rng.below(8) | PRESENT) as u32);
        }
        _ => {
            // Toggles a bit in an entry of a higher-level table.
            let entry = (LARGE + PD + (WINDOW >> 21) * 8) as u32;
            c.op(8, &[0x0f, 0xba], 7, Rm::Abs(entry));
            c.raw(&[rng.pick(&[1, 5, 5, 6, 2])]);
        }
    }
    if !world.user && rng.one_in(2) {
        if rng.one_in(4) {
            c.raw(&[0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8]); // mov rax, cr3; mov cr3, rax
        } else {
            c.op(4, &[0x0f, 0x01], 7, Rm::Abs((WINDOW + page * 4096) as u32));
        }
    }
}

/// Emits a load from a function's page, and then a call of the function. In some rounds of the loop, code before the
/// load toggles the page's NX bit, so that the page can be read but not executed.
fn forbid(c: &mut Code, rng: &mut Rng, world: &World) {
    let function = rng.pick(&world.functions);
    let entry = LARGE + window_entry((function - WINDOW) >> 12);
    // Toggles only in some rounds of the loop: test cl, 3; jnz over the next ten bytes.
    c.raw(&[0xf6, 0xc1, 3, 0x75, 10]);
    c.op(8, &[0x0f, 0xba], 7, Rm::Abs(entry as u32));
    c.raw(&[63]);
    c.set(0, function);
    c.op(4, &[0x8b], 2, Rm::At(0, 0));
    // The jump `eb 00` ends the block, so the call is in a block of its own. If the interpreter must execute the load,
    // it also executes the rest of the load's block, and the test would miss the translated call.
    c.raw(&[0xeb, 0, 0xff, 0xd0]);
}

/// Emits accesses around the end of a page, through the stack pointer or through another register.
fn edge(c: &mut Code, rng: &mut Rng) {
    let at = if rng.one_in(4) { somewhere(rng) } else { data_edge(rng) };
    if rng.one_in(3) {
        c.raw(&[0x49, 0x89, 0xe1]); // mov r9, rsp
        c.set(RSP, at);
        match rng.below(6) {
            0 => c.push(free(rng)),
            1 => c.pop(free(rng)),
            2 => c.raw(&[0x9c, 0x9d]),
            3 => c.raw(&[0xe8, 0, 0, 0, 0]),
            4 => c.raw(&[0x68, 1, 2, 3, 4, 0x48, 0x83, 0x04, 0x24, 1]),
            _ => c.raw(&[0xc8, 8, 0, 0, 0xc9]),
        }
        c.raw(&[0x4c, 0x89, 0xcc]); // mov rsp, r9
        return;
    }
    let pointer = rng.pick(&POINTERS);
    c.set(pointer, at);
    for _ in 0..1 + rng.below(3) {
        let (w, reg) = (width(rng), free(rng));
        let rm = Rm::At(pointer, rng.below(12) as i32 - 4);
        if rng.one_in(4) {
            // stac, clac: permits or forbids accesses of ring 0 to user pages.
            c.raw(&[0x0f, 0x01, rng.pick(&[0xcb, 0xcb, 0xca])]);
        }
        match rng.below(5) {
            0 | 1 => c.op(w, &[0x8b], reg, rm),
            2 => c.op(w, &[0x89], reg, rm),
            3 => c.op(w, &[rng.pick(&[0x01, 0x31, 0x39, 0x87])], reg, rm),
            _ => c.op(4, &[0x0f, rng.pick(&[0x10, 0x11])], 1, rm),
        }
    }
}

/// Emits calls, jumps and returns, on this page and to others. Many targets are the first byte of a function, or a byte
/// shortly after it.
fn transfer(c: &mut Code, rng: &mut Rng, world: &World, top: u64) {
    if rng.one_in(12) {
        // A prefix that has no effect here or is a hint.
        c.raw(&[rng.pick(&[0x66, 0x67, 0x2e, 0xf2, 0xf3, 0x48])]);
    }
    let pointer = (FIXED + POINTER_WORDS + rng.below(POINTER_WORDS_COUNT) * 8) as u32;
    match rng.below(13) {
        0..=2 => {
            let to = world.function(rng);
            c.branch(&[0xe8], to);
        }
        3 | 4 => {
            let to = world.function(rng);
            c.set(0, to);
            if rng.one_in(2) {
                // A load from the target, whose page may be readable but not executable.
                c.op(4, &[0x8b], 2, Rm::At(0, 0));
                // The call is in a block of its own. Otherwise a load that the interpreter must execute would make the
                // interpreter execute the call, too.
                c.raw(&[0xeb, 0]);
            }
            c.raw(&[0xff, rng.pick(&[0xd0, 0xd0, 0xe0])]);
        }
        5 | 6 => c.op(4, &[0xff], 2, Rm::Abs(pointer)),
        7 => {
            // A jump to the next instruction, or by chance into it.
            let over = if rng.one_in(3) { rng.below(6) } else { 0 };
            c.branch(&[0xe9], c.here() + 5 + over);
        }
        8 => {
            // A push and a return to the next instruction or into it. PUSH has five bytes, RET one.
            let to = c.here() + 6 + if rng.one_in(3) { rng.below(6) } else { 0 };
            c.raw(&[0x68]);
            c.imm32(to as u32);
            c.raw(&[0xc3]);
        }
        9 => {
            // A call or jump through a word near RSP. The word is often [rsp - 8], which a call overwrites with its
            // return address.
            let to = world.function(rng);
            let disp = rng.pick(&[-8, -8, -16, -4, 0]);
            c.set(0, to);
            c.op(8, &[0x89], 0, Rm::At(RSP, disp));
            c.op(4, &[0xff], rng.pick(&[2, 2, 4]), Rm::At(RSP, disp));
        }
        10 => {
            // A jump back into the middle of the loop, taken while a random bit of the counter is set.
            c.raw(&[0xf6, 0xc1, 1 << rng.below(4)]); // test cl, bit
            c.raw(&[0x74, 8, 0x48, 0x83, 0xe9, 1]); // jz over; sub rcx, 1
            c.raw(&[0x78, 2]); // js over
            let to = top + rng.below(c.here() - top + 1);
            c.raw(&[0xeb, to.wrapping_sub(c.here() + 2) as u8]);
        }
        11 => {
            let to = world.target(rng);
            c.branch(&[0x0f, 0x80 | rng.below(16) as u8], to);
        }
        _ => {
            let rm = memory(rng);
            c.op(4, &[0xff], rng.pick(&[2, 4]), rm);
        }
    }
}

fn random_bytes(c: &mut Code, rng: &mut Rng) {
    for _ in 0..1 + rng.below(6) {
        c.raw(&[rng.next() as u8]);
    }
}

/// Emits `mov rax, imm64` with other instructions as the bytes of its immediate operand. The loop enters the code
/// alternately at the opcode and at the immediate operand.
fn overlap(c: &mut Code, rng: &mut Rng) {
    c.raw(&[0xf6, 0xc1, 1]); // test cl, 1
    c.raw(&[0x75, 2]); // jnz into the immediate operand
    c.raw(&[0x48, 0xb8]);
    let inside: [[u8; 8]; 4] = [
        [0x48, 0xff, 0xc2, 0x48, 0x01, 0xd3, 0x90, 0x90],
        [0x83, 0xc2, 0x07, 0x31, 0xd6, 0x66, 0x90, 0x90],
        [0x8b, 0x06, 0x01, 0xc2, 0x0f, 0x92, 0xc3, 0x90],
        [0x50, 0x01, 0xd0, 0x5a, 0x89, 0xd7, 0xeb, 0x00],
    ];
    c.raw(&rng.pick(&inside));
}

/// Emits a change of ring, of the rules by which ring 0 may access pages, of single-stepping, or of breakpoints.
fn mode(c: &mut Code, rng: &mut Rng) {
    match rng.below(8) {
        0 | 1 => c.raw(&[0xcd, 0x80]),
        5 => {
            // Sets a data breakpoint, makes one access at or near its address, and clears the breakpoint. The opcodes
            // are mov dr0, rbx and mov dr7, rax.
            c.raw(&[0x0f, 0x23, 0xc3]);
            c.set(0, rng.pick(&[0xf_0001, 0x1_0001]));
            c.raw(&[0x0f, 0x23, 0xf8]);
            c.op(4, &[rng.pick(&[0x8b, 0x89])], 2, Rm::At(3, rng.below(4) as i32));
            c.set(0, 0);
            c.raw(&[0x0f, 0x23, 0xf8]);
        }
        2 | 7 => c.raw(&[0x0f, 0x01, rng.pick(&[0xca, 0xcb])]), // clac, stac
        3 => c.raw(&[0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d]), // pushfq; or dword [rsp], 0x100; popfq
        4 => c.raw(&[0x9c, 0x81, 0x34, 0x24, 0, 0, 4, 0, 0x9d]), // pushfq; xor dword [rsp], 0x40000; popfq
        _ => {
            // Toggles CR0.WP, CR4.SMEP or CR4.SMAP.
            let (cr, bit) = rng.pick(&[(0xc0, 16), (0xc0, 16), (0xe0, 20), (0xe0, 21)]);
            c.raw(&[0x0f, 0x20, cr, 0x48, 0x0f, 0xba, 0xf8, bit, 0x0f, 0x22, cr]);
        }
    }
}

/// Emits a RIP-relative LEA or memory access. The target is about 2^31 bytes above the instruction's own page.
fn far_operand(c: &mut Code, rng: &mut Rng) {
    let own = c.here();
    let page = FAR + (own.wrapping_sub(WINDOW) & !0xfff);
    let at = match rng.below(4) {
        // An address less than two pages below the start of `page`.
        0 => page - rng.below(0x2000),
        _ => page + rng.below((own & 0xfff).max(1)),
    };
    match rng.below(3) {
        0 => {
            c.op(8, &[0x8d], 3, Rm::Rip(at, 0));
            c.op(8, &[0x8b], 0, Rm::At(3, 0));
        }
        1 => c.op(width(rng), &[rng.pick(&[0x8b, 0x89, 0x01])], free(rng), Rm::Rip(at, 0)),
        _ => {
            c.op(8, &[0x81], 0, Rm::Rip(at, 4));
            c.imm32(rng.next() as u32);
        }
    }
}

/// Emits an unusual instruction, such as INT3, HLT or IRET.
fn odd(c: &mut Code, rng: &mut Rng) {
    c.raw(rng.pick(&[
        &[0xcc][..],
        &[0x0f, 0x0b],
        &[0x0f, 0x05],
        &[0xec],
        &[0xee],
        &[0xfb],
        &[0xfa],
        &[0xf4],
        &[0x0f, 0xa2],
        &[0x48, 0xcf],
        &[0x8e, 0xd0],
        &[0xf1],
        &[0xfd],
        &[0xfc],
    ]));
}
