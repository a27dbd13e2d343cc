//! Faults that are active on a wire, the simulated network. Each node's card is plugged into a port of the wire. Active
//! faults have the numbers of these ports in place of node names.

use std::collections::BTreeMap;

use everett_fault::distribution::DistributionError;
use everett_fault::limits::NETWORK_FAULTS_MAX;
use everett_fault::{Distribution, Group, Links, NetworkFault, PPM, PartitionMode, Ppm};
use serde::{Deserialize, Serialize};

use super::config::{BITS_PER_S_MAX, BITS_PER_S_MIN, Topology};
use super::pairs::Pairs;

/// Latency that a slow partition adds to each frame, in nanoseconds.
pub(super) const SLOW_NS: u64 = 1_000_000_000;

/// Reason why a wire refuses to begin a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The wire has no node with this name.
    #[error("there is no node called {0}")]
    UnknownNode(String),
    /// The probability is above a million ppm.
    #[error("{0} parts per million: at most {PPM}")]
    Ppm(Ppm),
    /// The distribution of a latency is invalid.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// The bandwidth is out of bounds.
    #[error("{0} bits a second; from {BITS_PER_S_MIN} to {BITS_PER_S_MAX}")]
    Bandwidth(u64),
    /// An active fault already has this number.
    #[error("fault {0} is active already")]
    Active(u64),
    /// The wire already has [`NETWORK_FAULTS_MAX`] active faults.
    #[error("at most {NETWORK_FAULTS_MAX} faults at a time")]
    TooMany,
}

/// Effect of a fault on frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Effect {
    Latency(Distribution),
    Loss(Ppm),
    Duplicate(Ppm),
    Reorder { ppm: Ppm, hold: Distribution },
    Corrupt(Ppm),
    Bandwidth(u64),
    Drop,
    Hold,
    Slow,
    Clog(u8),
}

/// Active fault: what it does, and the directions (pairs of sender and receiver) to which it applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Active {
    pub(super) pairs: Pairs,
    pub(super) effect: Effect,
}

impl Active {
    /// Converts a fault, which names nodes, to its effect on directions between ports.
    pub(super) fn resolve(fault: &NetworkFault, topology: &Topology) -> Result<Active, FaultError> {
        let (links, effect) = match fault {
            NetworkFault::Latency { links, extra } => (links, Effect::Latency(extra.clone())),
            NetworkFault::Loss { links, ppm } => (links, Effect::Loss(*ppm)),
            NetworkFault::Duplicate { links, ppm } => (links, Effect::Duplicate(*ppm)),
            NetworkFault::Reorder { links, ppm, hold } => {
                (links, Effect::Reorder { ppm: *ppm, hold: hold.clone() })
            }
            NetworkFault::Corrupt { links, ppm } => (links, Effect::Corrupt(*ppm)),
            NetworkFault::Bandwidth { links, bits_per_s } => (links, Effect::Bandwidth(*bits_per_s)),
            NetworkFault::Partition { links, mode: PartitionMode::Drop } => (links, Effect::Drop),
            NetworkFault::Partition { links, mode: PartitionMode::Hold } => (links, Effect::Hold),
            NetworkFault::Partition { links, mode: PartitionMode::Slow } => (links, Effect::Slow),
            NetworkFault::Clog { node } => {
                let port = topology.port(node).ok_or_else(|| FaultError::UnknownNode(node.clone()))?;
                let pairs = Pairs::choose(topology.ports().len(), |from, to| from == port || to == port);
                return Ok(Active { pairs, effect: Effect::Clog(port) });
            }
        };
        effect.check()?;
        Ok(Active { pairs: resolve(links, topology)?, effect })
    }

    /// True if a wire with `ports` ports can have this fault.
    pub(super) fn is_sound(&self, ports: usize) -> bool {
        let clogged = match self.effect {
            Effect::Clog(port) => usize::from(port) < ports,
            _ => true,
        };
        self.pairs.is_sound(ports) && self.effect.check().is_ok() && clogged
    }
}

impl Effect {
    fn check(&self) -> Result<(), FaultError> {
        match self {
            Effect::Latency(time) | Effect::Reorder { hold: time, .. } => time.check()?,
            _ => (),
        }
        match *self {
            Effect::Loss(ppm) | Effect::Duplicate(ppm) | Effect::Corrupt(ppm) if ppm > PPM => {
                Err(FaultError::Ppm(ppm))
            }
            Effect::Reorder { ppm, .. } if ppm > PPM => Err(FaultError::Ppm(ppm)),
            Effect::Bandwidth(rate) if !(BITS_PER_S_MIN..=BITS_PER_S_MAX).contains(&rate) => {
                Err(FaultError::Bandwidth(rate))
            }
            _ => Ok(()),
        }
    }
}

fn resolve(links: &Links, topology: &Topology) -> Result<Pairs, FaultError> {
    for group in [&links.from, &links.to] {
        if let Group::Nodes(nodes) = group
            && let Some(unknown) = nodes.iter().find(|node| topology.port(node).is_none())
        {
            return Err(FaultError::UnknownNode(unknown.clone()));
        }
    }
    let name = |port| topology.name(port);
    Ok(Pairs::choose(topology.ports().len(), |from, to| links.contains(name(from), name(to))))
}

/// Active faults of a wire, by fault number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Faults(pub(super) BTreeMap<u64, Active>);

impl Faults {
    /// Iterates over the effects on frames of one direction, in ascending order of fault numbers.
    pub(super) fn of(&self, from: u8, to: u8) -> impl Iterator<Item = &Effect> {
        self.0.values().filter(move |active| active.pairs.contains(from, to)).map(|active| &active.effect)
    }

    /// True if a fault holds frames of this direction at the sender's end.
    pub(super) fn holds(&self, from: u8, to: u8) -> bool {
        self.of(from, to).any(|effect| matches!(effect, Effect::Hold | Effect::Clog(_)))
    }

    /// True if a partition drops frames of this direction.
    pub(super) fn cuts(&self, from: u8, to: u8) -> bool {
        self.of(from, to).any(|effect| matches!(effect, Effect::Drop))
    }

    /// True if a fault clogs this port's card: the card then neither sends nor receives.
    pub(super) fn clogs(&self, port: u8) -> bool {
        self.0.values().any(|active| active.effect == Effect::Clog(port))
    }

    /// Returns the bandwidth of a direction under the active faults, in bits per second. `link` is its bandwidth
    /// without faults.
    pub(super) fn bandwidth(&self, from: u8, to: u8, link: u64) -> u64 {
        let faults = self.of(from, to).filter_map(|effect| match effect {
            Effect::Bandwidth(rate) => Some(*rate),
            _ => None,
        });
        faults.fold(link, u64::min)
    }
}
