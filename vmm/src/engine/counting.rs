//! The soft CPU, i.e. Everett's own CPU, as an engine of clock modes `exit` and `branch`. It counts finished exits
//! (device accesses and HLT) or retired conditional branches in the same way as the KVM engine, so that either engine
//! can continue where the other stopped.
//!
//! In both modes, `run` first finishes an instruction that waits for a device, even if the count at which the run must
//! stop (`Until::icount`) is already reached. If a repeated string instruction is about to start or to continue after
//! that, `run` finishes it, too: it belongs to the exit before it, because KVM cannot stop between the two (see the
//! module `repeat`).
//!
//! In mode `exit`, a run ends at the guest's next exit, even if `Until::icount` is larger. An exit is counted when its
//! instruction is finished, or when the exception that ends the instruction is delivered. The CPU takes at most one
//! interrupt after an exit, and none elsewhere. The TSC changes only after exits.
//!
//! Watchpoints may stop a run anywhere. Only observers use them, so the stop has no effect on the guest: the CPU takes
//! no interrupt there, and the next run continues to where this run would have stopped. Breakpoints need an engine that
//! counts instructions.
//!
//! **Invariant.** The CPU's own count of instructions is visible neither in states nor in the TSC. It only bounds how
//! long a guest may run without a counted exit or branch. The bound restarts at each of them, and in mode `branch` also
//! after each device access, so stops in between do not matter.

use everett_cpu::{CpuModel, CpuState, Edge, MissingInstruction, Watchpoint, WatchpointHit};

use super::repeat::goes_on;
use super::soft::SoftEngine;
use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::clock::ClockMode;

/// Maximum number of instructions without a counted exit or branch. The engine then ends the guest, because its vtime
/// stands still and nothing can interrupt it. Executing this many instructions takes about ten seconds of host time.
/// For comparison, a guest that hashes 144 MiB executes half as many.
pub const INSTRUCTIONS_MAX: u64 = 20_000_000_000;
/// Maximum number of instructions per call of the CPU in mode `branch`. The engine looks for a new branch only after
/// each call. It may therefore notice up to this number of instructions too late that the guest has reached
/// [`INSTRUCTIONS_MAX`].
const PIECE: u64 = 1 << 20;

/// Unit that the engine counts, with the state that only the unit's clock mode needs.
#[derive(Debug)]
enum Counted {
    Exits {
        count: u64,
        /// True directly after an exit, where the CPU may take an interrupt. Executing an instruction or taking an
        /// interrupt clears it.
        open: bool,
        tsc: TscAnchor,
    },
    Branches {
        /// Difference between the engine's count and the CPU's count of branches.
        base: u64,
    },
}

/// Soft CPU that counts exits or branches.
#[derive(Debug)]
pub struct CountingEngine {
    soft: SoftEngine,
    counted: Counted,
    /// True while an instruction waits for a device, or has iterations left.
    unfinished: bool,
    /// True while an instruction waits for a device's answer.
    asking: bool,
    /// True if a watchpoint was hit within an unfinished instruction. The stop is reported when the instruction is
    /// finished.
    watched: bool,
    /// The CPU's count of instructions at the last counted exit or branch, or at the end of the last device access.
    progress: u64,
    instructions_max: u64,
}

impl CountingEngine {
    /// Creates an engine that counts the exits of the guest from now on.
    pub fn exits(soft: SoftEngine) -> CountingEngine {
        let tsc = TscAnchor { icount: 0, tsc: 0, num: 0, den: 1 };
        CountingEngine::new(soft, Counted::Exits { count: 0, open: true, tsc })
    }

    /// Creates an engine that counts the conditional branches of the guest from now on.
    ///
    /// # Panics
    /// Panics unless the CPU was created to count branches ([`everett_cpu::CacheConfig::branches`]).
    pub fn branches(soft: SoftEngine) -> CountingEngine {
        assert!(soft.counts_branches(), "the CPU must count branches");
        CountingEngine::new(soft, Counted::Branches { base: 0 })
    }

    fn new(soft: SoftEngine, counted: Counted) -> CountingEngine {
        let progress = soft.icount();
        CountingEngine {
            soft,
            counted,
            unfinished: false,
            asking: false,
            watched: false,
            progress,
            instructions_max: INSTRUCTIONS_MAX,
        }
    }

    /// Sets the number of instructions without a counted event after which the engine ends the guest. Only tests may
    /// call this, because the number affects the guest's execution.
    pub fn give_up_after(&mut self, instructions: u64) {
        self.instructions_max = instructions;
    }

    /// Returns the soft engine that executes the guest. The caller may change only settings that do not affect the
    /// guest's execution.
    pub fn soft_mut(&mut self) -> &mut SoftEngine {
        &mut self.soft
    }

    /// Returns the number of instructions executed so far. Only for display.
    pub fn instructions(&self) -> u64 {
        self.soft.icount()
    }

    /// Executes at most `instructions` instructions. In mode `exit`, the TSC stands still during these.
    fn execute(&mut self, instructions: u64, window: bool) -> Exit {
        let (from, branches) = (self.soft.icount(), self.soft.branches());
        if let Counted::Exits { count, tsc: TscAnchor { icount, tsc, num, den }, .. } = self.counted {
            let passed = u128::from(count.saturating_sub(icount)) * u128::from(num) / u128::from(den);
            let tsc = tsc.wrapping_add(passed as u64);
            self.soft.set_tsc(TscAnchor { icount: from, tsc, num: 0, den: 1 });
        }
        let icount = from.saturating_add(instructions);
        let exit = self.soft.run(Until { icount, window, passing: false });
        if matches!(self.counted, Counted::Branches { .. }) && self.soft.branches() != branches {
            self.progress = self.soft.icount();
        }
        exit
    }

