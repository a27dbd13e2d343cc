//! The run loop of a machine.
//!
//! The loop acts only at boundaries. In clock mode `insn`, a boundary lies between any two instructions; in the other
//! modes, after each exit. Mode `branch` has further boundaries: where the caller requests a stop, and where an event
//! has been due for long (see `slice`).
//!
//! At each boundary, the loop takes these steps in order:
//! 1. Stop if the caller requested a stop here.
//! 2. Dispatch the due events.
//! 3. Offer the LAPIC's interrupt to the CPU.
//! 4. If the CPU is halted, skip to the next event; otherwise execute up to the next event.
//!
//! A device access interrupts an instruction. The device serves the access at the vtime of the instruction. Then the
//! engine finishes the instruction, before the next boundary.

use everett_cpu::Request;

use super::journal::{Entry, EntryKind};
use super::rerun::TRIES_MAX;
use super::slice::latest;
use super::stop::{End, Stop, Until};
use super::{Machine, State};
use crate::clock::{ClockMode, VTIME_MAX};
use crate::engine::{self, Engine, Exit, Failure};
use crate::events::Event;
use crate::layout::{PAGE, RTC_GSI, TIMER_GSI};

impl Machine {
    /// Runs until a condition of `until` is met or the machine ends.
    pub fn run(&mut self, until: &Until) -> Stop {
        let beginning = self.beginning();
        let mut stopped = self.run_to_stop(until);
        let mut tries = 1;
        if let Some(beginning) = &beginning {
            while tries < TRIES_MAX && self.engine.recover() {
                tries += 1;
                stopped = self.begin_again(beginning).and_then(|()| self.run_to_stop(until));
            }
        }
        // The engine may have failed when the loop read its state (e.g. RIP), and returned an invalid value. The result
        // of the run may depend on that value, so the failure replaces the result.
        if self.engine.failure().is_some() && !stopped.as_ref().is_err_and(End::is_failure) {
            stopped = Err(self.failed_end());
        }
        if tries == TRIES_MAX
            && let Some(Failure::Disturbed(_)) = self.engine.failure()
            && let Err(End::Host(why)) = &mut stopped
        {
            why.push_str(&format!(", in all {TRIES_MAX} attempts"));
        }
        match stopped {
            Ok(stop) => stop,
            Err(end) => {
                self.state.end = Some(end.clone());
                Stop::End(end)
            }
        }
    }

    fn run_to_stop(&mut self, until: &Until) -> Result<Stop, End> {
        if let Some(end) = &self.state.end {
            return Err(end.clone());
        }
        let until_vtime = until.vtime.min(VTIME_MAX);
        // Lines that the guest finished on a port before this call must not stop this run.
        self.output.take_port_lines();
        loop {
            let icount = self.engine.icount();
            let now = self.state.clock.vtime(icount);
            let lines = self.output.take_port_lines() & until.port_lines;
            if lines != 0 {
                return Ok(Stop::PortLines(lines));
            }
            if let Some(port) = self.output.full_port() {
                return Ok(Stop::OutputFull(port));
            }
            if now >= until_vtime {
                return Ok(Stop::Time);
            }
            if icount >= until.icount {
                return Ok(Stop::Count);
            }
            self.dispatch(now);
            // The engine must know the pages that devices wrote before it delivers an interrupt, because the delivery
            // reads tables in guest memory.
            self.hand_over_device_writes();
            let window = self.offer_interrupt(icount, now)?;
            if self.state.halted {
                if let Some(stop) = self.idle(icount, until_vtime)? {
                    return Ok(stop);
                }
                continue;
            }
            if let Some(stop) = self.execute(until, until_vtime, window)? {
                return Ok(stop);
            }
        }
    }

    /// Returns the end of a machine that the guest ended with a device access. If the clock counts exits or branches,
    /// the engine first finishes the instruction, because engines differ in how much of it they have executed.
    fn ended_by_exit(&mut self, end: End) -> End {
        let icount = match self.clock_mode() {
            ClockMode::Insn => return end,
            ClockMode::Exit => self.engine.icount() + 1,
            ClockMode::Branch => self.engine.icount(),
        };
        match self.engine.run(engine::Until { icount, window: false, passing: true }) {
            Exit::Failed => self.failed_end(),
            _ => end,
        }
    }

    /// Returns the end of a machine whose engine failed.
    fn failed_end(&self) -> End {
        match self.engine.failure() {
            Some(Failure::Host(why) | Failure::Disturbed(why)) => End::Host(why),
            Some(Failure::Engine(message)) => End::Engine(message),
            None => End::Host("the engine gives no reason".to_owned()),
        }
    }

