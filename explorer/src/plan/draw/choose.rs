//! Random choice of a fault of each kind: draws the fault's target and values, in the order of the fault's fields.

use std::collections::BTreeSet;

use chacha20::ChaCha20Rng;
use everett_fault::{
    DiskFault, DiskName, Distribution, Fault, Group, GuestFault, Links, MediumFault, NetworkFault, NodeFault,
    PartitionMode, Ppm, Restart,
};

use crate::plan::names::{Names, NodeNames};

use super::kinds::{
    Bandwidth, BitRot, ClockDrift, ClockStep, Clog, Command, Corrupt, DiskError, DiskFull, DiskLatency,
    Duplicate, Kind, Latency, LinkChoice, Loss, Partition, Pause, PowerLoss, Priorities, Reorder, Reseed,
    Reset, RestartService, SlowCpu, Stalls,
};
use super::numbers::{below, between, chance};
use super::span::{Between, Number, Span};

/// Kind of fault that can be drawn.
pub(super) trait Choose: Kind {
    /// Draws a fault and its duration. The duration is `None` for instantaneous faults. Returns `None` if the world has
    /// no target for this kind. In that case every later call also returns `None`.
    fn choose(&self, dice: &mut Dice<'_>) -> Option<(Fault, Option<u64>)>;
}

/// Random stream, and the targets to choose from.
pub(super) struct Dice<'d> {
    pub(super) rng: &'d mut ChaCha20Rng,
    pub(super) names: &'d Names,
    /// Nodes that may be targets. `None` allows all nodes.
    pub(super) nodes: Option<&'d BTreeSet<String>>,
}

impl<'d> Dice<'d> {
    fn targets(&self) -> Vec<&'d str> {
        let (names, nodes) = (self.names, self.nodes);
        names.nodes().filter(|node| nodes.is_none_or(|nodes| nodes.contains(*node))).collect()
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(below(self.rng, of.len() as u64) as usize).cloned()
    }

    fn node(&mut self) -> Option<String> {
        let targets = self.targets();
        self.one(&targets).map(str::to_owned)
    }

    fn disk(&mut self) -> Option<DiskName> {
        let mut disks = Vec::new();
        for node in self.targets() {
            let count = self.names.node(node).map_or(0, |has| has.disks);
            disks.extend((0..count).map(|disk| (node, disk)));
        }
        self.one(&disks).map(|(node, disk)| DiskName { node: node.to_owned(), disk })
    }

    fn unit(&mut self) -> Option<(String, String)> {
        self.among(|has| &has.units)
    }

    fn service(&mut self) -> Option<(String, String)> {
        self.among(|has| &has.services)
    }

    fn among(&mut self, of: impl Fn(&'d NodeNames) -> &'d BTreeSet<String>) -> Option<(String, String)> {
        let mut units = Vec::new();
        for node in self.targets() {
            units.extend(self.names.node(node).into_iter().flat_map(&of).map(|unit| (node, unit)));
        }
        self.one(&units).map(|(node, unit)| (node.to_owned(), unit.clone()))
    }

    fn links(&mut self, choice: &LinkChoice) -> Option<Links> {
        let mut group = self.targets();
        if group.is_empty() || self.names.count() < 2 {
            return None;
        }
        if chance(self.rng, choice.everywhere) {
            // The fault affects all links from and to the target nodes.
            let from = self
                .nodes
                .map_or(Group::All, |_| Group::Nodes(group.into_iter().map(str::to_owned).collect()));
            return Some(Links { from, ..Links::all() });
        }
        // In half of the cases the group has a single node, otherwise 1 to `most` nodes. The loop swaps random members
        // to the front of the list.
        let most = group.len().min(self.names.count() / 2).max(1) as u64;
        let size = if chance(self.rng, 500_000) { 1 } else { 1 + below(self.rng, most) } as usize;
        for i in 0..size {
            let other = i + below(self.rng, (group.len() - i) as u64) as usize;
            group.swap(i, other);
        }
        let group: BTreeSet<String> = group[..size].iter().map(|node| (*node).to_owned()).collect();
        let others = self.names.nodes().filter(|node| !group.contains(*node)).map(str::to_owned).collect();
        let (from, to) = (Group::Nodes(group), Group::Nodes(others));
        let both_ways = !chance(self.rng, choice.one_way);
        let away = both_ways || chance(self.rng, 500_000);
        Some(if away { Links { from, to, both_ways } } else { Links { from: to, to: from, both_ways } })
    }

    fn number<T: Number>(&mut self, range: &Between<T>) -> u64 {
        between(self.rng, range.0.number(), range.1.number())
    }

    fn ppm(&mut self, range: &Between<u32>) -> u32 {
        u32::try_from(self.number(range)).unwrap_or(u32::MAX)
    }

    fn lasts(&mut self, range: &Between<Span>) -> Option<u64> {
        Some(self.number(range))
    }

    fn times(&mut self, range: &Between<Span>) -> Distribution {
        let (a, b) = (self.number(range), self.number(range));
        Distribution::Uniform(a.min(b), a.max(b))
    }

    fn restart(&mut self, cold: Ppm) -> Restart {
        if chance(self.rng, cold) { Restart::Cold } else { Restart::Warm }
    }
}

