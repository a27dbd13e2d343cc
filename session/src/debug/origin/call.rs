//! The system call that sent bytes, or that wrote them into a file.

use anyhow::bail;
use everett_inspect::calls::{Buffers, Sending, Writing};
use everett_inspect::{Error, Guest, Kernel};
use everett_vmm::Machine;

use super::step::{Bytes, Happened};
use super::{Memory, Pending, Search, Sent, Wanted};
use crate::debug::cursor::{Cursor, Stop};
use crate::inside::machine::{MachineRam, registers};

/// Registers of the first arguments of a function, as places in `CpuState::gpr`.
const RSI: usize = 6;
const RDI: usize = 7;

/// Functions of the kernel through which all bytes go that programs send on TCP connections.
const SEND: [&str; 2] = ["tcp_sendmsg_locked", "tcp_sendmsg"];
/// Function of the kernel through which system calls write files with pages in memory.
const WRITE: [&str; 1] = ["generic_perform_write"];

/// Later changes of a file that the search does not see.
const NOT_LOOKED_FOR: &str =
    "a later truncation, and stores through a mapping of the file, are not looked for";

/// Returns the number of bytes before the wanted ones and the number of bytes that a call still has, from its first two
/// arguments. `None` if the call does not have the wanted bytes.
type Wants<'w> = dyn Fn(&Guest<'_>, u64, u64) -> Option<(u64, u64)> + Sync + 'w;

