//! Guests of a few instructions: assembled, wrapped into a kernel file, and booted.

use everett_assembler::*;
use everett_cpu::CacheConfig;
use everett_vmm::boot::{SMALL_KERNEL_ENTRY, small_kernel};
use everett_vmm::clock::ClockMode;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::ram::Ram;
use everett_vmm::{Machine, MachineConfig};
use tempfile::TempDir;

/// Guest-physical address at which the guest's code starts.
pub(crate) const ENTRY: u64 = SMALL_KERNEL_ENTRY;
/// Guest-physical address of the guests' data.
pub(crate) const DATA: u64 = 0x180_0000;
/// Guest-physical address of the guests' interrupt descriptor table.
pub(crate) const IDT: u64 = 0x170_0000;
pub(crate) const LAPIC: u64 = 0xfee0_0000;
pub(crate) const UART: u32 = 0x3f8;

/// Assembles code that starts at [`ENTRY`].
pub(crate) fn assemble(write: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Vec<u8> {
    let mut a = Assembler::new();
    write(&mut a).unwrap();
    a.assemble(ENTRY).unwrap()
}

/// Returns the configuration of a machine of 32 MiB with `code` as its kernel. The folder holds the kernel's file.
pub(crate) fn config(code: &[u8]) -> (MachineConfig, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vmlinux");
    std::fs::write(&path, small_kernel(code, 0)).unwrap();
    let mut config = MachineConfig::new(path);
    config.memory_bytes = 32 << 20;
    (config, folder)
}

/// Returns the configuration of [`config`] in this clock mode.
pub(crate) fn config_in(clock: ClockMode, code: &[u8]) -> (MachineConfig, TempDir) {
    let (mut config, folder) = config(code);
    config.clock = clock;
    (config, folder)
}

/// Returns an engine for this clock mode, on a soft CPU with default caches.
pub(crate) fn plain_in(clock: ClockMode, ram: &Ram) -> AnyEngine {
    AnyEngine::on_soft(clock, plain_soft(clock, ram))
}

fn plain_soft(clock: ClockMode, ram: &Ram) -> SoftEngine {
    SoftEngine::new(ram.shared(), AnyEngine::soft_caches(clock, CacheConfig::default()))
}

/// Returns a machine that is about to execute `code`, in this clock mode and with default caches.
pub(crate) fn machine_in(clock: ClockMode, code: &[u8]) -> Machine {
    machine_on(clock, code, |ram| plain_soft(clock, ram))
}

/// Returns a machine that is about to execute `code`, in this clock mode and on the soft CPU that `soft` makes.
pub(crate) fn machine_on(clock: ClockMode, code: &[u8], soft: impl FnOnce(&Ram) -> SoftEngine) -> Machine {
    let (config, _folder) = config_in(clock, code);
    Machine::new(config, |ram| Ok(AnyEngine::on_soft(clock, soft(ram)))).unwrap()
}

/// Returns a machine that is about to execute `code`.
pub(crate) fn machine(code: &[u8], caches: CacheConfig, change: impl FnOnce(&mut MachineConfig)) -> Machine {
    let (mut config, _folder) = config(code);
    change(&mut config);
    Machine::soft(config, caches).unwrap()
}

/// Returns a machine with default caches.
pub(crate) fn plain(code: &[u8]) -> Machine {
    machine(code, CacheConfig::default(), |_| {})
}

/// Emits a store of a doubleword to an absolute address. Uses RBX.
pub(crate) fn store(a: &mut Assembler, address: u64, value: u32) -> Result<(), Error> {
    a.mov(rbx, address)?;
    a.mov(dword_ptr(rbx), value as i32)
}

/// Emits an OUT that writes a byte to a port. Uses RAX and RDX.
pub(crate) fn out(a: &mut Assembler, port: u32, value: u32) -> Result<(), Error> {
    a.mov(edx, port)?;
    a.mov(eax, value)?;
    a.out(dx, al)
}

/// Emits code that points `vector` at `handler`, loads the interrupt descriptor table, and sets up a stack. Uses RAX,
/// RBX and RCX.
pub(crate) fn vector(a: &mut Assembler, vector: u64, handler: Label) -> Result<(), Error> {
    a.lea(rax, qword_ptr(handler))?;
    a.mov(rbx, IDT + 16 * vector)?;
    a.mov(word_ptr(rbx), ax)?;
    a.mov(word_ptr(rbx + 2), 0x10)?;
    a.mov(word_ptr(rbx + 4), 0x8e00)?;
    a.shr(rax, 16)?;
    a.mov(word_ptr(rbx + 6), ax)?;
    a.mov(qword_ptr(rbx + 8), 0)?;
    a.mov(rbx, IDT + 0x1000)?;
    a.mov(word_ptr(rbx), 0xfff)?;
    a.mov(rcx, IDT)?;
    a.mov(qword_ptr(rbx + 2), rcx)?;
    a.lidt(ptr(rbx))?;
    a.mov(rsp, DATA)
}

/// Emits a loop that executes `branches` conditional branches. Uses RCX and R14.
pub(crate) fn spin(a: &mut Assembler, branches: u32) -> Result<(), Error> {
    let again = a.create_label();
    a.mov(ecx, branches)?;
    a.set_label(again)?;
    a.add(r14, rcx)?;
    a.dec(ecx)?;
    a.jnz(again)
}

/// Emits code that starts the local APIC's timer with a period of `counts` timer counts. The interrupt handler is at
/// the label `handler`, where the caller emits [`count_tick`]. Uses RAX, RBX and RCX.
pub(crate) fn timer(a: &mut Assembler, counts: u32, handler: Label) -> Result<(), Error> {
    vector(a, 0x40, handler)?;
    store(a, LAPIC + 0xf0, 0x1ff)?;
    store(a, LAPIC + 0x3e0, 0xb)?;
    store(a, LAPIC + 0x320, 0x2_0040)?;
    store(a, LAPIC + 0x380, counts)
}

/// Emits a whole handler for the timer's interrupt. The handler counts the timer's ticks in R15.
pub(crate) fn count_tick(a: &mut Assembler) -> Result<(), Error> {
    a.push(rbx)?;
    a.inc(r15)?;
    store(a, LAPIC + 0xb0, 0)?;
    a.pop(rbx)?;
    a.iretq()
}
