//! Commands that look at machines and at what happened.

use everett_input::causes::with_causes;
use everett_inspect::module::Modules;
use everett_inspect::task::{Process, Thread};
use everett_inspect::{Error, Guest};

use super::answer::{Answer, NodeProcesses, ProcessLine, ThreadStack, Variable};
use super::entry::Kind;
use super::error::Refused;
use super::limits::{LISTED_MAX, MEMORY_BYTES_MAX, THREADS_MAX};
use super::text::line;
use super::{At, Debugger};
use crate::explore::marks::short;
use crate::inside::machine::{MachineRam, registers};
use crate::probes::code::{Code, Unknown, View};
use crate::probes::expression::Expression;

impl<'d> Debugger<'d> {
    /// Lists the processes of all nodes. Without `all`, those of the kernel and those that have ended are left out.
    pub(super) fn processes(&self, all: bool) -> Answer {
        let of_node = |(node, name): (usize, &String)| {
            let (processes, error) = match self.processes_of(node) {
                Ok(processes) => (processes, None),
                Err(error) => (Vec::new(), Some(with_causes(&error))),
            };
            let line = |process: Process| {
                let first = process.threads.first()?;
                Some(ProcessLine {
                    pid: process.pid,
                    parent: process.parent,
                    user: process.user,
                    state: first.state.letter(),
                    name: first.name.clone(),
                    command: process.command.clone(),
                })
            };
            let processes = processes.into_iter().filter(|process| all || process.mm.is_some());
            let processes = processes.filter_map(line).collect();
            NodeProcesses { node: name.clone(), processes, error }
        };
        Answer::Processes { nodes: self.nodes.iter().enumerate().map(of_node).collect() }
    }

    /// Prints the stacks of a process, or of all programs of the node in focus.
    pub(super) fn stack(&mut self, wanted: Option<&str>) -> anyhow::Result<Answer> {
        let (node, pid) = match wanted {
            Some(wanted) => self.sought(wanted)?,
            None => (self.node, self.pid),
        };
        let refuse =
            |error: Error| Refused::because(format!("{}: {}", self.nodes[node], with_causes(&error)));
        let processes = self.processes_of(node).map_err(refuse)?;
        let mut threads = Vec::new();
        let modules = {
            let ram = MachineRam(self.cursor.timeline().machine(node));
            // Stacks without frames in modules can still be read.
            Guest::new(self.kernel, &ram).and_then(|guest| guest.modules()).unwrap_or_default()
        };
        for process in processes {
            if process.mm.is_none() || pid.is_some_and(|pid| pid != process.pid) {
                continue;
            }
            for thread in &process.threads {
                if threads.len() >= THREADS_MAX {
                    return Err(Refused::because(format!(
                        "there are over {THREADS_MAX} threads; name a process"
                    )));
                }
                threads.push(self.stack_of(node, &process, thread, &modules));
            }
        }
        match pid {
            Some(pid) if threads.is_empty() => {
                let node = &self.nodes[node];
                Err(Refused::because(format!(
                    "process {pid} does not run a program on {node} at this instant"
                )))
            }
            _ => Ok(Answer::Stacks { threads }),
        }
    }

    fn stack_of(&self, node: usize, process: &Process, thread: &Thread, modules: &Modules) -> ThreadStack {
        let machine = self.cursor.timeline().machine(node);
        let mut found = ThreadStack {
            node: self.nodes[node].clone(),
            pid: process.pid,
            tid: thread.tid,
            name: thread.name.clone(),
            state: thread.state.letter(),
            kernel: Vec::new(),
            kernel_complete: false,
            user: Vec::new(),
            user_complete: false,
            error: None,
        };
        let (ram, cpu) = (MachineRam(machine), registers(&machine.cpu()));
        let stack =
            Guest::new(self.kernel, &ram).and_then(|guest| guest.stack(process, thread, &cpu, modules));
        match stack {
            Ok(stack) => {
                let symbols = self.kernel.symbols();
                let name =
                    |frame: &everett_inspect::stack::KernelFrame| frame.named(symbols, modules).to_string();
                found.kernel = stack.kernel.iter().map(name).collect();
                found.kernel_complete = stack.is_complete;
            }
            Err(error) => found.error = Some(with_causes(&error)),
        }
        let view = View { timeline: self.cursor.timeline(), node, thread: Some((process, thread)) };
        if let Some(code) = &self.code {
            match code.frames(view) {
                Ok((frames, is_whole)) => (found.user, found.user_complete) = (frames, is_whole),
                Err(error) => found.error = Some(with_causes(&error)),
            }
        }
        found
    }

