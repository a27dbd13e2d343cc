//! Sends frames. The switch chooses the nodes that get a frame from a network card. The frame then enters one queue for
//! each of these nodes: the queue of the direction from the sender to the receiver.

use super::Wire;
use super::frame_fate::{self, FrameFate};
use super::link::{self, Item};
use super::log::{DropReason, FrameStep, FrameStepKind};
use super::summary::Summary;
use super::switch::{self, Route};
use crate::virtio::net::FRAME_BYTES_MAX;

/// A frame that a card sent.
struct Sent {
    frame: u64,
    port: u8,
    at: u64,
}

impl Wire {
    /// Sends a frame from the card at `port`. Calls must come in the order of (vtime, port). Returns the frame's
    /// number.
    pub fn send(&mut self, port: u8, at: u64, bytes: Vec<u8>) -> u64 {
        let state = &mut self.state;
        debug_assert!((at, port) >= state.last, "{:?} after {:?}", (at, port), state.last);
        debug_assert!(usize::from(port) < state.topology.ports().len(), "port {port}");
        debug_assert!(at.saturating_add(state.topology.lookahead()) >= state.now, "{at} is long past");
        let at = at.max(state.last.0);
        state.last = (at, port);
        let frame = state.next_frame;
        state.next_frame = frame.wrapping_add(1);
        self.advance(at);
        self.state.flight.settle(at);
        self.switch(&Sent { frame, port, at }, bytes);
        frame
    }

    fn switch(&mut self, sent: &Sent, bytes: Vec<u8>) {
        let ports = self.state.topology.ports().len() as u8;
        if !self.is_attached(sent.port) {
            return self.lose_sent(sent, &bytes, DropReason::Detached);
        }
        let Some((destination, source)) =
            switch::addresses(&bytes).filter(|_| bytes.len() <= FRAME_BYTES_MAX)
        else {
            return self.lose_sent(sent, &bytes, DropReason::Length);
        };
        match self.state.table.route(sent.port, destination, source) {
            Route::Own => self.lose_sent(sent, &bytes, DropReason::Own),
            Route::Port(to) if self.state.topology.is_linked(sent.port, to) => self.send_to(sent, to, bytes),
            Route::Port(_) => self.lose_sent(sent, &bytes, DropReason::NoLink),
            Route::Flood => {
                for to in (0..ports).filter(|&to| to != sent.port) {
                    if self.state.topology.is_linked(sent.port, to) {
                        self.send_to(sent, to, bytes.clone());
                    }
                }
            }
        }
    }

    fn send_to(&mut self, sent: &Sent, to: u8, bytes: Vec<u8>) {
        let state = &mut self.state;
        let bits = bytes.len() as u64 * 8;
        let mut fate =
            frame_fate::draw(&mut state.streams, &state.topology, &state.faults, (sent.port, to), bits);
        let copies: Vec<Item> = std::mem::take(&mut fate.copies)
            .iter()
            .map(|copy| Item { copy: true, ..item(sent, to, copy, bytes.clone()) })
            .collect();
        let original = item(sent, to, &fate, bytes);
        if let Some(why) = fate.lost {
            return self.lose(&original, sent.at, why);
        }
        if self.enter(original, sent.at) {
            for copy in copies {
                self.enter(copy, sent.at);
            }
        }
    }

    /// Puts an item (a frame for one receiver) into its direction's queue. If a fault requires it, holds the item at
    /// the sender's end instead. Returns false if the item is lost.
    fn enter(&mut self, mut item: Item, at: u64) -> bool {
        let state = &mut self.state;
        if !state.flight.has_room(item.bytes.len()) {
            self.lose(&item, at, DropReason::Bound);
            return false;
        }
        item.seq = state.next_seq;
        state.next_seq = item.seq.wrapping_add(1);
        let (from, to) = (item.from, item.to);
        if state.faults.holds(from, to) {
            item.in_card = state.faults.clogs(from);
            return match state.flight.held_back.push(item) {
                Ok(()) => true,
                Err(item) => {
                    self.lose(&item, at, DropReason::Bound);
                    false
                }
            };
        }
        let direction = state.topology.direction(from, to);
        let link = state.topology.link(direction);
        if state.flight.queued(direction) + item.bytes.len() as u64 > u64::from(link.queue_bytes) {
            self.lose(&item, at, DropReason::QueueFull);
            return false;
        }
        self.launch(item, at);
        true
    }

    pub(super) fn launch(&mut self, item: Item, at: u64) {
        let state = &mut self.state;
        let direction = state.topology.direction(item.from, item.to);
        let link = state.topology.link(direction).bits_per_s;
        let bits_per_s = state.faults.bandwidth(item.from, item.to, link);
        state.flight.launch(item, at, direction, bits_per_s);
    }

    /// Logs the loss of a frame that the switch sends nowhere.
    fn lose_sent(&mut self, sent: &Sent, bytes: &[u8], why: DropReason) {
        self.log.push(FrameStep {
            kind: FrameStepKind::Drop { why },
            vtime: sent.at,
            sent_at: sent.at,
            from: sent.port,
            to: None,
            frame: sent.frame,
            len: bytes.len().try_into().unwrap_or(u32::MAX),
            flipped: false,
            summary: Summary::of(bytes),
        });
    }
}

/// Builds an item from a frame and its fate, i.e. the delays and bit flips that were drawn for it. The item has no
/// sequence number yet.
fn item(sent: &Sent, to: u8, fate: &FrameFate, mut bytes: Vec<u8>) -> Item {
    for &bit in &fate.flips {
        link::flip(&mut bytes, bit);
    }
    Item {
        seq: 0,
        frame: sent.frame,
        from: sent.port,
        to,
        sent_at: sent.at,
        copy: false,
        flipped: !fate.flips.is_empty(),
        in_card: false,
        transit: fate.transit,
        late: fate.late,
        aside: fate.aside,
        depart: 0,
        on_time: 0,
        bytes,
    }
}
