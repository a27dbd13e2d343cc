//! Runs that end without an exit of the guest: at an interrupt window, or at a limit of host time or of instructions.

use std::time::Duration;

use everett_assembler::*;
use everett_cpu::{CacheConfig, Request};
use everett_vmm::engine::counting::CountingEngine;
use everett_vmm::engine::kvm::KvmEngine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::kvm::Host;
use everett_vmm::layout::RAM_BYTES_MIN;
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DATA, END, Guest};
use crate::lacks::ticking_host;
use crate::lockstep::{FOREVER, Gates, kvm_engine, memory};
use crate::scripted::{Shared, Trouble};
use crate::trials::{Ran, trial};

const INTERRUPTS_ENABLED: u64 = 1 << 9;

fn engine(host: &Host, code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> KvmEngine {
    let mut guest = Guest::new(false);
    guest.code(CODE, code);
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    let mut engine = kvm_engine(host, Gates::Open, &memory);
    guest.state.rflags &= !INTERRUPTS_ENABLED;
    engine.set_state(&guest.state);
    engine
}

fn interrupts_are_taken_behind_exits_and_one_at_each() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let mut kvm = engine(&host, |a| {
        let again = a.create_label();
        a.mov(rsi, END)?;
        a.mov(dword_ptr(rsi), 1)?;
        a.sti()?;
        a.mov(ecx, 100)?;
        a.set_label(again)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.mov(dword_ptr(rsi), 2)?;
        a.mov(dword_ptr(rsi), 3)
    });
    let until = Until { icount: u64::MAX, window: true, passing: false };
    assert!(!kvm.interruptible());
    assert_eq!(kvm.run(until), Exit::Device(Request::MmioWrite { gpa: END, size: 4, value: 1 }));
    assert!(!kvm.interruptible(), "no interrupt may be possible in the middle of an instruction");
    // The guest allows interrupts long before its next exit, but the engine returns `Exit::Window` only after that
    // exit.
    assert_eq!(kvm.run(until), Exit::Device(Request::MmioWrite { gpa: END, size: 4, value: 2 }));
    assert_eq!(kvm.icount(), 1);
    assert_eq!(kvm.run(until), Exit::Window);
    assert_eq!((kvm.interruptible(), kvm.icount()), (true, 2));
    assert_eq!(kvm.run(until), Exit::Window, "the window must still be open");
    let before = kvm.state();
    kvm.interrupt(0x77);
    assert!(!kvm.interruptible(), "no second interrupt may be queued");
    let after = kvm.state();
    assert_eq!(before.rflags & INTERRUPTS_ENABLED, INTERRUPTS_ENABLED);
    assert_eq!(after.rflags & INTERRUPTS_ENABLED, 0, "the handler must begin with interrupts disabled");
    assert_eq!(after.gpr[4], (before.gpr[4] & !15) - 40, "the interrupt's frame must be on the stack");
    assert!(!kvm.interruptible(), "reading the state must change nothing");
    Ok(())
}

fn a_guest_that_does_not_exit_is_given_up_and_stays_so() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let mut kvm = engine(&host, |a| {
        let here = a.create_label();
        a.set_label(here)?;
        a.jmp(here)
    });
    kvm.give_up_after(20);
    for _ in 0..2 {
        let exit = kvm.run(Until { icount: u64::MAX, ..Until::default() });
        assert_eq!(exit, Exit::Failed);
        assert!(kvm.failure().is_some_and(|failure| failure.why().contains("did not exit")));
    }
    Ok(())
}

