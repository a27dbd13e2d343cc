//! Processes and threads.

use crate::limits::{ARGUMENTS_MAX, COMMAND_BYTES_MAX, PROCESSES_MAX, THREADS_MAX};
use crate::memory::AddressSpace;
use crate::{Error, Guest};

/// Length of the kernel's name of a thread, in bytes (`TASK_COMM_LEN`).
const NAME_BYTES: usize = 16;

/// Maximum length of the name of a thread of the kernel, in bytes.
const LONG_NAME_BYTES_MAX: usize = 64;

/// Bits of `task_struct.flags` (`include/linux/sched.h`).
mod flag {
    pub(super) const WORKER: u64 = 0x20;
    pub(super) const KERNEL_THREAD: u64 = 0x20_0000;
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// Process ID of the parent; 0 if it has none.
    pub parent: u32,
    /// User ID.
    pub user: u32,
    /// Arguments, from the process's own memory. Empty for threads of the kernel, and if the process has overwritten
    /// or unmapped them.
    pub command: Vec<String>,
    /// Threads. The first is the thread with which the process began.
    pub threads: Vec<Thread>,
    /// Address of the process's `mm_struct`. `None` for threads of the kernel and for zombies.
    pub mm: Option<u64>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Thread ID.
    pub tid: u32,
    /// Name, as `/proc/PID/comm` shows it.
    pub name: String,
    /// State.
    pub state: State,
    /// Address of its `task_struct`.
    pub task: u64,
}

/// State of a thread. Its letter is the one that `/proc/PID/stat` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Runs, or waits for a CPU.
    Running,
    /// Sleeps, and a signal can wake it.
    Sleeping,
    /// Sleeps, and no signal can wake it.
    Disk,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a debugger.
    Traced,
    /// Has ended.
    Dead,
    /// Has ended, and its parent has not asked for its exit status.
    Zombie,
    /// A thread of the kernel that is parked.
    Parked,
    /// A thread of the kernel that sleeps without work.
    Idle,
}

impl State {
    /// Computes the state as the kernel does for `/proc` (`task_state_index` in `include/linux/sched.h`).
    fn of(state: u64, exit: u64) -> State {
        /// Bits that are reported.
        const REPORTED: u64 = 0x7f;
        const IDLE: u64 = 0x402;
        /// Waits for a lock of a real-time kernel, or is frozen.
        const HIDDEN_SLEEP: u64 = 0x1000 | 0x8000;
        if state & IDLE == IDLE {
            return State::Idle;
        }
        let reported = if state & HIDDEN_SLEEP != 0 { 2 } else { (state | exit) & REPORTED };
        match u64::BITS - reported.leading_zeros() {
            0 => State::Running,
            1 => State::Sleeping,
            2 => State::Disk,
            3 => State::Stopped,
            4 => State::Traced,
            5 => State::Dead,
            6 => State::Zombie,
            _ => State::Parked,
        }
    }

    /// Returns the letter that `/proc/PID/stat` shows.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            State::Running => 'R',
            State::Sleeping => 'S',
            State::Disk => 'D',
            State::Stopped => 'T',
            State::Traced => 't',
            State::Dead => 'X',
            State::Zombie => 'Z',
            State::Parked => 'P',
            State::Idle => 'I',
        }
    }
}

impl<'g> Guest<'g> {
    /// Returns all processes, in the order of the kernel's list: by age, unless process IDs have wrapped around.
    ///
    /// # Errors
    /// Returns an error if a structure of the kernel cannot be read, or if there are more processes or threads than
    /// [`limits`](crate::limits) allow.
    pub fn processes(&self) -> Result<Vec<Process>, Error> {
        let field = self.kernel.layout.task_tasks;
        let head = self.kernel.symbol("init_task")?.wrapping_add(field.offset());
        let leaders = self.list(head, field, "processes", PROCESSES_MAX)?;
        let mut threads_left = THREADS_MAX;
        let process = |task| self.process(task, &mut threads_left).map_err(Error::reading("a process"));
        leaders.into_iter().map(process).collect()
    }

    /// Returns the process that runs on the CPU. `None` if the CPU is idle.
    ///
    /// # Errors
    /// See [`Guest::processes`].
    pub fn running_process(&self) -> Result<Option<Process>, Error> {
        let running = || {
            let task = self.current()?;
            let layout = &self.kernel.layout;
            let leader = self.number(task, layout.task_tgid)?;
            if leader == 0 {
                return Ok(None);
            }
            let mut process = self.process(task, &mut { THREADS_MAX })?;
            process.threads.sort_by_key(|thread| u64::from(thread.tid) != leader);
            Ok(Some(process))
        };
        running().map_err(Error::reading("the running process"))
    }

