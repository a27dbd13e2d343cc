//! Programs that ran on a timeline, and places and values in them at an instant of the timeline.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everett_inspect::program_stack::Frame;
use everett_inspect::registers::{ProgramRegisters, Registers};
use everett_inspect::task::{Process, Thread};
use everett_inspect::{Error, Guest, Kernel};
use everett_symbols::lines::SourcePlace;
use everett_symbols::variables::Shape;

use super::expression::Expression;
use super::expression::evaluate::{Absent, Place, Scene, Type, Value, integer, is_true, value};
use super::format::plain;
use super::limits::{KNOWN_MAX, LOADED_MAX};
use super::loaded::Loaded;
use super::probe::{KERNEL, Probe};
use super::probing::{EXEC, in_kernel};
use super::programs::{NodePrograms, Programs};
use super::scene::HitScene;
use crate::inside::debug_files::DebugFolders;
use crate::inside::machine::{MachineRam, registers};
use crate::run::launch::Launcher;
use crate::world::timeline::Timeline;

/// Maximum length of a watched object, in bytes.
const WATCHED_BYTES_MAX: u64 = 4_096;

/// A process by its node, its ID, the address of its `mm_struct`, the address of its program's code and the program's path.
/// Searches backwards look at processes in another order than they ran in, so the key tells programs apart that a process
/// ran one after the other.
type ProcessKey = (usize, u32, u64, u64, Option<String>);

/// Programs that ran on a timeline.
pub struct Code<'k> {
    kernel: &'k Kernel,
    programs: Programs,
    /// Programs in memory, with the node of each.
    ran: Vec<(usize, Arc<Loaded>)>,
    known: BTreeMap<ProcessKey, Option<Arc<Loaded>>>,
    /// True if a program was not kept because there were too many.
    is_full: bool,
}

/// View of a node that a person looks at: a thread of a program, or the CPU.
#[derive(Clone, Copy)]
pub struct View<'v> {
    /// The timeline.
    pub timeline: &'v Timeline,
    /// Number of the node.
    pub node: usize,
    /// Thread of a program. `None` for the CPU, in whichever code it is.
    pub thread: Option<(&'v Process, &'v Thread)>,
}

