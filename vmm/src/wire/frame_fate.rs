//! Random draws for a frame that the switch sends on a direction (from one port to another).
//!
//! Each direction has its own random streams, one for each kind of draw ([`LinkDraw`]): `Base` for the link's latency,
//! one for each kind of fault, and `Copy` for extra copies. Each frame takes one draw from `Base`. It then takes a
//! fixed number of draws for each active fault on the direction, from the stream of the fault's kind. Faults come in
//! ascending order of their numbers. Latency, loss and duplication take one draw. Reordering takes two (whether it
//! happens, and for how long), and so does corruption (whether it happens, and which bit). The frame takes these draws
//! even if it is lost, is held back by a partition, or finds the queue full.
//!
//! **Invariant.** The draws for a direction depend only on the number of its frames and on the faults that were active
//! on it, never on other directions. The draws from `Base` do not depend on faults at all.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;
use everett_fault::{Distribution, PPM, Ppm};
use everett_streams::{LinkDraw, Purpose, Streams};

use super::active::{Effect, Faults, SLOW_NS};
use super::config::Topology;
use super::log::DropReason;

/// Drawn fate of a frame on one direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FrameFate {
    /// Reason of the loss, if the frame is lost.
    pub(super) lost: Option<DropReason>,
    /// Latency of the link, in nanoseconds.
    pub(super) transit: u64,
    /// Latency that faults add, in nanoseconds. `None` if no fault adds latency.
    pub(super) late: Option<u64>,
    /// Additional delay of a reordered frame or an extra copy, in nanoseconds. Frames that are sent later may overtake
    /// a frame with this delay.
    pub(super) aside: Option<u64>,
    /// Numbers of the bits that flip, counted from the first bit of the frame.
    pub(super) flips: Vec<u64>,
    /// Fates of extra copies of the frame.
    pub(super) copies: Vec<FrameFate>,
}

/// Random streams of one direction.
struct Draws<'a> {
    streams: &'a mut Streams,
    from: u8,
    to: u8,
}

impl Draws<'_> {
    fn stream(&mut self, draw: LinkDraw) -> &mut ChaCha20Rng {
        self.streams.get(Purpose::Link { from: self.from, to: self.to, draw })
    }

    fn time(&mut self, draw: LinkDraw, distribution: &Distribution) -> u64 {
        distribution.draw(self.stream(draw))
    }

    fn happens(&mut self, draw: LinkDraw, ppm: Ppm) -> bool {
        self.below(draw, PPM.into()) < u64::from(ppm)
    }

    /// Draws a number below `bound`. The bias is less than `bound` / 2^64.
    fn below(&mut self, draw: LinkDraw, bound: u64) -> u64 {
        ((u128::from(self.stream(draw).next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws whether a frame is delayed for reordering, and for how long. Always takes two draws.
    fn reorder(&mut self, draw: LinkDraw, fate: &mut FrameFate, ppm: Ppm, hold: &Distribution) {
        let happens = self.happens(draw, ppm);
        let time = self.time(draw, hold);
        if happens {
            fate.aside = Some(fate.aside.unwrap_or(0).saturating_add(time));
        }
    }

    /// Draws whether a bit of a frame flips, and which bit. Always takes two draws.
    fn corrupt(&mut self, draw: LinkDraw, fate: &mut FrameFate, ppm: Ppm, bits: u64) {
        let happens = self.happens(draw, ppm);
        let bit = self.below(draw, bits);
        if happens {
            fate.flips.push(bit);
        }
    }
}

/// Draws what becomes of the next frame from one port to another. The frame has `bits` bits.
pub(super) fn draw(
    streams: &mut Streams,
    topology: &Topology,
    faults: &Faults,
    (from, to): (u8, u8),
    bits: u64,
) -> FrameFate {
    let mut draws = Draws { streams, from, to };
    let latency = &topology.link(topology.direction(from, to)).latency;
    let mut fate = FrameFate { transit: draws.time(LinkDraw::Base, latency), ..FrameFate::default() };
    let later = |fate: &mut FrameFate, ns| fate.late = Some(fate.late.unwrap_or(0).saturating_add(ns));
    let (mut lost, mut copies) = (false, 0);
    let (mut held, mut slow) = (false, false);
    for effect in faults.of(from, to) {
        match effect {
            Effect::Latency(extra) => later(&mut fate, draws.time(LinkDraw::Latency, extra)),
            Effect::Loss(ppm) => lost |= draws.happens(LinkDraw::Loss, *ppm),
            Effect::Duplicate(ppm) => copies += u32::from(draws.happens(LinkDraw::Duplicate, *ppm)),
            Effect::Reorder { ppm, hold } => draws.reorder(LinkDraw::Reorder, &mut fate, *ppm, hold),
            Effect::Corrupt(ppm) => draws.corrupt(LinkDraw::Corrupt, &mut fate, *ppm, bits),
            Effect::Drop => fate.lost = Some(DropReason::Partition),
            Effect::Hold => held = true,
            Effect::Slow => slow = true,
            // The effects of these faults depend on the time and are not drawn.
            Effect::Bandwidth(_) | Effect::Clog(_) => (),
        }
    }
    // A slow partition only delays the frame. Several slow partitions delay it no more than one does. If another
    // partition holds the frame, slow partitions add no delay.
    if slow && !held {
        later(&mut fate, SLOW_NS);
    }
    if lost && fate.lost.is_none() {
        fate.lost = Some(DropReason::Loss);
    }
    for _ in 0..copies {
        // The copy enters the queue after its original and takes one more latency of the link. It keeps no place in the
        // order of frames, so frames that are sent later may arrive before it.
        let again = draws.time(LinkDraw::Copy, latency);
        let mut copy =
            FrameFate { transit: fate.transit, late: fate.late, aside: Some(again), ..FrameFate::default() };
        for effect in faults.of(from, to) {
            match effect {
                Effect::Reorder { ppm, hold } => draws.reorder(LinkDraw::Copy, &mut copy, *ppm, hold),
                Effect::Corrupt(ppm) => draws.corrupt(LinkDraw::Copy, &mut copy, *ppm, bits),
                _ => (),
            }
        }
        fate.copies.push(copy);
    }
    fate
}