/// Calls `look` with the guest of a machine.
fn look<T>(
    kernel: &Kernel,
    machine: &Machine,
    look: impl FnOnce(&Guest<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let ram = MachineRam(machine);
    look(&Guest::new(kernel, &ram)?)
}

impl Search<'_, '_> {
    /// Finds the system call that sent bytes.
    pub(super) fn sent(&mut self, pending: &Pending, sent: &Sent) -> anyhow::Result<()> {
        let same = |a: std::net::SocketAddr, b: std::net::SocketAddr| {
            a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
        };
        let distance = |sending: &Sending| {
            let distance = u64::from(sent.sequence.wrapping_sub(sending.sequence));
            let is_it = same(sending.addresses.0, sent.source)
                && same(sending.addresses.1, sent.destination)
                && distance < sending.rest;
            is_it.then_some((distance, sending.rest))
        };
        let found = self.call(pending, &SEND, &|guest, first, second| {
            guest.sending(first, second).ok().as_ref().and_then(distance)
        })?;
        let Some((distance, rest)) = found else {
            let because = format!(
                "no call to {} on this timeline sent the bytes from {} to {}",
                SEND[0], sent.source, sent.destination
            );
            self.unknown(pending, &because);
            return Ok(());
        };
        let what = |address| Happened::Sent {
            source: sent.source,
            destination: sent.destination,
            address,
            bytes: Bytes(sent.bytes.clone()),
        };
        self.follow_buffer(pending, (distance, rest), Some(&sent.bytes), sent.bytes.len() as u64, what)
    }

    /// Finds the system call that wrote bytes of a file.
    pub(super) fn file(
        &mut self,
        pending: &Pending,
        path: &str,
        offset: u64,
        bytes: u64,
    ) -> anyhow::Result<()> {
        let distance = |writing: &Writing| {
            let distance = offset.checked_sub(writing.offset)?;
            (writing.path == path && distance < writing.rest).then_some((distance, writing.rest))
        };
        let found = self.call(pending, &WRITE, &|guest, first, second| {
            guest.writing(first, second).ok().as_ref().and_then(distance)
        })?;
        let Some((distance, rest)) = found else {
            let because = format!(
                "no call to {} on this timeline wrote {path} at offset {offset}. The bytes are older, or a program stored \
                 them through a mapping of the file, or wrote them past the page cache",
                WRITE[0]
            );
            self.unknown(pending, &because);
            return Ok(());
        };
        let bytes = bytes.min(rest - distance);
        let position = self.cursor.position(pending.position.node);
        let root = self.cursor.timeline().machine(position.node).cpu().cr3;
        let node = position.node;
        let address = match self.buffer(node, distance, rest) {
            Ok(address) => address,
            Err(because) => {
                self.unknown(&Pending { position, ..pending.clone() }, &because);
                return Ok(());
            }
        };
        let content = self.user_bytes(node, root, address, bytes);
        let what = |address| Happened::Written {
            path: path.to_owned(),
            offset,
            address,
            bytes: Bytes(content.clone()),
            not_looked_for: NOT_LOOKED_FOR,
        };
        self.follow_buffer(pending, (distance, rest), None, bytes, what)
    }

    /// Moves back to the last call of a function of the kernel that `wanted` accepts by its first two arguments.
    fn call(
        &mut self,
        pending: &Pending,
        names: &[&str],
        wanted: &Wants<'_>,
    ) -> anyhow::Result<Option<(u64, u64)>> {
        let node = pending.position.node;
        let Some(address) = names.iter().find_map(|name| self.kernel.address_of(name)) else {
            return Ok(None);
        };
        self.clear();
        if !self.cursor.set_breakpoints(node, &[address]) {
            bail!("this engine has no breakpoints; use the engine soft");
        }
        let kernel = self.kernel;
        let is_wanted = |cursor: &Cursor<'_>, stop: &Stop| {
            if *stop != (Stop::Breakpoint { node }) {
                return None;
            }
            let machine = cursor.timeline().machine(node);
            let gpr = machine.cpu().gpr;
            look(kernel, machine, |guest| Ok(wanted(guest, gpr[RDI], gpr[RSI]))).ok().flatten()
        };
        let found = self.cursor.run_back(pending.position, &is_wanted, self.listener)?;
        self.clear();
        Ok(found.map(|(_, call)| call))
    }

    /// Adds the step of a system call that took bytes from a buffer, and looks for the stores to the buffer. `(distance,
    /// rest)` are the number of bytes before the wanted ones, and the number of bytes that the call still has.
    fn follow_buffer(
        &mut self,
        pending: &Pending,
        (distance, rest): (u64, u64),
        expected: Option<&[u8]>,
        bytes: u64,
        what: impl FnOnce(u64) -> Happened,
    ) -> anyhow::Result<()> {
        let node = pending.position.node;
        let position = self.cursor.position(node);
        let address = match self.buffer(node, distance, rest) {
            Ok(address) => address,
            Err(because) => {
                self.unknown(&Pending { position, ..pending.clone() }, &because);
                return Ok(());
            }
        };
        let root = self.cursor.timeline().machine(node).cpu().cr3;
        let number = self.step(pending.explains, position, what(address), true);
        let there = self.user_bytes(node, root, address, bytes);
        if expected.is_some_and(|expected| expected != there) {
            let here = Pending { explains: Some(number), position, ..pending.clone() };
            self.unknown(&here, "the program's buffer has other bytes than the message");
            return Ok(());
        }
        let memory = Memory { node, root, address, bytes };
        self.want(Some(number), pending.depth, position, Wanted::Memory(memory));
        Ok(())
    }

    fn user_bytes(&self, node: usize, root: u64, address: u64, bytes: u64) -> Vec<u8> {
        let ram = MachineRam(self.cursor.timeline().machine(node));
        let mut there = vec![0; bytes as usize];
        let read = everett_inspect::memory::AddressSpace::new(&ram, root).read_some(address, &mut there);
        there.truncate(read);
        there
    }

    /// Returns the address of the byte at a distance from the next byte that the running system call takes.
    fn buffer(&self, node: usize, distance: u64, rest: u64) -> Result<u64, String> {
        let machine = self.cursor.timeline().machine(node);
        let cpu = registers(&machine.cpu());
        let ram = MachineRam(machine);
        let buffers = || -> Result<Option<Buffers>, Error> {
            let guest = Guest::new(self.kernel, &ram)?;
            let running = guest.running()?;
            let processes = guest.processes()?;
            let Some(process) = processes.iter().find(|process| process.pid == running.pid) else {
                return Ok(None);
            };
            let thread = process.threads.iter().find(|thread| thread.tid == running.tid);
            let (Some(thread), Some(memory)) = (thread, guest.memory_of_process(process)?) else {
                return Ok(None);
            };
            guest.buffers(&guest.program_registers(process, thread, &cpu)?, memory)
        };
        let buffers = buffers().map_err(|error| everett_input::causes::with_causes(&error))?;
        let buffers = buffers.ok_or("the system call is not one that is known to take bytes from buffers")?;
        let all = buffers.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let done =
            all.checked_sub(rest).ok_or("the system call has fewer bytes than the kernel passes on")?;
        let mut at = done.saturating_add(distance);
        for (address, bytes) in buffers {
            if at < bytes {
                return Ok(address.wrapping_add(at));
            }
            at -= bytes;
        }
        Err("the bytes lie behind the buffers of the system call".to_owned())
    }
}
