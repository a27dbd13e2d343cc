//! What is done to nodes from outside.

use everett_fault::{Distribution, Ppm};

use super::{Node, World};
use crate::engine::Engine;
use crate::machine::End;

impl<E: Engine> World<E> {
    /// Take a node's power away. Its disks stay in the machine, as they were: what becomes of their caches is another
    /// question.
    pub fn power_off(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].power_off(End::PowerLoss);
        // What it sent an instruction ahead was not sent.
        self.round.sent.retain(|&(_, port, _)| usize::from(port) != node);
        self.wire.detach(node as u8, now);
    }

    /// A node has been brought to where it is switched on, or later: its time begins now.
    pub fn power_on(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].started(now);
        self.wire.attach(node as u8, now);
    }

    /// Let a node execute nothing until it is resumed.
    pub fn pause(&mut self, node: usize) {
        self.nodes[node].pause();
    }

    /// Let a paused node go on.
    pub fn resume(&mut self, node: usize) {
        let now = self.round.now;
        self.nodes[node].resume(now);
    }

    /// Give a node's CPU a part of its speed; [`everett_fault::PPM`] is all of it.
    pub fn set_speed(&mut self, node: usize, ppm: Ppm) {
        self.nodes[node].set_speed(ppm);
    }

    /// Let a node's clock drift by so many parts per million from here on.
    pub fn drift(&mut self, node: usize, ppm: i32) {
        let now = self.round.now;
        let Node { machine, state } = &mut self.nodes[node];
        // A paused node's time goes on, but its machine is not there yet.
        state.clock.drift(machine.vtime().max(state.clock.local(now)), ppm);
    }

    /// Steal time from a node at drawn instructions, 1 to twice `every` apart, or stop that.
    pub fn set_stalls(&mut self, node: usize, stalls: Option<(u64, Distribution)>) {
        self.nodes[node].set_stalls(stalls);
    }
}
