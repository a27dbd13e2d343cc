//! Steps and continues of one thread or of all threads, forwards and backwards.
//!
//! A thread's step is one instruction in user mode, with everything that happens until the thread is in user mode again:
//! its system call, interrupts, other threads. The kernel's only thread is the CPU, whose step is one instruction.

use std::ops::Range;

use everett_cpu::WatchpointHit;
use everett_session::debug::cursor::position::Position;
use everett_session::debug::cursor::{Aim, Cursor, Listener, Stop};
use everett_session::explore::path_runner::Interrupted;

use crate::debuggee::View;
use crate::{Debuggee, Error, Subject};

/// Request of gdb to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Motion {
    /// To the next stop.
    Continue,
    /// One instruction of this thread.
    Step(u32),
    /// Instructions of this thread, until it leaves this range of addresses.
    StepOut(u32, Range<u64>),
    /// To the last stop before this instant.
    ContinueBack,
    /// Back by one instruction of this thread.
    StepBack(u32),
}

/// Reason why a motion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This thread has made its step.
    Stepped(u32),
    /// This thread is at a breakpoint.
    Breakpoint(u32),
    /// This thread has accessed watched bytes. Backwards, the access is the thread's next instruction.
    Access(u32, WatchpointHit),
    /// The start of the timeline.
    Start,
    /// The end of the timeline.
    End,
    /// gdb asked to stop.
    Interrupted,
    /// The process does not exist any more.
    Gone,
}

impl Debuggee<'_, '_> {
    /// Moves the timeline.
    ///
    /// # Errors
    /// Returns an error if the host or the engine failed.
    pub fn go(&mut self, motion: &Motion, listener: &mut dyn Listener) -> Result<Outcome, Error> {
        let from = self.cursor.position(self.view.node);
        self.set_points(true);
        let outcome = match motion {
            Motion::Continue => self.go_on(listener),
            Motion::Step(tid) => self.step(*tid, listener),
            Motion::StepOut(tid, range) => self.step_out(*tid, range, listener),
            Motion::ContinueBack => self.go_back(from, listener),
            Motion::StepBack(tid) => self.step_back(*tid, listener),
        };
        self.cursor.stop_at_mode_changes(self.view.node, false);
        self.set_points(false);
        let outcome = match outcome {
            Err(Error::Timeline(error)) if error.is::<Interrupted>() => {
                if matches!(motion, Motion::ContinueBack | Motion::StepBack(_)) {
                    // The search has left the timeline anywhere.
                    self.cursor.seek(Aim::Count { node: self.view.node, count: from.count }, &mut ())?;
                }
                Outcome::Interrupted
            }
            other => other?,
        };
        Ok(if self.threads().is_empty() { Outcome::Gone } else { outcome })
    }

    /// Sets the breakpoints and watchpoints, or removes them.
    fn set_points(&mut self, on: bool) {
        let addresses: Vec<u64> = self.view.breakpoints.iter().copied().filter(|_| on).collect();
        self.cursor.set_breakpoints(self.view.node, &addresses);
        self.cursor.set_watchpoints(self.view.node, if on { &self.view.watchpoints } else { &[] });
    }

    fn go_on(&mut self, listener: &mut dyn Listener) -> Result<Outcome, Error> {
        loop {
            let stop = self.run(Aim::Vtime(self.cursor.end_ns()), listener)?;
            if let Some(outcome) = self.view.outcome(self.cursor, &stop) {
                return Ok(outcome);
            }
        }
    }

    /// Runs on. Does not stop at a breakpoint where the node is already.
    fn run(&mut self, aim: Aim, listener: &mut dyn Listener) -> Result<Stop, Error> {
        let from = self.cursor.position(self.view.node);
        let stop = self.cursor.run(aim, listener)?;
        let stands = matches!(stop, Stop::Breakpoint { .. }) && self.cursor.position(self.view.node) == from;
        if stands { Ok(self.cursor.run(aim, listener)?) } else { Ok(stop) }
    }

    fn step(&mut self, tid: u32, listener: &mut dyn Listener) -> Result<Outcome, Error> {
        let node = self.view.node;
        if self.view.subject == Subject::Kernel {
            let count = self.cursor.position(node).count + 1;
            return Ok(match self.run(Aim::Count { node, count }, listener)? {
                Stop::Reached => Outcome::Stepped(1),
                stop => self.view.outcome(self.cursor, &stop).unwrap_or(Outcome::End),
            });
        }
        if !self.is_in_user_mode(tid)
            && let Some(outcome) = self.run_to_user_mode(tid, listener)?
        {
            return Ok(outcome);
        }
        let count = self.cursor.position(node).count + 1;
        let stop = self.run(Aim::Count { node, count }, listener)?;
        match stop {
            Stop::Reached if self.is_in_user_mode(tid) => Ok(Outcome::Stepped(tid)),
            Stop::Reached => Ok(self.run_to_user_mode(tid, listener)?.unwrap_or(Outcome::Stepped(tid))),
            stop => match self.view.outcome(self.cursor, &stop) {
                Some(outcome) => Ok(outcome),
                None => Ok(self.run_to_user_mode(tid, listener)?.unwrap_or(Outcome::Stepped(tid))),
            },
        }
    }

