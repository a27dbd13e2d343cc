//! Moves that stop at code: continues to breakpoints, system calls and source lines.

use std::sync::{Mutex, PoisonError};

use everett_inspect::Kernel;
use everett_symbols::lines::SourcePlace;

use super::answer::{Answer, Reason};
use super::command::Direction;
use super::error::Refused;
use super::limits::STRING_BYTES;
use super::looks::{no_breakpoints, no_process};
use super::sight::running;
use super::{At, Debugger};
use crate::debug::cursor::{Aim, Cursor, Stop, Unless};
use crate::debug::questions::place::Place;
use crate::debug::questions::syscalls::{BEGIN, beginning};
use crate::inside::machine::MachineRam;
use crate::probes::code::{Code, View};

/// Function that accepts stops: it returns a value for those where a move should end.
type Accept<'a, T> = &'a (dyn Fn(&mut Code<'_>, &Cursor<'_>, &Stop) -> Option<T> + Sync);

impl Debugger<'_> {
    /// Removes all breakpoints and watchpoints from the machines. The debugger keeps its own.
    pub(super) fn clear_stops(&mut self) {
        for node in 0..self.nodes.len() {
            self.cursor.set_breakpoints(node, &[]);
            self.cursor.set_watchpoints(node, &[]);
        }
    }

    /// Moves to the next stop that `accept` accepts, up to the vtime `limit_ns`, or to the last one before here that is
    /// not before `limit_ns`. Returns its node and what `accept` returned. Without such a stop, the timeline is at
    /// `limit_ns` or, backwards, anywhere.
    fn move_to_stop<T: Send>(
        &mut self,
        direction: Direction,
        limit_ns: u64,
        accept: Accept<'_, T>,
    ) -> anyhow::Result<Option<(usize, T)>> {
        match direction {
            Direction::Forwards => {
                self.move_to_next(limit_ns, &mut |code, cursor, stop| accept(code, cursor, stop))
            }
            Direction::Backwards => {
                let from = self.place();
                let Debugger { cursor, code: Some(code), interrupted, .. } = self else {
                    return Err(no_breakpoints());
                };
                // Several cores search.
                let code = Mutex::new(code);
                let wanted = |cursor: &Cursor<'_>, stop: &Stop| {
                    let mut code = code.lock().unwrap_or_else(PoisonError::into_inner);
                    Some((stop.node()?, accept(&mut code, cursor, stop)?))
                };
                let found = cursor.run_back_after(limit_ns, from, &wanted, &mut Unless(*interrupted))?;
                Ok(found.map(|(_, found)| found))
            }
        }
    }

    /// Moves to the next stop that `accept` accepts, up to the vtime `limit_ns`.
    fn move_to_next<T>(
        &mut self,
        limit_ns: u64,
        accept: &mut dyn FnMut(&mut Code<'_>, &Cursor<'_>, &Stop) -> Option<T>,
    ) -> anyhow::Result<Option<(usize, T)>> {
        let Debugger { cursor, code: Some(code), interrupted, nodes, .. } = self else {
            return Err(no_breakpoints());
        };
        let mut listener = Unless(*interrupted);
        let starts: Vec<_> = (0..nodes.len()).map(|node| cursor.position(node)).collect();
        loop {
            let stop = cursor.run(Aim::Vtime(limit_ns), &mut listener)?;
            let Some(node) = stop.node() else { return Ok(None) };
            let stands = matches!(stop, Stop::Breakpoint { .. }) && cursor.position(node) == starts[node];
            let accepted = if stands { None } else { accept(code, cursor, &stop) };
            if let Some(value) = accepted {
                return Ok(Some((node, value)));
            }
        }
    }

    /// Stands at an instruction of a node, and looks at the thread that runs there.
    fn stand_at_node(&mut self, node: usize) {
        (self.at, self.node) = (At::Node(node), node);
        self.pid = match running(self.kernel, &self.cursor, node) {
            Some((process, _, true)) => Some(process.pid),
            _ => None,
        };
    }

    /// Moves to the next or the previous hit of a breakpoint.
    pub(super) fn go_on(&mut self, direction: Direction) -> anyhow::Result<Answer> {
        let points = &self.points;
        let wanted = |entry: &_| points.at_entry(entry).is_some() && self.is_reachable(entry);
        let entry = match direction {
            Direction::Forwards => self.index.next(self.passed(), wanted),
            Direction::Backwards => self.index.last(self.before(), wanted),
        };
        let entry_ns = entry.and_then(|n| self.index.entries().get(n)).map(|entry| entry.vtime_ns);
        let bound = self.points.bound(&self.index);
        let unless_cut = |it: &Self, until_ns: u64| match bound {
            Some((cut_ns, what)) => it.unless_cut(Some(cut_ns), until_ns, what),
            None => Ok(()),
        };
        unless_cut(self, 0)?;
        let listed = unless_cut(self, self.reaches(entry, direction));
        if self.points.stop_at_code() {
            let limit_ns = match direction {
                Direction::Forwards => {
                    let limit_ns = entry_ns.unwrap_or(self.cursor.end_ns());
                    bound.map_or(limit_ns, |(cut_ns, _)| limit_ns.min(cut_ns))
                }
                Direction::Backwards => entry_ns.unwrap_or(0),
            };
            for node in 0..self.nodes.len() {
                self.cursor.set_breakpoints(node, &self.points.addresses(node));
                self.cursor.set_watchpoints(node, &self.points.watched(node));
            }
            let kernel = self.kernel;
            let points = std::mem::take(&mut self.points);
            let accept = |code: &mut Code<'_>, cursor: &Cursor<'_>, stop: &Stop| match stop {
                Stop::Breakpoint { node } => {
                    points.at_code(code, kernel, cursor, *node).map(|number| (number, None))
                }
                Stop::Access { node, hits } => {
                    points.at_store(kernel, cursor, *node, hits).map(|(number, hit)| (number, Some(hit)))
                }
                _ => None,
            };
            let found = self.move_to_stop(direction, limit_ns, &accept);
            self.points = points;
            self.clear_stops();
            if let Some((node, (number, store))) = found? {
                // A stop in the last moment's part can still lie before the entry.
                let is_nearer = match direction {
                    Direction::Forwards => true,
                    Direction::Backwards => {
                        entry_ns.is_none_or(|at| self.cursor.position(node).vtime_ns >= at)
                    }
                };
                if is_nearer {
                    self.stand_at_node(node);
                    let mut stopped = self.stopped_at(Reason::Breakpoint);
                    stopped.breakpoint = Some(number);
                    stopped.text = store.map(|hit| {
                        // After a store, the next instruction is another one.
                        let rip = self.cursor.timeline().machine(node).cpu().rip;
                        let by = if rip == hit.rip { String::new() } else { format!(" by {:#x}", hit.rip) };
                        format!("stores {:#x} at {:#x}, {} bytes{by}", hit.value, hit.address, hit.size)
                    });
                    return Ok(Answer::Stopped(Box::new(stopped)));
                }
            }
        }
        listed?;
        match entry {
            None => self.move_to_edge(direction),
            Some(n) => {
                let number = self.index.entries().get(n).and_then(|entry| self.points.at_entry(entry));
                let mut answer = self.stand_at(n)?;
                if let Answer::Stopped(stopped) = &mut answer {
                    (stopped.reason, stopped.breakpoint) = (Reason::Breakpoint, number);
                }
                Ok(answer)
            }
        }
    }

    /// Moves to the next or previous beginning of a system call of the process in focus, or of the node in focus.
    pub(super) fn move_to_syscall(&mut self, direction: Direction) -> anyhow::Result<Answer> {
        let Some(address) = self.kernel.address_of(BEGIN) else {
            return Err(Refused::because(format!("the kernel has no function {BEGIN}")));
        };
        let (kernel, node, pid) = (self.kernel, self.node, self.pid);
        if !self.cursor.set_breakpoints(node, &[address]) {
            return Err(no_breakpoints());
        }
        let accept = |_: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
            let ram = MachineRam(cursor.timeline().machine(node));
            let place = Place::of(kernel, &ram, cursor.position(node))?;
            let (thread, begun) = beginning(&place, STRING_BYTES)?;
            let is_it = pid.is_none_or(|pid| pid == thread.pid);
            is_it.then(|| format!("{}({})", begun.name, begun.arguments.join(", ")))
        };
        let found = self.move_to_stop(direction, self.limit(direction), &accept);
        self.clear_stops();
        match found? {
            None => self.move_to_edge(direction),
            Some((node, call)) => {
                self.at = At::Node(node);
                let mut stopped = self.stopped_at(Reason::Syscall);
                stopped.text = Some(call);
                Ok(Answer::Stopped(Box::new(stopped)))
            }
        }
    }

    /// Moves to the next or previous source line that the process in focus begins to execute.
    pub(super) fn move_to_line(&mut self, direction: Direction) -> anyhow::Result<Answer> {
        let Some((process, _)) = self.thread()? else { return Err(no_process()) };
        let (kernel, node, pid) = (self.kernel, self.node, process.pid);
        let Some(code) = &mut self.code else { return Err(no_breakpoints()) };
        let addresses = code.lines_of(self.cursor.timeline(), node, &process).map_err(Refused::because)?;
        let here = self.look(|code, view| code.line(view))?;
        self.cursor.set_breakpoints(node, &addresses);
        let found = match direction {
            Direction::Forwards => {
                let mut last = here;
                let mut accept = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
                    let line = line_at(code, kernel, cursor, (node, pid))?;
                    // Several instructions can begin statements of a line.
                    let is_other = Some(&line) != last.as_ref();
                    last = Some(line);
                    is_other.then_some(())
                };
                let found = self.move_to_next(self.cursor.end_ns(), &mut accept);
                found.map(|found| found.map(|(node, ())| node))
            }
            Direction::Backwards => self.move_to_line_before((node, pid), here),
        };
        self.clear_stops();
        match found? {
            None => self.move_to_edge(direction),
            Some(node) => {
                self.stand_at_node(node);
                self.pid = Some(pid);
                Ok(self.stopped(Reason::Line))
            }
        }
    }

    /// Moves back to the beginning of the last source line of a process before here that is not `here`. Each condition is on
    /// one stop alone, so that the parts into which moments divide the timeline make no difference. Returns the node. Without
    /// such a line, the timeline is anywhere.
    fn move_to_line_before(
        &mut self,
        (node, pid): (usize, u32),
        here: Option<SourcePlace>,
    ) -> anyhow::Result<Option<usize>> {
        let kernel = self.kernel;
        let other = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
            line_at(code, kernel, cursor, (node, pid)).filter(|it| Some(it) != here.as_ref())
        };
        let Some((_, line)) = self.move_to_stop(Direction::Backwards, 0, &other)? else { return Ok(None) };
        // This is the line's last statement. The first one follows the last statement of another line.
        self.at = At::Node(node);
        let last = self.origin();
        let before = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
            line_at(code, kernel, cursor, (node, pid)).filter(|it| *it != line)
        };
        if self.move_to_stop(Direction::Backwards, 0, &before)?.is_some() {
            let mut at_line = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
                line_at(code, kernel, cursor, (node, pid))
            };
            if self.move_to_next(self.cursor.end_ns(), &mut at_line)?.is_some() {
                return Ok(Some(node));
            }
        }
        self.return_to(last)?;
        Ok(Some(node))
    }

    /// Returns the vtime up to which a move goes, in nanoseconds.
    fn limit(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Forwards => self.cursor.end_ns(),
            Direction::Backwards => 0,
        }
    }
}

/// Returns the source line of a process's next instruction. `None` if another process runs, or if the line is not known.
fn line_at(
    code: &mut Code<'_>,
    kernel: &Kernel,
    cursor: &Cursor<'_>,
    (node, pid): (usize, u32),
) -> Option<SourcePlace> {
    let (process, thread, _) =
        running(kernel, cursor, node).filter(|(process, _, is_user)| *is_user && process.pid == pid)?;
    code.line(View { timeline: cursor.timeline(), node, thread: Some((&process, &thread)) })
}
