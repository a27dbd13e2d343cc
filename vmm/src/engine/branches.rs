//! The soft engine in clock mode `branch`: it counts the conditional branches that the guest retires, as a processor's counter
//! does, so that the kvm engine can go on where it was and the other way round.
//!
//! A count is reached behind the branch that makes it, before anything else is executed. The CPU itself stops at counts of
//! instructions; an instruction retires one branch at most, so it is given as many instructions as branches are missing, until
//! none is.
//!
//! An instruction that waits for a device is finished first, whatever `Until::icount` says, with the iterations of a repeated one
//! that comes next or goes on (`repeat`). So a run to the present count goes to the boundary behind the exit, as it does on
//! the kvm engine. The TSC shows what it was set to: its anchor does not move with the count.
//!
//! Breakpoints are not here: what has to stop at an instruction counts instructions. Watchpoints stop a run anywhere, as in
//! `exits`.
//!
//! **Invariant.** The soft CPU's own count, of instructions, shows nowhere: not in states, nor in the TSC. It bounds how long a
//! guest may go without anything that counts.

use everett_cpu::{CpuState, Edge, Hit, Watchpoint};

use super::repeat::goes_on;
use super::soft::SoftEngine;
use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::clock::ClockMode;

/// A guest that executes so many instructions without a branch that counts and without an exit is not expected to have one
/// any more: time stands still for it. Some ten seconds of the host's time.
pub const INSTRUCTIONS_MAX: u64 = 20_000_000_000;
/// Instructions at a time: how exactly it is known when the last branch was.
const PIECE: u64 = 1 << 20;

/// A soft CPU that counts branches.
#[derive(Debug)]
pub struct BranchEngine {
    soft: SoftEngine,
    /// The count when the CPU had counted none.
    base: u64,
    /// An instruction waits for a device, or goes on with its next iteration.
    unfinished: bool,
    /// It waits for a device.
    asking: bool,
    /// An observer's stop within an unfinished instruction is to be told when it is finished.
    watched: bool,
    /// The CPU's count when the last branch or exit was seen.
    progress: u64,
    instructions_max: u64,
}

impl BranchEngine {
    /// Count the branches of this CPU's guest from here on.
    ///
    /// # Panics
    /// If the CPU was not made to count them ([`everett_cpu::CacheConfig::branches`]).
    pub fn new(soft: SoftEngine) -> BranchEngine {
        assert!(soft.counts_branches(), "the CPU counts branches");
        let progress = soft.icount();
        BranchEngine {
            soft,
            base: 0,
            unfinished: false,
            asking: false,
            watched: false,
            progress,
            instructions_max: INSTRUCTIONS_MAX,
        }
    }

    /// End the run of a guest that executes so many instructions without anything that counts: for tests. Part of what the
    /// guest does.
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

    /// Execute so many instructions at most.
    fn execute(&mut self, instructions: u64, window: bool) -> Exit {
        let before = self.soft.branches();
        let icount = self.soft.icount() + instructions;
        let exit = self.soft.run(Until { icount, window, breakpoints: &[] });
        if self.soft.branches() != before {
            self.progress = self.soft.icount();
        }
        exit
    }

    /// The soft CPU stopped for another reason than its count.
    fn stopped(&mut self, exit: Exit) -> Exit {
        if let Exit::MmioRead { .. } | Exit::MmioWrite { .. } | Exit::PioRead { .. } | Exit::PioWrite { .. } =
            exit
        {
            self.unfinished = true;
            self.asking = true;
        }
        exit
    }

    /// Go on with the instruction that waits until it is finished, or wants a device.
    fn finish(&mut self) -> Option<Exit> {
        loop {
            // An instruction that waits for a device is finished whatever the count says, and nothing after it is begun.
            let iteration = u64::from(!self.asking);
            let exit = self.execute(iteration, false);
            self.asking = false;
            match exit {
                Exit::Count => {}
                Exit::Watchpoint => self.watched = true,
                other => return Some(self.stopped(other)),
            }
            if !goes_on(&self.soft) {
                self.unfinished = false;
                self.progress = self.soft.icount();
                return std::mem::take(&mut self.watched).then_some(Exit::Watchpoint);
            }
            if self.spent() {
                return Some(Exit::NoProgress);
            }
        }
    }

    /// Whether nobody waits for the guest's next branch any more.
    fn spent(&self) -> bool {
        self.soft.icount() - self.progress >= self.instructions_max
    }
}

impl Engine for BranchEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: ClockMode::Branch, breakpoints: false, disturbed: false }
    }
    fn run(&mut self, until: Until<'_>) -> Exit {
        if self.unfinished
            && let Some(exit) = self.finish()
        {
            return exit;
        }
        loop {
            let missing = until.icount.saturating_sub(self.icount());
            if missing == 0 {
                return Exit::Count;
            }
            if self.spent() {
                return Exit::NoProgress;
            }
            let exit = self.execute(missing.min(PIECE), until.window);
            if exit != Exit::Count {
                return self.stopped(exit);
            }
        }
    }
    fn icount(&self) -> u64 {
        self.base + self.soft.branches()
    }
    fn failure(&self) -> Option<Failure> {
        self.soft.failure()
    }
    fn complete_read(&mut self, value: u64) {
        self.soft.complete_read(value);
    }
    fn interruptible(&self) -> bool {
        !self.unfinished && self.soft.interruptible()
    }
    fn interrupt(&mut self, vector: u8) {
        self.soft.interrupt(vector);
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        self.soft.set_tsc(TscAnchor { num: 0, ..anchor });
    }
    fn state(&self) -> CpuState {
        // Exceptions in a row are counted between instructions, which the kvm engine does not see.
        CpuState { icount: self.icount(), exceptions: 0, ..self.soft.state() }
    }
    fn set_state(&mut self, state: &CpuState) {
        let icount = self.soft.icount();
        self.soft.set_state(&CpuState { icount, ..state.clone() });
        self.base = state.icount - self.soft.branches();
        self.progress = icount;
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
