//! Finds instructions that the host's KVM executes wrongly, e.g. because it emulates ring 0 in software. The random
//! programs of the other tests avoid these instructions on this host.
//!
//! For each defect, a small guest whose correct result is known runs on the kvm engine (`/dev/kvm`) alone. Only a wrong
//! result of this guest is a reason to avoid an instruction, never a difference between the kvm engine and the soft
//! engine (Everett's own CPU). With closed gates ([`Gates`]), the kvm engine lets its soft CPU execute SYSCALL and the
//! instructions that go through a gate of the interrupt descriptor table. The host cannot execute these instructions
//! wrongly, so random programs for closed gates may contain them on every host. If the engine itself fails, the test
//! fails.

use std::sync::Arc;

use everett_assembler::*;
use everett_cpu::CpuState;
use everett_cpu::Request;
use everett_cpu::state::{Msrs, seg};
use everett_vmm::engine::{Engine, Exit};
use everett_vmm::kvm::gates::RESUME;
use everett_vmm::kvm::{Host, KvmExit, Ticker, Vcpu, Vm};
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DATA, END, Guest, IDT_LIMIT};
use crate::lockstep::{Bench, FOREVER, Gates, SIGNALS_MAX, kvm_engine, memory, tick};
use crate::trials::{Lacking, Ran, named};

type Instruction = fn(&mut Assembler) -> Result<(), Error>;

const RIGHT: i32 = 0x600d;
const WRONG: i32 = 0xbad;

/// Instruction that some hosts execute wrongly. Random programs avoid it there.
struct Piece {
    /// Name of the instruction, as it appears in the names of its tests.
    name: &'static str,
    /// Defect of the host. An ignored test prints it.
    lacking: &'static str,
    /// True if the test executes the instruction in ring 3.
    user: bool,
    instruction: Instruction,
    /// True if a correct processor continues after the instruction without an exception.
    goes_on: bool,
    /// True if the instruction is SYSCALL or goes through a gate of the interrupt descriptor table. With closed gates
    /// the soft CPU executes it, so no host can lack it.
    is_gate: bool,
}

const SYSTEM_CALLS: Piece = Piece {
    name: "system_calls",
    lacking: "SYSCALL does not enter ring 0, or SYSRET does not leave it",
    user: true,
    instruction: |a| a.syscall(),
    goes_on: true,
    is_gate: true,
};
const INT_IN_RING_3: Piece = Piece {
    name: "int_in_ring_3",
    lacking: "INT n in ring 3 does not go where the IDT says",
    user: true,
    instruction: |a| a.int(0x30),
    goes_on: true,
    is_gate: true,
};
const UPPER_HALF_OF_CR0: Piece = Piece {
    name: "upper_half_of_cr0",
    lacking: "setting a bit in the upper half of CR0 does not raise #GP",
    user: false,
    instruction: |a| {
        a.mov(rax, 1u64 << 40 | 0x8005_0033)?;
        a.mov(cr0, rax)
    },
    goes_on: false,
    is_gate: false,
};
const IDT: Piece = Piece {
    name: "sidt",
    lacking: "SIDT does not show the guest's own table",
    user: false,
    instruction: |a| {
        a.sidt(ptr(DATA))?;
        a.cmp(word_ptr(DATA), IDT_LIMIT)?;
        let right = a.create_label();
        a.je(right)?;
        a.ud2()?;
        a.set_label(right)?;
        a.nop()
    },
    goes_on: true,
    is_gate: false,
};

/// MWAIT, which random programs do not contain.
const MWAIT: Piece = Piece {
    name: "mwait",
    lacking: "MWAIT does not raise #UD, although CPUID does not show it",
    user: false,
    instruction: |a| a.mwait(),
    goes_on: false,
    is_gate: false,
};

impl Piece {
    fn is_lacking(&self, host: &Host, gates: Gates) -> bool {
        let is_ours = self.is_gate && gates == Gates::Closed;
        !is_ours && goes_on(host, gates, self.user, self.instruction) != self.goes_on
    }
}

/// Pieces that random programs avoid if the host lacks them. A field is true if the host lacks its piece, i.e. executes
/// the instruction wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lacks {
    pub(crate) system_calls: bool,
    pub(crate) int_in_ring_3: bool,
    pub(crate) upper_half_of_cr0: bool,
    pub(crate) idt: bool,
}

impl Lacks {
    pub(crate) fn of(host: &Host, gates: Gates) -> Lacks {
        Lacks {
            system_calls: SYSTEM_CALLS.is_lacking(host, gates),
            int_in_ring_3: INT_IN_RING_3.is_lacking(host, gates),
            upper_half_of_cr0: UPPER_HALF_OF_CR0.is_lacking(host, gates),
            idt: IDT.is_lacking(host, gates),
        }
    }
}

/// Returns the host's KVM, with periodic signals for this thread.
///
/// # Errors
/// Returns the reason if programs cannot run on this KVM with these gates.
pub(crate) fn ticking_host(gates: Gates) -> Result<(Host, Ticker), Lacking> {
    Ok((host_with(gates)?, tick()))
}

