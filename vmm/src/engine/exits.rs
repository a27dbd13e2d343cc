//! The soft engine in clock mode `exit`: it counts the exits that the guest causes by itself, as the kvm engine does, so that
//! either can go on where the other was.
//!
//! A run goes to the guest's next exit, whatever `Until::icount` says beyond the present count. An exit is counted when its
//! instruction is finished, and a repeated one that comes next or goes on (`repeat`); if it ends in an exception, when that
//! is delivered.
//! One interrupt at most is taken there, and none elsewhere; the TSC changes there and nowhere else.
//!
//! Watchpoints stop a run anywhere. That is an observer's stop: no interrupt is taken, and the run that comes next goes on to
//! the exit to which this one would have gone. Breakpoints are not here: what has to stop at an instruction counts instructions.
//!
//! **Invariant.** The soft CPU's own count, of instructions, shows nowhere: not in states, nor in the TSC. It bounds how long a
//! guest may go without an exit, from the last one on, so where a run was stopped or taken up again does not matter.

use everett_cpu::{CpuState, Edge, Hit, Watchpoint};

use super::repeat::goes_on;
use super::soft::SoftEngine;
use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::clock::ClockMode;

/// A guest that executes so many instructions without an exit is not expected to exit any more: nothing can interrupt it.
/// Some ten seconds of the host's time, and twice what it takes to hash 144 MiB.
pub const INSTRUCTIONS_MAX: u64 = 20_000_000_000;

/// A soft CPU that counts exits.
#[derive(Debug)]
pub struct ExitEngine {
    soft: SoftEngine,
    exits: u64,
    /// The soft CPU's count at the last exit.
    boundary: u64,
    /// Nothing was executed since, and no interrupt was taken: one can be.
    open: bool,
    /// An instruction waits for a device, or goes on with its next iteration.
    unfinished: bool,
    /// It waits for a device.
    asking: bool,
    /// An observer's stop within an unfinished instruction is to be told when it is finished.
    watched: bool,
    tsc: TscAnchor,
    instructions_max: u64,
}

impl ExitEngine {
    /// Count the exits of this CPU's guest from here on.
    pub fn new(soft: SoftEngine) -> ExitEngine {
        let boundary = soft.icount();
        ExitEngine {
            soft,
            exits: 0,
            boundary,
            open: true,
            unfinished: false,
            asking: false,
            watched: false,
            tsc: TscAnchor { icount: 0, tsc: 0, num: 0, den: 1 },
            instructions_max: INSTRUCTIONS_MAX,
        }
    }

    /// End the run of a guest that executes so many instructions without an exit: for tests. Part of what the guest does.
    pub fn give_up_after(&mut self, instructions: u64) {
        self.instructions_max = instructions;
    }

    /// The CPU, for switches of its own that change nothing.
    pub fn soft_mut(&mut self) -> &mut SoftEngine {
        &mut self.soft
    }

    /// Instructions that were executed so far, for people.
    pub fn instructions(&self) -> u64 {
        self.soft.icount()
    }

    /// Execute with a TSC that stands still, up to this count of the CPU's.
    fn execute(&mut self, icount: u64) -> Exit {
        let TscAnchor { icount: from, tsc, num, den } = self.tsc;
        let passed = u128::from(self.exits.saturating_sub(from)) * u128::from(num) / u128::from(den);
        let tsc = tsc.wrapping_add(passed as u64);
        self.soft.set_tsc(TscAnchor { icount: self.soft.icount(), tsc, num: 0, den: 1 });
        self.soft.run(Until { icount, window: false, breakpoints: &[] })
    }

    /// The soft CPU stopped.
    fn stopped(&mut self, exit: Exit) -> Exit {
        match exit {
            Exit::MmioRead { .. } | Exit::MmioWrite { .. } | Exit::PioRead { .. } | Exit::PioWrite { .. } => {
                self.unfinished = true;
                self.asking = true;
                exit
            }
            Exit::Halt => {
                self.count();
                exit
            }
            Exit::Count => Exit::NoProgress,
            other => other,
        }
    }

    fn count(&mut self) {
        self.exits += 1;
        self.boundary = self.soft.icount();
        self.open = true;
        self.unfinished = false;
    }

    /// Go on with the instruction that waits until it is finished, or wants a device.
    fn finish(&mut self) -> Option<Exit> {
        loop {
            // An instruction that waits for a device is finished whatever the count says, and nothing after it is begun.
            let iteration = u64::from(!self.asking);
            let exit = self.execute(self.soft.icount() + iteration);
            self.asking = false;
            match exit {
                Exit::Count => {}
                Exit::Watchpoint => self.watched = true,
                other => return Some(self.stopped(other)),
            }
            if !goes_on(&self.soft) {
                self.count();
                return std::mem::take(&mut self.watched).then_some(Exit::Watchpoint);
            }
            if self.spent() {
                return Some(Exit::NoProgress);
            }
        }
    }

    /// Whether nobody waits for the guest's next exit any more.
    fn spent(&self) -> bool {
        self.soft.icount() - self.boundary >= self.instructions_max
    }
}

impl Engine for ExitEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: ClockMode::Exit, breakpoints: false, disturbed: false }
    }
    fn run(&mut self, until: Until<'_>) -> Exit {
        if self.unfinished
            && let Some(exit) = self.finish()
        {
            return exit;
        }
        if self.exits >= until.icount {
            return Exit::Count;
        }
        if until.window && self.interruptible() {
            return Exit::Window;
        }
        if self.spent() {
            return Exit::NoProgress;
        }
        let exit = self.execute(self.boundary.saturating_add(self.instructions_max));
        self.open = false;
        self.stopped(exit)
    }
    fn icount(&self) -> u64 {
        self.exits
    }
    fn failure(&self) -> Option<Failure> {
        self.soft.failure()
    }
    fn complete_read(&mut self, value: u64) {
        self.soft.complete_read(value);
    }
    fn interruptible(&self) -> bool {
        self.open && self.soft.interruptible()
    }
    fn interrupt(&mut self, vector: u8) {
        assert!(self.open, "one interrupt is taken behind an exit");
        self.open = false;
        self.soft.interrupt(vector);
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        self.tsc = anchor;
    }
    fn state(&self) -> CpuState {
        // Exceptions in a row are counted between instructions, which the kvm engine does not see.
        CpuState { icount: self.exits, exceptions: 0, ..self.soft.state() }
    }
    fn set_state(&mut self, state: &CpuState) {
        let icount = self.soft.icount();
        self.soft.set_state(&CpuState { icount, ..state.clone() });
        self.exits = state.icount;
        self.boundary = icount;
        self.open = true;
        self.unfinished = false;
        self.asking = false;
        self.watched = false;
    }
    fn memory_written(&mut self, gpa: u64, len: u64) {
        self.soft.memory_written(gpa, len);
    }
    fn memory_replaced(&mut self, pages: &[u64]) {
        self.soft.memory_replaced(pages);
    }
    fn take_dirty_pages(&mut self) -> Vec<u64> {
        self.soft.take_dirty_pages()
    }
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        self.soft.read_virtual(gva, buf)
    }
    fn set_watchpoints(&mut self, points: &[Watchpoint]) -> bool {
        self.soft.set_watchpoints(points)
    }
    fn take_hits(&mut self) -> Vec<Hit> {
        self.soft.take_hits()
    }
    fn take_edges(&mut self) -> Vec<Edge> {
        self.soft.take_edges()
    }
}
