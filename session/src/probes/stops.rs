//! Sets the breakpoints of a timeline, and finds the hits of probes.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use everett_inspect::module::Modules;
use everett_inspect::registers::{CpuRegisters, Registers};
use everett_inspect::task::Process;
use everett_inspect::{Error, Guest};

use super::expression::evaluate::{is_true, value};
use super::format::plain;
use super::hit::{Count, HitStack, HitValue};
use super::loaded::{Loaded, NodeSites, Seen, Site, note};
use super::probe::Probe;
use super::probing::Probing;
use super::scene::HitScene;
use crate::inside::machine::{MachineRam, registers};
use crate::world::timeline::Timeline;

/// Breakpoints of a timeline, and what was noted at them.
pub(crate) struct Stops {
    probing: Arc<Probing>,
    nodes: Vec<NodeSites>,
    /// Numbers of hits by probe.
    pub(crate) counts: Vec<Count>,
    /// True for each probe that was placed in a program.
    pub(crate) placed: Vec<bool>,
    /// Reasons why code was not probed.
    pub(crate) problems: BTreeSet<String>,
}

/// Receiver of hits.
pub(crate) trait Sink {
    /// Receives a hit whose conditions are true.
    fn hit(&mut self, hit: &SceneOfHit<'_>);
    /// Reports that a process has loaded a program.
    fn loaded(&mut self, _node: usize, _pid: u32) {}
}

/// A hit, while the machine stands there.
pub(crate) struct SceneOfHit<'h> {
    /// Number of the probe.
    pub(crate) probe: usize,
    /// World's vtime of the instruction, in nanoseconds.
    pub(crate) vtime_ns: u64,
    /// Number of the node.
    pub(crate) node: usize,
    /// Process ID. 0 if the CPU is idle.
    pub(crate) pid: u32,
    /// Thread ID.
    pub(crate) tid: u32,
    /// Machine and process of the hit, from which expressions read values.
    pub(super) scene: HitScene<'h>,
    cpu: &'h CpuRegisters,
    probing: &'h Probing,
}

impl Stops {
    pub(crate) fn new(probing: Arc<Probing>) -> Stops {
        let count = probing.probes.len();
        Stops {
            probing,
            nodes: Vec::new(),
            counts: vec![Count::default(); count],
            placed: vec![false; count],
            problems: BTreeSet::new(),
        }
    }

    /// Places the probes in all programs that run, and sets the breakpoints.
    ///
    /// # Errors
    /// Returns an error if the engine has no breakpoints.
    pub(crate) fn begin(&mut self, timeline: &mut Timeline) -> anyhow::Result<()> {
        let count = timeline.world().nodes().len();
        self.nodes = (0..count).map(|_| NodeSites::default()).collect();
        for node in 0..count {
            if self.probing.is_on(node) {
                for (probe, address) in &self.probing.in_kernel {
                    self.placed[*probe] = true;
                    self.nodes[node].add_kernel(*probe, *address);
                }
                if self.probing.exec.is_some() && timeline.machine(node).end().is_none() {
                    self.look(timeline, node, |stops, guest| {
                        for process in guest.processes()? {
                            // A process that cannot be read does not hide the others.
                            if let Err(error) = stops.place(guest, node, &process) {
                                let why = everett_input::causes::with_causes(&error);
                                note(&mut stops.problems, format!("process {}: {why}", process.pid));
                            }
                        }
                        Ok(())
                    });
                }
            }
            self.set(timeline, node)?;
        }
        Ok(())
    }

    /// Removes all breakpoints.
    pub(crate) fn end(timeline: &mut Timeline) {
        for node in 0..timeline.world().nodes().len() {
            timeline.machine_mut(node).set_breakpoints(&[]);
        }
    }

    /// Finds the hits at the next instruction of a node, which is at a breakpoint.
    ///
    /// # Errors
    /// Returns an error if the engine has no breakpoints.
    pub(crate) fn stopped(
        &mut self,
        timeline: &mut Timeline,
        node: usize,
        sink: &mut dyn Sink,
    ) -> anyhow::Result<()> {
        let cpu = registers(&timeline.machine(node).cpu());
        if cpu.registers.is_restarted() {
            return Ok(());
        }
        self.hits(timeline, node, &cpu, sink);
        if self.probing.exec == Some(cpu.registers.unwinding().instruction) {
            // The running process has just loaded a program.
            self.look(timeline, node, |stops, guest| {
                let process = guest.running_process()?;
                if let (Some(process), Some(sites)) = (process, stops.nodes.get_mut(node)) {
                    sink.loaded(node, process.pid);
                    sites.forget(process.pid);
                    stops.place(guest, node, &process)?;
                }
                Ok(())
            });
            self.set(timeline, node).context("a new program")?;
        }
        Ok(())
    }

