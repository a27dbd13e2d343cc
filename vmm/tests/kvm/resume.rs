//! RFLAGS.RF after exits. A processor clears RF when an instruction ends. KVM itself finishes instructions that access
//! a device, and may leave RF set. The guest must not notice this.

use everett_assembler::*;
use everett_cpu::CacheConfig;
use everett_cpu::Request;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::kvm::gates::RESUME;
use everett_vmm::layout::RAM_BYTES_MIN;
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::common::KERNEL_SS;
use crate::ground::{CODE, DEVICE, Guest};
use crate::lacks::ticking_host;
use crate::lockstep::{Bench, FOREVER, Gates};
use crate::scripted::Shared;
use crate::trials::{Ran, trial};

type Instruction = fn(&mut Assembler) -> Result<(), Error>;

const EXITS: [(&str, Instruction); 5] = [
    ("OUT", |a| a.out(0x80, al)),
    ("IN", |a| a.in_(al, 0x80)),
    ("a store to a device", |a| a.mov(dword_ptr(DEVICE), eax)),
    ("a load from a device", |a| a.mov(eax, dword_ptr(DEVICE))),
    ("HLT", |a| a.hlt()),
];

/// Returns a guest that executes the instruction with RF set, as the handler of a fault would leave it, and then halts.
fn guest(instruction: Instruction) -> Guest {
    let mut guest = Guest::new(false);
    guest.code(CODE, |a| {
        let there = a.create_label();
        a.mov(rax, rsp)?;
        a.push(i32::from(KERNEL_SS))?;
        a.push(rax)?;
        a.push(0x202 | RESUME as i32)?;
        a.push(0x10)?;
        a.lea(rbx, ptr(there))?;
        a.push(rbx)?;
        a.iretq()?;
        a.set_label(there)?;
        instruction(a)?;
        a.cli()?;
        a.hlt()
    });
    guest
}

fn it_is_clear_behind_an_exit_on_both_engines() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let mut bench = Bench::new(&host, Gates::Open);
    for (name, instruction) in EXITS {
        // The seeds decide after which exits an interrupt comes.
        for seed in 0..4 {
            assert_eq!(bench.run(&guest(instruction), seed), Ok(2), "{name}, seed {seed}");
        }
    }
    Ok(())
}

/// Runs the guest past its first exit and lets it take an interrupt. Returns RFLAGS before the interrupt, and RFLAGS in
/// the interrupt's frame.
fn over_an_exit(engine: &mut dyn Engine, guest: &Guest, ram: &Ram) -> (u64, u64) {
    let memory = ram.shared();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    engine.set_state(&guest.state);
    let exit = engine.run(FOREVER);
    assert!(matches!(exit, Exit::Device(_)), "{exit:?}");
    if let Exit::Device(Request::PioRead { .. }) = exit {
        engine.complete_read(7);
    }
    let until = Until { icount: engine.icount() + 1, ..FOREVER };
    assert_eq!(engine.run(until), Exit::Count);
    let before = engine.state().rflags;
    engine.interrupt(0x41);
    let frame = engine.state().gpr[4];
    let pushed: u64 = memory.read_obj(GuestAddress(frame + 16)).expect("its stack is RAM");
    (before, pushed)
}

fn an_interrupt_behind_an_exit_does_not_push_it() {
    // This test runs on a scripted host, i.e. a simulated KVM. The guest's RAM covers the address of `DEVICE`, so loads
    // and stores there would not exit. The test therefore uses only the two instructions that access ports.
    for (name, instruction) in &EXITS[..2] {
        let guest = guest(*instruction);
        let ram = Ram::new(RAM_BYTES_MIN).expect("memory");
        let mut soft = SoftEngine::new(ram.shared(), CacheConfig::default());
        let expected = over_an_exit(&mut soft, &guest, &ram);
        assert_eq!((expected.0 & RESUME, expected.1 & RESUME), (0, 0), "{name}");
        let mut kvm = Shared::sound(1).exits_that_keep_resume(&ram).expect("an engine");
        assert_eq!(over_an_exit(&mut kvm, &guest, &ram), expected, "{name}");
    }
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(it_is_clear_behind_an_exit_on_both_engines),
        trial(an_interrupt_behind_an_exit_does_not_push_it),
    ]
}
