//! The origin of bytes: who wrote them, and where that program had them from.
//!
//! A search goes back along a recorded timeline, one step at a time: to the last store to bytes of memory, to the
//! instruction that loaded or computed the stored value, to the frame that brought bytes from another node, to the system
//! call that sent them there or wrote them into a file. It goes on until a value is computed or older than the timeline.
//! It says where it does not know how to go on.
//!
//! Memory is identified by its place in RAM, so stores through other linear addresses are found, too: the kernel's own
//! mapping of all RAM, and mappings that processes share. A copied page (fork, page fault) is one more copy.
//!
//! **Invariant.** The search changes nothing that a guest can observe.
//!
//! - [`limits`]: bounds on the search
//! - [`step`]: a step on the way back
//! - `instruction`: an instruction, and where the values that it stores or defines come from
//! - `thread`: the running thread with its stack
//! - `store`: the last store to bytes of memory
//! - `register`: the instruction that defined a register
//! - `frames`: frames on the wire, and the frame that brought bytes into memory
//! - `call`: the system call that sent bytes, or that wrote them into a file

mod call;
mod frames;
mod instruction;
pub mod limits;
mod register;
pub mod step;
mod store;
mod thread;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use everett_inspect::mapping::Mapping;
use everett_inspect::memory::{AddressSpace, PAGE};
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};

use self::frames::Frames;
use self::instruction::{Before, Part, Value};
use self::limits::{BYTES_MAX, Bounds, STEPS_MAX};
use self::step::{Bytes, Happened, Step};
use super::cursor::position::Position;
use super::cursor::{Aim, Cursor, Listener};
use crate::explore::path_runner::Interrupted;
use crate::inside::machine::MachineRam;
use crate::inside::mapped_files::MappedFiles;

/// First linear address of the kernel's half.
const KERNEL_HALF: u64 = 1 << 63;

/// Reason why bytes that a device wrote are not followed to a frame.
const FRAMES_LACK: &str = "frames are missing: the timeline has more than are kept";

/// Bytes whose origin is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Memory of a node.
    Memory(Memory),
    /// Content of a file on the node with this number.
    File(usize, FileBytes),
    /// Payload of a message. Its sender is the node with this number, or any node.
    Message(Option<usize>, MessageBytes),
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBytes {
    /// Path, as the writing process sees it.
    pub path: String,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Payload of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageBytes {
    /// The payload of a frame with a TCP segment. The number says which one, so its sender does not matter.
    Number {
        /// Number of the frame.
        number: u64,
        /// Offset of the first byte in the payload.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// The payload of the last frame before the instant with a TCP segment that contains these bytes.
    Payload {
        /// The bytes that the payload contains.
        text: Vec<u8>,
        /// Distance of the first wanted byte from the start of `text`.
        offset: u64,
        /// Number of wanted bytes.
        bytes: u64,
    },
}

/// Memory of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Number of the node.
    pub node: usize,
    /// Guest-physical address of the root page table (CR3).
    pub root: u64,
    /// Linear address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Bounds that the operator chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of computations on a way back to which the search goes on. It follows copies without this bound.
    pub depth: usize,
    /// Number of instructions before a store that are executed again, to find where its value came from.
    pub instructions: u64,
}

/// Bytes whose origin is still to be found.
#[derive(Debug, Clone)]
struct Pending {
    /// Number of the step that it explains.
    explains: Option<usize>,
    /// Number of computations on the way from the first step.
    depth: usize,
    /// Instant at which the bytes were there.
    position: Position,
    wanted: Wanted,
}

#[derive(Debug, Clone)]
enum Wanted {
    Memory(Memory),
    /// Memory that an instruction loaded. These registers may have chosen it as an entry of a table.
    Entry(Memory, Before, Vec<Part>),
    Register(Part),
    Sent(Sent),
    File(FileBytes),
}

/// Bytes of a TCP connection that a node sent.
#[derive(Debug, Clone)]
struct Sent {
    source: SocketAddr,
    destination: SocketAddr,
    /// Sequence number of the first byte.
    sequence: u32,
    bytes: Vec<u8>,
}

/// A search for the origin of bytes.
pub struct Search<'o, 's> {
    cursor: &'o mut Cursor<'s>,
    kernel: &'o Kernel,
    /// Programs of the nodes, by the nodes' numbers.
    files: &'o [MappedFiles],
    listener: &'o mut dyn Listener,
    extent: Extent,
    bounds: Bounds,
    /// Frames on the wire up to the instant of the question. `None` before they are needed.
    frames: Option<Frames>,
    /// Vtime of the instant of the question.
    at_ns: u64,
    pending: VecDeque<Pending>,
    steps: Vec<Step>,
    /// Numbers of the steps that are instructions: stores and computations.
    numbers: BTreeMap<Executed, usize>,
}

/// Instruction that a step has explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Executed {
    node: usize,
    /// Number of instructions that the node had retired before it.
    count: u64,
    /// Address and number of the bytes that it stored. `None` if it computed a value.
    stored: Option<(u64, u64)>,
}

