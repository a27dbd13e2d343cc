//! Random guests of whole machines: they compute, talk to devices, set timers, interrupt themselves, wait, and power off.

use everett_vmm::layout::{IOAPIC, PM_TIMER_PORT, RTC_PORT, SLEEP_CONTROL_PORT, VIRTIO};
use iced_x86::IcedError;
use iced_x86::code_asm::*;

use crate::rng::Rng;
use crate::small::{DATA, LAPIC, UART, assemble, out, store, vector};

const TIMER: u64 = 0x40;
const OWN: u64 = 0x51;
/// Pieces of a guest, at most.
const PIECES: u64 = 40;
/// The UART's scratch register reads as written.
const SCRATCH: u32 = UART + 7;

/// What guests do besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Also {
    /// Nothing.
    Nothing,
    /// Compute, some of them for longer than anything that is due waits.
    Compute,
    /// The same, and look at the TSC.
    ComputeAndLook,
    /// Leave status flags undefined as long as possible, and never copy them.
    LeaveUndefined,
}

/// A guest's code. R15 counts interrupts, R14 sums what was seen.
pub(crate) fn guest(seed: u64) -> Vec<u8> {
    guest_that(seed, Also::Nothing)
}

/// The same of one that does more.
pub(crate) fn guest_that(seed: u64, also: Also) -> Vec<u8> {
    let mut rng = Rng::for_case(seed, 7);
    assemble(|a| {
        let (mut timer, mut own) = (a.create_label(), a.create_label());
        vector(a, TIMER, timer)?;
        vector(a, OWN, own)?;
        store(a, LAPIC + 0xf0, 0x1ff)?;
        store(a, LAPIC + 0x3e0, 0xb)?;
        for _ in 0..5 + rng.below(PIECES) {
            piece(a, &mut rng, also)?;
            if also == Also::LeaveUndefined {
                undefined(a, &mut rng)?;
            }
        }
        // Power off.
        out(a, u32::from(SLEEP_CONTROL_PORT), 0x34)?;
        for label in [&mut timer, &mut own] {
            a.set_label(label)?;
            a.push(rbx)?;
            a.inc(r15)?;
            a.imul_3(r14, r14, 31)?;
            a.add(r14, r15)?;
            store(a, LAPIC + 0xb0, 0)?;
            a.pop(rbx)?;
            a.iretq()?;
        }
        Ok(())
    })
}

