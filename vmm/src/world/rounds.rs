//! Rounds of a world: how far each node runs, and when frames are exchanged.

use super::{Captured, World, WorldStop, WorldUntil};
use crate::clock::VTIME_MAX;
use crate::machine::Until;
use crate::wire::Delivery;
use crate::wire::endpoint::Endpoint;

/// Maximum length of a round, in nanoseconds. Otherwise a round would be as long as the wire's minimum latency (the
/// lookahead), and the number of frames that are kept until the end of a round would have no bound.
const ROUND_NS_MAX: u64 = 1_000_000;

impl World {
    /// Runs until a condition in `until` holds or a node stops. Reports the end of a machine once; the world then
    /// continues without that node.
    pub fn run(&mut self, until: &WorldUntil) -> WorldStop {
        let end = until.vtime.min(VTIME_MAX);
        let all = Until::vtime(VTIME_MAX).or_port_lines(until.port_lines);
        let one = Until { icount: until.icount, ..all };
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
            // Put the frames on the wire before the caller acts at this vtime, because the caller's actions must not
            // affect frames that were already sent.
            self.send();
            self.unplug_ended();
            if self.round.now >= end {
                return WorldStop::Time;
            }
        }
    }

    /// Returns the vtime up to which nodes can run before an action of one node can reach another.
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

    /// Gives the frames that arrive before `target` to the nodes and to Everett's own port (`host`). Nothing can change
    /// these arrivals any more.
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

    /// Takes from a node's machine the frames that the node has sent.
    fn collect(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let frames = node.machine.output().take_frames();
        if frames.is_empty() {
            return;
        }
        let sent = &mut self.round.sent;
        let frames = frames.into_iter();
        sent.extend(frames.map(|frame| (node.state.clock.world(frame.vtime), number as u8, frame.bytes)));
        // The sort is stable, so frames of one node keep their order.
        sent.sort_by_key(|&(at, node, _)| (at, node));
    }

    /// Puts on the wire all frames that were sent before the world's vtime. All running nodes have reached that vtime,
    /// so no node can send an earlier frame any more. A node may be an instruction ahead of the world's vtime. Frames
    /// that were sent at the world's vtime or later wait for a later round.
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

    /// Returns the vtime at which the wire unplugs a node that has ended by itself: a lookahead (the wire's minimum
    /// latency) after the node's end. Returns `None` for other nodes.
    fn unplugged_at(&self, number: usize) -> Option<u64> {
        let node = &self.nodes[number];
        let ended = !node.is_on() && self.wire.is_attached(number as u8);
        ended.then(|| node.vtime().saturating_add(self.wire.lookahead_ns()))
    }

    /// Unplugs the nodes that have ended by themselves, so that no further frame reaches them.
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