    /// Sets the breakpoints of a node.
    fn set(&self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()> {
        let Some(sites) = self.nodes.get(node) else { return Ok(()) };
        let mut addresses: Vec<u64> = sites.addresses().collect();
        addresses.extend(self.probing.exec.filter(|_| self.probing.is_on(node)));
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
        look: impl FnOnce(&mut Self, &Guest<'_>) -> Result<T, Error>,
    ) -> Option<T> {
        let (ram, probing) = (MachineRam(timeline.machine(node)), Arc::clone(&self.probing));
        match Guest::new(&probing.kernel, &ram).and_then(|guest| look(self, &guest)) {
            Ok(result) => Some(result),
            Err(error) => {
                let name = timeline.machine(node).name();
                let why = format!("{name}: {}", everett_input::causes::with_causes(&error));
                note(&mut self.problems, why);
                None
            }
        }
    }

    /// Places the probes in a process's program.
    fn place(&mut self, guest: &Guest<'_>, node: usize, process: &Process) -> Result<Option<usize>, Error> {
        let Probing { probes, programs, .. } = &*self.probing;
        let Some(sites) = self.nodes.get_mut(node) else { return Ok(None) };
        let mut seen = Seen { placed: &mut self.placed, problems: &mut self.problems };
        sites.program_of(guest, process, probes, (programs, node), &mut seen)
    }

    /// Passes the hits of all probes at the machine's next instruction to `sink`.
    fn hits(&mut self, timeline: &Timeline, node: usize, cpu: &CpuRegisters, sink: &mut dyn Sink) {
        let Registers { instruction: address, is_user, .. } = cpu.registers.unwinding();
        let Some(at) = self.nodes.get(node).and_then(|sites| sites.at(address)) else { return };
        let at: BTreeSet<Site> = at.iter().copied().filter(|site| site.loaded.is_some() == is_user).collect();
        if at.is_empty() {
            return;
        }
        let found = self.look(timeline, node, |stops, guest| {
            let running = guest.running()?;
            let process = guest.running_process()?;
            let program = match &process {
                Some(process) if is_user => stops.place(guest, node, process)?,
                _ => None,
            };
            Ok((running, process, program))
        });
        let Some((running, process, program)) = found else { return };
        let loaded = program.and_then(|index| self.nodes.get(node)?.program(index).cloned());
        if is_user && !loaded.as_ref().is_some_and(|loaded| self.is_code(timeline, node, loaded, address)) {
            return;
        }
        let probing = &*Arc::clone(&self.probing);
        for site in at.into_iter().filter(|site| site.loaded == program) {
            let Some(wanted) = probing.probes.get(site.probe).filter(|wanted| wanted.is_on(node)) else {
                continue;
            };
            let scene = HitScene {
                machine: timeline.machine(node),
                registers: cpu.registers,
                floating: Some(cpu.floating),
                space: None,
                has_whole_texts: false,
                kernel: &probing.kernel,
                programs: &probing.programs,
                node,
                process: process.as_ref(),
                loaded: loaded.as_ref(),
            };
            let conditions = wanted.probe.condition.iter().chain(&wanted.conditions);
            let all: Vec<_> = conditions.map(|condition| is_true(condition, &scene)).collect();
            let Some(count) = self.counts.get_mut(site.probe) else { continue };
            if all.contains(&Ok(false)) {
                continue;
            }
            if all.iter().any(Result::is_err) {
                count.undecided += 1;
                continue;
            }
            count.hits += 1;
            let vtime_ns = timeline.world().nodes()[node].vtime();
            let (pid, tid) = (running.pid, running.tid);
            sink.hit(&SceneOfHit { probe: site.probe, vtime_ns, node, pid, tid, scene, cpu, probing });
        }
    }

    /// True if the code in memory is that of the program's file.
    fn is_code(&mut self, timeline: &Timeline, node: usize, loaded: &Loaded, address: u64) -> bool {
        let is_within = (loaded.mapping.start..loaded.mapping.end).contains(&address);
        let is_code = loaded.has_code(timeline.machine(node), address);
        if is_within && !is_code {
            let path = &loaded.mapping.name;
            note(&mut self.problems, format!("{path}: its code in memory differs from the image's file"));
        }
        is_code
    }
}

impl SceneOfHit<'_> {
    /// Returns the name of the thread.
    pub(crate) fn thread(&self) -> String {
        let threads = self.scene.process.map(|process| &process.threads);
        let thread = threads.and_then(|threads| threads.iter().find(|thread| thread.tid == self.tid));
        thread.map_or_else(|| "swapper".to_owned(), |thread| thread.name.clone())
    }

    /// Returns the address of the process's address space in its kernel. `None` in code of the kernel.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.scene.loaded?;
        self.scene.process.and_then(|process| process.mm)
    }

    /// Returns the values of a probe as text, and each one.
    pub(crate) fn shown(&self, probe: &Probe) -> (String, Vec<HitValue>) {
        let scene = &self.scene;
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

    /// Returns the stack of the running thread. `None` if the CPU is idle.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures cannot be read.
    pub(crate) fn stack(&self) -> Result<Option<HitStack>, Error> {
        let Some(process) = self.scene.process else { return Ok(None) };
        let Some(thread) = process.threads.iter().find(|thread| thread.tid == self.tid) else {
            return Ok(None);
        };
        let ram = MachineRam(self.scene.machine);
        let guest = Guest::new(&self.probing.kernel, &ram)?;
        let modules = guest.modules().unwrap_or_default();
        let modules: &Modules = &modules;
        let stack = guest.stack(process, thread, self.cpu, modules)?;
        let symbols = self.probing.kernel.symbols();
        let kernel = stack.kernel.iter().map(|frame| frame.named(symbols, modules).to_string()).collect();
        let user = self.probing.programs.with(self.node, |programs| {
            let mut stacks = guest.program_stacks(process, programs.files())?;
            let frames = stacks.as_mut().zip(stack.user).map(|(stacks, user)| stacks.frames(user));
            Ok::<_, Error>(frames)
        });
        let user = user.transpose()?.flatten();
        let (user, is_whole) = user.unwrap_or((Vec::new(), stack.user.is_none()));
        Ok(Some(HitStack { kernel, user, is_complete: stack.is_complete && is_whole }))
    }
}
