//! The RAM and the registers of a machine, as `everett-inspect` reads them.

use everett_cpu::CpuState;
use everett_cpu::state::Segment;
use everett_inspect::memory::Ram;
use everett_inspect::registers::{CpuRegisters, ProgramRegisters};
use everett_vmm::Machine;

/// RAM of a machine.
pub struct MachineRam<'m>(pub &'m Machine);

impl Ram for MachineRam<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.ram().read(address, into)
    }
}

/// Returns the registers of a machine's CPU.
#[must_use]
pub fn registers(cpu: &CpuState) -> CpuRegisters {
    let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] = cpu.gpr;
    let [es, cs, ss, ds, fs, gs] = &cpu.seg;
    let selector = |segment: &Segment| u64::from(segment.selector);
    // The CPU is not in a system call that the kernel could make again.
    const NO_CALL: u64 = u64::MAX;
    CpuRegisters {
        registers: ProgramRegisters([
            r15,
            r14,
            r13,
            r12,
            rbp,
            rbx,
            r11,
            r10,
            r9,
            r8,
            rax,
            rcx,
            rdx,
            rsi,
            rdi,
            NO_CALL,
            cpu.rip,
            selector(cs),
            cpu.rflags,
            rsp,
            selector(ss),
            fs.base,
            gs.base,
            selector(ds),
            selector(es),
            selector(fs),
            selector(gs),
        ]),
        other_gs_base: cpu.msrs.kernel_gs_base,
    }
}
