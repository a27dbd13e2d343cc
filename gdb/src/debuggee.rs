//! The process or kernel that gdb debugs, at the instant where the timeline is.

use std::collections::BTreeSet;

use everett_cpu::Watchpoint;
use everett_cpu::state::seg;
use everett_inspect::floating::FloatingRegisters;
use everett_inspect::program_stack::Files;
use everett_inspect::registers::{CpuRegisters, ProgramRegisters};
use everett_inspect::stack::Running;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_session::debug::cursor::Cursor;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::inside::unmapped;

use crate::Error;

/// Process or kernel that gdb debugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The kernel of the node, with its CPU as the only thread.
    Kernel,
    /// The process with this ID.
    Process(u32),
}

/// A node of a timeline, as gdb sees it.
pub struct Debuggee<'d, 's> {
    pub(crate) cursor: &'d mut Cursor<'s>,
    pub(crate) view: View<'d>,
    /// Programs and libraries of the node's image.
    files: Option<&'d dyn Files>,
}

/// Process or kernel that gdb debugs, with breakpoints and watchpoints.
pub(crate) struct View<'d> {
    kernel: &'d Kernel,
    pub(crate) node: usize,
    pub(crate) subject: Subject,
    pub(crate) breakpoints: BTreeSet<u64>,
    pub(crate) watchpoints: Vec<Watchpoint>,
}

impl<'d, 's> Debuggee<'d, 's> {
    /// Returns the debuggee `subject` on a node, without breakpoints. `files` are the programs and libraries of the
    /// node's image.
    ///
    /// # Errors
    /// Returns an error if the engine has no breakpoints.
    pub fn new(
        cursor: &'d mut Cursor<'s>,
        kernel: &'d Kernel,
        files: Option<&'d dyn Files>,
        node: usize,
        subject: Subject,
    ) -> Result<Debuggee<'d, 's>, Error> {
        if !cursor.set_breakpoints(node, &[]) {
            return Err(Error::Engine);
        }
        let (breakpoints, watchpoints) = (BTreeSet::new(), Vec::new());
        Ok(Debuggee { cursor, view: View { kernel, node, subject, breakpoints, watchpoints }, files })
    }

    /// Returns the process that gdb looks at. `None` if it does not exist at this instant, if it cannot be read, or if gdb
    /// looks at the kernel.
    #[must_use]
    pub fn process(&self) -> Option<Process> {
        self.view.process(self.cursor).ok()?
    }

    /// Returns the threads, by their IDs. The kernel has one, with the ID 1. Empty if the process does not exist. If it
    /// cannot be read, only its first thread, which has the process's ID, is known.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        match self.view.subject {
            Subject::Kernel => vec![1],
            Subject::Process(pid) => match self.view.process(self.cursor) {
                Ok(Some(process)) => process.threads.iter().map(|thread| thread.tid).collect(),
                Ok(None) => Vec::new(),
                Err(_) => vec![pid],
            },
        }
    }

    /// Returns the name of a thread.
    #[must_use]
    pub fn name(&self, tid: u32) -> Option<String> {
        let process = self.process()?;
        process.threads.into_iter().find(|thread| thread.tid == tid).map(|thread| thread.name)
    }

    /// Returns the registers of a thread. `None` if they cannot be read.
    #[must_use]
    pub fn registers(&self, tid: u32) -> Option<ProgramRegisters> {
        if self.view.subject == Subject::Kernel {
            return Some(registers(&self.cursor.timeline().machine(self.view.node).cpu()).registers);
        }
        let process = self.process()?;
        let thread = process.threads.iter().find(|thread| thread.tid == tid)?;
        self.view.look(self.cursor, |guest, cpu| guest.program_registers(&process, thread, cpu)).ok()
    }

    /// True if the CPU of the node has AVX.
    #[must_use]
    pub fn has_avx(&self) -> bool {
        self.cursor.timeline().machine(self.view.node).cpu_model().is_v3()
    }

    /// Returns the x87, SSE and AVX registers of a thread, or those of the CPU for the kernel. `None` if they are not known.
    #[must_use]
    pub fn floating_registers(&self, tid: u32) -> Option<FloatingRegisters> {
        if self.view.subject == Subject::Kernel {
            return Some(registers(&self.cursor.timeline().machine(self.view.node).cpu()).floating);
        }
        let process = self.process()?;
        let thread = process.threads.iter().find(|thread| thread.tid == tid)?;
        self.view.look(self.cursor, |guest, cpu| guest.floating_registers(thread, cpu)).ok()?
    }

    /// Copies memory, up to the first byte that is not mapped. Returns the number of copied bytes.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        if self.view.subject == Subject::Kernel {
            return self.cursor.timeline().machine(self.view.node).read_virtual(address, into);
        }
        let Some(process) = self.process() else { return 0 };
        let read = self.view.look(self.cursor, |guest, _| {
            let Some(memory) = guest.memory_of_process(&process)? else { return Ok(0) };
            let mut done = 0;
            while done < into.len() {
                let Some(at) = address.checked_add(done as u64) else { break };
                let rest = &mut into[done..];
                let more = match (memory.read_some(at, rest), self.files) {
                    (0, Some(files)) => unmapped::read(guest, &process, files, at, rest)?,
                    (more, _) => more,
                };
                if more == 0 {
                    break;
                }
                done += more;
            }
            Ok(done)
        });
        read.unwrap_or(0)
    }

    /// Returns the auxiliary vector of the process, as the kernel gave it to the program.
    #[must_use]
    pub fn auxiliary(&self) -> Option<Vec<u8>> {
        let process = self.process()?;
        self.view.look(self.cursor, |guest, _| guest.auxiliary_bytes(&process)).ok()?
    }

    /// True if the CPU executes this thread in user mode.
    pub(crate) fn is_in_user_mode(&self, tid: u32) -> bool {
        self.view.running(self.cursor).is_some_and(|(running, is_user)| is_user && running.tid == tid)
    }
}

impl View<'_> {
    /// Calls `look` with the guest and the registers of its CPU.
    fn look<T>(
        &self,
        cursor: &Cursor<'_>,
        look: impl FnOnce(&Guest<'_>, &CpuRegisters) -> Result<T, everett_inspect::Error>,
    ) -> Result<T, everett_inspect::Error> {
        let machine = cursor.timeline().machine(self.node);
        let ram = MachineRam(machine);
        look(&Guest::new(self.kernel, &ram)?, &registers(&machine.cpu()))
    }

    fn process(&self, cursor: &Cursor<'_>) -> Result<Option<Process>, everett_inspect::Error> {
        let Subject::Process(pid) = self.subject else { return Ok(None) };
        let processes = self.look(cursor, |guest, _| guest.processes())?;
        Ok(processes.into_iter().find(|process| process.pid == pid && process.mm.is_some()))
    }

    /// Returns the thread that runs on the CPU, and true if the CPU is in user mode. `None` if it cannot be read.
    pub(crate) fn running(&self, cursor: &Cursor<'_>) -> Option<(Running, bool)> {
        let segment = &cursor.timeline().machine(self.node).cpu().seg[seg::CS];
        let running = self.look(cursor, |guest, _| guest.running()).ok()?;
        Some((running, segment.selector & 3 == 3))
    }
}