    /// Handles an exit of the CPU other than [`Exit::Count`], and returns it for the machine.
    fn stopped(&mut self, exit: Exit) -> Exit {
        match exit {
            Exit::Device(_) => {
                self.unfinished = true;
                self.asking = true;
            }
            Exit::Halt if matches!(self.counted, Counted::Exits { .. }) => self.exit_is_finished(),
            _ => {}
        }
        exit
    }

    /// Counts a finished exit in mode `exit`, and restarts the bound on instructions.
    fn exit_is_finished(&mut self) {
        if let Counted::Exits { count, open, .. } = &mut self.counted {
            *count += 1;
            *open = true;
        }
        self.progress = self.soft.icount();
        self.unfinished = false;
    }

    /// Continues the unfinished instruction until it finishes or accesses a device.
    fn finish(&mut self) -> Option<Exit> {
        loop {
            // With a maximum of 0 instructions, `execute` finishes the instruction that waits for a device, and starts
            // no other instruction.
            let iteration = u64::from(!self.asking);
            let exit = self.execute(iteration, false);
            self.asking = false;
            match exit {
                Exit::Count => {}
                Exit::Watchpoint => self.watched = true,
                other => return Some(self.stopped(other)),
            }
            if !goes_on(&self.soft) {
                self.exit_is_finished();
                return std::mem::take(&mut self.watched).then_some(Exit::Watchpoint);
            }
            if self.is_given_up() {
                return Some(Exit::NoProgress);
            }
        }
    }

    /// True if the guest has reached the bound on instructions without a counted event.
    fn is_given_up(&self) -> bool {
        self.soft.icount() - self.progress >= self.instructions_max
    }

    fn run_to_exit(&mut self, until: &Until) -> Exit {
        if self.icount() >= until.icount {
            return Exit::Count;
        }
        if until.window && self.interruptible() {
            return Exit::Window;
        }
        if self.is_given_up() {
            return Exit::NoProgress;
        }
        let left = self.progress.saturating_add(self.instructions_max) - self.soft.icount();
        let exit = self.execute(left, false);
        self.close();
        match exit {
            Exit::Count => Exit::NoProgress,
            other => self.stopped(other),
        }
    }

    fn run_to_branch(&mut self, until: &Until) -> Exit {
        loop {
            let missing = until.icount.saturating_sub(self.icount());
            if missing == 0 {
                return Exit::Count;
            }
            if self.is_given_up() {
                return Exit::NoProgress;
            }
            let exit = self.execute(missing.min(PIECE), until.window);
            if exit != Exit::Count {
                return self.stopped(exit);
            }
        }
    }

    /// In mode `exit`, forbids interrupts up to the next exit.
    fn close(&mut self) {
        if let Counted::Exits { open, .. } = &mut self.counted {
            *open = false;
        }
    }
}

impl Engine for CountingEngine {
    fn capabilities(&self) -> Capabilities {
        let clock = match self.counted {
            Counted::Exits { .. } => ClockMode::Exit,
            Counted::Branches { .. } => ClockMode::Branch,
        };
        Capabilities { clock, disturbed: false }
    }
    fn cpu_model(&self) -> CpuModel {
        self.soft.cpu_model()
    }
    fn run(&mut self, until: Until) -> Exit {
        if self.unfinished
            && let Some(exit) = self.finish()
        {
            return exit;
        }
        match self.counted {
            Counted::Exits { .. } => self.run_to_exit(&until),
            Counted::Branches { .. } => self.run_to_branch(&until),
        }
    }
    fn icount(&self) -> u64 {
        match self.counted {
            Counted::Exits { count, .. } => count,
            Counted::Branches { base } => base + self.soft.branches(),
        }
    }
    fn failure(&self) -> Option<Failure> {
        self.soft.failure()
    }
    fn complete_read(&mut self, value: u64) {
        self.soft.complete_read(value);
    }
    fn interruptible(&self) -> bool {
        let boundary = match self.counted {
            Counted::Exits { open, .. } => open,
            Counted::Branches { .. } => !self.unfinished,
        };
        boundary && self.soft.interruptible()
    }
    fn interrupt(&mut self, vector: u8) {
        if let Counted::Exits { open, .. } = self.counted {
            assert!(open, "an interrupt can be taken only once after each exit");
        }
        self.close();
        self.soft.interrupt(vector);
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        match &mut self.counted {
            Counted::Exits { tsc, .. } => *tsc = anchor,
            Counted::Branches { .. } => self.soft.set_tsc(TscAnchor { num: 0, ..anchor }),
        }
    }
    fn state(&self) -> CpuState {
        // The soft CPU counts exceptions that follow each other without an instruction between them. The KVM engine
        // cannot see this count, so it is zero here, too.
        CpuState { icount: self.icount(), exceptions: 0, ..self.soft.state() }
    }
    fn set_state(&mut self, state: &CpuState) {
        let icount = self.soft.icount();
        self.soft.set_state(&CpuState { icount, ..state.clone() });
        let branches = self.soft.branches();
        match &mut self.counted {
            Counted::Exits { count, open, .. } => (*count, *open) = (state.icount, true),
            Counted::Branches { base } => *base = state.icount - branches,
        }
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
    fn take_hits(&mut self) -> Vec<WatchpointHit> {
        self.soft.take_hits()
    }
    fn take_missing_instruction(&mut self) -> Option<MissingInstruction> {
        self.soft.take_missing_instruction()
    }
    fn take_edges(&mut self) -> Vec<Edge> {
        self.soft.take_edges()
    }
    fn forget_edges(&mut self) {
        self.soft.forget_edges();
    }
}
