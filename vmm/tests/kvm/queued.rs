//! Instructions that access a device and then raise an exception, e.g. a copy from a device to a page that is not
//! present. KVM queues such an exception and delivers it at the next entry into the guest. The soft CPU (Everett's own
//! CPU) delivers it at once. On both CPUs the guest has to take the next interrupt at the same instruction.

use everett_assembler::*;
use everett_cpu::{CacheConfig, CpuState, Request};
use everett_vmm::engine::counting::CountingEngine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::layout::RAM_BYTES_MIN;
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DEVICE, Guest, TABLES, UNMAPPED};
use crate::lockstep::{FOREVER, comparable, difference};
use crate::scripted::{Fault, Shared};
use crate::trials::trial;

/// Guest-physical address at which the guest has no RAM, so that an access exits as a device access.
const NO_RAM: u64 = 0xd000_0000;
/// Page fault of a write by ring 0 to a page that is not present: vector and error code.
const FAULT: Fault = (14, Some(2));
/// Type and rights of a gate that leaves interrupts enabled, and of a gate that disables them.
const GATES: [(&str, u8); 2] = [("trap gate", 0x8f), ("interrupt gate", 0x8e)];

/// Returns a guest that copies a byte from a device to a page that is not present.
fn guest(gate: u8) -> Guest {
    let mut guest = Guest::new(false);
    let entry = (TABLES + 0x3000 + (DEVICE >> 12) * 8) as usize;
    guest.ram[entry..entry + 8].copy_from_slice(&(NO_RAM | 7).to_le_bytes());
    let descriptor = guest.state.idtr.base + u64::from(FAULT.0) * 16;
    guest.ram[descriptor as usize + 5] = gate;
    guest.code(CODE, |a| {
        a.mov(rsi, DEVICE)?;
        a.mov(rdi, UNMAPPED)?;
        a.movsb()?;
        a.cli()?;
        a.hlt()
    });
    guest
}

/// Runs to the device access, answers it, and runs to the end of the instruction. Returns the exit after that.
fn over_the_exit(engine: &mut dyn Engine, guest: &Guest, ram: &Ram) -> Exit {
    ram.shared().write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    engine.set_state(&guest.state);
    let exit = engine.run(FOREVER);
    assert!(matches!(exit, Exit::Device(Request::MmioRead { gpa: NO_RAM, .. })), "{exit:?}");
    engine.complete_read(7);
    let until = Until { icount: engine.icount() + 1, ..FOREVER };
    engine.run(until)
}

/// Returns the number of exits, the state, and the exception's frame on the stack.
fn seen(engine: &mut dyn Engine, ram: &Ram) -> (u64, CpuState, [u64; 6]) {
    let state = engine.state();
    let frame = ram.shared().read_obj(GuestAddress(state.gpr[4])).expect("its stack is RAM");
    (engine.icount(), comparable(state), frame)
}

fn soft(ram: &Ram) -> CountingEngine {
    CountingEngine::exits(SoftEngine::new(ram.shared(), CacheConfig::default()))
}

fn an_exception_behind_an_exit_is_delivered_before_the_next_interrupt() {
    let ram = Ram::new(RAM_BYTES_MIN).expect("memory");
    for (name, gate) in GATES {
        let guest = guest(gate);
        let mut soft = soft(&ram);
        assert_eq!(over_the_exit(&mut soft, &guest, &ram), Exit::Count, "{name}");
        let (takes, expected) = (soft.interruptible(), seen(&mut soft, &ram));
        assert_eq!((takes, expected.0, expected.2[0]), (name == "trap gate", 1, 2), "{name}");
        for looks in [false, true] {
            let mut kvm = Shared::sound(1).exits_that_queue(&ram, FAULT).expect("an engine");
            assert_eq!(over_the_exit(&mut kvm, &guest, &ram), Exit::Count, "{name}");
            if looks {
                // Reads the state, as a digest or a moment does.
                kvm.state();
            }
            assert_eq!(kvm.interruptible(), takes, "{name}; the state was read before: {looks}");
            let (count, state, frame) = seen(&mut kvm, &ram);
            assert_eq!(difference(&expected.1, &state), None, "{name}");
            assert_eq!((count, frame), (expected.0, expected.2), "{name}");
        }
    }
}

fn an_exit_that_ends_in_a_triple_fault_is_not_counted() {
    let ram = Ram::new(RAM_BYTES_MIN).expect("memory");
    let mut guest = guest(GATES[0].1);
    guest.state.idtr.limit = 0;
    let mut soft = soft(&ram);
    assert_eq!((over_the_exit(&mut soft, &guest, &ram), soft.icount()), (Exit::Shutdown, 0));
    let mut kvm = Shared::sound(1).exits_that_queue(&ram, FAULT).expect("an engine");
    assert_eq!((over_the_exit(&mut kvm, &guest, &ram), kvm.icount()), (Exit::Shutdown, 0));
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(an_exception_behind_an_exit_is_delivered_before_the_next_interrupt),
        trial(an_exit_that_ends_in_a_triple_fault_is_not_counted),
    ]
}
