//! Machines at an instant, read from outside. No guest executes an instruction for it.

use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_inspect::Guest;
use everett_inspect::files::OpenFile;
use everett_inspect::mapping::Mapping;
use everett_inspect::memory::AddressSpace;
use everett_inspect::module::Modules;
use everett_inspect::program_stack::Frame;
use everett_inspect::registers::CpuRegisters;
use everett_inspect::sockets::Socket;
use everett_inspect::task::{Process, State, Thread};
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::inside::unmapped;
use everett_session::probes::at_rest::Known;
use everett_session::probes::probe::{self, KERNEL};
use everett_session::world::timeline::Timeline;

use super::error::Error;
use super::limits::READ_BYTES_MAX;
use super::stage::Stage;

/// Machines of a timeline at an instant.
pub struct View<'v> {
    pub(crate) stage: &'v Stage,
    pub(crate) timeline: &'v Timeline,
    pub(crate) interrupt: &'v Interrupt,
}

/// Stack of a thread.
#[derive(Debug, Clone)]
pub struct ThreadStack {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// State of the thread.
    pub state: State,
    /// Frames of the kernel, the innermost first.
    pub kernel: Vec<String>,
    /// Frames of the program, the innermost first.
    pub program: Vec<Frame>,
    /// True if no further frames exist.
    pub is_complete: bool,
}

