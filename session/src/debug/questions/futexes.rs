//! Waits at futexes: who waits, for how long, who holds the lock, and who ends the wait.

use std::collections::BTreeMap;

use everett_inspect::current::Current;

use super::follow::Observer;
use super::limits::PENDING_CALLS_MAX;
use super::place::Place;
use super::syscalls::{FUNCTIONS, Registers, Wanted, arguments, result};
use crate::debug::calls::Caller as _;
use crate::debug::cursor::Listener;

/// Number of the system call `futex`.
const FUTEX: u64 = 202;
/// Function of the kernel that ends a wait.
const WAKE: &str = "futex_wake_mark";

/// A wait at a futex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Number of the node.
    pub node: usize,
    /// The thread that waits.
    pub thread: Current,
    /// Address of the futex.
    pub address: u64,
    /// Vtime of the beginning, in nanoseconds.
    pub begin_ns: u64,
    /// Vtime of the end, in nanoseconds, and the result of the call: 0, or the negative number of an error. `None` if the
    /// thread still waits.
    pub end: Option<(u64, i64)>,
    /// ID of the thread that holds the lock. `None` if the futex is no lock, or of a kind that does not name its holder.
    pub holder: Option<u32>,
    /// The thread that ended the wait, and the vtime at which it did, in nanoseconds.
    pub woken: Option<(Current, u64)>,
}

/// Observer of waits at futexes.
pub struct Futexes<'f> {
    /// Processes whose waits are wanted.
    pub wanted: Wanted<'f>,
    /// Returns false to end the run.
    pub goes_on: &'f dyn Fn() -> bool,
    /// Takes each wait at its end.
    pub found: &'f mut dyn FnMut(Wait) -> anyhow::Result<()>,
    /// Waits that have begun, by node and thread.
    pending: BTreeMap<(usize, u32), Wait>,
    left_out: u64,
}

impl<'f> Futexes<'f> {
    /// Creates the observer.
    pub fn new(
        wanted: Wanted<'f>,
        goes_on: &'f dyn Fn() -> bool,
        found: &'f mut dyn FnMut(Wait) -> anyhow::Result<()>,
    ) -> Futexes<'f> {
        Futexes { wanted, goes_on, found, pending: BTreeMap::new(), left_out: 0 }
    }

    /// Reports the waits that have not ended, in the order of their beginnings. Returns the number of calls that were not
    /// followed because of the [bounds](super::limits) or because the kernel's structures could not be read.
    ///
    /// # Errors
    /// Returns the errors of `found`.
    pub fn unfinished(self) -> anyhow::Result<u64> {
        let mut waits: Vec<Wait> = self.pending.into_values().collect();
        waits.sort_by_key(|wait| (wait.begin_ns, wait.node));
        waits.into_iter().try_for_each(self.found)?;
        Ok(self.left_out)
    }

    fn begin(&mut self, place: &Place<'_>, thread: &Current, registers: &Registers) -> anyhow::Result<()> {
        let key = (place.node, thread.tid);
        if let Some(lost) = self.pending.remove(&key) {
            // The thread has ended within the call, or its machine has lost power.
            (self.found)(lost)?;
        }
        let (number, [address, operation, expected, ..]) = arguments(registers);
        let Some(kind) = Kind::of(operation).filter(|_| number == FUTEX && (self.wanted)(thread)) else {
            return Ok(());
        };
        if self.pending.len() >= PENDING_CALLS_MAX {
            self.left_out += 1;
            return Ok(());
        }
        let wait = Wait {
            node: place.node,
            thread: thread.clone(),
            address,
            begin_ns: place.vtime_ns,
            end: None,
            holder: holder(place, thread, kind, address, expected as u32),
            woken: None,
        };
        self.pending.insert(key, wait);
        Ok(())
    }

    fn end(&mut self, place: &Place<'_>, thread: &Current, registers: &Registers) -> anyhow::Result<()> {
        let Some(mut wait) = self.pending.remove(&(place.node, thread.tid)) else { return Ok(()) };
        wait.end = Some((place.vtime_ns, result(registers)));
        (self.found)(wait)
    }

    fn wake(&mut self, place: &Place<'_>, thread: &Current) {
        let waiter = place.guest.futex_waiter(place.second()).and_then(|task| place.guest.thread_at(task));
        match waiter {
            Ok(waiter) => {
                if let Some(wait) = self.pending.get_mut(&(place.node, waiter.tid)) {
                    wait.woken = Some((thread.clone(), place.vtime_ns));
                }
            }
            Err(_) => self.left_out += 1,
        }
    }
}

/// Kind of a futex at which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The program says what the word means.
    Plain,
    /// The word is a lock and has the ID of the thread that holds it (`FUTEX_LOCK_PI`).
    Lock,
}

impl Kind {
    /// Returns the kind of an operation of `futex(2)`. `None` if it does not wait.
    fn of(operation: u64) -> Option<Kind> {
        /// Bits of the operation without its flags (`FUTEX_CMD_MASK`).
        const COMMAND: u64 = 0x7f;
        match operation & COMMAND {
            0 | 9 | 11 => Some(Kind::Plain),
            6 | 13 => Some(Kind::Lock),
            _ => None,
        }
    }
}

/// Returns the holder of a lock. Locks of the kernel (PI) name it by contract. A mutex of glibc has it in the third word,
/// and the value 2 if a thread waits; a recursive mutex of musl has it in the word itself, with the top bit. Both count
/// only if a thread of the process has this ID.
fn holder(place: &Place<'_>, thread: &Current, kind: Kind, address: u64, expected: u32) -> Option<u32> {
    /// Value of a mutex of glibc at which a thread waits.
    const CONTENDED: u32 = 2;
    /// Bits of the word with the ID of a thread (`FUTEX_TID_MASK`).
    const ID: u32 = 0x3fff_ffff;
    /// Bit of the word that says that threads wait (`FUTEX_WAITERS`).
    const WAITERS: u32 = 1 << 31;
    let mut words = [0; 12];
    let read = place.caller(thread).read(address, &mut words);
    let word = |n: usize| {
        let bytes = words.get(4 * n..4 * n + 4).filter(|_| read >= 4 * n + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let first = word(0)?;
    if kind == Kind::Lock {
        return Some(first & ID).filter(|id| *id != 0);
    }
    let candidate = match first {
        CONTENDED => word(2)?,
        _ if first & WAITERS != 0 => first & ID,
        _ => return None,
    };
    let process = place.guest.running_process().ok()??;
    let is_thread = process.threads.iter().any(|one| one.tid == candidate);
    (is_thread && first == expected).then_some(candidate)
}

impl Listener for Futexes<'_> {
    fn goes_on(&mut self) -> bool {
        (self.goes_on)()
    }
}

impl Observer for Futexes<'_> {
    fn functions(&self) -> Vec<&'static str> {
        FUNCTIONS.into_iter().chain([WAKE]).collect()
    }

    fn at(&mut self, function: usize, place: &Place<'_>) -> anyhow::Result<()> {
        let Ok(thread) = place.guest.current_thread() else {
            self.left_out += 1;
            return Ok(());
        };
        if function == FUNCTIONS.len() {
            self.wake(place, &thread);
            return Ok(());
        }
        let Some(registers) = place.words(place.first()) else {
            self.left_out += 1;
            return Ok(());
        };
        match function {
            0 => self.begin(place, &thread, &registers),
            _ => self.end(place, &thread, &registers),
        }
    }
}
