//! Breakpoints, watchpoints and other places where moves stop.

use everett_cpu::Watchpoint;

use super::Cursor;

/// Places where moves stop at a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Points {
    breakpoints: Vec<u64>,
    watchpoints: Vec<Watchpoint>,
    mode_changes: bool,
}

impl Cursor<'_> {
    /// Sets a node's breakpoints, linear addresses that replace earlier ones. Returns false if the engine has none.
    pub fn set_breakpoints(&mut self, node: usize, addresses: &[u64]) -> bool {
        addresses.clone_into(&mut self.points[node].breakpoints);
        self.timeline.machine_mut(node).set_breakpoints(addresses)
    }

    /// Sets a node's watchpoints, which replace earlier ones. Returns false if the engine has none.
    pub fn set_watchpoints(&mut self, node: usize, points: &[Watchpoint]) -> bool {
        points.clone_into(&mut self.points[node].watchpoints);
        self.timeline.machine_mut(node).stop_at_accesses(points)
    }

    /// Makes moves stop where a node's CPU enters or leaves user mode. Returns false if the engine does not see it.
    pub fn stop_at_mode_changes(&mut self, node: usize, on: bool) -> bool {
        self.points[node].mode_changes = on;
        self.timeline.machine_mut(node).stop_at_mode_changes(on)
    }

    /// Sets the places of another cursor on the same branch.
    pub(super) fn set_points(&mut self, points: &[Points]) {
        for (node, points) in points.iter().enumerate() {
            if self.points[node] != *points {
                self.set_breakpoints(node, &points.breakpoints);
                self.set_watchpoints(node, &points.watchpoints);
                self.stop_at_mode_changes(node, points.mode_changes);
            }
        }
    }
}
