//! Instructions that take several exits, e.g. repeated port accesses, and states that are loaded in the middle of an
//! instruction.

use std::sync::Arc;

use everett_assembler::*;
use everett_cpu::Request;
use everett_cpu::{CacheConfig, CpuState};
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DATA, DEVICE, Guest};
use crate::lacks::ticking_host;
use crate::lockstep::{Gates, Memory, bytes, comparable, difference, kvm_engine, memory, memory_difference};
use crate::trials::{Ran, trial};

const FOREVER: Until = Until { icount: u64::MAX, window: false, passing: false };

/// Returns a guest that executes the code of `f` and ends with HLT, and the guest's memory.
fn guest(f: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> (Guest, Memory) {
    let mut g = Guest::new(false);
    g.code(CODE, |a| {
        f(a)?;
        a.cli()?;
        a.hlt()
    });
    for n in 0..64 {
        g.ram[DATA as usize + n] = n as u8 ^ 0x5a;
    }
    let memory = memory();
    memory.write_slice(&g.ram, GuestAddress(0)).unwrap();
    (g, memory)
}

/// Runs to HLT. Answers each read with another value.
fn to_the_end(engine: &mut dyn Engine) -> (Vec<Exit>, CpuState) {
    let mut exits = Vec::new();
    loop {
        let exit = engine.run(FOREVER);
        exits.push(exit);
        match exit {
            Exit::Device(Request::MmioRead { .. }) | Exit::Device(Request::PioRead { .. }) => {
                engine.complete_read(0x0102_0304_0506_0708u64.wrapping_mul(exits.len() as u64));
            }
            Exit::Device(Request::MmioWrite { .. }) | Exit::Device(Request::PioWrite { .. }) => {}
            _ => return (exits, comparable(engine.state())),
        }
    }
}

fn repeated_port_accesses_come_one_by_one_and_in_order() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    type Code = fn(&mut Assembler) -> Result<(), Error>;
    let repeated: [(&str, Code, usize); 4] = [
        ("outsb", |a| a.rep().outsb(), 11),
        ("outsd", |a| a.rep().outsd(), 11),
        ("insb", |a| a.rep().insb(), 11),
        ("insw", |a| a.rep().insw(), 11),
    ];
    for (name, code, wanted) in repeated {
        let program = |a: &mut Assembler| {
            a.mov(rsi, DATA)?;
            a.mov(rdi, DATA + 0x800)?;
            a.mov(ecx, wanted as i32)?;
            a.mov(dx, 0x1f0)?;
            code(a)
        };
        let (g, soft_memory) = guest(program);
        let mut soft = SoftEngine::new(Arc::clone(&soft_memory), CacheConfig::default());
        soft.set_state(&g.state);
        let (_, kvm_memory) = guest(program);
        let mut kvm = kvm_engine(&host, Gates::Open, &kvm_memory);
        kvm.set_state(&g.state);
        let (soft, kvm) = (to_the_end(&mut soft), to_the_end(&mut kvm));
        assert_eq!(soft.0, kvm.0, "{name}");
        assert_eq!(soft.0.len(), wanted + 1, "{name}");
        assert_eq!(difference(&soft.1, &kvm.1), None, "{name}");
        assert_eq!(memory_difference(&bytes(&soft_memory), &bytes(&kvm_memory)), None, "{name}");
    }
    Ok(())
}

fn a_state_that_replaces_one_in_the_middle_of_a_read_is_not_touched_by_it() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let (g, memory) = guest(|a| {
        a.mov(rsi, DEVICE)?;
        a.mov(rax, qword_ptr(rsi))?;
        a.in_(eax, 0x60)?;
        a.add(rbx, 1)
    });
    let mut kvm = kvm_engine(&host, Gates::Open, &memory);
    for answered in [false, true] {
        for exits in 1..=2 {
            kvm.set_state(&g.state);
            for n in 0..exits {
                let exit = kvm.run(FOREVER);
                assert!(
                    matches!(
                        exit,
                        Exit::Device(Request::MmioRead { .. }) | Exit::Device(Request::PioRead { .. })
                    ),
                    "{exit:?}"
                );
                if answered || n + 1 < exits {
                    kvm.complete_read(0xdead_beef);
                }
            }
            let other = CpuState { gpr: std::array::from_fn(|n| 0x1111 * n as u64), ..g.state.clone() };
            kvm.set_state(&other);
            assert_eq!(
                difference(&comparable(other.clone()), &comparable(kvm.state())),
                None,
                "{answered}, {exits}"
            );
            let mut soft = SoftEngine::new(Arc::clone(&memory), CacheConfig::default());
            soft.set_state(&other);
            let (soft, kvm) = (to_the_end(&mut soft), to_the_end(&mut kvm));
            assert_eq!((soft.0, None), (kvm.0, difference(&soft.1, &kvm.1)), "{answered}, {exits}");
        }
    }
    Ok(())
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(repeated_port_accesses_come_one_by_one_and_in_order),
        trial(a_state_that_replaces_one_in_the_middle_of_a_read_is_not_touched_by_it),
    ]
}
