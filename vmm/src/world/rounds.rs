//! Who runs how far, and when frames change hands.

use super::{Captured, World, WorldStop, WorldUntil};
use crate::clock::VTIME_MAX;
use crate::engine::Engine;
use crate::machine::Until;

impl<E: Engine> World<E> {
    /// Run until one of the ends in `until`, or until a node stops for a reason of its own. A node that has come to its end
    /// is told once, and the world goes on without it.
    pub fn run(&mut self, until: &WorldUntil<'_>) -> WorldStop {
        let end = until.vtime.min(VTIME_MAX);
        let all = Until::vtime(VTIME_MAX).or_port_lines(until.port_lines);
        let one = Until { icount: until.icount, breakpoints: until.breakpoints, ..all };
        loop {
            let target = self.round.horizon.min(end);
            for number in 0..self.nodes.len() {
                let machine = if number == until.node { &one } else { &all };
                let stop = self.nodes[number].run_to(target, machine);
                self.collect(number);
                if let Some(stop) = stop {
                    return WorldStop::Node { node: number, stop };
                }
            }
            self.round.now = self.round.now.max(target);
            if self.round.now >= end {
                return WorldStop::Time;
            }
            self.exchange(until.event);
        }
    }

    /// Take what a node has sent.
    fn collect(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        for frame in node.machine.output().take_frames() {
            let at = node.state.clock.world(frame.vtime);
            self.round.sent.push((at, number as u8, frame.bytes));
        }
    }

    /// The horizon is reached: frames change hands, and there is a next one.
    fn exchange(&mut self, event: u64) {
        // Stable: frames of one node keep their order.
        self.round.sent.sort_by_key(|&(at, node, _)| (at, node));
        for (at, node, bytes) in std::mem::take(&mut self.round.sent) {
            let captured = self.capture.is_some().then(|| bytes.clone());
            let frame = self.wire.send(node, at, bytes);
            if let (Some(capture), Some(bytes)) = (&mut self.capture, captured) {
                capture.push(Captured::Sent { port: node, at, frame, bytes });
            }
        }
        let now = self.round.now;
        let active = self.nodes.iter().map(|node| node.next_activity()).min().unwrap_or(VTIME_MAX);
        let arrives = self.wire.next_delivery().unwrap_or(VTIME_MAX);
        let first = active.min(arrives).max(now);
        let horizon = first.saturating_add(self.wire.lookahead_ns()).min(event).min(VTIME_MAX);
        // Time always goes on: an event that is due has been done.
        self.round.horizon = horizon.max(now.saturating_add(1));
        while let Some(delivery) = self.wire.pop_due(self.round.horizon - 1) {
            if let Some(capture) = &mut self.capture {
                capture.push(Captured::Delivered(delivery.clone()));
            }
            let Some(node) = self.nodes.get_mut(usize::from(delivery.port)) else { continue };
            let local = node.state.clock.local(delivery.at);
            node.machine.frame_arrives(local, delivery.bytes);
        }
    }
}