    /// Runs until a thread is in user mode. Returns an outcome if something else ends the motion first.
    fn run_to_user_mode(&mut self, tid: u32, listener: &mut dyn Listener) -> Result<Option<Outcome>, Error> {
        self.cursor.stop_at_mode_changes(self.view.node, true);
        loop {
            let stop = self.run(Aim::Vtime(self.cursor.end_ns()), listener)?;
            if self.is_in_user_mode(tid) {
                self.cursor.stop_at_mode_changes(self.view.node, false);
                return Ok(None);
            }
            if let Some(outcome) = self.view.outcome(self.cursor, &stop) {
                return Ok(Some(outcome));
            }
        }
    }

    fn step_out(
        &mut self,
        tid: u32,
        range: &Range<u64>,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, Error> {
        loop {
            let outcome = self.step(tid, listener)?;
            let rip = self.cursor.timeline().machine(self.view.node).cpu().rip;
            let is_out = outcome != Outcome::Stepped(tid) || !range.contains(&rip);
            if is_out || self.view.breakpoints.contains(&rip) {
                return Ok(outcome);
            }
            if !listener.goes_on() {
                return Ok(Outcome::Interrupted);
            }
        }
    }

    fn go_back(&mut self, from: Position, listener: &mut dyn Listener) -> Result<Outcome, Error> {
        let view = &self.view;
        let wanted = |cursor: &Cursor<'_>, stop: &Stop| view.outcome(cursor, stop);
        let found = self.cursor.run_back(from, &wanted, listener)?;
        Ok(found.map_or(Outcome::Start, |(_, outcome)| outcome))
    }

    fn step_back(&mut self, tid: u32, listener: &mut dyn Listener) -> Result<Outcome, Error> {
        self.set_points(false);
        let node = self.view.node;
        if self.view.subject == Subject::Kernel {
            let moved = self.cursor.step_back(node, listener)?;
            return Ok(if moved { Outcome::Stepped(1) } else { Outcome::Start });
        }
        let mut from = self.cursor.position(node);
        if self.is_in_user_mode(tid) {
            if !self.cursor.step_back(node, listener)? {
                return Ok(Outcome::Start);
            }
            if self.is_in_user_mode(tid) {
                return Ok(Outcome::Stepped(tid));
            }
            from.count -= 1;
        }
        // The thread's last instruction in user mode is the one before it last left user mode.
        loop {
            self.cursor.stop_at_mode_changes(node, true);
            let view = &self.view;
            let wanted = |cursor: &Cursor<'_>, _: &Stop| {
                view.running(cursor).filter(|(running, is_user)| running.tid == tid && !is_user)
            };
            if self.cursor.run_back(from, &wanted, listener)?.is_none() {
                return Ok(Outcome::Start);
            }
            self.cursor.stop_at_mode_changes(node, false);
            if !self.cursor.step_back(node, listener)? {
                return Ok(Outcome::Start);
            }
            if self.is_in_user_mode(tid) {
                return Ok(Outcome::Stepped(tid));
            }
            from = self.cursor.position(node);
        }
    }
}

impl View<'_> {
    /// Returns the outcome of a stop. `None` if the stop belongs to another process.
    fn outcome(&self, cursor: &Cursor<'_>, stop: &Stop) -> Option<Outcome> {
        match stop {
            Stop::Reached | Stop::End(_) => Some(Outcome::End),
            Stop::Breakpoint { .. } => Some(Outcome::Breakpoint(self.runs(cursor, true)?)),
            Stop::Access { hits, .. } => {
                let (tid, hit) = (self.runs(cursor, false)?, hits.iter().find(|hit| self.is_watched(hit))?);
                Some(Outcome::Access(tid, *hit))
            }
            Stop::ModeChange { .. } => None,
        }
    }

    /// Returns the debuggee's thread that runs on the CPU, if one does. Code of a process must also run in user mode.
    fn runs(&self, cursor: &Cursor<'_>, code: bool) -> Option<u32> {
        let Subject::Process(pid) = self.subject else { return Some(1) };
        let (running, is_user) = self.running(cursor)?;
        (running.pid == pid && (is_user || !code)).then_some(running.tid)
    }

    fn is_watched(&self, hit: &WatchpointHit) -> bool {
        let last = hit.address.saturating_add(u64::from(hit.size).saturating_sub(1));
        self.watchpoints.iter().any(|point| {
            let end = point.address.saturating_add(point.len);
            hit.address < end && last >= point.address && if hit.store { point.stores } else { point.loads }
        })
    }
}
