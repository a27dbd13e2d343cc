//! Instructions with several stores. The last store goes to a page of code, so the CPU must restart the instruction and
//! execute it alone, outside a block of instructions. The second attempt must not read values that the first attempt
//! stored.

use super::harness::{Outcome, check};
use super::image::*;
use everett_assembler::*;

/// Start of a page of data. The page before it has code that was executed.
const EDGE: u64 = DATA + 0x2000;
const FUNCTION: u64 = EDGE - 0x800;

fn run(mut g: Guest, code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Outcome {
    g.code(FUNCTION, |a| a.ret());
    g.code(CODE, |a| {
        a.mov(rax, FUNCTION)?;
        a.call(rax)?;
        code(a)?;
        a.hlt()
    });
    check(&g)
}

#[test]
fn an_interrupt_frame_may_overwrite_its_gate() {
    const VECTOR: u8 = 0x50;
    let mut g = Guest::new();
    let gate = g.ram[(IDT + u64::from(VECTOR) * 16) as usize..][..16].to_vec();
    g.ram[EDGE as usize..EDGE as usize + 16].copy_from_slice(&gate);
    g.state.idtr.base = EDGE - u64::from(VECTOR) * 16;
    // The interrupt's delivery pushes SS and RSP over the IDT gate at EDGE, and the other words to the page before.
    let done = run(g, |a| {
        a.mov(rsp, EDGE + 16)?;
        a.int(i32::from(VECTOR))
    });
    assert_eq!(done.log().first().map(|record| record.vector), Some(u64::from(VECTOR)));
}

#[test]
fn a_far_call_may_overwrite_its_pointer() {
    const TARGET: u64 = CODE + 0x800;
    let mut g = Guest::new();
    g.put(EDGE, TARGET);
    g.put(EDGE + 8, u64::from(KERNEL_CS));
    g.code(TARGET, |a| {
        a.mov(r12d, 7)?;
        a.hlt()
    });
    // The call pushes CS over the pointer at EDGE, and RIP to the page before.
    let done = run(g, |a| {
        a.mov(rsp, EDGE + 8)?;
        a.db(&[0x48, 0xff, 0x1c, 0x25])?; // call far [EDGE], of 64 bits
        a.dd(&[EDGE as u32])
    });
    assert_eq!((done.state.gpr[12], done.log().len()), (7, 0));
}

#[test]
fn enter_copies_the_old_frame_pointers() {
    let mut g = Guest::new();
    g.put(EDGE, 0x1111);
    g.put(EDGE - 8, 0x2222);
    // ENTER pushes RBP to EDGE + 16, then [EDGE] to EDGE + 8, [EDGE - 8] to EDGE, and the frame pointer to the page
    // before.
    let done = run(g, |a| {
        a.mov(rsp, EDGE + 24)?;
        a.mov(rbp, EDGE + 8)?;
        a.enter(0, 3)
    });
    assert_eq!([16, 8, 0].map(|at| done.word(EDGE + at)), [EDGE + 8, 0x1111, 0x2222]);
    assert_eq!((done.word(EDGE - 8), done.log().len()), (EDGE + 16, 0));
}
