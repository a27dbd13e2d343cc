//! Stacks of what a node executes, each after the same number of instructions.

use std::collections::BTreeMap;

use anyhow::bail;
use everett_inspect::module::Modules;
use everett_inspect::program_stack::{Files, Frame, Programs};
use everett_inspect::registers::CpuRegisters;
use everett_inspect::stack::Stack;
use everett_inspect::task::{Process, Thread};
use everett_inspect::{Error, Guest, Kernel};

use super::follow::Span;
use super::limits::PROCESSES_KEPT_MAX;
use crate::debug::cursor::{Aim, Cursor, Stop, Unless};
use crate::inside::machine::{MachineRam, registers};

/// Mark behind functions of the kernel, as tools for flame graphs expect it.
const OF_KERNEL: &str = "_[k]";
/// Name of a function that is not known.
const UNKNOWN: &str = "[unknown]";

/// A stack of the thread that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Number of the node.
    pub node: usize,
    /// Vtime of the node, in nanoseconds.
    pub vtime_ns: u64,
    /// Process ID. 0 if the CPU is idle.
    pub pid: u32,
    /// Name of the process's first thread.
    pub process: String,
    /// Functions, the outermost first.
    pub functions: Vec<String>,
}

/// Samples of a span of time.
pub struct Samples<'s> {
    /// Number of instructions between two samples of a node.
    pub every: u64,
    /// The programs of each node.
    pub files: &'s [&'s dyn Files],
    /// Returns false to end the run.
    pub goes_on: &'s dyn Fn() -> bool,
    /// Takes each sample.
    pub found: &'s mut dyn FnMut(Sample) -> anyhow::Result<()>,
}

impl Samples<'_> {
    /// Runs through the span once for each node. A machine that does not run its kernel, for example while it boots, is not
    /// looked at. Returns the number of stacks that could not be read.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted or fails, and the errors of `found`.
    pub fn take(&mut self, cursor: &mut Cursor<'_>, span: &Span<'_>) -> anyhow::Result<u64> {
        let goes_on = self.goes_on;
        let unless = || !goes_on();
        let mut unreadable = 0;
        for &node in &span.nodes {
            cursor.seek(Aim::Vtime(span.since_ns), &mut Unless(&unless))?;
            let mut modules: Option<Modules> = None;
            let mut programs = BTreeMap::new();
            loop {
                let count = cursor.position(node).count.saturating_add(self.every);
                let stop = cursor.run(Aim::Count { node, count }, &mut Unless(&unless))?;
                let vtime_ns = cursor.position(node).vtime_ns;
                match stop {
                    Stop::Reached if vtime_ns <= span.until_ns => {}
                    Stop::Reached | Stop::End(_) => break,
                    stop => bail!("an unexpected stop: {stop:?}"),
                }
                let machine = cursor.timeline().machine(node);
                let ram = MachineRam(machine);
                let Ok(guest) = Guest::new(span.kernel, &ram) else { continue };
                // Frames in modules that are loaded later have no names.
                let modules = modules.get_or_insert_with(|| guest.modules().unwrap_or_default());
                let cpu = registers(&machine.cpu());
                let look = Look { guest, kernel: span.kernel, modules, files: self.files[node] };
                if programs.len() > PROCESSES_KEPT_MAX {
                    programs.clear();
                }
                match look.sample(&cpu, &mut programs) {
                    Ok((pid, process, functions)) => {
                        (self.found)(Sample { node, vtime_ns, pid, process, functions })?;
                    }
                    Err(_) => unreadable += 1,
                }
            }
        }
        Ok(unreadable)
    }
}

/// A machine of which a sample is taken.
struct Look<'l> {
    guest: Guest<'l>,
    kernel: &'l Kernel,
    modules: &'l Modules,
    files: &'l dyn Files,
}

