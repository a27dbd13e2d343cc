//! Random guests for whole machines: they compute, access devices, set timers, interrupt themselves, wait, and power off.

use everett_assembler::*;
use everett_vmm::layout::{IOAPIC, PM_TIMER_PORT, RTC_PORT, SLEEP_CONTROL_PORT, VIRTIO};

use crate::rng::Rng;
use crate::small::{DATA, LAPIC, UART, assemble, out, store, vector};

const TIMER: u64 = 0x40;
const OWN: u64 = 0x51;
/// A guest consists of 5 to `PIECES` + 4 pieces of code.
const PIECES: u64 = 40;
/// Port of the UART's scratch register, which reads back the written value.
const SCRATCH: u32 = UART + 7;

/// Additional actions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Also {
    /// No additional action.
    Nothing,
    /// The guest computes, sometimes for so long that several events become due meanwhile.
    Compute,
    /// The guest computes and reads the TSC.
    ComputeAndLook,
    /// The guest leaves status flags undefined as long as possible, and never copies them.
    LeaveUndefined,
}

/// Returns a guest's code. R15 counts interrupts. R14 is a sum of all values that the guest reads from devices and
/// computes.
pub(crate) fn guest(seed: u64) -> Vec<u8> {
    guest_that(seed, Also::Nothing)
}

/// Returns the code of a guest with additional actions.
pub(crate) fn guest_that(seed: u64, also: Also) -> Vec<u8> {
    let mut rng = Rng::for_case(seed, 7);
    assemble(|a| {
        let (timer, own) = (a.create_label(), a.create_label());
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
        // Switches the machine off.
        out(a, u32::from(SLEEP_CONTROL_PORT), 0x34)?;
        for label in [timer, own] {
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

fn piece(a: &mut Assembler, rng: &mut Rng, also: Also) -> Result<(), Error> {
    let kinds = match also {
        Also::Nothing | Also::LeaveUndefined => 15,
        Also::Compute => 18,
        Also::ComputeAndLook => 20,
    };
    match rng.below(kinds) {
        0 => store(a, LAPIC + 0x320, pick_mode(rng))?,
        // About two thirds of these times are shorter than the 10 µs of virtual time that an exit takes in clock mode
        // `exit`. The longest are about a hundred times as long.
        1 => store(a, LAPIC + 0x380, (rng.next() >> 44 >> rng.below(18)) as u32)?,
        2 => store(a, LAPIC + 0x300, 0x4_0000 | OWN as u32)?,
        3 => a.sti()?,
        4 => a.cli()?,
        5 => {
            // Waits for an interrupt. Sets the timer first, because otherwise the wait might never end.
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
            // Computes. In clock mode `exit`, no time passes meanwhile.
            let again = a.create_label();
            a.mov(ecx, 1 + rng.below(3000) as u32)?;
            a.set_label(again)?;
            a.imul_3(r14, r14, 5)?;
            a.add(r14, rcx)?;
            a.dec(ecx)?;
            a.jnz(again)?;
            a.mov(rbx, DATA + 8 * rng.below(0x4000))?;
            a.mov(qword_ptr(rbx), r14)?;
        }
        13 => {
            // A repeated instruction that accesses only memory, directly after an exit.
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
            // Computes, mostly for a short time.
            let again = a.create_label();
            a.mov(ecx, 1 + (rng.below(3_000_000) >> rng.below(16)) as u32)?;
            a.set_label(again)?;
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
            // A repeated instruction that accesses a device in each iteration.
            a.mov(rdi, DATA + 0x400)?;
            a.mov(rsi, DATA)?;
            a.mov(edx, SCRATCH)?;
            a.mov(ecx, rng.below(12) as u32)?;
            if rng.one_in(2) { a.rep().insb()? } else { a.rep().outsb()? }
        }
    }
    Ok(())
}

/// Emits instructions that leave flags undefined, among instructions that read defined flags. Adds their results, but
/// no undefined flag, to the sum in R14. Uses RAX, RCX and RDX.
fn undefined(a: &mut Assembler, rng: &mut Rng) -> Result<(), Error> {
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
                // CF of a bit test is defined, and ZF is unchanged.
                a.bt(rax, n)?;
                a.adc(rax, rcx)?;
                a.imul_2(rcx, rax)?;
            }
            13 => {
                // The division cannot overflow.
                a.xor(edx, edx)?;
                a.mov(ecx, 1 + rng.below(1000) as u32)?;
                a.div(rcx)?;
            }
            14 => {
                // OF of a shift by one is defined, but AF is not.
                a.shl(rcx, 1)?;
                a.cmovo(rax, r15)?;
            }
            _ => a.test(eax, ecx)?,
        }
        // LEA changes no flags.
        a.lea(r14, qword_ptr(r14 + rax * 2 + 1))?;
    }
    Ok(())
}

/// Returns a timer mode: one-shot or periodic, sometimes masked.
fn pick_mode(rng: &mut Rng) -> u32 {
    rng.pick(&[0, 0, 0x2_0000, 0x1_0000]) | TIMER as u32
}

/// Emits code that loads a doubleword and adds it to the sum in R14. Uses RAX and RBX.
fn load(a: &mut Assembler, address: u64) -> Result<(), Error> {
    a.mov(rbx, address)?;
    a.mov(eax, dword_ptr(rbx))?;
    a.add(r14, rax)
}
