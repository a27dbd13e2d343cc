//! Page tables that change while the guest uses them. A KVM that shadows page tables, i.e. runs the guest on its own
//! copy of them, has to notice each change, even if the soft CPU executes the store that changes a table. A KVM that
//! does not shadow page tables only needs a flush of the TLB ([`is_coherent`]).

use std::sync::{Arc, OnceLock};

use everett_assembler::*;
use everett_cpu::state::Msrs;
use everett_vmm::kvm::{Host, KvmExit, Vcpu, Vm};
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{CODE, DATA, DEVICE, END, Guest, TABLES};
use crate::lacks::ticking_host;
use crate::lockstep::{Bench, Gates, SIGNALS_MAX, memory, tick};
use crate::trials::{Lacking, Ran, trial};

/// The page whose mapping changes.
const FROM: u64 = DATA;
const TO: u64 = DATA + 0x2000;
const ENTRY: u64 = TABLES + 0x3000 + (FROM >> 12) * 8;

type Code<'a> = &'a mut Assembler;
type Change = fn(Code<'_>) -> Result<(), Error>;

/// Address of the handler of #UD, through which ring 3 asks ring 0 to change the entry.
const CHANGER: u64 = 0x3_e000;

/// Emits code that changes the paging entry at RBP. If the entry maps the page `FROM`, the code makes it map `TO`, and
/// vice versa.
fn changing(a: Code<'_>, change: Change) -> Result<(), Error> {
    a.mov(rax, qword_ptr(rbp))?;
    a.mov(rdx, qword_ptr(rbp + 8))?;
    a.mov(rbx, rax)?;
    a.xor(rbx, (FROM ^ TO) as i32)?;
    a.mov(rcx, rdx)?;
    change(a)?;
    a.invlpg(ptr(rsi))
}

/// Returns a guest that reads and writes `FROM` and then changes the paging entry of `FROM`, again and again. After
/// each read, it writes the value to a device.
fn guest(user: bool, change: Change) -> Guest {
    let mut g = Guest::new(user);
    g.code(CODE, |a| {
        let again = a.create_label();
        a.mov(rbp, ENTRY & !15)?;
        a.mov(rsi, FROM)?;
        a.mov(rdi, DEVICE)?;
        a.mov(r8d, 10)?;
        a.set_label(again)?;
        a.mov(r9, qword_ptr(rsi))?;
        a.mov(qword_ptr(rdi), r9)?;
        a.add(qword_ptr(rsi), 1)?;
        if user { a.ud2() } else { changing(a, change) }?;
        a.dec(r8d)?;
        a.jnz(again)?;
        if user {
            a.mov(rdi, END)?;
            return a.mov(dword_ptr(rdi), eax);
        }
        a.cli()?;
        a.hlt()
    });
    g.code(CHANGER, |a| {
        changing(a, change)?;
        a.add(qword_ptr(rsp), 2)?;
        a.iretq()
    });
    g.handle(6, CHANGER);
    g.ram[FROM as usize] = 0x11;
    g.ram[TO as usize] = 0x77;
    assert_eq!(ENTRY % 16, 0, "the entry must be aligned for CMPXCHG16B");
    g
}

fn a_store_to_an_entry_and_invlpg_take_effect() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let mut bench = Bench::new(&host, Gates::Open);
    let changes: [(&str, Change); 4] = [
        ("a store", |a| a.mov(qword_ptr(rbp), rbx)),
        ("an exchange", |a| a.xchg(qword_ptr(rbp), rbx)),
        // Some hosts' KVM cannot execute the following instructions, so the soft CPU does.
        ("CMPXCHG16B", |a| a.lock().cmpxchg16b(xmmword_ptr(rbp))),
        ("a vector", |a| {
            a.movq(xmm0, rbx)?;
            a.movq(qword_ptr(rbp), xmm0)
        }),
    ];
    for (name, change) in changes {
        for user in [false, true, true] {
            assert_eq!(bench.run(&guest(user, change), 0), Ok(11), "{name}, by ring 3: {user}");
        }
    }
    Ok(())
}

/// Number of times that a page is replaced.
const TIMES: u64 = 100;

/// Runs a guest that reads a page again and again. After each read, the test writes a new value to another page, points
/// the paging entry to that page, and flushes the TLB. Returns the number of reads that saw an earlier page.
fn earlier_pages_seen(host: &Host, user: bool) -> u64 {
    let _ticker = tick();
    let mut guest = Guest::new(user);
    guest.code(CODE, |a| {
        let again = a.create_label();
        a.mov(rsi, FROM)?;
        a.mov(rdi, DEVICE)?;
        a.set_label(again)?;
        a.mov(rax, qword_ptr(rsi))?;
        a.mov(qword_ptr(rdi), rax)?;
        a.jmp(again)
    });
    let memory = memory();
    memory.write_slice(&guest.ram, GuestAddress(0)).expect("it is RAM");
    let entry: u64 = memory.read_obj(GuestAddress(ENTRY)).expect("it is RAM");
    let vm = Arc::new(Vm::new(host, Arc::clone(&memory)).expect("a virtual machine"));
    let mut vcpu = Vcpu::new(&vm, Msrs::default().apic_base).expect("a virtual CPU");
    vcpu.load(&guest.state).expect("a state that a guest can have");
    let mut earlier = 0;
    for time in 0..TIMES {
        let mut exits = (0..SIGNALS_MAX).map(|_| vcpu.run().expect("an exit"));
        let exit = exits.find(|exit| *exit != KvmExit::Interrupted);
        earlier += u64::from(exit != Some(KvmExit::MmioWrite { gpa: DEVICE, size: 8, value: time }));
        assert_eq!(vcpu.finish().expect("an end"), None);
        let page = if time % 2 == 0 { TO } else { FROM };
        memory.write_obj(time + 1, GuestAddress(page)).expect("it is RAM");
        memory.write_obj(entry ^ FROM ^ page, GuestAddress(ENTRY)).expect("it is RAM");
        vcpu.flush_translations().expect("a flush");
    }
    earlier
}

/// True if a flush of the TLB is enough after the test process has changed page tables: the guest then sees the change.
/// If this is true, the KVM engines of these tests flush the TLB when guest memory has been replaced. Otherwise they make
/// KVM forget the memory.
pub(crate) fn is_coherent(host: &Host) -> bool {
    static COHERENT: OnceLock<bool> = OnceLock::new();
    *COHERENT.get_or_init(|| [false, true].iter().all(|&user| earlier_pages_seen(host, user) == 0))
}

fn replaced_memory_is_seen_after_a_flush() -> Ran {
    let host = crate::host()?;
    for user in [false, true] {
        let n = earlier_pages_seen(&host, user);
        if n > 0 {
            let ring = if user { 3 } else { 0 };
            let why = format!("{n} of {TIMES} times ring {ring} sees a page that was replaced");
            return Err(Lacking::new(why));
        }
    }
    Ok(())
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(a_store_to_an_entry_and_invlpg_take_effect), trial(replaced_memory_is_seen_after_a_flush)]
}
