//! System calls with their arguments and results, from the beginnings and ends that the kernel executes.

use std::collections::BTreeMap;

use everett_inspect::current::Current;

use super::follow::Observer;
use super::limits::PENDING_CALLS_MAX;
use super::place::Place;
use crate::debug::calls::{ARGUMENTS, Begun, Ended};
use crate::debug::cursor::Listener;

/// Functions of the kernel at the beginning and at the end of a call. Both have the program's registers as argument.
pub(super) const FUNCTIONS: [&str; 2] = ["do_syscall_64", "syscall_exit_to_user_mode"];
/// Number of registers in `struct pt_regs`.
const REGISTERS: usize = 21;

/// Registers of a program (`struct pt_regs`) in the order of the structure: R15 first.
pub(super) type Registers = [u64; REGISTERS];

/// Returns the number and the arguments of a call that begins.
pub(super) fn arguments(registers: &Registers) -> (u64, [u64; ARGUMENTS]) {
    // RAX is the last of those that the program has saved.
    let [.., r10, r9, r8, _, _, rdx, rsi, rdi, number, _, _, _, _, _] = *registers;
    (number, [rdi, rsi, rdx, r10, r8, r9])
}

/// Returns the result of a call that ends: negative for an error.
pub(super) fn result(registers: &Registers) -> i64 {
    let [.., result, _, _, _, _, _, _, _, _, _, _] = *registers;
    result as i64
}

/// A system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Number of the node.
    pub node: usize,
    /// The thread that made the call.
    pub thread: Current,
    /// Vtime of the beginning, in nanoseconds.
    pub begin_ns: u64,
    /// The call.
    pub begun: Begun,
    /// Vtime of the end, in nanoseconds, and the result. `None` if the call has not ended.
    pub end: Option<(u64, Ended)>,
}

/// Answers which processes' calls are wanted.
pub type Wanted<'w> = &'w dyn Fn(&Current) -> bool;

/// Observer of system calls.
pub struct Calls<'c> {
    /// Processes whose calls are wanted.
    pub wanted: Wanted<'c>,
    /// Number of bytes of a text that are shown.
    pub strings: usize,
    /// Returns false to end the run.
    pub goes_on: &'c dyn Fn() -> bool,
    /// Takes each call at its end.
    pub found: &'c mut dyn FnMut(Call) -> anyhow::Result<()>,
    /// Calls that have begun, by node and thread.
    pending: BTreeMap<(usize, u32), Call>,
}

impl<'c> Calls<'c> {
    /// Creates the observer.
    pub fn new(
        wanted: Wanted<'c>,
        strings: usize,
        goes_on: &'c dyn Fn() -> bool,
        found: &'c mut dyn FnMut(Call) -> anyhow::Result<()>,
    ) -> Calls<'c> {
        Calls { wanted, strings, goes_on, found, pending: BTreeMap::new() }
    }

    /// Reports the calls that have not ended, in the order of their beginnings.
    ///
    /// # Errors
    /// Returns the errors of `found`.
    pub fn unfinished(self) -> anyhow::Result<()> {
        let mut calls: Vec<Call> = self.pending.into_values().collect();
        calls.sort_by_key(|call| (call.begin_ns, call.node));
        calls.into_iter().try_for_each(self.found)
    }

    fn begin(&mut self, place: &Place<'_>, thread: Current, registers: &Registers) -> anyhow::Result<()> {
        let key = (place.node, thread.tid);
        if let Some(lost) = self.pending.remove(&key) {
            // The thread has ended within the call, or its machine has lost power.
            (self.found)(lost)?;
        }
        let begun = begun(place, &thread, registers, self.strings);
        let is_last = ["exit", "exit_group"].contains(&&*begun.name);
        let call = Call { node: place.node, thread, begin_ns: place.vtime_ns, begun, end: None };
        if is_last {
            let ended =
                Ended { arguments: call.begun.arguments.clone(), result: "?".to_owned(), error: None };
            return (self.found)(Call { end: Some((place.vtime_ns, ended)), ..call });
        }
        if self.pending.len() < PENDING_CALLS_MAX {
            self.pending.insert(key, call);
        }
        Ok(())
    }

    fn end(&mut self, place: &Place<'_>, thread: &Current, registers: &Registers) -> anyhow::Result<()> {
        let Some(mut call) = self.pending.remove(&(place.node, thread.tid)) else { return Ok(()) };
        let ended = call.begun.end(result(registers) as u64, &place.caller(thread));
        call.end = Some((place.vtime_ns, ended));
        (self.found)(call)
    }
}

/// Decodes a call at its beginning.
fn begun(place: &Place<'_>, thread: &Current, registers: &Registers, strings: usize) -> Begun {
    let (number, values) = arguments(registers);
    Begun::new(number, values, strings, &place.caller(thread))
}

/// Name of the kernel's function with which each system call begins.
pub const BEGIN: &str = FUNCTIONS[0];

/// Returns the system call that begins at a machine's next instruction, and the thread that makes it. The instruction
/// must be the first of [`BEGIN`]. `None` if the kernel's structures cannot be read.
#[must_use]
pub fn beginning(place: &Place<'_>, strings: usize) -> Option<(Current, Begun)> {
    let thread = place.guest.current_thread().ok()?;
    let call = begun(place, &thread, &place.words(place.first())?, strings);
    Some((thread, call))
}

impl Listener for Calls<'_> {
    fn goes_on(&mut self) -> bool {
        (self.goes_on)()
    }
}

impl Observer for Calls<'_> {
    fn functions(&self) -> Vec<&'static str> {
        FUNCTIONS.to_vec()
    }

    fn at(&mut self, function: usize, place: &Place<'_>) -> anyhow::Result<()> {
        let (Ok(thread), Some(registers)) = (place.guest.current_thread(), place.words(place.first())) else {
            return Ok(());
        };
        match function {
            0 if (self.wanted)(&thread) => self.begin(place, thread, &registers),
            0 => Ok(()),
            _ => self.end(place, &thread, &registers),
        }
    }
}
