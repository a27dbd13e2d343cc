//! Handlers of exceptions and interrupts. They run in ring 0, on a page of their own. A handler skips a byte, repairs a
//! mapping, switches rings, or begins the next unit (a part of the program: mostly a loop, sometimes random bytes).

use crate::code::{Code, Rm};
use crate::ground::{KERNEL_CS, KERNEL_SS, USER_CS, USER_SS};
use crate::layout::*;
use crate::pieces::RSP;
use crate::rng::Rng;

const RAX: u8 = 0;

/// Behaviour of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Begins the next unit, with a valid stack.
    Next,
    /// Returns to the byte after the interrupted instruction's first byte.
    Skip,
    /// Returns to the interrupted instruction.
    Back,
    /// Returns to the other ring.
    Ring,
    /// Gives the faulting page all rights, and returns. Begins the next unit instead at every fourth fault, and
    /// whenever the page is outside the window (`WINDOW`, the pages on which programs run).
    Repair,
    /// Counts single steps, and stops single-stepping at every 32nd step.
    Step,
}

const KINDS: [Kind; 6] = [Kind::Next, Kind::Skip, Kind::Back, Kind::Ring, Kind::Repair, Kind::Step];
/// Distance from one handler to the next, in bytes.
const LEN: u64 = 0x100;

/// True if the exception pushes an error code.
fn has_error(vector: u64) -> bool {
    matches!(vector, 8 | 10..=14 | 17)
}

/// Returns the linear address of a handler. `error` is true for the variant that finds an error code on the stack.
pub(crate) fn address(kind: Kind, error: bool) -> u64 {
    KERNEL + HANDLERS + (kind as u64 * 2 + u64::from(error)) * LEN
}

/// Chooses a handler for a vector, and returns its linear address.
pub(crate) fn for_vector(vector: u64, rng: &mut Rng) -> u64 {
    let kind = match vector {
        1 => Kind::Step,
        14 if !rng.one_in(3) => Kind::Repair,
        0x80 => Kind::Ring,
        3 | 4 => Kind::Back,
        0..32 if rng.one_in(3) => Kind::Skip,
        0..32 => Kind::Next,
        _ if rng.one_in(8) => Kind::Next,
        _ => Kind::Back,
    };
    address(kind, has_error(vector))
}

/// Returns the address in RAM and the code of each handler.
pub(crate) fn all() -> Vec<(u64, Vec<u8>)> {
    let mut handlers = vec![];
    for kind in KINDS {
        for error in [false, true] {
            let at = address(kind, error);
            let code = handler(kind, at, if error { 8 } else { 0 });
            assert!(code.len() as u64 <= LEN);
            handlers.push((at - KERNEL, code));
        }
    }
    handlers
}

/// Assembles a handler at `at`. `error` is the size of the error code on the stack, in bytes.
fn handler(kind: Kind, at: u64, error: i32) -> Vec<u8> {
    let mut c = Code::new(at);
    match kind {
        Kind::Next => next(&mut c, error),
        Kind::Skip => {
            c.op(8, &[0xff], 0, Rm::At(RSP, error));
            back(&mut c, error);
        }
        Kind::Back => back(&mut c, error),
        Kind::Ring => {
            c.op(4, &[0x83], 6, Rm::At(RSP, error + 8));
            c.raw(&[(KERNEL_CS ^ USER_CS) as u8]);
            c.op(4, &[0x83], 6, Rm::At(RSP, error + 32));
            c.raw(&[(KERNEL_SS ^ USER_SS) as u8]);
            back(&mut c, error);
        }
        Kind::Repair => {
            c.push(RAX);
            c.raw(&[0x0f, 0x20, 0xd0]); // mov rax, cr2
            c.raw(&[0x48, 0x2d]); // sub rax, WINDOW
            c.imm32(WINDOW as u32);
            c.raw(&[0x48, 0xc1, 0xe8, 12]); // shr rax, 12
            c.raw(&[0x48, 0x83, 0xf8, WINDOW_PAGES as u8]); // cmp rax, WINDOW_PAGES
            c.raw(&[0x73, 0]); // jae: the page is outside the window
            let first = c.bytes.len();
            // At every fourth fault the handler gives up, because missing rights may not be the cause.
            c.op(4, &[0xff], 0, Rm::Abs((KERNEL + TSS + 0x800) as u32));
            c.op(1, &[0xf7], 0, Rm::Abs((KERNEL + TSS + 0x800) as u32));
            c.raw(&[3]); // test byte, 3
            c.raw(&[0x74, 0]); // jz
            let second = c.bytes.len();
            // or qword [rax * 8 + PT]: sets all rights.
            c.raw(&[0x48, 0x83, 0x0c, 0xc5]);
            c.imm32((KERNEL + PT) as u32);
            c.raw(&[(PRESENT | WRITABLE | USER) as u8]);
            // btr qword [rax * 8 + PT], 63
            c.raw(&[0x48, 0x0f, 0xba, 0x34, 0xc5]);
            c.imm32((KERNEL + PT) as u32);
            c.raw(&[63]);
            c.pop(RAX);
            back(&mut c, error);
            for jump in [first, second] {
                c.bytes[jump - 1] = (c.bytes.len() - jump) as u8;
            }
            c.pop(RAX);
            next(&mut c, error);
        }
        Kind::Step => {
            c.op(4, &[0xff], 0, Rm::Abs((KERNEL + TSS + 0x808) as u32));
            c.op(1, &[0xf7], 0, Rm::Abs((KERNEL + TSS + 0x808) as u32));
            c.raw(&[31]);
            c.raw(&[0x75, 9]); // jnz over
            c.op(8, &[0x81], 4, Rm::At(RSP, error + 16));
            c.imm32(!0x100);
            back(&mut c, error);
        }
    }
    c.bytes
}

/// Emits IRETQ. If there is an error code, it is popped first.
fn back(c: &mut Code, error: i32) {
    if error != 0 {
        c.op(8, &[0x83], 0, Rm::Reg(RSP));
        c.raw(&[error as u8]);
    }
    c.raw(&[0x48, 0xcf]);
}

/// Emits a return that continues at the next unit.
fn next(c: &mut Code, error: i32) {
    let frame = error + 8;
    c.push(RAX);
    c.op(4, &[0x8b], RAX, Rm::Abs((KERNEL + TSS + 0x810) as u32));
    c.op(4, &[0xff], 0, Rm::Abs((KERNEL + TSS + 0x810) as u32));
    c.raw(&[0x83, 0xe0, TARGETS_COUNT as u8 - 1]); // and eax
    // mov rax, [rax * 8 + targets]. The targets are the addresses of units. Handlers have this table of their own;
    // programs use the one at `TARGETS`.
    c.raw(&[0x48, 0x8b, 0x04, 0xc5]);
    c.imm32((KERNEL + TSS + 0x400) as u32);
    c.op(8, &[0x89], RAX, Rm::At(RSP, frame));
    c.op(8, &[0xc7], 0, Rm::At(RSP, frame + 24));
    c.imm32((FIXED + STACK_TOP) as u32);
    c.op(8, &[0x81], 4, Rm::At(RSP, frame + 16));
    c.imm32(!0x100);
    c.pop(RAX);
    back(c, error);
}
