//! What a software KVM does wrong, so that programs for it must do without.
//!
//! Each is looked for with a guest whose right end is known without another engine: a difference between the engines is
//! never a reason to leave something out.

use everett_vmm::engine::{Engine, Exit, Until};
use everett_vmm::kvm::Host;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DATA, END, Guest, IDT_LIMIT};
use crate::lockstep::{Gates, kvm_engine, memory};

/// What programs do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lacks {
    /// SYSCALL enters ring 0, and SYSRET leaves it.
    pub(crate) system_calls: bool,
    /// INT n in ring 3 goes where the IDT says.
    pub(crate) int_in_ring_3: bool,
    /// A bit in the upper half of CR0 is #GP.
    pub(crate) upper_half_of_cr0: bool,
    /// SIDT shows the guest's own table.
    pub(crate) idt: bool,
}

type Instruction = fn(&mut CodeAssembler) -> Result<(), IcedError>;

const RIGHT: i32 = 0x600d;
const WRONG: i32 = 0xbad;

impl Lacks {
    pub(crate) fn of(host: &Host, gates: Gates) -> Lacks {
        let goes_on = |user, f: Instruction| goes_on(host, gates, user, f);
        Lacks {
            system_calls: !goes_on(true, |a| a.syscall()),
            int_in_ring_3: !goes_on(true, |a| a.int(0x30)),
            upper_half_of_cr0: goes_on(false, |a| {
                a.mov(rax, 1u64 << 40 | 0x8005_0033)?;
                a.mov(cr0, rax)
            }),
            idt: !goes_on(false, |a| {
                a.sidt(ptr(DATA))?;
                a.cmp(word_ptr(DATA), IDT_LIMIT)?;
                let mut right = a.create_label();
                a.je(right)?;
                a.ud2()?;
                a.set_label(&mut right)?;
                a.nop()
            }),
        }
    }
}

/// The ways in which programs can run here.
pub(crate) fn gates(host: &Host) -> Vec<Gates> {
    let keeps_registers = goes_on(host, Gates::Closed, true, |a| {
        // The handler goes to R15, where this begins.
        let mut behind = a.create_label();
        a.lea(r15, ptr(behind))?;
        a.ud2()?;
        a.set_label(&mut behind)?;
        a.nop()
    });
    if keeps_registers {
        return vec![Gates::Open, Gates::Closed];
    }
    println!("closed gates: skipped: this host loses the registers of a guest that shuts down");
    vec![Gates::Open]
}

/// Whether code goes on behind itself, without an exception.
fn goes_on(host: &Host, gates: Gates, user: bool, instruction: Instruction) -> bool {
    let mut guest = Guest::new(user);
    guest.code(CODE, |a| {
        let mut faulted = a.create_label();
        a.lea(r15, ptr(faulted))?;
        a.mov(rsi, END)?;
        instruction(a)?;
        a.mov(dword_ptr(rsi), RIGHT)?;
        a.set_label(&mut faulted)?;
        a.mov(dword_ptr(rsi), WRONG)
    });
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    let mut engine = kvm_engine(host, gates, &memory);
    engine.set_state(&guest.state);
    let exit = engine.run(Until { icount: u64::MAX, ..Until::default() });
    exit == Exit::MmioWrite { gpa: END, size: 4, value: RIGHT as u64 }
}
