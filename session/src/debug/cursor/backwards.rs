//! Moves to any instant, and the search for the last stop before an instant.

use super::position::Position;
use super::{Aim, Cursor, Listener, Stop};

/// A stop that lies before an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    position: Position,
    stop: Stop,
}

impl Cursor<'_> {
    /// Moves to an instant, forwards or backwards. Breakpoints and watchpoints on the way are ignored, and stay set.
    ///
    /// # Errors
    /// See [`Cursor::run`].
    pub fn seek(&mut self, aim: Aim, listener: &mut dyn Listener) -> anyhow::Result<Stop> {
        let near_ns = match aim {
            Aim::Vtime(vtime_ns) => vtime_ns,
            Aim::Count { node, count } if count <= self.node(node).retired() => self.node(node).vtime(),
            Aim::Count { .. } => self.vtime(),
        };
        self.seek_near(aim, near_ns, listener)
    }

    fn seek_near(&mut self, aim: Aim, near_ns: u64, listener: &mut dyn Listener) -> anyhow::Result<Stop> {
        self.restore_before(aim)?;
        self.approach(near_ns);
        loop {
            match self.run(aim, listener)? {
                Stop::Breakpoint { .. } | Stop::Access { .. } | Stop::ModeChange { .. } => {}
                stop => return Ok(stop),
            }
        }
    }

    /// Moves a node back by one instruction. The other nodes move back to about the same vtime. Returns false at the
    /// start of the timeline.
    ///
    /// # Errors
    /// See [`Cursor::run`].
    pub fn step_back(&mut self, node: usize, listener: &mut dyn Listener) -> anyhow::Result<bool> {
        let here = self.position(node);
        let Some(count) = here.count.checked_sub(1) else { return Ok(false) };
        if self.moments.first_count(node).is_none_or(|first| count < first) {
            return Ok(false);
        }
        self.seek_near(Aim::Count { node, count }, here.vtime_ns, listener)?;
        Ok(true)
    }

    /// Moves back to the last stop before `from` that `wanted` accepts. A breakpoint's stop is before its instruction,
    /// and so is a watchpoint's: the watched bytes have their values from before the access. A change of the mode is
    /// found where the node has retired as many instructions as after the change: after an instruction, but before an
    /// interrupt or exception. Returns `None`, and moves to
    /// the start of the timeline, if there is no such stop.
    ///
    /// # Errors
    /// See [`Cursor::run`].
    pub fn run_back(
        &mut self,
        from: Position,
        wanted: &mut dyn FnMut(&mut Self, &Stop) -> bool,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<Stop>> {
        let found = self.run_back_after(0, from, wanted, listener)?;
        if found.is_none() {
            self.restore_first()?;
        }
        Ok(found)
    }

    /// Does the same as [`Cursor::run_back`], but need not find stops before the vtime `since_ns`. Returns `None` and
    /// leaves the timeline anywhere if there is no stop after it.
    ///
    /// # Errors
    /// See [`Cursor::run`].
    pub fn run_back_after(
        &mut self,
        since_ns: u64,
        from: Position,
        wanted: &mut dyn FnMut(&mut Self, &Stop) -> bool,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<Stop>> {
        let mut end_ns = from.vtime_ns.saturating_add(1);
        for at_ns in self.moments.all_before(end_ns) {
            if end_ns <= since_ns {
                break;
            }
            self.restore(at_ns)?;
            if let Some(Found { position, stop }) = self.last_before(from, end_ns, wanted, listener)? {
                let Position { vtime_ns, node, count } = position;
                // An access is found after its instruction.
                let is_access = matches!(stop, Stop::Access { .. });
                let aim = Aim::Count { node, count: count.saturating_sub(u64::from(is_access)) };
                self.seek_near(aim, vtime_ns, listener)?;
                return Ok(Some(stop));
            }
            end_ns = at_ns;
        }
        Ok(None)
    }

    /// Runs from here to the vtime `end_ns`, and returns the last stop before `from` that `wanted` accepts. Nodes can be
    /// ahead of the node at `from`, and of the world's vtime.
    fn last_before(
        &mut self,
        from: Position,
        end_ns: u64,
        wanted: &mut dyn FnMut(&mut Self, &Stop) -> bool,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<Found>> {
        let mut last = None;
        loop {
            let stop = self.run(Aim::Vtime(end_ns), listener)?;
            let (Stop::Breakpoint { node } | Stop::Access { node, .. } | Stop::ModeChange { node }) = stop
            else {
                return Ok(last);
            };
            let position = self.position(node);
            if is_before(&stop, position, from) && wanted(self, &stop) {
                last = Some(Found { position, stop });
            }
        }
    }
}

/// True if a stop lies before an instant: the node at the instant has not reached it, or another node is at an earlier
/// vtime.
fn is_before(stop: &Stop, position: Position, from: Position) -> bool {
    if position.node != from.node {
        return position < from;
    }
    match stop {
        // The instruction that made the access or the change lies before the stop.
        Stop::Access { .. } | Stop::ModeChange { .. } => position.count <= from.count,
        _ => position.count < from.count,
    }
}
