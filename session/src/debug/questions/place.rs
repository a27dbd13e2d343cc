//! A machine whose next instruction is at a breakpoint.

use everett_cpu::CpuState;
use everett_inspect::current::Current;
use everett_inspect::{Guest, Kernel};
use everett_vmm::Machine;

use crate::debug::calls::Caller;
use crate::debug::cursor::position::Position;
use crate::inside::machine::MachineRam;

/// End of the addresses of programs.
const USER_END: u64 = 1 << 47;

/// A machine at a breakpoint.
pub struct Place<'p> {
    /// Number of the node.
    pub node: usize,
    /// Vtime of the node, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of instructions that the node has retired.
    pub count: u64,
    /// Registers of the CPU.
    pub cpu: CpuState,
    /// The guest.
    pub guest: Guest<'p>,
    pub(super) machine: &'p Machine,
}

impl<'p> Place<'p> {
    /// Returns a machine of a timeline where it stands, if its kernel can be read.
    #[must_use]
    pub fn of(kernel: &'p Kernel, ram: &'p MachineRam<'p>, position: Position) -> Option<Place<'p>> {
        let (Position { vtime_ns, node, count }, machine) = (position, ram.0);
        let guest = Guest::new(kernel, ram).ok()?;
        Some(Place { node, vtime_ns, count, cpu: machine.cpu(), guest, machine })
    }
}

impl Place<'_> {
    /// Returns the first argument of the function.
    #[must_use]
    pub fn first(&self) -> u64 {
        const RDI: usize = 7;
        self.cpu.gpr[RDI]
    }

    /// Returns the second argument of the function.
    #[must_use]
    pub fn second(&self) -> u64 {
        const RSI: usize = 6;
        self.cpu.gpr[RSI]
    }

    /// Returns the third argument of the function.
    #[must_use]
    pub fn third(&self) -> u64 {
        const RDX: usize = 2;
        self.cpu.gpr[RDX]
    }

    /// Reads numbers of 64 bits from the kernel's memory. `None` if they are not mapped.
    #[must_use]
    pub fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (n, word) in (0_u64..).zip(words.iter_mut()) {
            let mut bytes = [0; 8];
            self.guest.memory().read(address.checked_add(8 * n)?, &mut bytes).ok()?;
            *word = u64::from_le_bytes(bytes);
        }
        Some(words)
    }

    /// Returns the process that runs, to decode its system calls.
    #[must_use]
    pub fn caller<'c>(&'c self, thread: &'c Current) -> ThisCaller<'c> {
        ThisCaller { place: self, thread }
    }
}

/// The process that runs at a breakpoint.
pub struct ThisCaller<'c> {
    place: &'c Place<'c>,
    thread: &'c Current,
}

impl Caller for ThisCaller<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        // A program may pass an address of the kernel, which the kernel refuses.
        let wanted = USER_END.saturating_sub(address).min(into.len() as u64) as usize;
        self.place.machine.read_virtual(address, &mut into[..wanted])
    }

    fn descriptor(&self, number: u32) -> Option<String> {
        let guest = &self.place.guest;
        let file = match guest.open_file_of(self.thread, number) {
            Ok(file) => file?,
            Err(_) => return Some("unreadable".to_owned()),
        };
        let Some(sock) = file.sock else { return Some(file.name) };
        let Ok(socket) = guest.socket(sock) else { return Some(file.name) };
        let (kind, state) = (socket.kind.name(), socket.state.name());
        Some(format!("{kind} {state} {} -> {}", socket.local, socket.remote))
    }
}
