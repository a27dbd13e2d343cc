//! The running thread with its stack.

use everett_inspect::Guest;

use super::Search;
use super::step::ThreadStack;
use crate::inside::machine::{MachineRam, registers};

impl Search<'_, '_> {
    /// Returns the thread that runs on a node where the cursor is. `None` if it cannot be read, or if the CPU is idle.
    pub(super) fn thread(&self, node: usize) -> Option<ThreadStack> {
        let machine = self.cursor.timeline().machine(node);
        let ram = MachineRam(machine);
        let cpu = registers(&machine.cpu());
        let guest = Guest::new(self.kernel, &ram).ok()?;
        let running = guest.running().ok()?;
        let processes = guest.processes().ok()?;
        let process = processes.iter().find(|process| process.pid == running.pid)?;
        let thread = process.threads.iter().find(|thread| thread.tid == running.tid)?;
        let modules = guest.modules().unwrap_or_default();
        let stack = guest.stack(process, thread, &cpu, &modules).ok()?;
        let symbols = self.kernel.symbols();
        let kernel = stack.kernel.iter().map(|frame| frame.named(symbols, &modules).to_string()).collect();
        let programs = self.files.get(node).and_then(|files| guest.program_stacks(process, files).ok()?);
        let (user, user_complete) = match (programs, stack.user) {
            (Some(mut programs), Some(user)) => programs.frames(user),
            (None, Some(_)) => (Vec::new(), false),
            (_, None) => (Vec::new(), true),
        };
        Some(ThreadStack {
            pid: running.pid,
            tid: running.tid,
            name: thread.name.clone(),
            kernel,
            kernel_complete: stack.is_complete,
            user,
            user_complete,
        })
    }
}
