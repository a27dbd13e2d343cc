//! Stacks of the kernel, and the registers with which a thread entered it.
//!
//! A thread that does not run has its registers on its kernel stack: those of the kernel where the scheduler switched
//! away, and at the top those of the program, where the thread entered the kernel. Frames of the kernel are unwound with
//! the kernel's own tables ([`Orc`](everett_symbols::kernel::orc::Orc)), and those of loadable modules with the modules'.

use std::fmt;

use everett_symbols::FRAMES_MAX;
use everett_symbols::kernel::orc::{Base, Kind, Row};
use everett_symbols::kernel::{Shown, Symbols};

use crate::module::{Module, Modules};
use crate::registers::{CpuRegisters, Registers};
use crate::task::{Process, Thread};
use crate::{Error, Guest};

/// Length of a thread's kernel stack, in bytes (`THREAD_SIZE` on x86-64).
const STACK_BYTES: u64 = 16 << 10;

/// Unused bytes at the top of a kernel stack (`TOP_OF_KERNEL_STACK_PADDING`): kernels built for FRED have 16.
const PADDINGS: [u64; 2] = [0, 16];
/// Code segments of programs: 64 bits and 32 bits (`__USER_CS`, `__USER32_CS`).
const USER_SEGMENTS: [u64; 2] = [0x33, 0x23];

/// Stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Frames of the kernel, from the innermost one outwards. Empty if the thread runs in user mode.
    pub kernel: Vec<KernelFrame>,
    /// True if the frames of the kernel reach the start of the thread or its entry into the kernel. Otherwise the
    /// innermost frames are correct, and outer ones are missing.
    pub is_complete: bool,
    /// Registers of the program. `None` for threads of the kernel.
    pub user: Option<Registers>,
}

/// The thread that runs on the CPU. Both IDs are 0 if the CPU is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
}

/// Frame of a kernel stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFrame {
    /// Address in the kernel's code.
    pub address: u64,
    /// True if the address is a return address, i.e. that of the instruction after a call.
    pub is_return: bool,
}

impl KernelFrame {
    /// Returns an address in the function of the frame. A return address can lie after the end of the calling function.
    pub(crate) fn within(self) -> u64 {
        if self.is_return { self.address.wrapping_sub(1) } else { self.address }
    }

    /// Returns the frame for display, with its function and module. `kernel` are the names of the kernel's own code.
    #[must_use]
    pub fn named<'a>(self, kernel: &'a Symbols, modules: &'a Modules) -> NamedFrame<'a> {
        let module = modules.at(self.within());
        let names = module.map_or(kernel, Module::names);
        let shown = if self.is_return { names.show_return(self.address) } else { names.show(self.address) };
        NamedFrame { shown, module: module.map(|module| &*module.name) }
    }
}

/// Frame of a kernel stack for display: `0xffffffffc0123456 (ext4_sync_file+0x1a [ext4])`.
#[derive(Debug, Clone, Copy)]
pub struct NamedFrame<'a> {
    shown: Shown<'a>,
    module: Option<&'a str>,
}

impl fmt::Display for NamedFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(module) = self.module else { return self.shown.fmt(f) };
        let text = self.shown.to_string();
        match text.strip_suffix(')') {
            Some(text) => write!(f, "{text} [{module}])"),
            None => write!(f, "{text} ([{module}])"),
        }
    }
}