    /// Calls `look` with the programs that ran, and with what is in focus.
    pub(super) fn look<T>(&mut self, look: impl FnOnce(&mut Code<'d>, View<'_>) -> T) -> anyhow::Result<T> {
        let focused = self.thread()?;
        let Some(code) = &mut self.code else { return Err(no_breakpoints()) };
        let thread = focused.as_ref().map(|(process, thread)| (process, thread));
        Ok(look(code, View { timeline: self.cursor.timeline(), node: self.node, thread }))
    }

    pub(super) fn print(&mut self, expression: &Expression, text: &str) -> anyhow::Result<Answer> {
        let value = self.look(|code, view| code.value(view, expression))?;
        let (value, absent) = match value {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(with_causes(&error))),
        };
        Ok(Answer::Value { expression: text.to_owned(), value, absent })
    }

    pub(super) fn memory(&mut self, expression: &Expression, count: usize) -> anyhow::Result<Answer> {
        let count = count.min(MEMORY_BYTES_MAX);
        let read = self.look(|code, view| -> Result<_, Unknown> {
            let address = code.address(view, expression)?;
            let mut bytes = Vec::new();
            let mut at = address;
            while bytes.len() < count {
                let mut some = vec![0; count - bytes.len()];
                let read = code.read(view, at, &mut some)?;
                bytes.extend(some[..read].iter().map(|byte| format!("{byte:02x}")));
                if bytes.len() < count {
                    // The rest of the page is not mapped.
                    let page = (at.wrapping_add(read as u64) & 0xfff) as usize;
                    let missing = (0x1000 - page).min(count - bytes.len());
                    bytes.extend(std::iter::repeat_n("??".to_owned(), missing));
                }
                at = address.wrapping_add(bytes.len() as u64);
            }
            Ok((address, bytes))
        })?;
        let (address, bytes) = read.map_err(|error| Refused::because(with_causes(&error)))?;
        Ok(Answer::Memory { address: format!("{address:#x}"), bytes })
    }

    pub(super) fn last(&self, kind: Kind, count: usize) -> Answer {
        let found = self.index.last_of(self.passed(), kind, count.min(LISTED_MAX));
        let entries = found.into_iter().filter_map(|n| self.index.entries().get(n));
        let note = self.unlisted().filter(|_| kind != Kind::Finding);
        Answer::Entries { entries: entries.map(|entry| line(entry, &self.nodes)).collect(), note }
    }

    pub(super) fn source(&mut self) -> anyhow::Result<Answer> {
        if self.pid.is_none() {
            return Err(no_process());
        }
        let frames = self.look(|code, view| code.frames(view))?;
        let (frames, _) = frames.map_err(|error| Refused::because(with_causes(&error)))?;
        Ok(Answer::Source { frames })
    }

    pub(super) fn state(&self) -> Answer {
        let state = self.index.state(self.passed());
        let variable = |((node, variable), value)| Variable { node, variable, value };
        let variables = state.into_iter().map(variable).collect();
        Answer::State { variables, note: self.unlisted(), probes: self.probe_variables() }
    }

    /// Returns the names of the state variables that probes set. They are not listed.
    pub(super) fn probe_variables(&self) -> Vec<String> {
        let probes = self.setting.launcher.world.probes.iter();
        probes.filter(|probe| probe.state.is_some()).map(|probe| probe.name.clone()).collect()
    }

    pub(super) fn digest(&mut self) -> Answer {
        let vtime_ns = self.vtime();
        let is_at_vtime = !matches!(self.at, At::Node(_));
        let recorded = self.recorded.marks.get(&vtime_ns).filter(|_| is_at_vtime).cloned();
        Answer::Digest { vtime_ns, digest: short(self.cursor.digest()), recorded }
    }
}

/// Returns the error of an engine that cannot observe instructions.
pub(super) fn no_breakpoints() -> anyhow::Error {
    Refused::because(
        "/dev/kvm cannot observe single instructions; use --engine soft, which runs the same branches",
    )
}

/// Returns the error of a command that needs a process in focus.
pub(super) fn no_process() -> anyhow::Error {
    Refused::because("no process is in focus; choose one with: focus NODE:PROCESS")
}
