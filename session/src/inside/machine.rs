//! The RAM and the registers of a machine, as `everett-inspect` reads them.

use everett_cpu::CpuState;
use everett_inspect::memory::Ram;
use everett_inspect::stack::Registers;
use everett_vmm::Machine;

/// RAM of a machine.
pub struct MachineRam<'m>(pub &'m Machine);

impl Ram for MachineRam<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.ram().read(address, into)
    }
}

/// Returns the registers that unwinding needs.
#[must_use]
pub fn registers(cpu: &CpuState) -> Registers {
    /// Numbers of RSP and RBP, and of CS.
    const RSP: usize = 4;
    const RBP: usize = 5;
    const CS: usize = 1;
    Registers {
        instruction: cpu.rip,
        stack: cpu.gpr[RSP],
        frame: cpu.gpr[RBP],
        is_user: cpu.seg[CS].selector & 3 == 3,
    }
}
