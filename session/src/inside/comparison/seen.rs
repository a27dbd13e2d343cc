//! Facts about a guest's processes, read from its memory.

use std::collections::{BTreeMap, BTreeSet};

use everett_input::causes::with_causes;
use everett_inspect::module::Modules;
use everett_inspect::registers::CpuRegisters;
use everett_inspect::stack::KernelFrame;
use everett_inspect::task::{Process, Thread};
use everett_inspect::{Error, Guest, Kernel};
use everett_vmm::Machine;

use super::super::machine::{MachineRam, registers};
use super::fact::{Facts, Part, plain_name};
use super::told::{command_line, thread_line};

/// Maximum number of frames of a stack that the kernel states (`MAX_STACK_TRACE_DEPTH`).
const FRAMES_TOLD: usize = 64;

/// Facts about a guest's processes at several instants.
#[derive(Default)]
pub(super) struct Seen {
    /// All values that a fact had.
    pub(super) facts: BTreeMap<(u32, Part), BTreeSet<String>>,
    /// Processes that were there at the first instant.
    pub(super) first: BTreeSet<u32>,
    /// Processes that were there at any instant.
    pub(super) ever: BTreeSet<u32>,
    /// Processes that were there at all instants.
    pub(super) always: BTreeSet<u32>,
    /// Length of all facts, in bytes.
    pub(super) bytes: usize,
    /// Number of instants.
    pub(super) instants: u64,
    /// The kernel's modules at the first instant.
    pub(super) modules: Modules,
}

impl Seen {
    /// Looks at the processes of a machine.
    pub(super) fn look(&mut self, kernel: &Kernel, machine: &Machine) -> Result<(), Error> {
        let ram = MachineRam(machine);
        let guest = Guest::new(kernel, &ram)?;
        let processes = guest.processes()?;
        let present: BTreeSet<u32> = processes.iter().map(|process| process.pid).collect();
        self.ever.extend(&present);
        if self.instants == 0 {
            (self.first, self.always) = (present.clone(), present);
            self.modules = guest.modules()?;
        } else {
            self.always.retain(|pid| present.contains(pid));
        }
        self.instants += 1;
        let look = Look { guest, kernel, modules: &self.modules, cpu: registers(&machine.cpu()) };
        let mut facts = Facts::new();
        for process in &processes {
            look.process(process, &mut facts);
        }
        for (key, fact) in facts {
            let bytes = fact.len();
            if self.facts.entry(key).or_default().insert(fact) {
                self.bytes += bytes;
            }
        }
        Ok(())
    }
}

/// A look at a guest.
struct Look<'g> {
    guest: Guest<'g>,
    kernel: &'g Kernel,
    modules: &'g Modules,
    cpu: CpuRegisters,
}

impl Look<'_> {
    fn process(&self, process: &Process, facts: &mut Facts) {
        let Some(first) = process.threads.first() else { return };
        let mut state = |part, fact| facts.insert((process.pid, part), fact);
        let (name, letter) = (plain_name(&first.name), first.state.letter());
        state(Part::Status, format!("{name} {letter} {}", process.parent));
        state(Part::User, process.user.to_string());
        state(Part::Command, command_line(&process.command));
        let mut threads: Vec<String> =
            process.threads.iter().map(|thread| thread_line(thread.tid, &thread.name)).collect();
        threads.sort();
        state(Part::Threads, threads.join("\n"));
        let lines = self.guest.mappings(process).map(|mappings| {
            mappings
                .iter()
                .map(|mapping| mapping.to_string().trim_end().to_owned())
                .collect::<Vec<_>>()
                .join("\n")
        });
        state(Part::Mappings, lines.unwrap_or_else(|error| with_causes(&error)));
        for thread in &process.threads {
            let (frames, entry) =
                self.stack(process, thread).unwrap_or_else(|error| (with_causes(&error), None));
            state(Part::Stack(thread.tid), frames);
            if let Some(entry) = entry {
                state(Part::Entry(thread.tid), entry);
            }
        }
    }

    /// Returns the frames of a thread's kernel stack, and the place at which it entered the kernel.
    fn stack(&self, process: &Process, thread: &Thread) -> Result<(String, Option<String>), Error> {
        let stack = self.guest.stack(process, thread, &self.cpu, self.modules)?;
        let value = |name| self.kernel.address_of(name).unwrap_or(0);
        let sleeps = value("__sched_text_start")..value("__sched_text_end");
        let mut frames: Vec<String> = Vec::new();
        for frame in stack.kernel.iter().filter(|frame| !sleeps.contains(&frame.address)) {
            // The kernel takes all addresses of a stack for return addresses.
            let frame = KernelFrame { is_return: true, ..*frame };
            let shown = frame.named(self.kernel.symbols(), self.modules).to_string();
            // The address is in front of the name.
            frames.push(match shown.split_once(" (") {
                Some((_, name)) => name.trim_end_matches(')').to_owned(),
                None => shown,
            });
        }
        if !stack.is_complete {
            frames.push("further frames are unknown".to_owned());
        }
        frames.truncate(FRAMES_TOLD);
        let entry = stack.user.map(|user| format!("{:#x} {:#x}", user.instruction, user.stack));
        Ok((frames.join("\n"), entry))
    }
}
