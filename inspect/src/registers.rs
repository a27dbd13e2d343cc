//! Registers: those that unwinding needs, and all registers of a program's thread, as debuggers want them.

use crate::floating::{FloatingRegisters, LEGACY_BYTES, XSAVE_AVX_BYTES, XSAVE_SSE_BYTES, has_avx};
use crate::task::{Process, Thread};
use crate::{Error, Guest};

/// Number of registers in `struct user_regs_struct` (Linux, `arch/x86/include/asm/user_64.h`).
pub const COUNT: usize = 27;

/// Number of registers in `struct pt_regs`, which are the first of `struct user_regs_struct`, in the same order.
const SAVED: usize = 21;

/// Places of registers in both structures.
mod at {
    pub(super) const RBP: usize = 4;
    pub(super) const RIP: usize = 16;
    pub(super) const CS: usize = 17;
    pub(super) const RFLAGS: usize = 18;
    pub(super) const RSP: usize = 19;
    pub(super) const FS_BASE: usize = 21;
    pub(super) const GS_BASE: usize = 22;
    pub(super) const DS: usize = 23;
    pub(super) const ES: usize = 24;
    pub(super) const FS: usize = 25;
    pub(super) const GS: usize = 26;
}

/// Registers that unwinding needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer (RIP).
    pub instruction: u64,
    /// Stack pointer (RSP).
    pub stack: u64,
    /// Frame pointer (RBP).
    pub frame: u64,
    /// True in user mode.
    pub is_user: bool,
}

/// Integer and segment registers of a thread in user mode, in the order of `struct user_regs_struct`: R15, R14, R13, R12,
/// RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, the number of the system call or all ones, RIP, CS, RFLAGS, RSP,
/// SS, the bases of FS and GS, DS, ES, FS, GS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramRegisters(pub [u64; COUNT]);

/// Registers of the machine's CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuRegisters {
    /// The registers. In kernel mode, they are the kernel's.
    pub registers: ProgramRegisters,
    /// The other base of GS (IA32_KERNEL_GS_BASE). In kernel mode, it is the program's.
    pub other_gs_base: u64,
    /// The x87, SSE and AVX registers.
    pub floating: FloatingRegisters,
    /// XCR0: the state components that XSAVE stores. `None` if the kernel does not use XSAVE (CR4.OSXSAVE).
    pub xcr0: Option<u64>,
}

impl ProgramRegisters {
    /// Returns the registers that unwinding needs.
    #[must_use]
    pub fn unwinding(&self) -> Registers {
        Registers {
            instruction: self.0[at::RIP],
            stack: self.0[at::RSP],
            frame: self.0[at::RBP],
            is_user: self.0[at::CS] & 3 == 3,
        }
    }

    /// True if the next instruction was interrupted by a fault of its own, and is now executed again.
    #[must_use]
    pub fn is_restarted(&self) -> bool {
        /// Flag of RFLAGS (RF), which the kernel sets for this instruction.
        const RESUME: u64 = 1 << 16;
        self.0[at::RFLAGS] & RESUME != 0
    }
}

