//! What is drawn for a frame that the switch sends down a link.
//!
//! Each direction has streams of its own, keyed by the names of its ends and by what is drawn: `base` for the link's latency,
//! one for each kind of fault, and `copy` for what becomes of extra copies. Each frame of a direction takes one draw from
//! `base`, and for each fault that is active on the direction, in the order of their numbers, a fixed count from its kind's
//! stream: one for latency, loss and duplication, two for reordering (whether, how long) and corruption (whether, which bit).
//! They are taken whatever else becomes of the frame: whether it is lost, held or finds the queue full.
//!
//! **Invariant.** What is drawn for a direction depends on the count of its frames and on the faults that were active on it,
//! never on other directions; what is drawn from `base`, not on faults at all.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;

use super::active::{Effect, Faults, SLOW_NS};
use super::config::Topology;
use super::log::Why;
use crate::fault::{Distribution, PPM, Ppm};
use crate::streams::{Streams, purpose};

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
    from: &'a str,
    to: &'a str,
}

impl Draws<'_> {
    /// Names have no spaces, so no two directions share a stream.
    fn stream(&mut self, what: &str) -> &mut ChaCha20Rng {
        self.streams.get(&format!("{} {} {} {what}", purpose::NETWORK, self.from, self.to))
    }

    fn time(&mut self, what: &str, distribution: &Distribution) -> u64 {
        distribution.draw(self.stream(what))
    }

    fn happens(&mut self, what: &str, ppm: Ppm) -> bool {
        self.below(what, PPM.into()) < u64::from(ppm)
    }

    /// A number below `bound`, off evenness by less than `bound` / 2^64.
    fn below(&mut self, what: &str, bound: u64) -> u64 {
        ((u128::from(self.stream(what).next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether a frame is held back, and for how long.
    fn reorder(&mut self, what: &str, fate: &mut Fate, ppm: Ppm, hold: &Distribution) {
        let happens = self.happens(what, ppm);
        let time = self.time(what, hold);
        if happens {
            fate.aside = Some(fate.aside.unwrap_or(0).saturating_add(time));
        }
    }

    /// Whether a bit of a frame flips, and which.
    fn corrupt(&mut self, what: &str, fate: &mut Fate, ppm: Ppm, bits: u64) {
        let happens = self.happens(what, ppm);
        let bit = self.below(what, bits);
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
    let mut draws = Draws { streams, from: topology.name(from), to: topology.name(to) };
    let latency = &topology.link(topology.direction(from, to)).latency;
    let mut fate = Fate { transit: draws.time("base", latency), ..Fate::default() };
    let later = |fate: &mut Fate, ns| fate.late = Some(fate.late.unwrap_or(0).saturating_add(ns));
    let (mut lost, mut copies) = (false, 0);
    let (mut held, mut slow) = (false, false);
    for effect in faults.of(from, to) {
        match effect {
            Effect::Latency(extra) => later(&mut fate, draws.time("latency", extra)),
            Effect::Loss(ppm) => lost |= draws.happens("loss", *ppm),
            Effect::Duplicate(ppm) => copies += u32::from(draws.happens("duplicate", *ppm)),
            Effect::Reorder { ppm, hold } => draws.reorder("reorder", &mut fate, *ppm, hold),
            Effect::Corrupt(ppm) => draws.corrupt("corrupt", &mut fate, *ppm, bits),
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
        let again = draws.time("copy", latency);
        let mut copy = Fate { transit: fate.transit, late: fate.late, aside: Some(again), ..Fate::default() };
        for effect in faults.of(from, to) {
            match effect {
                Effect::Reorder { ppm, hold } => draws.reorder("copy", &mut copy, *ppm, hold),
                Effect::Corrupt(ppm) => draws.corrupt("copy", &mut copy, *ppm, bits),
                _ => (),
            }
        }
        fate.copies.push(copy);
    }
    fate
}