impl View<'_> {
    /// Returns the processes of a node.
    ///
    /// # Errors
    /// Returns an error if there is no such node, or if its guest cannot be read.
    pub fn processes(&self, node: &str) -> Result<Vec<Process>, Error> {
        self.guest(node, |_, _, processes| Ok(processes.to_vec()))
    }

    /// Returns the mappings of a process. `process` is its ID or the name of its first thread.
    ///
    /// # Errors
    /// Returns an error if there is no such process, if there are several, or if it cannot be read.
    pub fn mappings(&self, node: &str, process: &str) -> Result<Vec<Mapping>, Error> {
        self.guest(node, |guest, _, processes| Ok(guest.mappings(one(processes, node, process)?)?))
    }

    /// Returns the stacks of all threads of a process or, without one, of all processes that run programs.
    ///
    /// # Errors
    /// Returns an error if there is no such process, if there are several, or if a stack cannot be read.
    pub fn stacks(&self, node: &str, process: Option<&str>) -> Result<Vec<ThreadStack>, Error> {
        self.guest(node, |guest, number, processes| {
            let wanted: Vec<&Process> = match process {
                Some(process) => vec![one(processes, node, process)?],
                None => processes.iter().filter(|process| process.mm.is_some()).collect(),
            };
            let modules = guest.modules()?;
            let cpu = registers(&self.timeline.machine(number).cpu());
            self.stage.with_files(number, |files| {
                let mut stacks = Vec::new();
                for process in wanted {
                    let mut programs = guest.program_stacks(process, files)?;
                    for thread in &process.threads {
                        self.goes_on()?;
                        let (kernel, user, is_whole) = self.stack(guest, process, thread, &cpu, &modules)?;
                        let (program, has_end) = match (programs.as_mut(), user) {
                            (Some(programs), Some(user)) => programs.frames(user),
                            (None, Some(_)) => (Vec::new(), false),
                            (_, None) => (Vec::new(), true),
                        };
                        stacks.push(ThreadStack {
                            pid: process.pid,
                            tid: thread.tid,
                            name: thread.name.clone(),
                            state: thread.state,
                            kernel,
                            program,
                            is_complete: is_whole && has_end,
                        });
                    }
                }
                Ok(stacks)
            })
        })
    }

    fn stack(
        &self,
        guest: &Guest<'_>,
        process: &Process,
        thread: &Thread,
        cpu: &CpuRegisters,
        modules: &Modules,
    ) -> Result<(Vec<String>, Option<everett_inspect::registers::Registers>, bool), Error> {
        let stack = guest.stack(process, thread, cpu, modules)?;
        let symbols = self.stage.kernel()?.symbols();
        let kernel = stack.kernel.iter().map(|frame| frame.named(symbols, modules).to_string()).collect();
        Ok((kernel, stack.user, stack.is_complete))
    }

    /// Returns the sockets of a node.
    ///
    /// # Errors
    /// Returns an error if there is no such node, or if a part of its tables of sockets cannot be read.
    pub fn sockets(&self, node: &str) -> Result<Vec<Socket>, Error> {
        self.guest(node, |guest, _, processes| {
            let sockets = guest.sockets(processes)?;
            match sockets.unreadable.first() {
                Some((Some(pid), error)) => {
                    Err(Error::Failed(format!("{node}: process {pid}: {}", with_causes(error))))
                }
                Some((None, error)) => Err(Error::Failed(format!("{node}: {}", with_causes(error)))),
                None => Ok(sockets.found),
            }
        })
    }

    /// Returns the open files of a process with their descriptors.
    ///
    /// # Errors
    /// Returns an error if there is no such process, if there are several, or if a file cannot be read.
    pub fn files(&self, node: &str, process: &str) -> Result<Vec<(u32, OpenFile)>, Error> {
        self.guest(node, |guest, _, processes| {
            let files = guest.files(one(processes, node, process)?)?;
            files.into_iter().map(|(descriptor, file)| Ok((descriptor, file?))).collect()
        })
    }

    /// Returns `length` bytes of the memory of a process, or of the kernel if `process` is `kernel`. A page of a program or
    /// library that is not in memory is read from its file, as the kernel would.
    ///
    /// # Errors
    /// Returns [`Error::Unmapped`] if a byte is not mapped, and an error if there is no such process.
    pub fn memory(&self, node: &str, process: &str, address: u64, length: u64) -> Result<Vec<u8>, Error> {
        if length > READ_BYTES_MAX {
            return Err(Error::Argument(format!("length: at most {READ_BYTES_MAX} bytes are read at once")));
        }
        self.guest(node, |guest, number, processes| {
            let process = if process == KERNEL { None } else { Some(one(processes, node, process)?) };
            let space = match process {
                None => Some(guest.memory()),
                Some(process) => guest.memory_of_process(process)?,
            };
            let space = space.ok_or_else(|| Error::Unmapped(format!("{node}: the process has no memory")))?;
            // The length is bounded above.
            let mut bytes = vec![0; length as usize];
            let mut done = 0;
            while done < bytes.len() {
                self.goes_on()?;
                let at = address.checked_add(done as u64);
                let more = match at {
                    Some(at) => self.read(guest, number, process, (space, at), &mut bytes[done..])?,
                    None => 0,
                };
                if more == 0 {
                    return Err(match at {
                        Some(at) => everett_inspect::Error::Unmapped(at).into(),
                        None => Error::Unmapped("the address space ends before these bytes".to_owned()),
                    });
                }
                done += more;
            }
            Ok(bytes)
        })
    }

    fn read(
        &self,
        guest: &Guest<'_>,
        node: usize,
        process: Option<&Process>,
        (space, at): (AddressSpace<'_>, u64),
        into: &mut [u8],
    ) -> Result<usize, Error> {
        let some = space.read_some(at, into);
        match process {
            Some(process) if some == 0 => {
                self.stage.with_files(node, |files| Ok(unmapped::read(guest, process, files, at, into)?))
            }
            _ => Ok(some),
        }
    }

    /// Returns the value of an expression in a process, or in the kernel if `process` is `kernel`. The syntax is that of
    /// `everett print`.
    ///
    /// # Errors
    /// Returns [`Error::Unmapped`] if its memory is not mapped, and an error if it has no value for another reason.
    pub fn value(&self, node: &str, process: &str, text: &str) -> Result<Known, Error> {
        let expression =
            probe::condition(text).map_err(|why| Error::Argument(format!("expression: {why}")))?;
        self.guest(node, |_, number, processes| {
            let thread = match process {
                KERNEL => None,
                process => {
                    let process = one(processes, node, process)?;
                    let first = process.threads.first();
                    Some((
                        process,
                        first.ok_or_else(|| Error::Missing("the process has no thread".to_owned()))?,
                    ))
                }
            };
            let machine = self.timeline.machine(number);
            let values = self.stage.values()?;
            Ok(values.value(self.stage.kernel()?, (machine, number), thread, &expression)?)
        })
    }

    /// Calls `look` with the guest of a node, the node's number, and the guest's processes.
    fn guest<T>(
        &self,
        node: &str,
        look: impl FnOnce(&Guest<'_>, usize, &[Process]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let number = self.stage.number_of(node)?;
        let ram = MachineRam(self.timeline.machine(number));
        let guest = Guest::new(self.stage.kernel()?, &ram)?;
        let processes = guest.processes()?;
        look(&guest, number, &processes)
    }

    fn goes_on(&self) -> Result<(), Error> {
        if self.interrupt.wanted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Returns the only process with this ID, or whose first thread has this name.
fn one<'p>(processes: &'p [Process], node: &str, wanted: &str) -> Result<&'p Process, Error> {
    let is_wanted = |process: &&Process| {
        let first = process.threads.first();
        wanted == process.pid.to_string() || first.is_some_and(|thread| thread.name == wanted)
    };
    let mut found = processes.iter().filter(is_wanted);
    let first = found
        .next()
        .ok_or_else(|| Error::Missing(format!("{node} has no process {wanted:?} at this instant")))?;
    match found.next() {
        None => Ok(first),
        Some(other) => Err(Error::Argument(format!(
            "{node} has several processes {wanted:?}, such as {} and {}; name one by its ID",
            first.pid, other.pid
        ))),
    }
}