    /// Ends the machine if its engine has failed. Reading or setting the engine's state, e.g. for a digest or a moment,
    /// can make the engine fail; a value that was read is then invalid.
    pub(crate) fn note_failure(&mut self) {
        if self.engine.failure().is_some() && !self.state.end.as_ref().is_some_and(End::is_failure) {
            self.state.end = Some(self.failed_end());
        }
    }

    /// Executes up to the next boundary at which the loop must act. Returns why the run stops there, if it does.
    fn execute(&mut self, until: &Until, until_vtime: u64, window: bool) -> Result<Option<Stop>, End> {
        let mut in_flight = false;
        let mut window = window;
        loop {
            let icount = self.engine.icount();
            let mut next_event = self.state.events.next_vtime().unwrap_or(VTIME_MAX);
            if let Some(slice) = &mut self.state.slice
                && !in_flight
            {
                slice.set_after_exit(false);
                next_event = latest(next_event);
            }
            let mut limit = self.state.clock.icount_at(until_vtime.min(next_event)).min(until.icount);
            if in_flight {
                // Even if an event becomes due during the instruction, the instruction is finished first. If the
                // instruction has ended a line on a port that `until` names, or filled a port's output buffer, the run
                // ends after the instruction.
                limit = limit.max(icount + 1);
                if self.output.has_port_lines(until.port_lines) || self.output.full_port().is_some() {
                    limit = icount + 1;
                }
                if self.state.slice.is_some() {
                    // Execute up to the boundary after the exit.
                    limit = icount;
                }
                window = self.state.interrupts.lapic.pending().is_some();
            }
            // After a stop at a breakpoint, the next run must not stop there again.
            let passing = in_flight || self.stopped_at == Some(icount);
            self.stats.entries += 1;
            let exit = self.engine.run(engine::Until { icount: limit, window, passing });
            let icount = self.engine.icount();
            let now = self.state.clock.vtime(icount);
            if let Some(slice) = &mut self.state.slice {
                let finished = in_flight && matches!(exit, Exit::Count | Exit::Watchpoint);
                slice.set_after_exit(finished || exit == Exit::Halt);
            }
            match exit {
                Exit::Count | Exit::Window => return Ok(None),
                Exit::Halt => {
                    self.stats.halts += 1;
                    self.state.halted = true;
                    self.hold_tsc(now);
                    return Ok(None);
                }
                Exit::Breakpoint => {
                    self.stopped_at = Some(icount);
                    return Ok(Some(Stop::Breakpoint));
                }
                Exit::ModeChange => return Ok(Some(Stop::ModeChange)),
                Exit::Watchpoint => {
                    let hits = self.engine.take_hits();
                    if self.observers.stops_at_accesses {
                        self.observers.accesses.extend(hits);
                        return Ok(Some(Stop::Watchpoint));
                    }
                    for hit in hits {
                        self.output.access(now, hit);
                    }
                    return Ok(None);
                }
                Exit::Shutdown => return Err(End::TripleFault),
                Exit::Unsupported(reason) => return Err(End::Unsupported(reason.to_owned())),
                Exit::NoProgress => return Err(self.no_progress()),
                Exit::Failed => return Err(self.failed_end()),
                Exit::Device(Request::MmioRead { gpa, size }) => {
                    let value = self.mmio_read(gpa, size, now);
                    self.record(icount, now, EntryKind::Mmio { gpa, value });
                    self.engine.complete_read(value);
                }
                Exit::Device(Request::MmioWrite { gpa, size, value }) => {
                    self.record(icount, now, EntryKind::MmioWrite { gpa, value });
                    self.mmio_write(gpa, size, value, now);
                }
                Exit::Device(Request::PioRead { port, size }) => {
                    let value = self.pio_read(port, size, now);
                    self.record(icount, now, EntryKind::Pio { port, value });
                    self.engine.complete_read(value);
                }
                Exit::Device(Request::PioWrite { port, size, value }) => {
                    self.record(icount, now, EntryKind::PioWrite { port, value: u64::from(value) });
                    if let Err(end) = self.pio_write(port, size, value, now) {
                        return Err(self.ended_by_exit(end));
                    }
                }
            }
            self.state.guard.access(self.state.clock.mode(), icount)?;
            self.hand_over_device_writes();
            in_flight = true;
        }
    }

    /// Returns the end of a machine whose guest executes without an event that the clock counts (a branch or an exit).
    fn no_progress(&self) -> End {
        if self.clock_mode() == ClockMode::Branch { End::NoBranch } else { End::NoExit }
    }

    /// Dispatches due events, unless clock mode `branch` defers them to a later boundary.
    fn dispatch(&mut self, now: u64) {
        if let Some(slice) = &self.state.slice {
            // While the CPU is halted, due events are dispatched at once, without a change of the TSC. The guest cannot
            // read the TSC before the next interrupt, at which the loop sets the TSC again. So the guest cannot notice
            // how often the loop stops while the CPU is halted.
            if !self.state.halted {
                if !slice.dispatches(now, self.state.events.next_vtime()) {
                    return;
                }
                self.hold_tsc(now);
            }
        }
        self.dispatch_due(now);
    }