fn host_with(gates: Gates) -> Result<Host, Lacking> {
    let host = crate::host()?;
    if gates == Gates::Open {
        return Ok(host);
    }
    let lacking = "no closed gates: this host loses the registers of a guest that shuts down";
    if keeps_registers(&host) { Ok(host) } else { Err(Lacking::new(lacking)) }
}

/// Limit of an interrupt descriptor table that is too short for a gate.
const NO_GATE: u16 = 6;

/// Runs a program directly on a vCPU of KVM, without an engine and without a gate for the program's exception. Returns
/// the registers before the program and after the guest has shut down. The latter are `None` if the guest did not shut
/// down.
fn shut_down(host: &Host, code: Instruction) -> (CpuState, Option<CpuState>) {
    let _ticker = tick();
    let mut guest = Guest::new(true);
    guest.code(CODE, code);
    guest.state.idtr.limit = NO_GATE;
    guest.state.gpr = std::array::from_fn(|n| 0x0123_4567_0000_0000 + n as u64);
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    let vm = Arc::new(Vm::new(host, memory).expect("a virtual machine"));
    let mut vcpu = Vcpu::new(&vm, Msrs::default().apic_base).expect("a virtual CPU");
    vcpu.load(&guest.state).expect("a state that a guest can have");
    let mut exits = (0..SIGNALS_MAX).map(|_| vcpu.run().expect("an exit"));
    let exit = exits.find(|exit| *exit != KvmExit::Interrupted);
    let after = vcpu.save().expect("its registers").state;
    (guest.state, (exit == Some(KvmExit::Shutdown)).then_some(after))
}

/// True if Everett can read a program's registers after the program's exception has shut the guest down.
fn keeps_registers(host: &Host) -> bool {
    let (before, after) = shut_down(host, |a| a.ud2());
    let registers =
        |state: &CpuState| (state.gpr, state.rip, state.cr3, state.seg[seg::CS], state.seg[seg::SS]);
    after.is_some_and(|after| registers(&after) == registers(&before))
}

/// True if INT1 leaves the state of a trap when it shuts the guest down: RIP is after INT1, and RF is clear. A KVM that
/// intercepts #DB and delivers it itself can leave RF set, as if the next instruction had faulted. A KVM with this
/// defect also leaves a wrong state after a single step.
pub(crate) fn int1_is_a_trap(host: &Host) -> bool {
    let (before, after) = shut_down(host, |a| a.int1());
    after.is_some_and(|after| after.rip == before.rip + 1 && after.rflags & RESUME == 0)
}

/// Returns a guest that stores [`RIGHT`] after the instruction, or [`WRONG`] after an exception.
fn guest(user: bool, instruction: Instruction) -> Guest {
    let mut guest = Guest::new(user);
    guest.code(CODE, |a| {
        let faulted = a.create_label();
        a.lea(r15, ptr(faulted))?;
        a.mov(rsi, END)?;
        instruction(a)?;
        a.mov(dword_ptr(rsi), RIGHT)?;
        a.set_label(faulted)?;
        a.mov(dword_ptr(rsi), WRONG)
    });
    guest
}

/// True if the guest on the kvm engine continues after the instruction without an exception.
///
/// # Panics
/// Panics if the engine fails.
fn goes_on(host: &Host, gates: Gates, user: bool, instruction: Instruction) -> bool {
    let guest = guest(user, instruction);
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    let mut engine = kvm_engine(host, gates, &memory);
    engine.set_state(&guest.state);
    let exit = engine.run(FOREVER);
    assert_ne!(exit, Exit::Failed, "{:?}", engine.failure());
    exit == Exit::Device(Request::MmioWrite { gpa: END, size: 4, value: RIGHT as u64 })
}

/// Checks that both engines execute the piece in the same way. If the host lacks the piece, this test is ignored, and
/// no random program with these gates contains the piece.
fn is_the_same_on_both_engines(piece: &Piece, gates: Gates) -> Ran {
    let (host, _ticker) = ticking_host(gates)?;
    if piece.is_lacking(&host, gates) {
        return Err(Lacking::new(format!("programs do without it: {}", piece.lacking)));
    }
    let mut bench = Bench::new(&host, gates);
    assert_eq!(bench.run(&guest(piece.user, piece.instruction), 0), Ok(1), "exits");
    Ok(())
}

/// Returns the tests of this module: each piece, with open and with closed gates.
pub(crate) fn trials() -> Vec<Trial> {
    let pieces = [&SYSTEM_CALLS, &INT_IN_RING_3, &UPPER_HALF_OF_CR0, &IDT, &MWAIT];
    let ways = [(Gates::Open, "with_open_gates"), (Gates::Closed, "with_closed_gates")];
    let each = pieces.into_iter().flat_map(|piece| ways.map(|(gates, how)| (piece, gates, how)));
    each.map(|(piece, gates, how)| {
        named(format!("lacks::{}_{how}", piece.name), move || is_the_same_on_both_engines(piece, gates))
    })
    .collect()
}
