//! Context switches, page faults, signals, wakes of futexes, and requests to disks.

use everett_inspect::arguments::DiskRequest;
use everett_inspect::current::Current;

use super::follow::Observer;
use super::place::Place;
use super::syscalls::Wanted;
use crate::debug::cursor::Listener;

/// Kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Context switch.
    Switch,
    /// Page fault.
    Fault,
    /// Signal is sent.
    Sent,
    /// Program handles a signal.
    Handled,
    /// Process ends.
    Ends,
    /// Thread that waits at a futex is woken.
    Woken,
    /// Request is passed to a disk.
    DiskStart,
    /// Request is done.
    DiskEnd,
}

impl Kind {
    /// Returns the kernel's function at which the step is seen.
    fn function(self) -> &'static str {
        match self {
            Kind::Switch => "__switch_to",
            Kind::Fault => "exc_page_fault",
            Kind::Sent => "send_signal_locked",
            Kind::Handled => "signal_setup_done",
            Kind::Ends => "do_group_exit",
            Kind::Woken => "futex_wake_mark",
            Kind::DiskStart => "blk_mq_start_request",
            Kind::DiskEnd => "blk_update_request",
        }
    }
}

/// A step of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Number of the node.
    pub node: usize,
    /// Vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// The thread that runs.
    pub thread: Current,
    /// The event.
    pub what: Happened,
}

/// Event of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// The CPU switches to another thread.
    Switch(Current),
    /// The thread accesses a page that is not in memory, or in a way that the page does not allow.
    Fault {
        /// Accessed address.
        address: u64,
        /// Address of the instruction.
        instruction: u64,
        /// Error code of the CPU (SDM volume 3, 4.7).
        code: u64,
    },
    /// A signal is sent.
    Sent {
        /// Number of the signal.
        signal: u32,
        /// Thread to which it is sent. Another thread of its process may take it.
        to: Current,
        /// True if the running program sends it, false if the kernel does.
        is_by_program: bool,
    },
    /// The thread continues in its handler of a signal.
    Handled(u32),
    /// The process ends because of a signal.
    Killed(u32),
    /// The thread wakes a thread that waits at a futex.
    Woken(Current),
    /// A request is passed to a disk.
    DiskStart {
        /// Address of the request, which identifies it until its end.
        request: u64,
        /// The request.
        content: DiskRequest,
    },
    /// A request is done.
    DiskEnd {
        /// Address of the request.
        request: u64,
        /// True if it failed.
        has_failed: bool,
    },
}

/// Observer of steps.
pub struct Steps<'s> {
    /// Kinds of the steps.
    pub kinds: &'s [Kind],
    /// Processes whose steps are wanted. Steps of disks belong to no process.
    pub wanted: Wanted<'s>,
    /// Returns false to end the run.
    pub goes_on: &'s dyn Fn() -> bool,
    /// Takes each step.
    pub found: &'s mut dyn FnMut(Step) -> anyhow::Result<()>,
}

impl Steps<'_> {
    /// Reads a step. `None` if it is not wanted, or if the kernel's structures cannot be read.
    fn step(&self, kind: Kind, place: &Place<'_>, thread: &Current) -> Option<Happened> {
        /// Place of RIP in `struct pt_regs`, in numbers.
        const RIP: u64 = 16;
        let guest = &place.guest;
        let wanted = |thread: &Current| (self.wanted)(thread);
        Some(match kind {
            Kind::Switch => {
                let (from, to) =
                    (guest.thread_at(place.first()).ok()?, guest.thread_at(place.second()).ok()?);
                if !wanted(&from) && !wanted(&to) {
                    return None;
                }
                Happened::Switch(to)
            }
            Kind::Fault if wanted(thread) => {
                let [instruction] = place.words(place.first().checked_add(8 * RIP)?)?;
                Happened::Fault { address: place.cpu.cr2, instruction, code: place.second() }
            }
            Kind::Sent => {
                let to = guest.thread_at(place.third()).ok()?;
                if !wanted(&to) {
                    return None;
                }
                Happened::Sent { signal: place.first() as u32, to, is_by_program: by_program(place) }
            }
            Kind::Handled if wanted(thread) => Happened::Handled(guest.signal_of(place.second()).ok()?),
            Kind::Ends if wanted(thread) => {
                let signal = place.first() as u32 & 0x7f;
                if signal == 0 {
                    return None;
                }
                Happened::Killed(signal)
            }
            Kind::Woken if wanted(thread) => {
                Happened::Woken(guest.thread_at(guest.futex_waiter(place.second()).ok()?).ok()?)
            }
            Kind::DiskStart => {
                let request = place.first();
                Happened::DiskStart { request, content: guest.disk_request(request).ok()? }
            }
            Kind::DiskEnd => {
                Happened::DiskEnd { request: place.first(), has_failed: place.second() as u8 != 0 }
            }
            _ => return None,
        })
    }
}

/// True if a program sends the signal, which its `kernel_siginfo` says.
fn by_program(place: &Place<'_>) -> bool {
    /// Address that stands for a signal of the kernel without information (`SEND_SIG_PRIV`). 0 is one of a program.
    const PRIVILEGED: u64 = 1;
    let information = place.second();
    if information <= PRIVILEGED {
        return information < PRIVILEGED;
    }
    // The code is the third number of 32 bits. Those of programs are not positive.
    place.words(information.wrapping_add(8)).is_some_and(|[code]| code as i32 <= 0)
}

impl Listener for Steps<'_> {
    fn goes_on(&mut self) -> bool {
        (self.goes_on)()
    }
}

impl Observer for Steps<'_> {
    fn functions(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.function()).collect()
    }

    fn at(&mut self, function: usize, place: &Place<'_>) -> anyhow::Result<()> {
        let (Some(kind), Ok(thread)) = (self.kinds.get(function), place.guest.current_thread()) else {
            return Ok(());
        };
        match self.step(*kind, place, &thread) {
            Some(what) => (self.found)(Step { node: place.node, vtime_ns: place.vtime_ns, thread, what }),
            None => Ok(()),
        }
    }
}