impl Guest<'_> {
    /// Returns the stack of a thread. `cpu` are the registers of the machine's CPU.
    ///
    /// # Errors
    /// Returns an error if the thread's structures cannot be read.
    pub fn stack(
        &self,
        process: &Process,
        thread: &Thread,
        cpu: &CpuRegisters,
        modules: &Modules,
    ) -> Result<Stack, Error> {
        let cpu = cpu.registers.unwinding();
        let stack = self.stack_of(thread.task, process.mm.is_some(), cpu, modules);
        stack.map_err(Error::reading("the stack of a thread"))
    }

    /// Returns the stack of the kernel's idle thread, which runs on the CPU.
    ///
    /// # Errors
    /// Returns an error if the thread's structures cannot be read.
    pub fn idle_stack(&self, cpu: &CpuRegisters, modules: &Modules) -> Result<Stack, Error> {
        let stack =
            self.current().and_then(|task| self.stack_of(task, false, cpu.registers.unwinding(), modules));
        stack.map_err(Error::reading("the stack of a thread"))
    }

    fn stack_of(
        &self,
        task: u64,
        has_program: bool,
        cpu: Registers,
        modules: &Modules,
    ) -> Result<Stack, Error> {
        if self.number(task, self.kernel.layout.task_stack)? == 0 {
            // A thread that has ended has given its stack back. Another thread can use the memory.
            return Ok(Stack { kernel: Vec::new(), is_complete: true, user: None });
        }
        let runs = self.runs(task, cpu)?;
        if runs && cpu.is_user {
            return Ok(Stack { kernel: Vec::new(), is_complete: true, user: Some(cpu) });
        }
        let user = if has_program { Some(self.entry(task)?) } else { None };
        let start = if runs { cpu } else { self.switched(task)? };
        // A new thread has not called the scheduler. It begins at the first instruction of this function.
        let begins =
            ["ret_from_fork_asm", "ret_from_fork"].into_iter().find_map(|name| self.kernel.values.get(name));
        let is_return = !runs && begins != Some(start.instruction);
        let (kernel, is_complete) = self.unwind(start, is_return, modules);
        Ok(Stack { kernel, is_complete, user })
    }

    /// Returns the thread that runs on the CPU.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures cannot be read.
    pub fn running(&self) -> Result<Running, Error> {
        let running = || {
            let task = self.current()?;
            let number = |field| self.number(task, field).map(|number| number as u32);
            let layout = &self.kernel.layout;
            Ok(Running { pid: number(layout.task_tgid)?, tid: number(layout.task_pid)? })
        };
        running().map_err(Error::reading("the running thread"))
    }

    /// Returns true if the CPU is on the stacks of a task. While the scheduler switches, this is already the next task,
    /// although the previous one is still the current one.
    fn runs(&self, task: u64, cpu: Registers) -> Result<bool, Error> {
        let is_current = self.current()? == task;
        if cpu.is_user {
            return Ok(is_current);
        }
        let stack = self.number(task, self.kernel.layout.task_stack)?;
        if cpu.stack.checked_sub(stack).is_some_and(|within| within < STACK_BYTES) {
            return Ok(true);
        }
        // Interrupts have stacks of their own, but none comes while the scheduler switches.
        let function = self.kernel.symbols().show(cpu.instruction).function();
        Ok(is_current && !["__switch_to_asm", "__switch_to"].contains(&&*function))
    }

    /// Returns the address of the task that runs on the CPU.
    pub(crate) fn current(&self) -> Result<u64, Error> {
        let area = self.word(self.kernel.symbol("__per_cpu_offset")?)?;
        // Linux 6.2 to 6.14 have the pointer in a structure.
        match (self.kernel.values.get("pcpu_hot"), self.kernel.layout.hot_task) {
            (Some(hot), Some(field)) => self.number(area.wrapping_add(hot), field),
            _ => self.word(area.wrapping_add(self.kernel.symbol("current_task")?)),
        }
    }

    /// Returns the registers with which the thread entered the kernel the first time, i.e. from its program.
    fn entry(&self, task: u64) -> Result<Registers, Error> {
        let layout = &self.kernel.layout;
        let base = self.entry_registers(task)?;
        let number = |field| self.number(base, field);
        Ok(Registers {
            instruction: number(layout.registers_ip)?,
            stack: number(layout.registers_sp)?,
            frame: number(layout.registers_bp)?,
            is_user: true,
        })
    }

    /// Returns the address of these registers (`struct pt_regs`), at the top of the thread's kernel stack.
    pub(crate) fn entry_registers(&self, task: u64) -> Result<u64, Error> {
        let layout = &self.kernel.layout;
        let top = self.number(task, layout.task_stack)?.wrapping_add(STACK_BYTES);
        for padding in PADDINGS {
            let base = top.wrapping_sub(layout.registers_bytes.saturating_add(padding));
            if USER_SEGMENTS.contains(&(self.number(base, layout.registers_cs)? & 0xffff)) {
                return Ok(base);
            }
        }
        Err(Error::NoUserRegisters)
    }

    /// Returns the registers with which the scheduler switched away from the thread.
    fn switched(&self, task: u64) -> Result<Registers, Error> {
        let layout = &self.kernel.layout;
        let at = self.number(task, layout.task_sp)?;
        Ok(Registers {
            instruction: self.number(at, layout.switch_ip)?,
            frame: self.number(at, layout.switch_bp)?,
            stack: at.wrapping_add(layout.switch_bytes),
            is_user: false,
        })
    }

    /// Returns the frames from `registers` on, and true if the stack ends as it should. `is_return` is true if the first
    /// address is a return address.
    fn unwind(
        &self,
        registers: Registers,
        mut is_return: bool,
        modules: &Modules,
    ) -> (Vec<KernelFrame>, bool) {
        let mut at = registers;
        let mut frames = Vec::new();
        while frames.len() < FRAMES_MAX {
            let frame = KernelFrame { address: at.instruction, is_return };
            frames.push(frame);
            let row = match modules.at(frame.within()) {
                Some(module) => module.row(frame.within()),
                None => self.kernel.orc.as_ref().and_then(|orc| orc.row(frame.within())),
            };
            let Some(row) = row else {
                return (frames, false);
            };
            match self.caller(at, row) {
                Ok(Caller::Frame { registers, is_return_address }) => {
                    (at, is_return) = (registers, is_return_address)
                }
                Ok(Caller::End) => return (frames, true),
                Ok(Caller::Unknown) | Err(_) => return (frames, false),
            }
        }
        (frames, false)
    }

    /// Returns the registers of a frame's caller (`unwind_next_frame` in `arch/x86/kernel/unwind_orc.c`).
    fn caller(&self, at: Registers, row: Row) -> Result<Caller, Error> {
        let layout = &self.kernel.layout;
        let offset = i64::from(row.stack_offset);
        let stack = match row.stack {
            Base::Stack => at.stack.wrapping_add_signed(offset),
            Base::Frame => at.frame.wrapping_add_signed(offset),
            Base::AtStack => self.word(at.stack)?.wrapping_add_signed(offset),
            Base::AtFrame => self.word(at.frame.wrapping_add_signed(offset))?,
            Base::Undefined if row.kind == Kind::End => return Ok(Caller::End),
            _ => return Ok(Caller::Unknown),
        };
        let number = |field| self.number(stack, field);
        let (mut next, is_return_address) = match row.kind {
            Kind::Call => {
                let instruction = self.word(stack.wrapping_sub(8))?;
                (Registers { instruction, stack, ..at }, true)
            }
            Kind::Registers | Kind::Exception => {
                // The five words of an exception are the last five of all registers.
                let base = if row.kind == Kind::Registers {
                    stack
                } else {
                    stack.wrapping_sub(layout.registers_ip.offset())
                };
                let of = |field| self.number(base, field);
                let is_user = of(layout.registers_cs)? & 3 == 3;
                if is_user {
                    return Ok(Caller::End);
                }
                let frame = if row.kind == Kind::Registers { number(layout.registers_bp)? } else { at.frame };
                let (instruction, stack) = (of(layout.registers_ip)?, of(layout.registers_sp)?);
                (Registers { instruction, stack, frame, is_user }, false)
            }
            Kind::End => return Ok(Caller::End),
            Kind::Unknown => return Ok(Caller::Unknown),
        };
        if row.kind == Kind::Call || row.kind == Kind::Exception {
            let offset = i64::from(row.frame_offset);
            next.frame = match row.frame {
                Base::CallersStack => self.word(stack.wrapping_add_signed(offset))?,
                Base::Frame => self.word(at.frame.wrapping_add_signed(offset))?,
                _ => at.frame,
            };
        }
        Ok(Caller::Frame { registers: next, is_return_address })
    }
}

/// Result of one unwinding step.
enum Caller {
    /// Registers of the caller. `is_return_address` is true if its address is that of the instruction after a call.
    Frame { registers: Registers, is_return_address: bool },
    /// The stack ends here, as it should.
    End,
    /// The tables do not say.
    Unknown,
}
