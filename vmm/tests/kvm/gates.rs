//! Tests of closed gates (`vmm/src/kvm/gates.rs`). With closed gates, KVM has an interrupt descriptor table that is too
//! short for any gate, and an unmapped target for SYSCALL. An exception, software interrupt or system call in KVM then
//! ends in a shutdown of the guest. The engine catches the shutdown, and lets the soft CPU (Everett's own CPU) deliver
//! the event. The tests compare the result with the soft engine, which uses only the soft CPU.

use everett_assembler::*;
use everett_cpu::Request;
use everett_vmm::engine::kvm::KvmEngine;
use everett_vmm::engine::{Engine, Exit};
use everett_vmm::kvm::Host;
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DATA, DEVICE, END, Guest, SYSCALL, UNMAPPED};
use crate::lacks::{int1_is_a_trap, ticking_host};
use crate::lockstep::{Bench, FOREVER, Gates, kvm_engine, memory};
use crate::trials::{Lacking, Ran, trial};

type Code = fn(&mut Assembler) -> Result<(), Error>;

/// A vector whose handler is at [`HANDLER`]. This handler records RFLAGS with its bit RF. The common handler, which
/// other vectors have, records RFLAGS without RF.
const NOTES_FLAGS: u64 = 0x31;
const HANDLER: u64 = SYSCALL + 0x100;

/// Instructions that cause a trap, a fault or a system call. After a fault, execution continues at R15.
const WAYS: [(&str, Code); 11] = [
    ("SYSCALL", |a| a.syscall()),
    ("INT", |a| a.int(0x30)),
    ("INT, which notes all flags", |a| a.int(NOTES_FLAGS as i32)),
    ("INT3", |a| a.int3()),
    ("INT3 before a fault", |a| {
        a.int3()?;
        a.ud2()
    }),
    ("a fault after a constant that ends with the opcode of INT3", |a| {
        a.mov(eax, 0xcc00_0000u32)?;
        a.ud2()
    }),
    ("UD2", |a| a.ud2()),
    ("DIV", |a| {
        a.xor(ecx, ecx)?;
        a.cmp(eax, eax)?;
        a.div(ecx)
    }),
    ("a load", |a| a.mov(rax, qword_ptr(UNMAPPED))),
    ("a jump", |a| {
        a.mov(rbx, UNMAPPED)?;
        a.jmp(rbx)
    }),
    ("HLT in ring 3", |a| a.hlt()),
];

/// Instructions that cause a #DB as a trap.
const DEBUG_TRAPS: [(&str, Code); 2] = [
    ("INT1", |a| a.int1()),
    ("steps", |a| {
        a.pushfq()?;
        a.or(dword_ptr(rsp), 1 << 8)?;
        a.popfq()?;
        a.inc(rdx)?;
        // These two instructions end with the opcodes of INT1 and of INT3. The engine must not mistake the single-step
        // trap after them for a trap that INT1 or INT3 caused.
        a.mov(ecx, esi)?;
        a.mov(eax, 0xcc00_0000u32)?;
        a.pushfq()?;
        a.and(dword_ptr(rsp), !(1 << 8))?;
        a.popfq()
    }),
];

fn every_way_through_a_gate_is_the_soft_cpus_behind_closed_ones() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Closed)?;
    are_the_soft_cpus(&host, &WAYS);
    Ok(())
}

fn debug_traps_are_the_soft_cpus_behind_closed_gates() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Closed)?;
    if !int1_is_a_trap(&host) {
        return Err(Lacking::new(
            "this KVM delivers #DB itself, so INT1 and steps are lost behind closed gates",
        ));
    }
    are_the_soft_cpus(&host, &DEBUG_TRAPS);
    Ok(())
}

/// Checks that the soft CPU delivers the event of each instruction behind closed gates, with the same result as a soft
/// engine.
fn are_the_soft_cpus(host: &Host, ways: &[(&str, Code)]) {
    let mut bench = Bench::new(host, Gates::Closed);
    for (name, way) in ways {
        let mut guest = Guest::new(true);
        guest.code(CODE, |a| {
            let behind = a.create_label();
            a.lea(r15, ptr(behind))?;
            way(a)?;
            a.set_label(behind)?;
            a.mov(qword_ptr(DATA), rdx)?;
            // The test compares registers after each device access except the last one, which ends the program.
            a.mov(rsi, DEVICE)?;
            a.mov(dword_ptr(rsi), 1)?;
            a.mov(rsi, END)?;
            a.mov(dword_ptr(rsi), 1)
        });
        guest.handle(NOTES_FLAGS, HANDLER);
        guest.code(HANDLER, |a| {
            a.mov(rax, qword_ptr(rsp + 16))?;
            a.mov(qword_ptr(DATA + 8), rax)?;
            a.iretq()
        });
        let before = bench.delivered();
        bench.run(&guest, 0).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(bench.delivered() > before, "{name} went through a gate without the soft CPU");
    }
}

/// Returns a kvm engine with closed gates that is about to run this code in ring 3.
fn behind_closed_gates(host: &Host, code: Code) -> KvmEngine {
    let mut guest = Guest::new(true);
    guest.code(CODE, code);
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    let mut kvm = kvm_engine(host, Gates::Closed, &memory);
    kvm.set_state(&guest.state);
    kvm
}

/// MOVS reads a device and stores to an unmapped page, so it faults after KVM got the device's answer. If the engine
/// restarted the instruction, it would ask the device again. The engine therefore delivers the exception that KVM has
/// queued.
fn a_device_is_asked_once_for_what_cannot_be_stored() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Closed)?;
    let mut kvm = behind_closed_gates(&host, |a| {
        let behind = a.create_label();
        a.lea(r15, ptr(behind))?;
        a.mov(rsi, DEVICE)?;
        a.mov(rdi, UNMAPPED)?;
        a.movsq()?;
        a.set_label(behind)?;
        a.mov(rsi, END)?;
        a.mov(dword_ptr(rsi), 1)
    });
    assert_eq!(kvm.run(FOREVER), Exit::Device(Request::MmioRead { gpa: DEVICE, size: 8 }));
    kvm.complete_read(1);
    assert_eq!(kvm.run(FOREVER), Exit::Device(Request::MmioWrite { gpa: END, size: 4, value: 1 }));
    assert_eq!(kvm.stats().delivered, 0, "the soft CPU must deliver nothing");
    Ok(())
}

/// The engine gives up a guest that causes no exit for too long. A delivery by the soft CPU does not count as an exit,
/// so the engine also gives up a guest whose handler always returns to the faulting instruction.
fn a_guest_that_faults_for_ever_is_given_up() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Closed)?;
    let mut kvm = behind_closed_gates(&host, |a| {
        a.lea(r15, ptr(CODE))?;
        a.ud2()
    });
    kvm.give_up_after(10);
    assert_eq!(kvm.run(FOREVER), Exit::Failed);
    let failure = kvm.failure().expect("a reason");
    assert!(failure.why().contains("did not exit in time"), "{failure:?}");
    Ok(())
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(every_way_through_a_gate_is_the_soft_cpus_behind_closed_ones),
        trial(debug_traps_are_the_soft_cpus_behind_closed_gates),
        trial(a_device_is_asked_once_for_what_cannot_be_stored),
        trial(a_guest_that_faults_for_ever_is_given_up),
    ]
}
