//! Observer of a branch: places probes, and collects their hits.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use everett_inspect::Guest;
use everett_inspect::module::Modules;
use everett_inspect::registers::CpuRegisters;
use everett_inspect::task::Process;

use super::Probing;
use super::expression::evaluate::{is_true, value};
use super::format::plain;
use super::hit::{BranchHits, Count, Entry, Hit, HitStack, HitValue};
use super::limits::{HIT_BYTES_MAX, HITS_MAX};
use super::loaded::{Loaded, NodeSites, Seen, Site};
use super::probe::Probe;
use super::scene::HitScene;
use crate::explore::path_runner::Watch;
use crate::inside::machine::{MachineRam, registers};
use crate::world::event::{Event, What};
use crate::world::timeline::Timeline;

/// Flag of RFLAGS: the instruction has been interrupted by a fault of its own, and is now executed again.
const RESUME: u64 = 1 << 16;
/// Place of RIP and RFLAGS in the registers.
const RIP: usize = 16;
const RFLAGS: usize = 18;
/// Observer of a branch.
pub struct Observer<'p> {
    probing: &'p Probing<'p>,
    nodes: Vec<NodeSites>,
    pub(super) found: BranchHits,
    bytes: usize,
}

impl<'p> Observer<'p> {
    pub(super) fn new(probing: &'p Probing<'p>, branch: u64) -> Observer<'p> {
        let count = probing.probes.len();
        let found = BranchHits {
            branch,
            counts: vec![Count::default(); count],
            placed: vec![false; count],
            ..BranchHits::default()
        };
        Observer { probing, nodes: Vec::new(), found, bytes: 0 }
    }

    /// Sets the breakpoints of a node.
    fn set(&self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()> {
        let Some(sites) = self.nodes.get(node) else { return Ok(()) };
        let mut addresses: Vec<u64> = sites.addresses().collect();
        addresses.extend(self.probing.exec.filter(|_| self.probing.is_wanted(node)));
        if !timeline.machine_mut(node).set_breakpoints(&addresses) {
            bail!("this engine has no breakpoints; use --engine soft, which runs the same branches");
        }
        Ok(())
    }

    /// Calls `look` with the guest of a node. A guest that cannot be read is a problem, and the branch goes on.
    fn look<T>(
        &mut self,
        timeline: &Timeline,
        node: usize,
        look: impl FnOnce(&mut Self, &Guest<'_>) -> Result<T, everett_inspect::Error>,
    ) -> Option<T> {
        let ram = MachineRam(timeline.machine(node));
        match Guest::new(self.probing.kernel, &ram).and_then(|guest| look(self, &guest)) {
            Ok(result) => Some(result),
            Err(error) => {
                let name = timeline.machine(node).name();
                let why = format!("{name}: {}", everett_input::causes::with_causes(&error));
                self.found.problems.insert(why);
                None
            }
        }
    }

    /// Places the probes in a process's program.
    fn place(
        &mut self,
        guest: &Guest<'_>,
        node: usize,
        process: &Process,
    ) -> Result<Option<usize>, everett_inspect::Error> {
        let Probing { probes, programs, .. } = self.probing;
        let Some(sites) = self.nodes.get_mut(node) else { return Ok(None) };
        let mut seen = Seen { placed: &mut self.found.placed, problems: &mut self.found.problems };
        sites.program_of(guest, process, probes, (programs, node), &mut seen)
    }

    /// Takes the hits of all probes at the machine's next instruction.
    fn hits(&mut self, timeline: &Timeline, node: usize, cpu: &CpuRegisters) {
        let address = cpu.registers.0[RIP];
        let is_user = cpu.registers.unwinding().is_user;
        let Some(at) = self.nodes.get(node).and_then(|sites| sites.at(address)) else { return };
        let at: BTreeSet<Site> = at.iter().copied().filter(|site| site.loaded.is_some() == is_user).collect();
        if at.is_empty() {
            return;
        }
        let found = self.look(timeline, node, |observer, guest| {
            let running = guest.running()?;
            let process = guest.running_process()?;
            let program = match &process {
                Some(process) if is_user => observer.place(guest, node, process)?,
                _ => None,
            };
            Ok((running, process, program))
        });
        let Some((running, process, program)) = found else { return };
        let loaded = program.and_then(|index| self.nodes.get(node)?.program(index).cloned());
        if is_user && !loaded.as_ref().is_some_and(|loaded| self.is_code(timeline, node, loaded, address)) {
            return;
        }
        let probes = &self.probing.probes;
        for site in at.into_iter().filter(|site| site.loaded == program) {
            let Some(probe) = probes.get(site.probe) else { continue };
            let scene = HitScene {
                machine: timeline.machine(node),
                registers: cpu.registers,
                floating: Some(cpu.floating),
                kernel: self.probing.kernel,
                programs: &self.probing.programs,
                node,
                process: process.as_ref(),
                is_running: true,
                loaded: loaded.as_ref(),
            };
            let conditions = probe.condition.iter().chain(self.probing.condition);
            let all: Vec<_> = conditions.map(|condition| is_true(condition, &scene)).collect();
            let Some(count) = self.found.counts.get_mut(site.probe) else { continue };
            if all.contains(&Ok(false)) {
                continue;
            }
            if all.iter().any(Result::is_err) {
                count.undecided += 1;
                continue;
            }
            count.hits += 1;
            if probe.only_counts || self.probing.only_counts {
                continue;
            }
            if self.is_full() {
                self.found.left_out += 1;
                continue;
            }
            let (text, values) = shown(probe, &scene);
            let thread = process
                .as_ref()
                .and_then(|process| process.threads.iter().find(|thread| thread.tid == running.tid));
            let mut hit = Hit {
                probe: site.probe,
                vtime_ns: timeline.world().nodes()[node].vtime(),
                node,
                pid: running.pid,
                tid: running.tid,
                thread: thread.map_or_else(|| "swapper".to_owned(), |thread| thread.name.clone()),
                text,
                values,
                stack: None,
            };
            if let Some(process) = process.as_ref().filter(|_| probe.has_stack || self.probing.has_stack) {
                hit.stack = self.stack(timeline, node, process, running.tid, cpu);
            }
            let values: usize = hit.values.iter().map(|value| value.expression.len() + 64).sum();
            self.bytes += size_of::<Hit>() + 2 * hit.text.len() + values;
            self.found.entries.push(Entry::Hit(hit));
        }
    }

    fn is_full(&self) -> bool {
        self.found.entries.len() >= HITS_MAX || self.bytes >= HIT_BYTES_MAX
    }

    /// True if the code in memory is that of the program's file.
    fn is_code(&mut self, timeline: &Timeline, node: usize, loaded: &Loaded, address: u64) -> bool {
        let machine = timeline.machine(node);
        let is_within = (loaded.mapping.start..loaded.mapping.end).contains(&address);
        let is_code = loaded.has_code(machine, address);
        if is_within && !is_code {
            let path = &loaded.mapping.name;
            self.found.problems.insert(format!("{path}: its code in memory differs from the image's file"));
        }
        is_code
    }

    fn stack(
        &mut self,
        timeline: &Timeline,
        node: usize,
        process: &Process,
        tid: u32,
        cpu: &CpuRegisters,
    ) -> Option<HitStack> {
        let thread = process.threads.iter().find(|thread| thread.tid == tid)?;
        self.look(timeline, node, |observer, guest| {
            let modules = guest.modules().unwrap_or_default();
            let modules: &Modules = &modules;
            let stack = guest.stack(process, thread, cpu, modules)?;
            let symbols = observer.probing.kernel.symbols();
            let kernel = stack.kernel.iter().map(|frame| frame.named(symbols, modules).to_string()).collect();
            let user = observer.probing.programs.with(node, |programs| {
                let mut stacks = guest.program_stacks(process, programs.files())?;
                let frames = stacks.as_mut().zip(stack.user).map(|(stacks, user)| stacks.frames(user));
                Ok::<_, everett_inspect::Error>(frames)
            });
            let user = user.transpose()?.flatten();
            let (user, is_whole) = user.unwrap_or((Vec::new(), stack.user.is_none()));
            observer.bytes += user.len() * 256;
            Ok(HitStack { kernel, user, is_complete: stack.is_complete && is_whole })
        })
    }
}

/// Returns the values of a probe as text, and each one.
fn shown(probe: &Probe, scene: &HitScene<'_>) -> (String, Vec<HitValue>) {
    let values: Vec<_> = probe.values.iter().map(|(_, expression)| value(expression, scene)).collect();
    let each = probe.values.iter().zip(&values).map(|((expression, _), value)| {
        let shown = value.as_ref().map_err(Clone::clone).and_then(|value| plain(value, scene));
        let (value, absent) = match shown {
            Ok(value) => (Some(value), None),
            Err(absent) => (None, Some(absent.to_string())),
        };
        HitValue { expression: expression.clone(), value, absent }
    });
    let each: Vec<HitValue> = each.collect();
    let text = match &probe.format {
        Some(format) => format.text(&values, scene),
        None => {
            let all = each.iter().map(|value| {
                let shown = value.value.as_deref().or(value.absent.as_deref()).unwrap_or_default();
                format!("{}={shown}", value.expression)
            });
            all.collect::<Vec<String>>().join(" ")
        }
    };
    (text, each)
}

impl Watch for Observer<'_> {
    fn begins(&mut self, timeline: &mut Timeline) -> anyhow::Result<()> {
        let count = timeline.world().nodes().len();
        self.nodes = (0..count).map(|_| NodeSites::default()).collect();
        for node in 0..count {
            if self.probing.is_wanted(node) {
                for (probe, addresses) in &self.probing.in_kernel {
                    self.found.placed[*probe] = true;
                    self.nodes[node].add_kernel(*probe, addresses);
                }
                if self.probing.exec.is_some() && timeline.machine(node).end().is_none() {
                    self.look(timeline, node, |observer, guest| {
                        for process in guest.processes()? {
                            observer.place(guest, node, &process)?;
                        }
                        Ok(())
                    });
                }
            }
            self.set(timeline, node)?;
        }
        Ok(())
    }

    fn breakpoint(&mut self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()> {
        let cpu = registers(&timeline.machine(node).cpu());
        if cpu.registers.0[RFLAGS] & RESUME != 0 {
            return Ok(());
        }
        self.hits(timeline, node, &cpu);
        if self.probing.exec == Some(cpu.registers.0[RIP]) {
            // The running process has just loaded a program.
            self.look(timeline, node, |observer, guest| {
                let process = guest.running_process()?;
                if let (Some(process), Some(sites)) = (process, observer.nodes.get_mut(node)) {
                    sites.forget(process.pid);
                    observer.place(guest, node, &process)?;
                }
                Ok(())
            });
            self.set(timeline, node).context("a new program")?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) {
        if !self.probing.with_logs {
            return;
        }
        let is_line = match &event.what {
            What::Line { .. } => true,
            What::Kernel { text } => everett_explorer::property::trouble(text).is_some(),
            _ => false,
        };
        if !is_line {
            return;
        }
        if self.bytes >= HIT_BYTES_MAX {
            self.found.left_out += 1;
            return;
        }
        self.bytes += event.bytes();
        self.found.entries.push(Entry::Event(event.clone()));
    }

    fn at(&mut self, _: u64) -> bool {
        !(self.probing.stop)()
    }
}

/// The observed branch, with its hits in the order of their vtimes.
impl From<Observer<'_>> for BranchHits {
    fn from(observer: Observer<'_>) -> BranchHits {
        let mut found = observer.found;
        found.entries.sort_by_key(Entry::vtime_ns);
        found
    }
}