impl<'o, 's> Search<'o, 's> {
    /// Returns a search that begins at the instant where the cursor is. `files` are the programs of all nodes.
    pub fn new(
        cursor: &'o mut Cursor<'s>,
        kernel: &'o Kernel,
        files: &'o [MappedFiles],
        extent: Extent,
        listener: &'o mut dyn Listener,
    ) -> Search<'o, 's> {
        let at_ns = cursor.vtime();
        Search {
            cursor,
            kernel,
            files,
            listener,
            extent,
            bounds: Bounds::default(),
            frames: None,
            at_ns,
            pending: VecDeque::new(),
            steps: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Returns the search with other bounds than the default ones.
    #[must_use]
    pub fn within(self, bounds: Bounds) -> Search<'o, 's> {
        Search { bounds, ..self }
    }

    /// Returns the steps from `source` back to its origins.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the listener ended the search, and another error if the host or the engine failed, or if
    /// the engine has no watchpoints.
    pub fn origins(mut self, source: Source) -> anyhow::Result<Vec<Step>> {
        let searched = self.search(source);
        self.clear();
        searched.map(|()| self.steps)
    }

    fn search(&mut self, source: Source) -> anyhow::Result<()> {
        match source {
            Source::Memory(memory) => {
                let position = self.cursor.position(memory.node);
                self.want(None, 0, position, Wanted::Memory(memory));
            }
            Source::File(node, file) => {
                let position = Position { count: u64::MAX, ..self.cursor.position(node) };
                self.want(None, 0, position, Wanted::File(file));
            }
            Source::Message(_, MessageBytes::Number { number, offset, bytes }) => {
                self.message(number, offset, bytes)?
            }
            Source::Message(sender, MessageBytes::Payload { text, offset, bytes }) => {
                let (number, start) = self.message_with(sender, &text)?;
                self.message(number, start.saturating_add(offset), bytes)?;
            }
        }
        while let Some(next) = self.pending.pop_front() {
            if !self.listener.goes_on() {
                return Err(Interrupted.into());
            }
            if self.steps.len() >= STEPS_MAX {
                let because = format!("the search ends after {STEPS_MAX} steps");
                self.end(&next, Happened::Unknown { because });
                break;
            }
            match next.wanted.clone() {
                Wanted::Memory(memory) => self.memory(&next, memory, None)?,
                Wanted::Entry(memory, before, registers) => {
                    self.memory(&next, memory, Some((&before, &registers)))?;
                }
                Wanted::Register(part) => self.register(&next, part)?,
                Wanted::Sent(sent) => self.sent(&next, &sent)?,
                Wanted::File(FileBytes { path, offset, bytes }) => self.file(&next, &path, offset, bytes)?,
            }
        }
        Ok(())
    }

    /// Removes all breakpoints and watchpoints.
    fn clear(&mut self) {
        for node in 0..self.cursor.timeline().world().nodes().len() {
            self.cursor.set_breakpoints(node, &[]);
            self.cursor.set_watchpoints(node, &[]);
        }
    }

    fn want(&mut self, explains: Option<usize>, depth: usize, position: Position, wanted: Wanted) {
        self.pending.push_back(Pending { explains, depth, position, wanted });
    }

    /// Adds a step where the cursor is. Returns its number.
    fn step(
        &mut self,
        explains: Option<usize>,
        position: Position,
        what: Happened,
        has_thread: bool,
    ) -> usize {
        let number = self.steps.len() + 1;
        let node = position.node;
        let thread = if has_thread { self.thread(node) } else { None };
        self.steps.push(Step { number, explains, vtime_ns: position.vtime_ns, node, what, thread });
        number
    }

    /// Adds a last step.
    fn end(&mut self, pending: &Pending, what: Happened) {
        self.step(pending.explains, pending.position, what, false);
    }

    fn unknown(&mut self, pending: &Pending, because: &str) {
        self.end(pending, Happened::Unknown { because: because.to_owned() });
    }

    /// Adds a last step and returns true if another chain has come to this instruction.
    fn joins(&mut self, explains: Option<usize>, position: Position, executed: Executed) -> bool {
        let Some(with) = self.numbers.get(&executed).copied() else { return false };
        self.step(explains, position, Happened::Joined { with }, false);
        true
    }

    /// Moves to a position, which is before an instruction.
    fn go_to(&mut self, position: Position) -> anyhow::Result<()> {
        if self.cursor.position(position.node) != position {
            self.clear();
            let aim = Aim::Count { node: position.node, count: position.count };
            self.cursor.seek(aim, self.listener)?;
        }
        Ok(())
    }

    /// Finds where a value comes from that an instruction at `position` stored or defined.
    fn follow(
        &mut self,
        pending: &Pending,
        explains: Option<usize>,
        position: Position,
        before: &Before,
        value: Value,
    ) -> anyhow::Result<()> {
        let (node, root) = (position.node, before.root);
        let here = Pending { explains, position, ..pending.clone() };
        match value {
            Value::Memory(address, bytes) => {
                let memory = Memory { node, root, address, bytes };
                let wanted = match before.chosen_by() {
                    registers if registers.is_empty() => Wanted::Memory(memory),
                    registers => Wanted::Entry(memory, before.clone(), registers),
                };
                self.want(explains, pending.depth, position, wanted);
            }
            Value::Register(part) => {
                self.want(explains, pending.depth, position, Wanted::Register(part));
            }
            Value::Constant(constant) => {
                self.go_to(position)?;
                self.step(
                    explains,
                    position,
                    Happened::Origin { origin: format!("the value is {constant}") },
                    true,
                );
            }
            Value::Unknown(because) => self.unknown(&here, &because),
            Value::Computed(sources) => {
                let executed = Executed { node, count: position.count, stored: None };
                if self.joins(explains, position, executed) {
                    return Ok(());
                }
                self.go_to(position)?;
                let followed = pending.depth < self.extent.depth;
                let (sources_count, flags) = (sources.len(), before.reads_flags());
                let what = Happened::Computed {
                    instruction: before.text(),
                    sources: sources_count,
                    flags,
                    followed,
                };
                let number = self.step(explains, position, what, true);
                self.numbers.insert(executed, number);
                if !followed {
                    return Ok(());
                }
                for source in sources {
                    let wanted = match source {
                        Value::Memory(address, bytes) => {
                            Wanted::Memory(Memory { node, root, address, bytes })
                        }
                        Value::Register(part) => Wanted::Register(part),
                        _ => continue,
                    };
                    self.want(Some(number), pending.depth + 1, position, wanted);
                }
            }
        }
        Ok(())
    }

    /// Finds the last store to memory. If the memory may be an entry of a table, `chosen` has the instruction that loaded it,
    /// and the registers that chose it.
    fn memory(
        &mut self,
        pending: &Pending,
        wanted: Memory,
        chosen: Option<(&Before, &[Part])>,
    ) -> anyhow::Result<()> {
        if pending.position.count != u64::MAX && pending.explains.is_some() {
            self.go_to(pending.position)?;
        }
        let Memory { node, root, address, .. } = wanted;
        let in_page = PAGE - address % PAGE;
        let all = wanted.bytes.clamp(1, BYTES_MAX);
        let bytes = all.min(in_page);
        if bytes < all {
            // The bytes in the next page have a place of their own in RAM.
            let rest = Memory { address: address.wrapping_add(bytes), bytes: all - bytes, ..wanted };
            self.want(pending.explains, pending.depth, pending.position, Wanted::Memory(rest));
        }
        let wanted = Memory { bytes, ..wanted };
        let ram = MachineRam(self.cursor.timeline().machine(node));
        let space = AddressSpace::new(&ram, root);
        let mut expected = vec![0; bytes as usize];
        let Some(physical) =
            space.physical(address).filter(|_| space.read_some(address, &mut expected) == expected.len())
        else {
            self.unknown(pending, &format!("no page is mapped at {address:#x} at this instant"));
            return Ok(());
        };
        let is_kernels = address >= KERNEL_HALF;
        if let Some(file) = self.file_of(node, &wanted, &expected, true) {
            if let Some((before, registers)) = chosen.filter(|_| pending.depth < self.extent.depth) {
                let (instruction, sources) = (before.text(), registers.len());
                let what = Happened::Chosen { file, instruction, sources, bytes: Bytes(expected) };
                let number = self.step(pending.explains, pending.position, what, true);
                for register in registers {
                    let wanted = Wanted::Register(*register);
                    self.want(Some(number), pending.depth + 1, pending.position, wanted);
                }
                return Ok(());
            }
            let origin = format!("the bytes at {address:#x} are those of {file}: {}", Bytes(expected));
            self.end(pending, Happened::Origin { origin });
            return Ok(());
        }
        if is_kernels && self.arrived(pending, node, physical, &expected)? {
            return Ok(());
        }
        let pages_max = self.bounds.alias_pages;
        let addresses = store::linear_addresses(self.kernel, self.cursor, wanted, physical, pages_max);
        let store::Addresses { linear: addresses, missed } = match addresses {
            Ok(addresses) => addresses,
            Err(because) => {
                self.unknown(pending, &because);
                return Ok(());
            }
        };
        let Some(found) = self.last_store(pending.position, wanted, physical, &addresses)? else {
            if is_kernels && self.lacks_frames() {
                let because = format!("no instruction stored the bytes at {address:#x}, and {FRAMES_LACK}");
                self.unknown(pending, &because);
                return Ok(());
            }
            let mut origin = self.older(node, &wanted, &expected);
            if let Some(missed) = missed {
                origin = format!("{origin}; {missed}");
            }
            self.end(pending, Happened::Origin { origin });
            return Ok(());
        };
        if found.after != expected {
            let mut because = format!(
                "a device or another mapping stored the bytes at {address:#x} after the last store that was found"
            );
            if is_kernels && self.lacks_frames() {
                because = format!("{because}, and {FRAMES_LACK}");
            }
            self.unknown(pending, &because);
            return Ok(());
        }
        let store::Found { position, before, stored_at, range, before_bytes, .. } = found;
        if is_kernels && self.device_wrote(position, pending.position, physical, (wanted.node, &addresses))? {
            let mut because = format!(
                "a device wrote around {address:#x} after the last store that was found. The device may have written these \
                 bytes, too"
            );
            if self.lacks_frames() {
                because = format!("{because}, and {FRAMES_LACK}");
            }
            self.unknown(pending, &because);
            return Ok(());
        }
        let stored = address.wrapping_add(range.start);
        let length = range.end - range.start;
        let executed = Executed { node, count: position.count, stored: Some((stored, length)) };
        if self.joins(pending.explains, position, executed) {
            return Ok(());
        }
        let part = |all: &[u8]| Bytes(all[range.start as usize..range.end as usize].to_vec());
        let what = Happened::Store {
            address: stored,
            before: part(&before_bytes),
            after: part(&expected),
            older: bytes - length,
            instruction: before.text(),
            not_looked_for: missed,
        };
        let number = self.step(pending.explains, position, what, true);
        self.numbers.insert(executed, number);
        let value = before.stored(stored_at, length);
        self.follow(pending, Some(number), position, &before, value)
    }

    /// True if frames are missing among those that the search has collected.
    fn lacks_frames(&self) -> bool {
        self.frames.as_ref().is_some_and(|frames| frames.lacks)
    }

    /// Returns a sentence about bytes that no instruction of the timeline has stored.
    fn older(&mut self, node: usize, wanted: &Memory, expected: &[u8]) -> String {
        let Memory { address, .. } = *wanted;
        let text = Bytes(expected.to_vec());
        if let Some(file) = self.file_of(node, wanted, expected, false) {
            return format!("the bytes at {address:#x} are those of {file}: {text}");
        }
        format!(
            "no instruction since the start of the timeline stored the bytes at {address:#x}: {text}. They are older, a \
             device wrote them, or a program did through a mapping that no longer exists"
        )
    }

    /// Returns path and offset of the program whose file is mapped at an address, if its bytes are those in memory. With
    /// `read_only`, the process must not be able to write there.
    fn file_of(&self, node: usize, wanted: &Memory, expected: &[u8], read_only: bool) -> Option<String> {
        use everett_inspect::program_stack::Files as _;
        let ram = MachineRam(self.cursor.timeline().machine(node));
        let guest = Guest::new(self.kernel, &ram).ok()?;
        let processes = guest.processes().ok()?;
        let root = AddressSpace::new(&ram, wanted.root).root();
        // With page table isolation, user mode has a root table in the page after the kernel's.
        let is_it = |process: &Process| {
            let memory = guest.memory_of_process(process).ok().flatten();
            memory.is_some_and(|memory| memory.root() & !PAGE == root & !PAGE)
        };
        let process = processes.iter().find(|process| is_it(process))?;
        let mappings = guest.mappings(process).ok()?;
        let is_there = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&wanted.address);
        let mapping = mappings.iter().find(is_there).filter(|it| !(read_only && it.access.write))?;
        let offset = mapping.file?.offset.checked_add(wanted.address - mapping.start)?;
        let program = self.files.get(node)?.program(mapping)?;
        let bytes = program.bytes_at(offset);
        (bytes.get(..expected.len()) == Some(expected))
            .then(|| format!("the file {} at offset {offset:#x}", mapping.name))
    }
}
