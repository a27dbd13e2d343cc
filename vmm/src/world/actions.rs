//! Actions of a world's owner on its nodes.

use everett_fault::{Distribution, Ppm};

use super::{Node, World};
use crate::machine::End;

impl World {
    /// Takes a node's power away. Its disks stay in the machine as they were: the loss of their caches is applied
    /// separately.
    pub fn power_off(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].power_off(End::PowerLoss);
        // The node can be an instruction ahead of now. Frames that it sent there are dropped.
        self.round.sent.retain(|&(_, port, _)| usize::from(port) != node);
        self.wire.detach(node as u8, now);
    }

    /// Starts the time of a node whose machine has been put at its power-on, or at a later moment. Gives it power.
    pub fn power_on(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].started(now);
        self.wire.attach(node as u8, now);
    }

    /// Stops a node's execution until it is resumed.
    pub fn pause(&mut self, node: usize) {
        self.nodes[node].pause();
    }

    /// Continues a paused node.
    pub fn resume(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].resume(now);
    }

    /// Sets the speed of a node's CPU; [`everett_fault::PPM`] is its normal speed.
    pub fn set_speed(&mut self, node: usize, ppm: Ppm) {
        self.nodes[node].set_speed(ppm);
    }

    /// Lets a node's clock drift by `ppm` parts per million from now on.
    pub fn drift(&mut self, node: usize, ppm: i32) {
        let now = self.round.now;
        let Node { machine, state } = &mut self.nodes[node];
        // A paused node's time advances, but its machine is not there yet.
        state.clock.drift(machine.vtime().max(state.clock.local(now)), ppm);
    }

    /// Steals time from a node at drawn instructions, which are from 1 to 2 * `every` apart. `None` ends this.
    pub fn set_stalls(&mut self, node: usize, stalls: Option<(u64, Distribution)>) {
        self.nodes[node].set_stalls(stalls);
    }
}