impl<'k> Code<'k> {
    /// Returns the programs of a launcher's images. None of them has run.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    pub fn new(kernel: &'k Kernel, launcher: &Launcher, debug: &DebugFolders) -> anyhow::Result<Code<'k>> {
        let programs = Programs::of_launcher(launcher, debug)?;
        Ok(Code { kernel, programs, ran: Vec::new(), known: BTreeMap::new(), is_full: false })
    }

    /// Returns the address of the kernel's function at which a process has loaded a program. The program's first
    /// instruction is then still to come.
    #[must_use]
    pub fn loads_program(&self) -> Option<u64> {
        self.kernel.address_of(EXEC)
    }

    /// Notes the programs of all processes of a node.
    ///
    /// # Errors
    /// Returns an error if the guest cannot be read.
    pub fn note_all(&mut self, timeline: &Timeline, node: usize) -> Result<(), Error> {
        let ram = MachineRam(timeline.machine(node));
        let guest = Guest::new(self.kernel, &ram)?;
        for process in guest.processes()?.iter().filter(|process| process.mm.is_some()) {
            // A process that cannot be read has no places.
            let _ = self.program_of(&guest, node, process);
        }
        Ok(())
    }

    /// Notes the program that the running process of a node has just loaded.
    ///
    /// # Errors
    /// Returns an error if the guest cannot be read.
    pub fn note_running(&mut self, timeline: &Timeline, node: usize) -> Result<(), Error> {
        let ram = MachineRam(timeline.machine(node));
        let guest = Guest::new(self.kernel, &ram)?;
        let Some(process) = guest.running_process()? else { return Ok(()) };
        self.known.retain(|(of, pid, ..), _| (*of, *pid) != (node, process.pid));
        self.program_of(&guest, node, &process).map(|_| ())
    }

    /// True if places in some programs are missing, because too many programs ran.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the program of a process.
    fn program_of(
        &mut self,
        guest: &Guest<'_>,
        node: usize,
        process: &Process,
    ) -> Result<Option<Arc<Loaded>>, Error> {
        let (Some(mm), Some(start)) = (process.mm, guest.code_start(process)?) else { return Ok(None) };
        let key = (node, process.pid, mm, start, guest.program_path(process)?);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let found = Loaded::of_process(guest, process, (&self.programs, node))?;
        let mut is_kept = true;
        let found = found.map(|found| {
            let like = |(of, other): &&(usize, Arc<Loaded>)| *of == node && other.is_like(&found);
            if let Some((_, other)) = self.ran.iter().find(like) {
                return Arc::clone(other);
            }
            let found = Arc::new(found);
            if self.ran.len() >= LOADED_MAX {
                // Places in it are missing, but a process of it can still be looked at.
                self.is_full = true;
                is_kept = false;
            } else {
                self.ran.push((node, Arc::clone(&found)));
            }
            found
        });
        if !is_kept {
            return Ok(found);
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(key, found.clone());
        Ok(found)
    }

    /// Returns the addresses in memory of a probe in the programs of a node. `number` must be another one for each probe.
    /// Returns no addresses if no program of this name ran on the node.
    ///
    /// # Errors
    /// Returns why a program has no such place, in words.
    pub fn addresses(&self, node: usize, (number, probe): (usize, &Probe)) -> Result<BTreeSet<u64>, String> {
        if probe.program == KERNEL {
            let address = in_kernel(self.kernel, probe, "").map_err(|error| error.to_string())?;
            return Ok(BTreeSet::from([address]));
        }
        let mut found = BTreeSet::new();
        for (_, loaded) in self.named(node, &probe.program) {
            let of_program =
                |of: &mut NodePrograms| of.addresses((number, probe), &loaded.mapping, &loaded.program);
            let all = self.programs.with(node, of_program).unwrap_or_else(|| Ok(Arc::from([])))?;
            found.extend(all.iter().map(|address| address.wrapping_add(loaded.bias)));
        }
        Ok(found)
    }

    /// Returns the programs on a node that an operator means by a name.
    fn named<'c>(&'c self, node: usize, wanted: &'c str) -> impl Iterator<Item = &'c (usize, Arc<Loaded>)> {
        self.ran.iter().filter(move |(of, loaded)| *of == node && loaded.is_called(wanted))
    }

    /// Returns the addresses in memory at which source lines of a process's program begin.
    ///
    /// # Errors
    /// Returns why there are none, in words.
    pub fn lines_of(
        &mut self,
        timeline: &Timeline,
        node: usize,
        process: &Process,
    ) -> Result<Vec<u64>, String> {
        let ram = MachineRam(timeline.machine(node));
        let guest = Guest::new(self.kernel, &ram).map_err(|error| error.to_string())?;
        let loaded = self.program_of(&guest, node, process).map_err(|error| error.to_string())?;
        let loaded = loaded.ok_or("no file of the image is the program")?;
        let path = &loaded.mapping.name;
        let lines = self.programs.with(node, |of| of.lines(&loaded.mapping, &loaded.program)).flatten();
        let lines = lines
            .ok_or_else(|| format!("{path} has no debug information, and --debug-files has none for it"))?;
        let all = lines.begins_of_lines().ok_or_else(|| format!("{path} has too many lines"))?;
        Ok(all.into_iter().map(|address| address.wrapping_add(loaded.bias)).collect())
    }

    /// True if a machine's next instruction is one at which this probe hits: in a program of this name, or in the kernel.
    /// The caller has compared the address.
    pub fn is_hit(&mut self, timeline: &Timeline, node: usize, probe: &Probe) -> bool {
        let cpu = registers(&timeline.machine(node).cpu());
        if cpu.registers.is_restarted() {
            return false;
        }
        let Registers { instruction, is_user, .. } = cpu.registers.unwinding();
        if probe.program == KERNEL || !is_user {
            return (probe.program == KERNEL) != is_user;
        }
        let ram = MachineRam(timeline.machine(node));
        let Ok(guest) = Guest::new(self.kernel, &ram) else { return false };
        let Ok(Some(process)) = guest.running_process() else { return false };
        match self.program_of(&guest, node, &process) {
            Ok(Some(loaded)) => {
                loaded.is_called(&probe.program) && loaded.has_code(timeline.machine(node), instruction)
            }
            _ => false,
        }
    }

    /// Returns whether the condition of a probe holds.
    ///
    /// # Errors
    /// Returns why its value is not known.
    pub fn holds(&mut self, view: View<'_>, condition: &Expression) -> Result<bool, Unknown> {
        self.at(view, |scene| is_true(condition, scene))
    }

    /// Returns the place in source code of the next instruction of a thread's program. `None` if it is not known.
    pub fn line(&mut self, view: View<'_>) -> Option<SourcePlace> {
        let (process, thread) = view.thread?;
        let machine = view.timeline.machine(view.node);
        let (ram, cpu) = (MachineRam(machine), registers(&machine.cpu()));
        let guest = Guest::new(self.kernel, &ram).ok()?;
        let address = guest.program_registers(process, thread, &cpu).ok()?.unwinding().instruction;
        let loaded = self.program_of(&guest, view.node, process).ok()??;
        if !(loaded.mapping.start..loaded.mapping.end).contains(&address) {
            return None;
        }
        let lines =
            self.programs.with(view.node, |of| of.lines(&loaded.mapping, &loaded.program)).flatten()?;
        lines.places(address.wrapping_sub(loaded.bias)).into_iter().next()
    }

    /// Returns the frames of a thread's program, and true if none is missing. Returns none of the kernel's.
    ///
    /// # Errors
    /// Returns an error if the guest cannot be read.
    pub fn frames(&self, view: View<'_>) -> Result<(Vec<Frame>, bool), Error> {
        let Some((process, thread)) = view.thread else { return Ok((Vec::new(), true)) };
        let machine = view.timeline.machine(view.node);
        let (ram, cpu) = (MachineRam(machine), registers(&machine.cpu()));
        let guest = Guest::new(self.kernel, &ram)?;
        let registers = guest.program_registers(process, thread, &cpu)?;
        let found = self.programs.with(view.node, |programs| {
            let mut stacks = guest.program_stacks(process, programs.files())?;
            Ok::<_, Error>(stacks.as_mut().map(|stacks| stacks.frames(registers.unwinding())))
        });
        Ok(found.transpose()?.flatten().unwrap_or((Vec::new(), false)))
    }

    /// Returns the value of an expression as text.
    ///
    /// # Errors
    /// Returns why the value is not known.
    pub fn value(&mut self, view: View<'_>, expression: &Expression) -> Result<String, Unknown> {
        self.at(view, |scene| value(expression, scene).and_then(|value| plain(&value, scene)))
    }

    /// Returns the address that an expression states: that of an object, or the value of a number.
    ///
    /// # Errors
    /// Returns why the value is not known.
    pub fn address(&mut self, view: View<'_>, expression: &Expression) -> Result<u64, Unknown> {
        self.at(view, |scene| match value(expression, scene)? {
            Value::Object(kind, Place::Memory(address)) if is_aggregate(kind, scene) => Ok(address),
            value => u64::try_from(integer(&value, scene)?).map_err(|_| Absent::WideAddress),
        })
    }

    /// Returns the address and the length in bytes of the object that an expression names, or to which it points.
    ///
    /// # Errors
    /// Returns why the object is not known.
    pub fn object(&mut self, view: View<'_>, expression: &Expression) -> Result<(u64, u64), Unknown> {
        self.at(view, |scene| {
            let (kind, address) = match value(expression, scene)? {
                Value::Object(kind, Place::Memory(address)) | Value::Pointer(kind, address) => {
                    (kind, address)
                }
                _ => return Err(Absent::NoAddress),
            };
            let bytes = match kind {
                Type::Number(number) => number.bytes as u64,
                Type::Declared(at) => {
                    Scene::shape(scene, at).and_then(Shape::bytes).ok_or(Absent::Untyped)?
                }
                Type::Unknown => return Err(Absent::Untyped),
                Type::Bits(..) => return Err(Absent::NoAddress),
            };
            if (1..=WATCHED_BYTES_MAX).contains(&bytes) {
                Ok((address, bytes))
            } else {
                Err(Absent::Size(bytes, WATCHED_BYTES_MAX))
            }
        })
    }

    /// Copies memory up to the first byte that is neither in memory nor in a mapped file. Returns the number of copied
    /// bytes.
    ///
    /// # Errors
    /// Returns an error if the guest cannot be read.
    pub fn read(&mut self, view: View<'_>, address: u64, into: &mut [u8]) -> Result<usize, Unknown> {
        self.at(view, |scene| Ok(Scene::read(scene, address, into)))
    }

    /// Calls `look` with the scene of a view.
    fn at<T>(
        &mut self,
        view: View<'_>,
        look: impl FnOnce(&HitScene<'_>) -> Result<T, Absent>,
    ) -> Result<T, Unknown> {
        let machine = view.timeline.machine(view.node);
        let (ram, cpu) = (MachineRam(machine), registers(&machine.cpu()));
        let kernel = self.kernel;
        let mut read = || -> Result<_, Error> {
            let guest = Guest::new(kernel, &ram)?;
            let Some((process, thread)) = view.thread else {
                return Ok((cpu.registers, Some(cpu.floating), None, Some(guest.memory())));
            };
            let registers: ProgramRegisters = guest.program_registers(process, thread, &cpu)?;
            let floating = guest.floating_registers(thread, &cpu)?;
            let loaded = self.program_of(&guest, view.node, process)?;
            Ok((registers, floating, loaded, guest.memory_of_process(process)?))
        };
        let (registers, floating, loaded, space) = read()?;
        let scene = HitScene {
            machine,
            registers,
            floating,
            kernel,
            programs: &self.programs,
            node: view.node,
            space,
            has_whole_texts: false,
            process: view.thread.map(|(process, _)| process),
            loaded: loaded.as_ref(),
        };
        Ok(look(&scene)?)
    }
}

/// True if an object has a place, but no value that is a number.
fn is_aggregate(kind: Type, scene: &HitScene<'_>) -> bool {
    let Type::Declared(at) = kind else { return kind == Type::Unknown };
    let shape = Scene::shape(scene, at);
    matches!(shape, Some(Shape::Structure(_) | Shape::Array { .. }))
}

/// Reason why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The expression has no value here.
    #[error(transparent)]
    Absent(#[from] Absent),
    /// The guest cannot be read.
    #[error("the guest cannot be read")]
    Guest(#[from] Error),
}

/// Reads a place of code, which a condition (`--if EXPRESSION`) can follow.
///
/// # Errors
/// Returns what is wrong with it, in words.
pub fn place(text: &str) -> Result<Probe, String> {
    let probe = Probe::parse(text)?;
    let has_output =
        probe.format.is_some() || !probe.values.is_empty() || probe.only_counts || probe.has_stack;
    if has_output {
        Err("a breakpoint prints no values; only --if can follow the place".to_owned())
    } else {
        Ok(probe)
    }
}
