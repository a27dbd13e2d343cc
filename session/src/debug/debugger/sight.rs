//! Focus of the user, and place at which the timeline stands.

use everett_inspect::task::{Process, Thread};
use everett_inspect::{Guest, Kernel};

use super::answer::{Answer, Focus, Reason, Stopped, ThreadName};
use super::error::Refused;
use super::text::line;
use super::{At, Debugger};
use crate::debug::cursor::Cursor;
use crate::debug::cursor::position::Position;
use crate::inside::machine::{MachineRam, registers};
use crate::probes::code::View;

impl Debugger<'_> {
    /// Returns where the timeline stands, as a position of the node at whose instruction it is. Without such a node, the
    /// last position of all nodes.
    pub(super) fn place(&self) -> Position {
        match self.at {
            At::Node(node) => self.cursor.position(node),
            _ => {
                let all = (0..self.nodes.len()).map(|node| self.cursor.position(node));
                all.max().unwrap_or_else(|| self.cursor.position(0))
            }
        }
    }

    /// Returns the number of entries that have happened here.
    pub(super) fn passed(&self) -> usize {
        match self.at {
            At::Entry(n) => n + 1,
            _ => self.index.until(self.vtime()),
        }
    }

    /// Returns the processes of a node.
    pub(super) fn processes_of(&self, node: usize) -> Result<Vec<Process>, everett_inspect::Error> {
        let ram = MachineRam(self.cursor.timeline().machine(node));
        Guest::new(self.kernel, &ram)?.processes()
    }

    /// Finds the process in focus, and its thread that runs or its first one. `None` if the CPU is in focus.
    pub(super) fn thread(&self) -> anyhow::Result<Option<(Process, Thread)>> {
        let Some(pid) = self.pid else { return Ok(None) };
        let node = &self.nodes[self.node];
        let processes = self.processes_of(self.node).map_err(|error| {
            Refused::because(format!("{node}: {}", everett_input::causes::with_causes(&error)))
        })?;
        let process = processes.into_iter().find(|process| process.pid == pid && process.mm.is_some());
        let process = process.ok_or_else(|| {
            Refused::because(format!("process {pid} does not run a program on {node} at this instant"))
        })?;
        let ram = MachineRam(self.cursor.timeline().machine(self.node));
        let running = Guest::new(self.kernel, &ram).and_then(|guest| guest.running());
        let running = running.ok().filter(|running| running.pid == pid);
        let thread = process.threads.iter().find(|thread| Some(thread.tid) == running.map(|it| it.tid));
        let thread = thread.or_else(|| process.threads.first()).cloned();
        let thread = thread.ok_or_else(|| Refused::because(format!("process {pid} has no threads")))?;
        Ok(Some((process, thread)))
    }

    /// Sets or shows the focus.
    pub(super) fn focus(&mut self, wanted: Option<&str>) -> anyhow::Result<Answer> {
        if let Some(wanted) = wanted {
            (self.node, self.pid) = self.sought(wanted)?;
        }
        let node = self.nodes[self.node].clone();
        let process = self.thread().ok().flatten();
        let process = process.and_then(|(process, _)| Some(process.threads.first()?.name.clone()));
        Ok(Answer::Focus(Focus { node, pid: self.pid, process }))
    }

    /// Finds what `NODE`, `NODE:PROCESS` or `PROCESS` names. A process is named by its ID or its name.
    pub(super) fn sought(&self, wanted: &str) -> anyhow::Result<(usize, Option<u32>)> {
        let is_node = self.nodes.iter().any(|node| node == wanted);
        let (nodes, process) = match wanted.split_once(':') {
            Some((node, process)) => (vec![self.node_named(node)?], process),
            None if is_node => return Ok((self.node_named(wanted)?, None)),
            None => ((0..self.nodes.len()).collect(), wanted),
        };
        let mut found: Vec<(usize, u32)> = Vec::new();
        for node in nodes {
            let processes = self.processes_of(node).unwrap_or_default();
            let is_wanted = |of: &&Process| {
                let name = of.threads.first().is_some_and(|thread| thread.name == process);
                of.mm.is_some() && (name || of.pid.to_string() == process)
            };
            found.extend(processes.iter().filter(is_wanted).map(|process| (node, process.pid)));
        }
        // Several nodes have the same programs. The node in focus comes first.
        let here: Vec<_> = found.iter().copied().filter(|(node, _)| *node == self.node).collect();
        let found = if here.is_empty() { found } else { here };
        match found[..] {
            [] => Err(Refused::because(format!("no machine that can be read runs a program {process} here"))),
            [(node, pid)] => Ok((node, Some(pid))),
            _ => {
                let name = |(node, pid): &(usize, u32)| format!("{}:{pid}", self.nodes[*node]);
                let all: Vec<String> = found.iter().map(name).collect();
                Err(Refused::because(format!("several processes are named {process}: {}", all.join(", "))))
            }
        }
    }

    /// Returns the next instruction of a node: address, function and source line, as far as they are known.
    fn instruction(&self, node: usize) -> String {
        let rip = self.cursor.timeline().machine(node).cpu().rip;
        let running = running(self.kernel, &self.cursor, node);
        if let (Some((process, thread, true)), Some(code)) = (&running, &self.code) {
            let view = View { timeline: self.cursor.timeline(), node, thread: Some((process, thread)) };
            let frame = code.frames(view).ok().and_then(|(frames, _)| frames.into_iter().next());
            return match frame {
                // The frame names the function around inlined calls.
                Some(frame) if frame.source.len() > 1 => format!("{} (inlined)  {frame}", frame.source[0]),
                Some(frame) => frame.to_string(),
                None => format!("{rip:#x}"),
            };
        }
        let is_user = registers(&self.cursor.timeline().machine(node).cpu()).registers.unwinding().is_user;
        if is_user { format!("{rip:#x}") } else { self.kernel.symbols().show(rip).to_string() }
    }

    /// Says where the timeline stands, and why.
    pub(super) fn stopped_at(&self, reason: Reason) -> Stopped {
        let mut stopped = Stopped {
            reason,
            vtime_ns: self.vtime(),
            breakpoint: None,
            entry: None,
            node: None,
            thread: None,
            place: None,
            text: None,
        };
        match self.at {
            At::Vtime => {}
            At::Entry(n) => stopped.entry = self.index.entries().get(n).map(|entry| line(entry, &self.nodes)),
            At::Node(node) => {
                stopped.node = Some(self.nodes[node].clone());
                stopped.place = Some(self.instruction(node));
                stopped.thread =
                    running(self.kernel, &self.cursor, node).map(|(process, thread, _)| ThreadName {
                        pid: process.pid,
                        tid: thread.tid,
                        process: process.threads.first().map(|first| first.name.clone()).unwrap_or_default(),
                    });
            }
        }
        stopped
    }

    pub(super) fn stopped(&self, reason: Reason) -> Answer {
        Answer::Stopped(Box::new(self.stopped_at(reason)))
    }
}

/// Returns the process and the thread that run on a node's CPU, and true if the CPU is in user mode. `None` if they cannot
/// be read, or if the CPU is idle.
pub(super) fn running(kernel: &Kernel, cursor: &Cursor<'_>, node: usize) -> Option<(Process, Thread, bool)> {
    let machine = cursor.timeline().machine(node);
    let (ram, is_user) = (MachineRam(machine), registers(&machine.cpu()).registers.unwinding().is_user);
    let guest = Guest::new(kernel, &ram).ok()?;
    let (running, process) = (guest.running().ok()?, guest.running_process().ok()??);
    let thread = process.threads.iter().find(|thread| thread.tid == running.tid)?.clone();
    Some((process, thread, is_user))
}
