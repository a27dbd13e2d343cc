//! Moves that stop at code: continues to breakpoints, system calls and source lines.

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

/// Function that accepts stops.
type Accept<'a> = &'a mut dyn FnMut(&mut Code<'_>, &Cursor<'_>, &Stop) -> bool;

impl Debugger<'_> {
    /// Removes all breakpoints and watchpoints from the machines. The debugger keeps its own.
    pub(super) fn clear_stops(&mut self) {
        for node in 0..self.nodes.len() {
            self.cursor.set_breakpoints(node, &[]);
            self.cursor.set_watchpoints(node, &[]);
        }
    }

    /// Moves to the next stop that `accept` accepts, up to the vtime `limit_ns`, or to the last one before here that is
    /// not before `limit_ns`. Returns its node. Without such a stop, the timeline is at `limit_ns` or, backwards,
    /// anywhere.
    fn move_to_stop(
        &mut self,
        direction: Direction,
        limit_ns: u64,
        accept: Accept<'_>,
    ) -> anyhow::Result<Option<usize>> {
        let from = self.place();
        let Debugger { cursor, code, interrupted, nodes, .. } = self;
        let Some(code) = code else { return Err(no_breakpoints()) };
        let mut listener = Unless(*interrupted);
        let stop = match direction {
            Direction::Backwards => {
                let mut wanted = |cursor: &mut Cursor<'_>, stop: &Stop| accept(code, cursor, stop);
                cursor.run_back_after(limit_ns, from, &mut wanted, &mut listener)?
            }
            Direction::Forwards => {
                let starts: Vec<_> = (0..nodes.len()).map(|node| cursor.position(node)).collect();
                loop {
                    let stop = cursor.run(Aim::Vtime(limit_ns), &mut listener)?;
                    match stop {
                        Stop::Reached | Stop::End(_) => break None,
                        // The node stands at a breakpoint already.
                        Stop::Breakpoint { node } if cursor.position(node) == starts[node] => {}
                        stop if accept(code, cursor, &stop) => break Some(stop),
                        _ => {}
                    }
                }
            }
        };
        Ok(stop.and_then(|stop| match stop {
            Stop::Breakpoint { node } | Stop::Access { node, .. } | Stop::ModeChange { node } => Some(node),
            Stop::Reached | Stop::End(_) => None,
        }))
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
            let mut hit = None;
            let mut accept = |code: &mut Code<'_>, cursor: &Cursor<'_>, stop: &Stop| {
                let here = match stop {
                    Stop::Breakpoint { node } => {
                        points.at_code(code, kernel, cursor, *node).map(|n| (n, None))
                    }
                    Stop::Access { node, hits } => {
                        points.at_store(kernel, cursor, *node, hits).map(|(n, hit)| (n, Some(hit)))
                    }
                    _ => None,
                };
                hit = here.or(hit);
                here.is_some()
            };
            let found = self.move_to_stop(direction, limit_ns, &mut accept);
            self.points = points;
            self.clear_stops();
            if let (Some(node), Some((number, store))) = (found?, hit) {
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
        let mut call = None;
        let mut accept = |_: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
            let ram = MachineRam(cursor.timeline().machine(node));
            let place = Place::of(kernel, &ram, cursor.position(node));
            let begun = place.and_then(|place| beginning(&place, STRING_BYTES));
            let Some((_, begun)) = begun.filter(|(thread, _)| pid.is_none_or(|pid| pid == thread.pid)) else {
                return false;
            };
            call = Some(format!("{}({})", begun.name, begun.arguments.join(", ")));
            true
        };
        let found = self.move_to_stop(direction, self.limit(direction), &mut accept);
        self.clear_stops();
        match found? {
            None => self.move_to_edge(direction),
            Some(node) => {
                self.at = At::Node(node);
                let mut stopped = self.stopped_at(Reason::Syscall);
                stopped.text = call;
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
                    let Some(line) = line_at(code, kernel, cursor, (node, pid)) else { return false };
                    // Several instructions can begin statements of a line.
                    let is_other = Some(&line) != last.as_ref();
                    last = Some(line);
                    is_other
                };
                self.move_to_stop(direction, self.cursor.end_ns(), &mut accept)
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
        let mut line = None;
        let mut is_other = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
            let it = line_at(code, kernel, cursor, (node, pid)).filter(|it| Some(it) != here.as_ref());
            let is_other = it.is_some();
            line = it.or(line.take());
            is_other
        };
        if self.move_to_stop(Direction::Backwards, 0, &mut is_other)?.is_none() {
            return Ok(None);
        }
        // This is the line's last statement. The first one follows the last statement of another line.
        self.at = At::Node(node);
        let last = self.origin();
        let mut is_before = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
            line_at(code, kernel, cursor, (node, pid)).is_some_and(|it| Some(&it) != line.as_ref())
        };
        if self.move_to_stop(Direction::Backwards, 0, &mut is_before)?.is_some() {
            let mut is_line = |code: &mut Code<'_>, cursor: &Cursor<'_>, _: &Stop| {
                line_at(code, kernel, cursor, (node, pid)).is_some()
            };
            if self.move_to_stop(Direction::Forwards, self.cursor.end_ns(), &mut is_line)?.is_some() {
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
