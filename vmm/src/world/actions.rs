//! Actions on the nodes of a world: power, pauses, speed, drift and stalls.

use everett_fault::{Distribution, Ppm};

use super::{Node, World};
use crate::machine::End;

impl World {
    /// Cuts a node's power. Does not change the write caches of the node's disks: the caller separately chooses which
    /// cached writes are lost.
    pub fn power_off(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].power_off(End::PowerLoss);
        // The node can be an instruction ahead of the world's vtime. Frames that it sent at that vtime or later are
        // dropped.
        self.round.sent.retain(|&(_, port, _)| usize::from(port) != node);
        self.wire.detach(node as u8, now);
    }

    /// Gives a node power. Before this call, the caller gives the node a machine: either a new machine at vtime 0, or a
    /// machine restored from a snapshot that was taken some time after power-on. The machine's vtime 0 then corresponds
    /// to the world's present vtime. A machine that was restored at its vtime of 5 s therefore executes nothing in the
    /// first 5 s after this call.
    pub fn power_on(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].started(now);
        self.wire.attach(node as u8, now);
    }

    /// Stops a node's execution until [`World::resume`].
    pub fn pause(&mut self, node: usize) {
        self.nodes[node].pause();
    }

    /// Continues a paused node.
    pub fn resume(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].resume(now);
    }

    /// Sets the speed of a node's CPU. [`everett_fault::PPM`] is its normal speed.
    pub fn set_speed(&mut self, node: usize, ppm: Ppm) {
        self.nodes[node].set_speed(ppm);
    }

    /// Makes a node's clock drift by `ppm` parts per million from now on.
    pub fn drift(&mut self, node: usize, ppm: i32) {
        let now = self.round.now;
        let Node { machine, state, .. } = &mut self.nodes[node];
        // A paused node's time advances, but its machine has not reached that time.
        state.clock.drift(machine.vtime().max(state.clock.local(now)), ppm);
    }

    /// Makes a node stall at random instructions. `stalls` has a number n and the distribution of the lengths of stalls:
    /// the distance between two stalls is drawn from 1 to 2 n instructions. `None` ends the stalls.
    pub fn set_stalls(&mut self, node: usize, stalls: Option<(u64, Distribution)>) {
        self.nodes[node].set_stalls(stalls);
    }
}
