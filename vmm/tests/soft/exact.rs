//! The trail of a guest does not depend on the sizes of caches, on stops, or on observers.

use everett_assembler::*;
use everett_cpu::{CacheConfig, Traces};
use everett_vmm::engine::soft::FlushSchedule;
use everett_vmm::layout::{PAGE, PAGE_TABLES};
use everett_vmm::{Trail, Until};

use crate::guest::{DATA, assemble, count_tick, machine, plain, timer};

/// A guest with a periodic timer whose handler counts, and a main program that computes, writes and sleeps.
pub(crate) fn busy() -> Vec<u8> {
    assemble(|a| {
        let handler = a.create_label();
        timer(a, 7_001, handler)?;
        a.sti()?;
        let (outer, inner) = (a.create_label(), a.create_label());
        a.mov(rdi, DATA + 0x1000)?;
        a.set_label(outer)?;
        a.mov(ecx, 3_000)?;
        a.set_label(inner)?;
        a.imul_3(rax, rax, 0x41c6_4e6d)?;
        a.add(rax, 12_345)?;
        a.mov(r10, rax)?;
        a.and(r10d, 0x7_fff8)?;
        a.add(qword_ptr(rdi + r10), rax)?;
        a.dec(ecx)?;
        a.jnz(inner)?;
        a.rdtsc()?;
        a.add(rsi, rax)?;
        a.hlt()?;
        a.jmp(outer)?;
        a.set_label(handler)?;
        count_tick(a)
    })
}

pub(crate) const INTERVAL: u64 = 1_000_000;
pub(crate) const HORIZON: u64 = 20_500_000;

pub(crate) fn reference() -> Trail {
    let mut trail = Trail::new(INTERVAL);
    let mut machine = plain(&busy());
    trail.run(&mut machine, &Until::vtime(HORIZON));
    assert!(machine.cpu().gpr[15] > 1_000, "the timer's interrupts were taken");
    assert!(machine.stats().halts > 100, "the guest halted");
    trail
}

#[test]
fn caches_are_invisible() {
    let expected = reference();
    for caches in [
        CacheConfig {
            tlb_entries: 64,
            block_entries: 1 << 12,
            translate_after: Some(0),
            traces: Traces::EAGER,
            edges: true,
            branches: true,
        },
        CacheConfig {
            tlb_entries: 1024,
            block_entries: 16,
            translate_after: Some(1),
            traces: Traces::EAGER,
            edges: false,
            branches: false,
        },
        CacheConfig {
            tlb_entries: 16,
            block_entries: 1 << 16,
            translate_after: None,
            traces: Traces::EAGER,
            edges: false,
            branches: false,
        },
    ] {
        let mut trail = Trail::new(INTERVAL);
        trail.run(&mut machine(&busy(), caches, |_| {}), &Until::vtime(HORIZON));
        assert_eq!(expected.first_difference(&trail), None, "{caches:?}");
    }
}

#[test]
fn random_flushes_are_invisible() {
    let expected = reference();
    for seed in 0..3 {
        let mut machine = plain(&busy());
        machine.engine_mut().soft_mut().unwrap().flush_at_random(FlushSchedule { interval: 5_000, seed });
        let mut trail = Trail::new(INTERVAL);
        trail.run(&mut machine, &Until::vtime(HORIZON));
        assert_eq!(expected.first_difference(&trail), None, "seed {seed}");
    }
}

#[test]
fn observers_are_invisible() {
    let expected = reference();
    let mut machine = plain(&busy());
    machine.keep_journal(true);
    let mut trail = Trail::new(INTERVAL);
    let mut at = 0;
    // A thousand times: stop at a vtime and again seven instructions later, then compute a digest and read memory.
    for i in 0..1_000u64 {
        at += 13_007 + i * 15;
        trail.run(&mut machine, &Until::vtime(at.min(HORIZON)));
        let near = Until { icount: machine.icount() + 7, ..Until::vtime(HORIZON) };
        trail.run(&mut machine, &near);
        machine.digest();
        machine.read_virtual(DATA, &mut [0; 64]);
    }
    trail.run(&mut machine, &Until::vtime(HORIZON));
    assert_eq!(expected.first_difference(&trail), None);
}

#[test]
fn another_speed_is_another_world_that_repeats() {
    for cpu_hz in [999_999_937, 3_000_000_000, 50_000_000] {
        let run = || {
            let mut machine = machine(&busy(), CacheConfig::default(), |c| c.cpu_hz = cpu_hz);
            let mut trail = Trail::new(INTERVAL);
            trail.run(&mut machine, &Until::vtime(5_000_000));
            (trail, machine.vtime())
        };
        let (a, b) = (run(), run());
        assert_eq!(a, b);
        assert_eq!(reference().first_difference(&a.0), Some(0), "the clock is part of the state");
    }
}

/// Last byte of a 2 MiB page.
const STRADDLING: u64 = 0x11f_ffff;
/// Address of the paging entry of the page after [`STRADDLING`]. The page directory of the first GiB is the third of
/// the boot's page tables.
const NEXT_ENTRY: u64 = PAGE_TABLES + 2 * PAGE + 8 * ((STRADDLING + 1) >> 21);
const ACCESSED: i32 = 1 << 5;

/// The guest overwrites an instruction that crosses the end of a page. The new instruction is shorter and does not
/// cross it. When the CPU executes the new instruction, it must not access the next page's paging entry, although it
/// decoded the old instruction.
#[test]
fn code_that_no_longer_straddles_pages_does_not_access_the_next_page() {
    let code = assemble(|a| {
        let end = a.create_label();
        a.mov(rsp, DATA)?;
        a.mov(rbx, STRADDLING)?;
        // Writes MOV EAX, imm32 from the last byte of the page on, followed by RET.
        a.mov(byte_ptr(rbx), 0xb8)?;
        a.mov(dword_ptr(rbx + 1), 0x1234_5678)?;
        a.mov(byte_ptr(rbx + 5), 0xc3)?;
        a.call(rbx)?;
        a.mov(r8d, eax)?;
        // Writes RET over the first byte of the MOV.
        a.mov(byte_ptr(rbx), 0xc3)?;
        a.mov(rdi, NEXT_ENTRY)?;
        a.and(dword_ptr(rdi), !ACCESSED)?;
        a.call(rbx)?;
        a.mov(ecx, dword_ptr(rdi))?;
        a.set_label(end)?;
        a.jmp(end)
    });
    let mut machine = plain(&code);
    machine.run(&Until::icount(60));
    let cpu = machine.cpu();
    assert_eq!(cpu.gpr[8], 0x1234_5678, "the straddling instruction was executed");
    assert_ne!(cpu.gpr[1], 0, "the code after it was executed");
    assert_eq!(cpu.gpr[1] & ACCESSED as u64, 0, "nothing accessed the next page");
}