    fn process(&self, task: u64, threads_left: &mut usize) -> Result<Process, Error> {
        let layout = &self.kernel.layout;
        let number = |field| self.number(task, field);
        let mm = Some(number(layout.task_mm)?).filter(|mm| *mm != 0);
        let parent = number(layout.task_parent)?;
        let head = number(layout.task_signal)?.wrapping_add(layout.signal_threads.offset());
        let mut tasks = self.list(head, layout.task_thread_node, "threads", THREADS_MAX)?;
        let too_many = Error::TooMany { what: "threads", max: THREADS_MAX };
        *threads_left = threads_left.checked_sub(tasks.len()).ok_or(too_many)?;
        tasks.sort_by_key(|other| *other != task);
        Ok(Process {
            pid: number(layout.task_tgid)? as u32,
            parent: self.number(parent, layout.task_tgid)? as u32,
            user: self.number(number(layout.task_cred)?, layout.cred_uid)? as u32,
            command: mm.map_or(Ok(Vec::new()), |mm| self.command(mm))?,
            threads: tasks.into_iter().map(|task| self.thread(task)).collect::<Result<_, _>>()?,
            mm,
        })
    }

    fn thread(&self, task: u64) -> Result<Thread, Error> {
        let layout = &self.kernel.layout;
        let state = layout.task_state.or(layout.task_old_state).ok_or(Error::Field("task_struct.__state"))?;
        Ok(Thread {
            tid: self.number(task, layout.task_pid)? as u32,
            name: self.thread_name(task)?,
            state: State::of(self.number(task, state)?, self.number(task, layout.task_exit_state)?),
            task,
        })
    }

    /// Returns the name of a thread, as the kernel shows it (`proc_task_name` in `fs/proc/array.c`). Threads of the
    /// kernel can have longer names than programs. A worker's name includes its work queue.
    pub(crate) fn thread_name(&self, task: u64) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let name = self.text(task.wrapping_add(layout.task_comm.offset()), NAME_BYTES)?;
        let flags = self.number(task, layout.task_flags)?;
        let (Some(private), true) = (layout.task_private, flags & flag::KERNEL_THREAD != 0) else {
            return Ok(name);
        };
        let kthread = self.number(task, private)?;
        if flags & flag::WORKER != 0 {
            return Ok(name + &self.work(kthread)?);
        }
        let long = match layout.kthread_name {
            Some(field) if kthread != 0 => self.number(kthread, field)?,
            _ => 0,
        };
        if long == 0 { Ok(name) } else { self.text(long, LONG_NAME_BYTES_MAX) }
    }

    /// Returns the suffix of a worker's name: a sign and its last work queue. Empty if it has none.
    fn work(&self, kthread: u64) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let (Some(data), Some(pool), Some(work), Some(description)) =
            (layout.kthread_data, layout.worker_pool, layout.worker_work, layout.worker_description)
        else {
            return Ok(String::new());
        };
        let worker = self.number(kthread, data)?;
        if worker == 0 || self.number(worker, pool)? == 0 {
            return Ok(String::new());
        }
        let text =
            self.text(worker.wrapping_add(description.offset()), description.bytes().min(64) as usize)?;
        let sign = if self.number(worker, work)? == 0 { '-' } else { '+' };
        Ok(if text.is_empty() { text } else { format!("{sign}{text}") })
    }

    /// Returns the arguments of a process.
    fn command(&self, mm: u64) -> Result<Vec<String>, Error> {
        let layout = &self.kernel.layout;
        let (start, end) = (self.number(mm, layout.mm_arg_start)?, self.number(mm, layout.mm_arg_end)?);
        let bytes = end.saturating_sub(start).min(COMMAND_BYTES_MAX as u64);
        let mut text = vec![0; bytes as usize];
        let read = self.memory_of(mm)?.read_some(start, &mut text);
        text.truncate(read);
        Ok(arguments(&text))
    }

    /// Returns the address space of a process. `None` for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if the process's root page table is not mapped.
    pub fn memory_of_process(&self, process: &Process) -> Result<Option<AddressSpace<'g>>, Error> {
        process.mm.map(|mm| self.memory_of(mm)).transpose()
    }
}

/// Returns the arguments in a command line, each of which ends with a zero byte. Bytes beyond [`COMMAND_BYTES_MAX`] and
/// arguments beyond [`ARGUMENTS_MAX`] are left out.
#[must_use]
pub fn arguments(text: &[u8]) -> Vec<String> {
    let text = &text[..text.len().min(COMMAND_BYTES_MAX)];
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    let parts = text.split(|byte| *byte == 0).take(ARGUMENTS_MAX);
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}
