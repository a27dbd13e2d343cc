//! System calls as text: names, arguments and results of Linux on x86-64, in the form in which `strace` prints them.
//!
//! A call is decoded twice. [`Begun::new`] reads what the program passes, and [`Begun::end`] what the kernel has stored for
//! the program. An argument that is not in memory at the beginning is read again at the end. Arguments of unknown calls are
//! numbers.
//!
//! - [`limits`]: bounds on what is read for a call
//! - [`flags`]: names of flags and constants
//! - [`text`]: bytes as quoted text
//! - [`kind`]: kinds of arguments
//! - [`table`]: arguments of each call
//! - [`values`]: reads arguments from the program's memory
//!
//! A program may lie in every argument. What is not in memory is shown as its address with *(unmapped)*.

mod flags;
mod kind;
pub mod limits;
mod table;
mod text;
mod values;

use syscalls::Errno;
use syscalls::x86_64::Sysno;

use kind::Kind;
use values::Values;

/// Number of arguments that a system call has at most.
pub const ARGUMENTS: usize = 6;

/// The process that makes a call.
pub trait Caller {
    /// Copies bytes from its memory, up to the first byte that is not mapped. Returns the number of copied bytes.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;
    /// Returns the name of an open file. `None` if the descriptor is not open.
    fn descriptor(&self, number: u32) -> Option<String>;
}

/// A system call that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Name of the call, or `syscall_N` if it has none.
    pub name: String,
    /// Number of the call.
    pub number: u64,
    /// Registers with the arguments.
    pub values: [u64; ARGUMENTS],
    /// Arguments as text, in their order. Of an argument that the kernel stores to, the address.
    pub arguments: Vec<String>,
    kinds: Vec<Kind>,
    strings: usize,
}

/// Arguments and result of a call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Arguments as text, in their order.
    pub arguments: Vec<String>,
    /// Result as text: a number, a descriptor with its name, or -1 with the name of the error.
    pub result: String,
    /// Name of the error, if the call failed.
    pub error: Option<String>,
}

impl Begun {
    /// Decodes a call at its beginning. Texts are shown up to `strings` bytes.
    #[must_use]
    pub fn new(number: u64, values: [u64; ARGUMENTS], strings: usize, caller: &dyn Caller) -> Begun {
        let name = match usize::try_from(number).ok().and_then(Sysno::new) {
            Some(call) => call.name().to_owned(),
            None => format!("syscall_{number}"),
        };
        let kinds = table::kinds(&name, &values);
        let reader = Values { caller, strings, all: &values };
        let arguments = kinds.iter().zip(values).map(|(kind, value)| reader.at_begin(*kind, value)).collect();
        Begun { name, number, values, arguments, kinds, strings }
    }

    /// Decodes the call at its end. `result` is the value in RAX.
    #[must_use]
    pub fn end(&self, result: u64, caller: &dyn Caller) -> Ended {
        let reader = Values { caller, strings: self.strings, all: &self.values };
        let error = error(result);
        let mut arguments = self.arguments.clone();
        for ((argument, kind), value) in arguments.iter_mut().zip(&self.kinds).zip(self.values) {
            // The kernel brings a page into memory when it reads the argument.
            if argument.contains(values::UNMAPPED) {
                *argument = reader.at_begin(*kind, value);
            }
        }
        if error.is_none() {
            for ((argument, kind), value) in arguments.iter_mut().zip(&self.kinds).zip(self.values) {
                if let Some(text) = reader.at_end(*kind, value, result) {
                    *argument = text;
                }
            }
        }
        let text = match &error {
            // The kernel makes such a call again, or returns EINTR to the program.
            Some(name) if name.starts_with("ERESTART") => format!("? {name}"),
            Some(name) => format!("-1 {name}"),
            None if table::returns_descriptor(&self.name, &self.values) => reader.descriptor(result),
            None if table::returns_address(&self.name) => format!("{result:#x}"),
            None => (result as i64).to_string(),
        };
        Ended { arguments, result: text, error }
    }
}

/// Returns the name of a signal. Real-time signals have none and are numbers.
#[must_use]
pub fn signal_name(signal: u32) -> String {
    let name = flags::names(flags::SIGNAL, u64::from(signal));
    if name.starts_with("SIG") { name } else { format!("signal {signal}") }
}

/// Returns the name of the error that a result stands for. `None` if the call has succeeded.
fn error(result: u64) -> Option<String> {
    /// Largest number of an error (Linux, `MAX_ERRNO`).
    const LAST: u64 = 4095;
    let number = result.wrapping_neg();
    if !(1..=LAST).contains(&number) {
        return None;
    }
    let internal = match number {
        512 => Some("ERESTARTSYS"),
        513 => Some("ERESTARTNOINTR"),
        514 => Some("ERESTARTNOHAND"),
        516 => Some("ERESTART_RESTARTBLOCK"),
        _ => None,
    };
    let name = internal.or_else(|| Errno::new(number as i32).name());
    Some(name.map_or_else(|| format!("error {number}"), str::to_owned))
}

#[cfg(test)]
mod tests;
