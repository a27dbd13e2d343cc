//! Moves to any instant, and the search for the last stop before an instant.

use super::pieces::{Found, Search, Wanted};
use super::position::Position;
use super::{Aim, Cursor, Listener, Stop};

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

    /// Moves back to the last stop before `from` for which `wanted` returns a value, and returns both. A breakpoint's
    /// stop is before its instruction, and so is a watchpoint's: the watched bytes have their values from before the
    /// access. `wanted` is called after the access. A change of the mode is found where the node has retired as many
    /// instructions as after the change: after an instruction, but before an interrupt or exception. Returns `None`, and
    /// moves to the start of the timeline, if there is no such stop.
    ///
    /// Long searches run on several cores, and call `wanted` on each. Its value for a stop must depend on nothing but the
    /// cursor that it gets. The search reports no events and messages to `listener`.
    ///
    /// # Errors
    /// See [`Cursor::run`].
    pub fn run_back<T: Send>(
        &mut self,
        from: Position,
        wanted: Wanted<'_, T>,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<(Stop, T)>> {
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
    pub fn run_back_after<T: Send>(
        &mut self,
        since_ns: u64,
        from: Position,
        wanted: Wanted<'_, T>,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Option<(Stop, T)>> {
        let search = Search::new(&self.moments, since_ns, from, wanted);
        let Some(Found { position, stop, value, near }) = self.search(&search, listener)? else {
            return Ok(None);
        };
        if let Some((at_ns, kept)) = near {
            self.keep(at_ns, kept);
        }
        let Position { vtime_ns, node, count } = position;
        // An access is found after its instruction.
        let is_access = matches!(stop, Stop::Access { .. });
        let aim = Aim::Count { node, count: count.saturating_sub(u64::from(is_access)) };
        self.seek_near(aim, vtime_ns, listener)?;
        Ok(Some((stop, value)))
    }
}