    /// In clock mode `branch`, sets the TSC to vtime `now`. The TSC keeps this value until the next dispatch, interrupt
    /// or halt.
    fn hold_tsc(&mut self, now: u64) {
        if let Some(slice) = &mut self.state.slice {
            slice.set_tsc(now);
            self.engine.set_tsc(slice.tsc());
        }
    }

    fn dispatch_due(&mut self, now: u64) {
        while let Some((_, event)) = self.state.events.pop_due(now) {
            self.stats.events += 1;
            match event {
                Event::LapicTimer => {
                    let State { interrupts, events, .. } = &mut self.state;
                    interrupts.lapic.timer_expired();
                    if self.leak.loses_interrupt() {
                        interrupts.lapic.lose_request(now, events);
                    }
                }
                Event::Rtc => {
                    let State { rtc, events, interrupts, .. } = &mut self.state;
                    rtc.expired(now, events);
                    interrupts.set_line(RTC_GSI, rtc.line());
                }
                Event::Hpet => {
                    let State { legacy, events, interrupts, .. } = &mut self.state;
                    if let Some(legacy) = legacy {
                        legacy.hpet.expired(now, events);
                        interrupts.pulse(TIMER_GSI);
                    }
                }
                Event::Virtio { slot, token } => self.virtio_event(usize::from(slot), token),
            }
        }
    }

    /// Delivers the LAPIC's interrupt if the CPU can take it now. Returns true if an interrupt must wait for an
    /// interrupt window.
    fn offer_interrupt(&mut self, icount: u64, now: u64) -> Result<bool, End> {
        let Some(vector) = self.state.interrupts.lapic.pending() else { return Ok(false) };
        if !self.engine.interruptible() {
            return Ok(true);
        }
        let State { interrupts, events, guard, clock, .. } = &mut self.state;
        guard.interrupt(clock.mode(), icount, vector)?;
        interrupts.lapic.acknowledge(vector, now, events);
        self.record(icount, now, EntryKind::Interrupt { vector });
        self.hold_tsc(now);
        self.engine.interrupt(vector);
        self.state.halted = false;
        self.stopped_at = None;
        self.stats.interrupts += 1;
        // An interrupt of a higher class may already be pending. It waits until the handler allows interrupts.
        Ok(self.state.interrupts.lapic.pending().is_some())
    }

    /// Skips idle time up to the next event, because the CPU waits for an interrupt.
    fn idle(&mut self, icount: u64, until_vtime: u64) -> Result<Option<Stop>, End> {
        if !self.engine.interruptible() {
            return Err(End::HaltedForever);
        }
        self.state.guard.idle();
        let next = self.state.events.next_vtime();
        let to = next.unwrap_or(until_vtime).min(until_vtime);
        if next.is_none() && until_vtime == VTIME_MAX {
            return Ok(Some(Stop::Idle));
        }
        self.state.clock.skip_to(icount, to);
        self.engine.set_tsc(self.state.tsc());
        let now = self.state.clock.vtime(icount);
        // The journal (inputs and outputs of the CPU, to compare two runs) records only skips that reach an event. A
        // skip to the end of a run is not an input of the CPU.
        if next.is_some_and(|next| next <= now) {
            self.record(icount, now, EntryKind::Skip { to });
        }
        Ok(next.is_none().then_some(Stop::Idle))
    }

    /// Tells the engine which pages devices wrote.
    pub(crate) fn hand_over_device_writes(&mut self) {
        if !self.ram.has_device_writes() {
            return;
        }
        let pages = self.ram.take_device_writes();
        for &page in &pages {
            self.engine.memory_written(page * PAGE, PAGE);
        }
        if self.journal.is_some() {
            let mut hasher = blake3::Hasher::new();
            let mut content = [0; PAGE as usize];
            for &page in &pages {
                hasher.update(&page.to_le_bytes());
                // Devices have just written these pages, so they are RAM and the read succeeds.
                self.ram.read(page * PAGE, &mut content);
                hasher.update(&content);
            }
            let digest = u64::from_le_bytes(std::array::from_fn(|i| hasher.finalize().as_bytes()[i]));
            let icount = self.engine.icount();
            let now = self.state.clock.vtime(icount);
            self.record(icount, now, EntryKind::DeviceWrite { pages: pages.len() as u64, digest });
        }
    }

    fn record(&mut self, icount: u64, vtime: u64, kind: EntryKind) {
        if let Some(journal) = &mut self.journal {
            journal.push(Entry { icount, vtime, rip: self.engine.state().rip, kind });
        }
    }
}