fn patience_is_host_time_with_and_without_a_held_tsc() {
    let ram = Ram::new(RAM_BYTES_MIN).expect("memory");
    // In this test, a signal ends each entry into the guest. The engine measures its limit of one second by counting
    // signals. Its own signals come every 20 ms, or every millisecond if it holds the TSC at one value.
    for (holds, signals) in [(false, 50), (true, 1000)] {
        let shared = Shared::new(|_| Trouble::Signal);
        let engine = if holds { shared.engine_on(&ram) } else { shared.branches_with_a_free_tsc(&ram) };
        let mut engine = engine.expect("an engine");
        engine.wait_at_most(Duration::from_secs(1));
        assert_eq!(engine.run(FOREVER), Exit::Failed);
        assert_eq!(shared.script().entries, signals, "a held TSC: {holds}");
    }
}

/// Number of instructions without a counted event (an exit or a branch, by the clock mode) after which the engine ends
/// a guest of these tests.
const LIMIT: u64 = 10_000;

fn run(engine: &mut dyn Engine, ram: &Ram, guest: &Guest) -> Vec<(Exit, u64)> {
    ram.shared().write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    engine.set_state(&guest.state);
    let mut exits = Vec::new();
    loop {
        let exit = engine.run(Until { icount: 10, ..Until::default() });
        exits.push((exit, engine.icount()));
        if !matches!(exit, Exit::Device(_)) {
            return exits;
        }
    }
}

fn a_guest_without_progress_ends_as_on_the_soft_engine() {
    let ram = Ram::new(RAM_BYTES_MIN).expect("memory");
    let stores = |before: u64, behind: u64| {
        let mut guest = Guest::new(false);
        guest.state.rflags &= !INTERRUPTS_ENABLED;
        guest.code(CODE, |a| {
            let next = a.create_label();
            a.mov(rdi, DATA)?;
            a.mov(ecx, before as i32)?;
            a.rep().stosb()?;
            a.jne(next)?;
            a.set_label(next)?;
            a.mov(rdi, DATA)?;
            a.mov(ecx, behind as i32)?;
            a.out(0x80, al)?;
            a.rep().stosb()?;
            a.hlt()
        });
        guest
    };
    let counts = CacheConfig { branches: true, ..CacheConfig::default() };
    let (few, many) = (LIMIT - 1000, LIMIT + 1000);
    for (before, behind, last) in
        [(few, few, Exit::Halt), (many, few, Exit::NoProgress), (few, many, Exit::NoProgress)]
    {
        let guest = stores(before, behind);
        let mut soft = CountingEngine::branches(SoftEngine::new(ram.shared(), counts));
        soft.give_up_after(LIMIT);
        let expected = run(&mut soft, &ram, &guest);
        assert_eq!(expected.last().map(|(exit, _)| *exit), Some(last));
        let mut kvm = Shared::sound(1).engine_on(&ram).expect("an engine");
        kvm.limit_instructions(LIMIT);
        assert_eq!(run(&mut kvm, &ram, &guest), expected, "branches, {before} and {behind} bytes");
        assert_eq!(kvm.failure(), None);
    }
    // In clock mode `exit`, KVM's processor executes the stores before OUT, and these stores do not count towards the
    // kvm engine's limit. The engine's soft CPU executes the stores after OUT, because a repeated instruction directly
    // after an exit belongs to the exit. These stores exceed the limit.
    let guest = stores(few, many);
    let mut soft = CountingEngine::exits(SoftEngine::new(ram.shared(), CacheConfig::default()));
    soft.give_up_after(many);
    let expected = run(&mut soft, &ram, &guest);
    assert_eq!(expected.last(), Some(&(Exit::NoProgress, 0)));
    let mut kvm = Shared::sound(1).exits_on(&ram).expect("an engine");
    kvm.limit_instructions(LIMIT);
    assert_eq!(run(&mut kvm, &ram, &guest), expected, "exits");
    assert_eq!(kvm.failure(), None);
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(interrupts_are_taken_behind_exits_and_one_at_each),
        trial(a_guest_that_does_not_exit_is_given_up_and_stays_so),
        trial(a_guest_without_progress_ends_as_on_the_soft_engine),
        trial(patience_is_host_time_with_and_without_a_held_tsc),
    ]
}
