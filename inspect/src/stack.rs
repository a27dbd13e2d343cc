//! Stacks of the kernel, and the registers with which a thread entered it.
//!
//! A thread that does not run has its registers on its kernel stack: those of the kernel where the scheduler switched
//! away, and at the top those of the program, where the thread entered the kernel. Frames of the kernel are unwound with
//! the kernel's own tables ([`Orc`](everett_symbols::kernel::orc::Orc)).

use everett_symbols::kernel::orc::{Base, Kind, Row};

use crate::limits::FRAMES_MAX;
use crate::task::Thread;
use crate::{Error, Guest};

/// Length of a thread's kernel stack, in bytes (`THREAD_SIZE` on x86-64).
const STACK_BYTES: u64 = 16 << 10;

/// Unused bytes at the top of a kernel stack (`TOP_OF_KERNEL_STACK_PADDING`): kernels built for FRED have 16.
const PADDINGS: [u64; 2] = [0, 16];
/// Code segments of programs: 64 bits and 32 bits (`__USER_CS`, `__USER32_CS`).
const USER_SEGMENTS: [u64; 2] = [0x33, 0x23];

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

/// Stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Addresses of the kernel's code, from the innermost frame outwards. Empty if the thread runs in user mode.
    pub kernel: Vec<u64>,
    /// True if the frames of the kernel reach the start of the thread or its entry into the kernel. Otherwise the
    /// innermost frames are correct, and outer ones are missing, for example those before a frame of a loadable module.
    pub is_complete: bool,
    /// Registers of the program. `None` for threads of the kernel.
    pub user: Option<Registers>,
}

impl Guest<'_> {
    /// Returns the stack of a thread. `cpu` are the registers of the machine's CPU.
    ///
    /// # Errors
    /// Returns an error if the thread's structures cannot be read.
    pub fn stack(&self, thread: &Thread, is_of_process: bool, cpu: Registers) -> Result<Stack, Error> {
        self.stack_of(thread.task, is_of_process, cpu).map_err(Error::reading("the stack of a thread"))
    }

    fn stack_of(&self, task: u64, is_of_process: bool, cpu: Registers) -> Result<Stack, Error> {
        let runs = self.current()? == task;
        if runs && cpu.is_user {
            return Ok(Stack { kernel: Vec::new(), is_complete: true, user: Some(cpu) });
        }
        let user = if is_of_process { Some(self.entry(task)?) } else { None };
        let start = if runs { cpu } else { self.switched(task)? };
        let (kernel, is_complete) = self.unwind(start, !runs);
        Ok(Stack { kernel, is_complete, user })
    }

    /// Returns the address of the task that runs on the CPU.
    fn current(&self) -> Result<u64, Error> {
        let area = self.word(self.kernel.symbol("__per_cpu_offset")?)?;
        // Linux 6.2 to 6.14 have the pointer in a structure.
        match (self.kernel.symbols().value("pcpu_hot"), self.kernel.layout.hot_task) {
            (Some(hot), Some(field)) => self.number(area.wrapping_add(hot), field),
            _ => self.word(area.wrapping_add(self.kernel.symbol("current_task")?)),
        }
    }

    /// Returns the registers with which the thread entered the kernel the first time, i.e. from its program.
    fn entry(&self, task: u64) -> Result<Registers, Error> {
        let layout = &self.kernel.layout;
        let top = self.number(task, layout.task_stack)?.wrapping_add(STACK_BYTES);
        let mut found = None;
        for padding in PADDINGS {
            let at = top.wrapping_sub(layout.registers_bytes + padding);
            if USER_SEGMENTS.contains(&(self.number(at, layout.registers_cs)? & 0xffff)) {
                found = found.or(Some(at));
            }
        }
        let registers = found.ok_or(Error::NoUserRegisters)?;
        let number = |field| self.number(registers, field);
        Ok(Registers {
            instruction: number(layout.registers_ip)?,
            stack: number(layout.registers_sp)?,
            frame: number(layout.registers_bp)?,
            is_user: true,
        })
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

    /// Returns the code addresses of the frames from `registers` on, and true if the stack ends as it should.
    /// `is_after_call` is true if the first address is a return address.
    fn unwind(&self, registers: Registers, is_after_call: bool) -> (Vec<u64>, bool) {
        let mut at = registers;
        let mut is_return = is_after_call;
        let mut frames = Vec::new();
        while frames.len() < FRAMES_MAX {
            frames.push(at.instruction);
            // A return address can lie after the end of the calling function.
            let within = if is_return { at.instruction.wrapping_sub(1) } else { at.instruction };
            let Some(row) = self.kernel.orc.as_ref().and_then(|orc| orc.row(within)) else {
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
            Base::Undefined if row.kind == Kind::End || row.kind == Kind::Call => return Ok(Caller::End),
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
