//! The RAM and the registers of a machine, as `everett-inspect` reads them.

use everett_cpu::CpuState;
use everett_cpu::state::{Extended, FpuState, OSXSAVE, Segment};
use everett_inspect::floating::{FloatingRegisters, LEGACY_BYTES, has_avx};
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
        floating: floating(&cpu.fpu, &cpu.extended),
        xcr0: (cpu.cr4 & OSXSAVE != 0).then_some(cpu.extended.xcr0),
    }
}

/// Returns the x87 and SSE registers as the area that FXSAVE64 stores (SDM volume 1, 10.5.1), and the upper halves of the AVX
/// registers if programs can use AVX.
fn floating(fpu: &FpuState, extended: &Extended) -> FloatingRegisters {
    /// Bits of MXCSR that exist.
    const MXCSR_MASK: u32 = 0xffff;
    /// Offsets of the x87 and SSE registers, each of which has 16 bytes.
    const STACK: usize = 32;
    const VECTORS: usize = 160;
    let mut area = [0; LEGACY_BYTES];
    let mut put = |at: usize, bytes: &[u8]| area[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &fpu.fcw.to_le_bytes());
    put(2, &fpu.fsw.to_le_bytes());
    put(4, &[fpu.ftw]);
    put(6, &fpu.fop.to_le_bytes());
    put(8, &fpu.fip.to_le_bytes());
    put(16, &fpu.fdp.to_le_bytes());
    put(24, &fpu.mxcsr.to_le_bytes());
    put(28, &MXCSR_MASK.to_le_bytes());
    // The area has the x87 registers in the order of the stack, beginning at its top.
    let top = usize::from(fpu.fsw >> 11 & 7);
    for n in 0..fpu.r.len() {
        let (significand, exponent) = fpu.r[(top + n) & 7];
        put(STACK + 16 * n, &significand.to_le_bytes());
        put(STACK + 16 * n + 8, &exponent.to_le_bytes());
    }
    for (n, register) in fpu.xmm.iter().enumerate() {
        put(VECTORS + 16 * n, &register.to_le_bytes());
    }
    FloatingRegisters { legacy: area, upper: has_avx(extended.xcr0).then_some(extended.ymm) }
}
