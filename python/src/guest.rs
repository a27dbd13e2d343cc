//! Things in a guest: processes, stacks, sockets, files.

use everett_inspect::files::OpenFile as File;
use everett_inspect::mapping;
use everett_inspect::program_stack;
use everett_inspect::sockets;
use everett_inspect::task;
use everett_scripting::view::ThreadStack;
use everett_session::probes::at_rest::Known;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;

/// Returns the value of an expression as an object of Python.
pub(crate) fn known(py: Python<'_>, value: Known) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Known::Integer(number) => number.into_bound_py_any(py),
        Known::Float(number) => number.into_bound_py_any(py),
        Known::Text(text) => text.into_bound_py_any(py),
        Known::Address(address) => address.into_bound_py_any(py),
    }
}

/// A thread.
#[pyclass(frozen, get_all, module = "everett")]
#[derive(Clone)]
pub(crate) struct Thread {
    tid: u32,
    name: String,
    state: char,
}

/// A process.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Process {
    pub(crate) pid: u32,
    parent: u32,
    user: u32,
    name: String,
    state: char,
    command: Vec<String>,
    threads: Vec<Thread>,
}

impl From<task::Process> for Process {
    fn from(process: task::Process) -> Process {
        let threads = process.threads.iter();
        let threads: Vec<Thread> = threads
            .map(|thread| Thread { tid: thread.tid, name: thread.name.clone(), state: thread.state.letter() })
            .collect();
        let first = threads.first();
        Process {
            pid: process.pid,
            parent: process.parent,
            user: process.user,
            name: first.map(|thread| thread.name.clone()).unwrap_or_default(),
            state: first.map_or('?', |thread| thread.state),
            command: process.command,
            threads,
        }
    }
}

#[pymethods]
impl Process {
    fn __repr__(&self) -> String {
        format!("Process(pid={}, name={:?}, state={:?})", self.pid, self.name, self.state)
    }
}

/// A mapping of a process.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Mapping {
    start: u64,
    end: u64,
    access: String,
    name: String,
    offset: Option<u64>,
}

impl From<mapping::Mapping> for Mapping {
    fn from(mapping: mapping::Mapping) -> Mapping {
        let access = mapping.access;
        let letter = |is: bool, letter| if is { letter } else { '-' };
        let access = [
            letter(access.read, 'r'),
            letter(access.write, 'w'),
            letter(access.execute, 'x'),
            if access.shared { 's' } else { 'p' },
        ];
        Mapping {
            start: mapping.start,
            end: mapping.end,
            access: access.into_iter().collect(),
            name: mapping.name,
            offset: mapping.file.map(|file| file.offset),
        }
    }
}

#[pymethods]
impl Mapping {
    fn __repr__(&self) -> String {
        format!("Mapping({:#x}-{:#x} {} {:?})", self.start, self.end, self.access, self.name)
    }
}

/// A frame of a program's stack.
#[pyclass(frozen, get_all, module = "everett")]
#[derive(Clone)]
pub(crate) struct Frame {
    address: u64,
    file: Option<String>,
    in_file: Option<u64>,
    function: Option<String>,
    source: Option<String>,
    text: String,
}

impl From<program_stack::Frame> for Frame {
    fn from(frame: program_stack::Frame) -> Frame {
        let text = frame.to_string();
        let place = frame.source.first();
        let source = place.and_then(|place| match (&place.file, place.line) {
            (Some(file), Some(line)) => Some(format!("{file}:{line}")),
            _ => None,
        });
        Frame {
            address: frame.address,
            file: frame.file,
            in_file: frame.in_file,
            function: frame.function,
            source,
            text,
        }
    }
}

#[pymethods]
impl Frame {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Frame({:?})", self.text)
    }
}

/// The stack of a thread.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Stack {
    pid: u32,
    tid: u32,
    name: String,
    state: char,
    kernel: Vec<String>,
    program: Vec<Frame>,
    complete: bool,
}

impl From<ThreadStack> for Stack {
    fn from(stack: ThreadStack) -> Stack {
        Stack {
            pid: stack.pid,
            tid: stack.tid,
            name: stack.name,
            state: stack.state.letter(),
            kernel: stack.kernel,
            program: stack.program.into_iter().map(Frame::from).collect(),
            complete: stack.is_complete,
        }
    }
}

#[pymethods]
impl Stack {
    fn __str__(&self) -> String {
        let lines = self.kernel.iter().chain(self.program.iter().map(|frame| &frame.text));
        lines.map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn __repr__(&self) -> String {
        let frames = self.kernel.len() + self.program.len();
        format!("Stack(pid={}, tid={}, name={:?}, {frames} frames)", self.pid, self.tid, self.name)
    }
}

/// A socket.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Socket {
    kind: &'static str,
    state: &'static str,
    local: String,
    remote: String,
    receive_queue: u64,
    send_queue: u64,
    retransmits: u64,
    inode: u64,
    waits_for_accept: bool,
    /// Processes that have the socket open: name, process ID and descriptor.
    owners: Vec<(String, u32, u32)>,
}

impl From<sockets::Socket> for Socket {
    fn from(socket: sockets::Socket) -> Socket {
        let owners = socket.owners.into_iter();
        Socket {
            kind: socket.kind.name(),
            state: socket.state.name(),
            local: socket.local.to_string(),
            remote: socket.remote.to_string(),
            receive_queue: socket.receive_queue,
            send_queue: socket.send_queue,
            retransmits: socket.retransmits,
            inode: socket.inode,
            waits_for_accept: socket.waits_for_accept,
            owners: owners.map(|owner| (owner.name, owner.pid, owner.descriptor)).collect(),
        }
    }
}

#[pymethods]
impl Socket {
    fn __repr__(&self) -> String {
        format!("Socket({} {} {} -> {})", self.kind, self.state, self.local, self.remote)
    }
}

/// An open file.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct OpenFile {
    fd: u32,
    kind: &'static str,
    name: String,
    offset: u64,
    flags: u32,
    inode: u64,
    size: u64,
}

impl From<(u32, File)> for OpenFile {
    fn from((fd, file): (u32, File)) -> OpenFile {
        OpenFile {
            fd,
            kind: file.kind.name(),
            name: file.name,
            offset: file.offset,
            flags: file.flags,
            inode: file.inode,
            size: file.bytes,
        }
    }
}

#[pymethods]
impl OpenFile {
    fn __repr__(&self) -> String {
        format!("OpenFile(fd={}, kind={:?}, name={:?})", self.fd, self.kind, self.name)
    }
}