fn piece(a: &mut CodeAssembler, rng: &mut Rng, also: Also) -> Result<(), IcedError> {
    let kinds = match also {
        Also::Nothing | Also::LeaveUndefined => 15,
        Also::Compute => 18,
        Also::ComputeAndLook => 20,
    };
    match rng.below(kinds) {
        0 => store(a, LAPIC + 0x320, pick_mode(rng))?,
        // Half of them shorter than an exit, others as long as a hundred.
        1 => store(a, LAPIC + 0x380, (rng.next() >> 44 >> rng.below(18)) as u32)?,
        2 => store(a, LAPIC + 0x300, 0x4_0000 | OWN as u32)?,
        3 => a.sti()?,
        4 => a.cli()?,
        5 => {
            // With a timer that comes, or it would be for ever.
            store(a, LAPIC + 0x320, TIMER as u32)?;
            store(a, LAPIC + 0x380, 1 + rng.below(300_000) as u32)?;
            a.sti()?;
            a.hlt()?;
        }
        6 => load(a, LAPIC + 0x390)?,
        7 => load(a, VIRTIO + 0x1000 * rng.below(2) + 4 * rng.below(5))?,
        8 => {
            store(a, IOAPIC, rng.below(24) as u32)?;
            load(a, IOAPIC + 0x10)?;
        }
        9 => out(a, UART, u32::from(b'a') + rng.below(26) as u32)?,
        10 => {
            out(a, SCRATCH, rng.below(256) as u32)?;
            a.in_(al, dx)?;
            a.add(r14, rax)?;
        }
        11 => {
            a.mov(edx, u32::from(PM_TIMER_PORT))?;
            a.in_(eax, dx)?;
            a.add(r14, rax)?;
            out(a, u32::from(RTC_PORT), rng.below(14) as u32)?;
            a.mov(edx, u32::from(RTC_PORT) + 1)?;
            a.in_(al, dx)?;
            a.add(r14, rax)?;
        }
        12 => {
            // Computes, and takes no time.
            let mut again = a.create_label();
            a.mov(ecx, 1 + rng.below(3000) as u32)?;
            a.set_label(&mut again)?;
            a.imul_3(r14, r14, 5)?;
            a.add(r14, rcx)?;
            a.dec(ecx)?;
            a.jnz(again)?;
            a.mov(rbx, DATA + 8 * rng.below(0x4000))?;
            a.mov(qword_ptr(rbx), r14)?;
        }
        13 => {
            // A repeated instruction of memory alone, right behind an exit.
            a.mov(rsi, DATA)?;
            a.mov(rdi, DATA + 0x8000)?;
            out(a, SCRATCH, 1)?;
            a.mov(ecx, 1 + rng.below(40) as u32)?;
            if rng.one_in(2) {
                a.out(dx, al)?;
            }
            a.rep().movsq()?;
        }
        15..=17 => {
            // Computes, mostly little.
            let mut again = a.create_label();
            a.mov(ecx, 1 + (rng.below(3_000_000) >> rng.below(16)) as u32)?;
            a.set_label(&mut again)?;
            a.add(r14, rcx)?;
            a.dec(ecx)?;
            a.jnz(again)?;
        }
        18..=19 => {
            a.rdtsc()?;
            a.imul_3(r14, r14, 31)?;
            a.add(r14, rax)?;
        }
        _ => {
            // One that accesses a device with each iteration.
            a.mov(rdi, DATA + 0x400)?;
            a.mov(rsi, DATA)?;
            a.mov(edx, SCRATCH)?;
            a.mov(ecx, rng.below(12) as u32)?;
            if rng.one_in(2) { a.rep().insb()? } else { a.rep().outsb()? }
        }
    }
    Ok(())
}

/// Instructions that leave flags undefined, among some that read defined ones; the results, which are defined, are summed. Uses RAX,
/// RCX and RDX.
fn undefined(a: &mut CodeAssembler, rng: &mut Rng) -> Result<(), IcedError> {
    for _ in 0..1 + rng.below(4) {
        let n = rng.below(64) as i32;
        a.mov(rax, rng.next())?;
        a.mov(rcx, r14)?;
        match rng.below(16) {
            0 => a.shl(rax, n)?,
            1 => a.sar(eax, cl)?,
            2 => a.shr(al, cl)?,
            3 => a.ror(rax, n)?,
            4 => {
                a.stc()?;
                a.rcl(eax, 1 + n / 4)?;
            }
            5 => a.imul_2(rax, rcx)?,
            6 => a.mul(rcx)?,
            7 => a.and(rax, rcx)?,
            8 => a.xor(ax, cx)?,
            9 => a.btc(rax, n)?,
            10 => a.shld(rax, rcx, n)?,
            11 => {
                a.or(rcx, 0x100)?;
                a.bsf(rax, rcx)?;
            }
            12 => {
                // CF of a bit test is defined, ZF is left as it was.
                a.bt(rax, n)?;
                a.adc(rax, rcx)?;
                a.imul_2(rcx, rax)?;
            }
            13 => {
                // Never an overflow.
                a.xor(edx, edx)?;
                a.mov(ecx, 1 + rng.below(1000) as u32)?;
                a.div(rcx)?;
            }
            14 => {
                // OF of a shift by one is defined, AF is not.
                a.shl(rcx, 1)?;
                a.cmovo(rax, r15)?;
            }
            _ => a.test(eax, ecx)?,
        }
        // LEA, which has no flags of its own.
        a.lea(r14, qword_ptr(r14 + rax * 2 + 1))?;
    }
    Ok(())
}

/// One-shot or periodic, masked now and then.
fn pick_mode(rng: &mut Rng) -> u32 {
    rng.pick(&[0, 0, 0x2_0000, 0x1_0000]) | TIMER as u32
}

/// Load a doubleword, and remember it. Uses RAX and RBX.
fn load(a: &mut CodeAssembler, address: u64) -> Result<(), IcedError> {
    a.mov(rbx, address)?;
    a.mov(eax, dword_ptr(rbx))?;
    a.add(r14, rax)
}
