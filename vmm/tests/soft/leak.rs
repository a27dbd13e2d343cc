//! A stale translation, planted in the CPU, is found to the instruction that used it.

use std::convert::Infallible;

use everett_vmm::digest::{Cause, Side, first_difference};
use iced_x86::code_asm::*;

use crate::guest::{DATA, assemble, plain};

/// The page directory of the third GiB of the boot page tables.
const DIRECTORY: u64 = 0xd000;
/// A 2 MiB page in it, not used otherwise.
const WINDOW: u64 = 0x8000_0000;
/// Where in the window the guest looks: not at a place in the TLB that its code or data wants, too.
const OFFSET: i32 = 0x5000;

/// A guest that looks at memory through a window, moves the window without flushing, and looks again. A coherent MMU shows
/// the new place. Returns the code and the index of the instruction that looks again.
fn revoking() -> Vec<u8> {
    assemble(|a| {
        let mut wait = a.create_label();
        a.mov(rsi, DATA)?;
        a.mov(qword_ptr(rsi + OFFSET), 0x1111)?;
        a.mov(rdi, DIRECTORY)?;
        a.mov(rbx, WINDOW)?;
        // The window shows the 2 MiB at DATA: present, writable, large.
        a.mov(rax, DATA | 0x83)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mov(rcx, 50_000u64)?;
        a.set_label(&mut wait)?;
        a.add(rdx, qword_ptr(rbx + OFFSET))?;
        a.dec(rcx)?;
        a.jnz(wait)?;
        // Now it shows zeroes elsewhere.
        a.mov(rax, 0x1c0_0083u64)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mov(r9, qword_ptr(rbx + OFFSET))?;
        a.nop()?;
        a.hlt()
    })
}

/// Instructions before the one that looks again.
const LOOKS_AGAIN: u64 = 7 + 3 * 50_000 + 2;

#[test]
fn a_stale_translation_is_found_to_the_instruction() {
    let code = revoking();
    for interval in [1_000, 40_000, 1_000_000] {
        let mut make = |side| {
            let mut machine = plain(&code);
            machine.engine_mut().leak_stale_translations(side == Side::B);
            Ok::<_, Infallible>(machine)
        };
        let Ok(found) = first_difference(&mut make, 1_000_000, interval);
        let found = found.expect("the leak shows");
        assert_eq!((found.icount, &found.cause), (LOOKS_AGAIN, &Cause::Execution), "{found}");
        let register = found.differences.iter().find(|d| d.name == "cpu.gpr.9 (r9)").expect("R9 differs");
        assert_eq!((register.a.as_str(), register.b.as_str()), ("0x0", "0x1111"));
    }
}

#[test]
fn a_sound_engine_shows_the_new_place() {
    let code = revoking();
    let mut make = |_| Ok::<_, Infallible>(plain(&code));
    let Ok(found) = first_difference(&mut make, 1_000_000, 100_000);
    assert!(found.is_none());
}
