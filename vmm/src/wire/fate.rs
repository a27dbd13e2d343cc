//! What is drawn for a frame that the switch sends down a link.
//!
//! Each direction has streams of its own, keyed by the ports of its ends and by what is drawn ([`LinkDraw`]): `Base` for the
//! link's latency, one for each kind of fault, and `Copy` for what becomes of extra copies. Each frame of a direction takes one
//! draw from `Base`, and for each fault that is active on the direction, in the order of their numbers, a fixed count from its kind's
//! stream: one for latency, loss and duplication, two for reordering (whether, how long) and corruption (whether, which bit).
//! They are taken whatever else becomes of the frame: whether it is lost, held or finds the queue full.
//!
//! **Invariant.** What is drawn for a direction depends on the count of its frames and on the faults that were active on it,
//! never on other directions; what is drawn from `Base`, not on faults at all.

use everett_fault::{Distribution, PPM, Ppm};
use everett_streams::{LinkDraw, Purpose, Streams};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;

use super::active::{Effect, Faults, SLOW_NS};
use super::config::Topology;
use super::log::Why;

/// What becomes of a frame on one direction, as far as it is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// It is lost.
    pub(super) lost: Option<Why>,
    /// The link's latency, in nanoseconds.
    pub(super) transit: u64,
    /// How much longer faults make it, in nanoseconds. `None` if none is about that.
    pub(super) late: Option<u64>,
    /// It leaves the order of the others and arrives by this much later, in nanoseconds.
    pub(super) aside: Option<u64>,
    /// Bits that flip, from the frame's first.
    pub(super) flips: Vec<u64>,
    /// Extra copies.
    pub(super) copies: Vec<Fate>,
}

/// The streams of one direction.
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

    /// A number below `bound`, off evenness by less than `bound` / 2^64.
    fn below(&mut self, draw: LinkDraw, bound: u64) -> u64 {
        ((u128::from(self.stream(draw).next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether a frame is held back, and for how long.
    fn reorder(&mut self, draw: LinkDraw, fate: &mut Fate, ppm: Ppm, hold: &Distribution) {
        let happens = self.happens(draw, ppm);
        let time = self.time(draw, hold);
        if happens {
            fate.aside = Some(fate.aside.unwrap_or(0).saturating_add(time));
        }
    }

    /// Whether a bit of a frame flips, and which.
    fn corrupt(&mut self, draw: LinkDraw, fate: &mut Fate, ppm: Ppm, bits: u64) {
        let happens = self.happens(draw, ppm);
        let bit = self.below(draw, bits);
        if happens {
            fate.flips.push(bit);
        }
    }
}

/// Draw what becomes of the next frame from one port to another, of `bits` bits.
pub(super) fn draw(
    streams: &mut Streams,
    topology: &Topology,
    faults: &Faults,
    (from, to): (u8, u8),
    bits: u64,
) -> Fate {
    let mut draws = Draws { streams, from, to };
    let latency = &topology.link(topology.direction(from, to)).latency;
    let mut fate = Fate { transit: draws.time(LinkDraw::Base, latency), ..Fate::default() };
    let later = |fate: &mut Fate, ns| fate.late = Some(fate.late.unwrap_or(0).saturating_add(ns));
    let (mut lost, mut copies) = (false, 0);
    let (mut held, mut slow) = (false, false);
    for effect in faults.of(from, to) {
        match effect {
            Effect::Latency(extra) => later(&mut fate, draws.time(LinkDraw::Latency, extra)),
            Effect::Loss(ppm) => lost |= draws.happens(LinkDraw::Loss, *ppm),
            Effect::Duplicate(ppm) => copies += u32::from(draws.happens(LinkDraw::Duplicate, *ppm)),
            Effect::Reorder { ppm, hold } => draws.reorder(LinkDraw::Reorder, &mut fate, *ppm, hold),
            Effect::Corrupt(ppm) => draws.corrupt(LinkDraw::Corrupt, &mut fate, *ppm, bits),
            Effect::Drop => fate.lost = Some(Why::Partition),
            Effect::Hold => held = true,
            Effect::Slow => slow = true,
            // What these do depends on when, and is not drawn.
            Effect::Bandwidth(_) | Effect::Clog(_) => (),
        }
    }
    // Of partitions that slow one is as good as several, and one that holds goes before them.
    if slow && !held {
        later(&mut fate, SLOW_NS);
    }
    if lost && fate.lost.is_none() {
        fate.lost = Some(Why::Loss);
    }
    for _ in 0..copies {
        // The copy takes the way once more, out of order: it comes after its original, wherever the others are.
        let again = draws.time(LinkDraw::Copy, latency);
        let mut copy = Fate { transit: fate.transit, late: fate.late, aside: Some(again), ..Fate::default() };
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