/// Builds a fault. For the words `disk`, `medium`, `node` and `guest`, first draws the target, and then evaluates the
/// expression of the effect, which may draw values. For `network` and `fault`, the expression also draws the target.
macro_rules! fault {
    (network $dice:ident $fault:expr) => {
        Fault::Network($fault)
    };
    (disk $dice:ident $fault:expr) => {
        Fault::Disk { disk: $dice.disk()?, fault: $fault }
    };
    (medium $dice:ident $fault:expr) => {
        Fault::Medium { disk: $dice.disk()?, fault: $fault }
    };
    (node $dice:ident $fault:expr) => {
        Fault::Node { node: $dice.node()?, fault: $fault }
    };
    (guest $dice:ident $fault:expr) => {
        Fault::Guest { node: $dice.node()?, fault: $fault }
    };
    (fault $dice:ident $fault:expr) => {
        $fault
    };
}

/// Implements [`Choose`] for each kind. Each kind has one entry: `Kind |self, dice| duration => word expression`. The
/// word and the expression are the arguments of the macro `fault`.
macro_rules! choose {
    ($($Kind:ident |$this:ident, $dice:ident| $lasts:expr => $target:ident $fault:expr;)*) => {$(
        impl Choose for $Kind {
            fn choose(&self, $dice: &mut Dice<'_>) -> Option<(Fault, Option<u64>)> {
                let $this = self;
                let fault = fault!($target $dice $fault);
                Some((fault, $lasts))
            }
        }
    )*};
}

choose! {
    Latency |it, dice| dice.lasts(&it.lasts) => network
        NetworkFault::Latency { links: dice.links(&it.links)?, extra: dice.times(&it.extra) };
    Loss |it, dice| dice.lasts(&it.lasts) => network
        NetworkFault::Loss { links: dice.links(&it.links)?, ppm: dice.ppm(&it.ppm) };
    Duplicate |it, dice| dice.lasts(&it.lasts) => network
        NetworkFault::Duplicate { links: dice.links(&it.links)?, ppm: dice.ppm(&it.ppm) };
    Reorder |it, dice| dice.lasts(&it.lasts) => network NetworkFault::Reorder {
        links: dice.links(&it.links)?,
        ppm: dice.ppm(&it.ppm),
        hold: dice.times(&it.hold),
    };
    Corrupt |it, dice| dice.lasts(&it.lasts) => network
        NetworkFault::Corrupt { links: dice.links(&it.links)?, ppm: dice.ppm(&it.ppm) };
    Bandwidth |it, dice| dice.lasts(&it.lasts) => network
        NetworkFault::Bandwidth { links: dice.links(&it.links)?, bits_per_s: dice.number(&it.bits_per_s) };
    Partition |it, dice| dice.lasts(&it.lasts) => network
        NetworkFault::Partition { links: dice.links(&it.links)?, mode: mode(it, dice) };
    Clog |it, dice| dice.lasts(&it.lasts) => network NetworkFault::Clog { node: dice.node()? };
    PowerLoss |it, dice| dice.lasts(&it.lasts) => node
        NodeFault::PowerLoss { restart: Some(dice.restart(it.cold)), tear_sectors: it.tear_sectors };
    Reset |it, dice| None => node NodeFault::Reset { restart: dice.restart(it.cold) };
    Pause |it, dice| dice.lasts(&it.lasts) => node NodeFault::Pause;
    SlowCpu |it, dice| dice.lasts(&it.lasts) => node NodeFault::SlowCpu { ppm: dice.ppm(&it.ppm) };
    DiskError |it, dice| dice.lasts(&it.lasts) => disk
        DiskFault::Error { requests: dice.one(&it.requests)?, ppm: dice.ppm(&it.ppm) };
    DiskLatency |it, dice| dice.lasts(&it.lasts) => disk DiskFault::Latency { extra: dice.times(&it.extra) };
    DiskFull |it, dice| dice.lasts(&it.lasts) => disk DiskFault::Full;
    BitRot |it, dice| None => medium MediumFault::BitRot { bits: dice.ppm(&it.bits) };
    ClockDrift |it, dice| dice.lasts(&it.lasts) => node NodeFault::ClockDrift { ppm: drift(it, dice) };
    ClockStep |it, dice| None => guest GuestFault::ClockStep { step_ns: step(it, dice) };
    Stalls |it, dice| dice.lasts(&it.lasts) => node NodeFault::Stalls {
        every_instructions: dice.number(&it.every_instructions),
        stall: dice.times(&it.stall),
    };
    Priorities |it, dice| dice.lasts(&it.lasts) => fault {
        let (node, unit) = dice.unit()?;
        Fault::Guest { node, fault: GuestFault::Priorities { unit, every: dice.times(&it.change) } }
    };
    Reseed |_it, dice| None => guest GuestFault::Reseed;
    Command |it, dice| None => guest GuestFault::Command { argv: dice.one(&it.argv)? };
    RestartService |_it, dice| None => fault {
        let (node, unit) = dice.service()?;
        Fault::Guest { node, fault: GuestFault::RestartService { unit } }
    };
}

fn mode(it: &Partition, dice: &mut Dice<'_>) -> PartitionMode {
    let (hold, slow) = (chance(dice.rng, it.hold), chance(dice.rng, it.slow));
    match (hold, slow) {
        (true, _) => PartitionMode::Hold,
        (false, true) => PartitionMode::Slow,
        (false, false) => PartitionMode::Drop,
    }
}

fn drift(it: &ClockDrift, dice: &mut Dice<'_>) -> i32 {
    let ppm = i32::try_from(dice.number(&it.ppm)).unwrap_or(i32::MAX);
    if chance(dice.rng, 500_000) { ppm } else { -ppm }
}

fn step(it: &ClockStep, dice: &mut Dice<'_>) -> i64 {
    let ns = i64::try_from(dice.number(&it.step)).unwrap_or(i64::MAX);
    if chance(dice.rng, 500_000) { ns } else { -ns }
}