impl Guest<'_> {
    /// Returns the registers of a thread of a program: those with which it will continue in user mode.
    ///
    /// # Errors
    /// Returns an error if the thread's structures cannot be read, or if the thread is one of the kernel.
    pub fn program_registers(
        &self,
        process: &Process,
        thread: &Thread,
        cpu: &CpuRegisters,
    ) -> Result<ProgramRegisters, Error> {
        let registers = if process.mm.is_some() {
            self.program_registers_of(thread.task, cpu)
        } else {
            Err(Error::NoUserRegisters)
        };
        registers.map_err(Error::reading("the registers of a thread"))
    }

    fn program_registers_of(&self, task: u64, cpu: &CpuRegisters) -> Result<ProgramRegisters, Error> {
        let runs = self.current()? == task;
        if runs && cpu.registers.unwinding().is_user {
            return Ok(cpu.registers);
        }
        let layout = &self.kernel.layout;
        let base = self.entry_registers(task)?;
        if layout.registers_bytes != 8 * SAVED as u64
            || layout.registers_bp.offset() != 8 * at::RBP as u64
            || layout.registers_ip.offset() != 8 * at::RIP as u64
            || layout.registers_sp.offset() != 8 * at::RSP as u64
        {
            return Err(Error::Field("pt_regs"));
        }
        let mut all = [0; COUNT];
        for (n, register) in (0..).zip(&mut all[..SAVED]) {
            *register = self.word(base.wrapping_add(8 * n))?;
        }
        if runs {
            // The CPU still has the program's segments, and the two bases of GS are exchanged.
            for n in [at::FS_BASE, at::DS, at::ES, at::FS, at::GS] {
                all[n] = cpu.registers.0[n];
            }
            all[at::GS_BASE] = cpu.other_gs_base;
        } else {
            let number = |field| self.number(task, field);
            all[at::FS_BASE] = number(layout.task_fs_base)?;
            all[at::GS_BASE] = number(layout.task_gs_base)?;
            all[at::DS] = number(layout.task_ds)?;
            all[at::ES] = number(layout.task_es)?;
            all[at::FS] = number(layout.task_fs_index)?;
            all[at::GS] = number(layout.task_gs_index)?;
        }
        Ok(ProgramRegisters(all))
    }

    /// Returns the x87, SSE and AVX registers of a thread of a program. `None` if Everett does not know where this kernel
    /// keeps them, or if the processor would not load them.
    ///
    /// # Errors
    /// Returns an error if the thread's structures cannot be read.
    pub fn floating_registers(
        &self,
        thread: &Thread,
        cpu: &CpuRegisters,
    ) -> Result<Option<FloatingRegisters>, Error> {
        self.floating_registers_of(thread.task, cpu)
            .map_err(Error::reading("the floating-point registers of a thread"))
    }

    fn floating_registers_of(
        &self,
        task: u64,
        cpu: &CpuRegisters,
    ) -> Result<Option<FloatingRegisters>, Error> {
        /// Number of the machine's only CPU.
        const CPU: u64 = 0;
        let layout = &self.kernel.layout;
        let (Some(place), Some(last), Some(owner)) =
            (layout.task_floating, layout.floating_cpu, self.kernel.values.get("fpu_fpregs_owner_ctx"))
        else {
            return Ok(None);
        };
        let floating = task.wrapping_add(place.offset());
        // The registers on the CPU are those of the thread whose structure the kernel notes as their owner, unless the
        // kernel has changed this structure since (`fpregs_state_valid` in `arch/x86/include/asm/fpu/sched.h`).
        let owner = self.word(self.word(self.kernel.symbol("__per_cpu_offset")?)?.wrapping_add(owner))?;
        if self.current()? == task && owner == floating && self.number(floating, last)? == CPU {
            return Ok(Some(cpu.floating));
        }
        let at = match (layout.floating_state, layout.floating_registers, layout.floating_old_registers) {
            (Some(state), Some(registers), _) => {
                self.number(floating, state)?.wrapping_add(registers.offset())
            }
            (_, _, Some(registers)) => floating.wrapping_add(registers.offset()),
            _ => return Ok(None),
        };
        let mut area = [0; XSAVE_AVX_BYTES];
        let bytes = match cpu.xcr0 {
            Some(xcr0) if has_avx(xcr0) => XSAVE_AVX_BYTES,
            Some(_) => XSAVE_SSE_BYTES,
            None => LEGACY_BYTES,
        };
        self.memory().read(at, &mut area[..bytes])?;
        Ok(match cpu.xcr0 {
            Some(xcr0) => FloatingRegisters::of_xsave(&area, xcr0),
            None => area.first_chunk().map(|legacy| FloatingRegisters { legacy: *legacy, upper: None }),
        })
    }
}