impl Look<'_> {
    /// Returns the running process's ID and name, and the functions on the stack of its running thread.
    fn sample(
        &self,
        cpu: &CpuRegisters,
        programs: &mut BTreeMap<u32, Programs>,
    ) -> Result<(u32, String, Vec<String>), Error> {
        let Some(process) = self.guest.running_process()? else {
            return Ok((0, "swapper".to_owned(), Vec::new()));
        };
        let tid = self.guest.running()?.tid;
        let name = process.threads.first().map_or_else(String::new, |first| first.name.clone());
        let functions = match process.threads.iter().find(|thread| thread.tid == tid) {
            Some(thread) => self.functions(&process, thread, cpu, programs)?,
            None => vec![UNKNOWN.to_owned()],
        };
        Ok((process.pid, name, functions))
    }

    fn functions(
        &self,
        process: &Process,
        thread: &Thread,
        cpu: &CpuRegisters,
        programs: &mut BTreeMap<u32, Programs>,
    ) -> Result<Vec<String>, Error> {
        let Stack { kernel, user, .. } = self.guest.stack(process, thread, cpu, self.modules)?;
        let names = kernel.iter().map(|frame| {
            let shown = frame.named(self.kernel.symbols(), self.modules).to_string();
            format!("{}{OF_KERNEL}", of_kernel(&shown))
        });
        let mut innermost_first: Vec<String> = names.collect();
        if let Some(user) = user
            && let known = programs.remove(&process.pid).unwrap_or_default()
            && let Some(mut stacks) = self.guest.program_stacks_again(process, self.files, known)?
        {
            let (frames, is_complete) = stacks.frames(user);
            innermost_first.extend(frames.iter().flat_map(of_program));
            if !is_complete {
                innermost_first.push(UNKNOWN.to_owned());
            }
            programs.insert(process.pid, stacks.into_programs());
        }
        innermost_first.reverse();
        Ok(innermost_first)
    }
}

/// Returns the function in the text of a frame of the kernel, `0xffffffff81000000 (name+0x10 [module])`.
fn of_kernel(shown: &str) -> &str {
    let name = shown.split_once(" (").map_or(UNKNOWN, |(_, name)| name.trim_end_matches(')'));
    name.split_once("+0x").map_or(name, |(name, _)| name)
}

/// Returns the functions of a program's frame: the innermost of the calls that the compiler has inlined first.
fn of_program(frame: &Frame) -> Vec<String> {
    let inlined: Vec<String> = frame.source.iter().filter_map(|place| place.function.clone()).collect();
    if !inlined.is_empty() {
        return inlined;
    }
    let name = match (&frame.function, &frame.file) {
        (Some(function), _) => function.split_once("+0x").map_or(&**function, |(name, _)| name).to_owned(),
        (None, Some(file)) => format!("[{}]", file.rsplit('/').next().unwrap_or(file)),
        (None, None) => UNKNOWN.to_owned(),
    };
    vec![name]
}

#[cfg(test)]
mod tests {
    use everett_symbols::lines::SourcePlace;

    use super::*;

    #[test]
    fn functions_stand_without_distances_and_addresses() {
        assert_eq!(of_kernel("0xffffffff81a10e3d (__schedule+0x34d)"), "__schedule");
        assert_eq!(of_kernel("0xffffffffc0123456 (ext4_sync_file+0x1a [ext4])"), "ext4_sync_file");
        assert_eq!(of_kernel("0x1000"), UNKNOWN);
        let frame = |function: Option<&str>, file: Option<&str>, inlined: &[&str]| Frame {
            address: 1,
            file: file.map(str::to_owned),
            in_file: None,
            function: function.map(str::to_owned),
            source: inlined
                .iter()
                .map(|name| SourcePlace { function: Some((*name).to_owned()), file: None, line: None })
                .collect(),
        };
        assert_eq!(of_program(&frame(Some("a+0x1"), Some("/bin/x"), &[])), ["a"]);
        assert_eq!(of_program(&frame(Some("a+0x1"), Some("/bin/x"), &["inner", "a"])), ["inner", "a"]);
        assert_eq!(of_program(&frame(None, Some("/bin/x"), &[])), ["[x]"]);
        assert_eq!(of_program(&frame(None, None, &[])), [UNKNOWN]);
    }
}
