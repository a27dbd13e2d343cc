//! The machine at a hit, as expressions read it.

use std::sync::Arc;

use everett_inspect::floating::FloatingRegisters;
use everett_inspect::mapping::Mapping;
use everett_inspect::memory::AddressSpace;
use everett_inspect::registers::ProgramRegisters;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_symbols::program::Program;
use everett_symbols::variables::{Bytes, Frame, Member, Missing, Shape, TypeAt};
use everett_vmm::Machine;

use super::expression::evaluate::{Absent, Place, Scene, Type, Value};
use super::loaded::Loaded;
use super::programs::{NodePrograms, Programs};
use crate::inside::machine::MachineRam;
use crate::inside::unmapped;

/// First address of the kernel's half of the address space.
const KERNEL_START: u64 = 0xffff_8000_0000_0000;

/// A machine at a hit.
pub(super) struct HitScene<'h> {
    pub(super) machine: &'h Machine,
    pub(super) registers: ProgramRegisters,
    /// Vector registers. `None` if they are not known.
    pub(super) floating: Option<FloatingRegisters>,
    pub(super) kernel: &'h Kernel,
    pub(super) programs: &'h Programs,
    pub(super) node: usize,
    /// Address space that is read. `None` is that of the running process, which contains the kernel's.
    pub(super) space: Option<AddressSpace<'h>>,
    /// True if texts are whole. Texts of hits are cut off.
    pub(super) has_whole_texts: bool,
    /// The running process, or the one of `space`.
    pub(super) process: Option<&'h Process>,
    /// The program, with its place in memory. `None` for code of the kernel.
    pub(super) loaded: Option<&'h Arc<Loaded>>,
}

impl Scene for HitScene<'_> {
    fn registers(&self) -> &ProgramRegisters {
        &self.registers
    }

    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.copy(address, into)
    }

    fn has_whole_texts(&self) -> bool {
        self.has_whole_texts
    }

    fn variable(&self, name: &str) -> Result<Value, Absent> {
        let none = || Absent::NoVariable(name.to_owned());
        let Some(loaded) = self.loaded else {
            // Addresses of variables per CPU are distances.
            let address = self.kernel.address_of(name).filter(|address| *address >= KERNEL_START);
            return Ok(Value::Object(Type::Unknown, Place::Memory(address.ok_or_else(none)?)));
        };
        let here = self.address();
        if let Some((lines, variable)) =
            self.ask(|of, mapping, program| of.variable(mapping, program, (here, name)))
        {
            let place = match lines.place(&variable, self) {
                Ok(Bytes::Memory(address)) => Place::Memory(address),
                Ok(Bytes::Here(bytes)) => Place::Bytes(bytes),
                Err(Missing::OptimizedOut) => return Err(Absent::OptimizedOut),
                Err(Missing::Unmapped) => return Err(Absent::Unmapped),
                Err(Missing::Unknown) => return Err(Absent::Place),
            };
            return Ok(Value::Object(Type::Declared(variable.kind), place));
        }
        let address = self.ask(|of, mapping, program| of.symbol(mapping, program, name));
        let address = address.ok_or_else(none)?.wrapping_add(loaded.bias);
        Ok(Value::Object(Type::Unknown, Place::Memory(address)))
    }

    fn shape(&self, kind: TypeAt) -> Option<Shape> {
        self.ask(|of, mapping, program| of.shape(mapping, program, kind))
    }

    fn member(&self, kind: TypeAt, name: &str) -> Option<Member> {
        self.ask(|of, mapping, program| of.member(mapping, program, (kind, name)))
    }

    fn enumerator(&self, kind: TypeAt, value: i128) -> Option<String> {
        self.ask(|of, mapping, program| of.lines(mapping, program)?.enumerator(kind, value))
    }
}

impl HitScene<'_> {
    /// Copies memory up to the first byte that is neither in memory nor in a mapped file.
    fn copy(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let rest = &mut into[done..];
            let mapped = match &self.space {
                Some(space) => space.read_some(at, rest),
                None => self.machine.read_virtual(at, rest),
            };
            let more = match mapped {
                0 => self.untouched(at, rest).unwrap_or(0),
                more => more,
            };
            if more == 0 {
                break;
            }
            done += more;
        }
        done
    }

    /// Copies bytes of a page of a mapped file that the process has not touched.
    fn untouched(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        let ram = MachineRam(self.machine);
        let guest = Guest::new(self.kernel, &ram).ok()?;
        let read =
            |of: &mut NodePrograms| unmapped::read(&guest, self.process?, of.files(), address, into).ok();
        self.programs.with(self.node, read).flatten()
    }

    /// Asks the programs of the node about the program at the hit.
    fn ask<T>(&self, ask: impl FnOnce(&mut NodePrograms, &Mapping, &Program) -> Option<T>) -> Option<T> {
        let loaded = self.loaded?;
        self.programs.with(self.node, |programs| ask(programs, &loaded.mapping, &loaded.program)).flatten()
    }
}

/// Places of general registers in [`ProgramRegisters`], by their numbers in DWARF (System V ABI for x86-64, 3.6.2).
const REGISTERS: [usize; 17] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];
/// Place of the XMM registers in [`FloatingRegisters::legacy`], each of which has 16 bytes.
const VECTORS: usize = 160;

impl Frame for HitScene<'_> {
    fn address(&self) -> u64 {
        let bias = self.loaded.map_or(0, |loaded| loaded.bias);
        self.registers.unwinding().instruction.wrapping_sub(bias)
    }

    fn bias(&self) -> u64 {
        self.loaded.map_or(0, |loaded| loaded.bias)
    }

    fn register(&self, number: u16) -> Option<u64> {
        let place = REGISTERS.get(usize::from(number))?;
        self.registers.0.get(*place).copied()
    }

    fn vector(&self, number: u16) -> Option<[u8; 16]> {
        let from = VECTORS + 16 * usize::from(number);
        self.floating.as_ref()?.legacy.get(from..)?.first_chunk().copied()
    }

    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.copy(address, into)
    }

    fn frame_address(&self) -> Option<u64> {
        let here = self.address();
        let rule = self.ask(|of, mapping, program| of.frame(mapping, program, here))?;
        Some(self.register(rule.register)?.wrapping_add_signed(rule.offset))
    }
}
