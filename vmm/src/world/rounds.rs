//! Who runs how far, and when frames change hands.

use super::{Captured, World, WorldStop, WorldUntil};
use crate::clock::VTIME_MAX;
use crate::engine::Engine;
use crate::machine::Until;
use crate::wire::Delivery;
use crate::wire::endpoint::Endpoint;

/// No round is longer, in nanoseconds, however far apart nodes are: what they send in it is kept until its end.
const ROUND_NS_MAX: u64 = 1_000_000;

impl<E: Engine> World<E> {
    /// Run until one of the ends in `until`, or until a node stops for a reason of its own. A node that has come to its end
    /// is told once, and the world goes on without it.
    pub fn run(&mut self, until: &WorldUntil<'_>) -> WorldStop {
        let end = until.vtime.min(VTIME_MAX);
        let all = Until::vtime(VTIME_MAX).or_port_lines(until.port_lines);
        let one = Until { icount: until.icount, breakpoints: until.breakpoints, ..all };
        loop {
            let target = self.horizon().min(end);
            self.hand_over(target);
            for number in 0..self.nodes.len() {
                let machine = if number == until.node { &one } else { &all };
                let stop = self.nodes[number].run_to(target, machine);
                self.collect(number);
                if let Some(stop) = stop {
                    return WorldStop::Node { node: number, stop };
                }
            }
            self.run_host(target);
            self.round.now = self.round.now.max(target);
            // Before the owner does anything here: what comes later may not change what has been sent.
            self.send();
            self.unplug_ended();
            if self.round.now >= end {
                return WorldStop::Time;
            }
        }
    }

    /// How far nodes can run before anything that one of them does from here on can reach another one.
    fn horizon(&mut self) -> u64 {
        let now = self.round.now;
        let active = self.nodes.iter().map(|node| node.next_activity()).min().unwrap_or(VTIME_MAX);
        let arrives = self.wire.next_delivery().unwrap_or(VTIME_MAX);
        let sent = self.round.sent.first().map_or(VTIME_MAX, |&(at, ..)| at);
        let host = self.host.as_mut().and_then(Endpoint::next_poll).unwrap_or(VTIME_MAX);
        let first = active.min(host).min(arrives).min(sent).max(now);
        let round = self.wire.lookahead_ns().min(ROUND_NS_MAX);
        let unplugged = (0..self.nodes.len()).filter_map(|number| self.unplugged_at(number)).min();
        first.saturating_add(round).min(unplugged.unwrap_or(VTIME_MAX)).max(now)
    }

    /// What arrives before `target` is decided: give it to the nodes.
    fn hand_over(&mut self, target: u64) {
        let Some(last) = target.checked_sub(1) else { return };
        while let Some(delivery) = self.wire.pop_due(last) {
            if let Some(capture) = &mut self.capture {
                capture.keep(Captured::Delivered(delivery.clone()));
            }
            let Delivery { at, port, bytes, .. } = delivery;
            match (self.nodes.get_mut(usize::from(port)), &mut self.host) {
                (Some(node), _) => node.state.arriving.push_back((at, bytes)),
                (None, Some(host)) if host.port() == port => _ = host.frame_input(at, bytes),
                (None, _) => {}
            }
        }
    }

    /// Take what a node has sent.
    fn collect(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let frames = node.machine.output().take_frames();
        if frames.is_empty() {
            return;
        }
        let sent = &mut self.round.sent;
        let frames = frames.into_iter();
        sent.extend(frames.map(|frame| (node.state.clock.world(frame.vtime), number as u8, frame.bytes)));
        // Stable: frames of one node keep their order.
        sent.sort_by_key(|&(at, node, _)| (at, node));
    }

    /// Put on the wire what was sent before now: no node can send anything earlier any more. A node may be an instruction
    /// ahead, and what it sent there waits.
    fn send(&mut self) {
        let now = self.round.now;
        let later = self.round.sent.partition_point(|&(at, ..)| at < now);
        for (at, node, bytes) in self.round.sent.drain(..later) {
            let captured = self.capture.is_some().then(|| bytes.clone());
            let frame = self.wire.send(node, at, bytes);
            if let (Some(capture), Some(bytes)) = (&mut self.capture, captured) {
                capture.keep(Captured::Sent { port: node, at, frame, bytes });
            }
        }
    }

    /// When the wire notices that a node has come to an end of its own: as late as anything that it did last.
    fn unplugged_at(&self, number: usize) -> Option<u64> {
        let node = &self.nodes[number];
        let ended = !node.is_on() && self.wire.is_attached(number as u8);
        ended.then(|| node.vtime().saturating_add(self.wire.lookahead_ns()))
    }

    /// A node that came to an end of its own gets nothing any more.
    fn unplug_ended(&mut self) {
        let now = self.round.now;
        for number in 0..self.nodes.len() {
            if self.unplugged_at(number).is_some_and(|at| at <= now) {
                self.nodes[number].state.arriving.clear();
                self.wire.detach(number as u8, now);
            }
        }
    }
}
