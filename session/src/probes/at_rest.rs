//! Values of expressions in a process, or in the kernel, of a machine that stands at an instant.
//!
//! Registers are those with which the thread will continue in its program. Global variables are visible at any instruction,
//! and local ones if the thread's next instruction is in their function.

use std::sync::Arc;

use everett_inspect::registers::CpuRegisters;
use everett_inspect::task::{Process, Thread};
use everett_inspect::{Error, Guest, Kernel};
use everett_vmm::Machine;

use super::expression::Expression;
use super::expression::evaluate::{Absent, Value, loaded, text_at, value};
use super::format::{characters, is_character};
use super::loaded::Loaded;
use super::programs::Programs;
use super::scene::HitScene;
use crate::inside::debug_files::DebugFolders;
use crate::inside::machine::{MachineRam, registers};
use crate::run::launch::Launcher;

/// Value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// Integer, or the number of an enumeration's value.
    Integer(i128),
    /// Floating-point number.
    Float(f64),
    /// Characters: a text, an array of characters, or the text at an address of characters. It is whole, and has at most
    /// [`WHOLE_TEXT_BYTES_MAX`](super::limits::WHOLE_TEXT_BYTES_MAX) bytes.
    Text(String),
    /// Address of an object.
    Address(u64),
}

/// Reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    /// The guest's structures cannot be read.
    #[error(transparent)]
    Guest(#[from] Error),
    /// The value is not known.
    #[error(transparent)]
    Absent(#[from] Absent),
}

/// Programs of all nodes, whose variables expressions name.
pub struct Values(Programs);

impl Values {
    /// Returns the programs of a launcher's nodes.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    pub fn new(launcher: &Launcher, debug: &DebugFolders) -> anyhow::Result<Values> {
        Ok(Values(Programs::of_launcher(launcher, debug)?))
    }

    /// Returns the value of an expression in a thread of a process, or in the kernel without one.
    ///
    /// # Errors
    /// Returns an error if the value is not known, for example because its memory is not mapped.
    pub fn value(
        &self,
        kernel: &Kernel,
        (machine, node): (&Machine, usize),
        thread: Option<(&Process, &Thread)>,
        expression: &Expression,
    ) -> Result<Known, NoValue> {
        let ram = MachineRam(machine);
        let guest = Guest::new(kernel, &ram)?;
        let cpu: CpuRegisters = registers(&machine.cpu());
        let (own, floating, space) = match thread {
            Some((process, thread)) => (
                guest.program_registers(process, thread, &cpu)?,
                guest.floating_registers(thread, &cpu)?,
                guest.memory_of_process(process)?,
            ),
            None => (cpu.registers, Some(cpu.floating), Some(guest.memory())),
        };
        let program = match thread {
            Some((process, _)) => Loaded::of_process(&guest, process, (&self.0, node))?.map(Arc::new),
            None => None,
        };
        let scene = HitScene {
            machine,
            registers: own,
            floating,
            kernel,
            programs: &self.0,
            node,
            space,
            has_whole_texts: true,
            process: thread.map(|(process, _)| process),
            loaded: program.as_ref(),
        };
        Ok(known(&value(expression, &scene)?, &scene)?)
    }
}

fn known(value: &Value, scene: &HitScene<'_>) -> Result<Known, Absent> {
    if let Some(text) = characters(value, scene) {
        return text.map(Known::Text);
    }
    Ok(match loaded(value, scene)? {
        Value::Integer(number) => Known::Integer(number),
        Value::Float(number) => Known::Float(number),
        Value::Text(text) => Known::Text(text),
        Value::Pointer(kind, address) if is_character(kind, scene) => Known::Text(text_at(address, scene)?),
        Value::Pointer(_, address) => Known::Address(address),
        Value::Object(..) => return Err(Absent::NoNumber),
    })
}
