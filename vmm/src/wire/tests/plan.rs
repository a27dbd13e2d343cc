//! Generates random sequences of actions on a wire, and runs them.

use std::collections::BTreeSet;

use everett_fault::PartitionMode;
use everett_streams::BootSeed;
use proptest::prelude::*;

use super::*;

pub(super) const PORTS: u8 = 4;

#[derive(Debug, Clone)]
pub(super) enum Action {
    Send { from: u8, to: Option<u8>, len: usize },
    Apply(u64, NetworkFault),
    Heal(u64),
    HealAll,
    Detach(u8),
    Attach(u8),
}

/// Actions with their vtimes. No two actions have the same vtime.
pub(super) type Plan = Vec<(u64, Action)>;

/// Set of faults that a plan may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Faults {
    Any,
    /// Only faults that keep frames in order.
    InOrder,
}

fn nodes() -> impl Strategy<Value = Group> {
    prop_oneof![
        1 => Just(Group::All),
        3 => prop::collection::btree_set((0..PORTS).prop_map(|i| format!("n{i}")), 1..3).prop_map(Group::Nodes),
    ]
}

fn links() -> impl Strategy<Value = Links> {
    (nodes(), nodes(), any::<bool>()).prop_map(|(from, to, both_ways)| Links { from, to, both_ways })
}

fn time() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        (0..300 * MS).prop_map(Distribution::Constant),
        (0..MS, MS..5 * MS).prop_map(|(least, most)| Distribution::Uniform(least, most)),
    ]
}

pub(super) fn fault(faults: Faults) -> impl Strategy<Value = NetworkFault> {
    let ppm = || prop_oneof![Just(1_000_000), 0..=1_000_000u32];
    let any = if faults == Faults::Any { 1 } else { 0 };
    let mode = prop::sample::select(vec![PartitionMode::Drop, PartitionMode::Hold]);
    prop_oneof![
        1 => (links(), ppm()).prop_map(|(links, ppm)| NetworkFault::Loss { links, ppm }),
        1 => (links(), ppm()).prop_map(|(links, ppm)| NetworkFault::Corrupt { links, ppm }),
        1 => (links(), 10_000..10_000_000u64).prop_map(|(links, bits_per_s)| NetworkFault::Bandwidth { links, bits_per_s }),
        2 => (links(), mode).prop_map(|(links, mode)| NetworkFault::Partition { links, mode }),
        2 => (0..PORTS).prop_map(|i| NetworkFault::Clog { node: format!("n{i}") }),
        any => (links(), time()).prop_map(|(links, extra)| NetworkFault::Latency { links, extra }),
        any => (links(), ppm()).prop_map(|(links, ppm)| NetworkFault::Duplicate { links, ppm }),
        any => (links(), ppm(), time()).prop_map(|(links, ppm, hold)| NetworkFault::Reorder { links, ppm, hold }),
        any => links().prop_map(|links| NetworkFault::Partition { links, mode: PartitionMode::Slow }),
    ]
}

fn action(faults: Faults) -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => (0..PORTS, prop::option::weighted(0.8, 0..PORTS), 18usize..1518)
            .prop_map(|(from, to, len)| Action::Send { from, to, len }),
        3 => (0..6u64, fault(faults)).prop_map(|(id, fault)| Action::Apply(id, fault)),
        3 => (0..6u64).prop_map(Action::Heal),
        1 => Just(Action::HealAll),
        1 => (0..PORTS).prop_map(Action::Detach),
        2 => (0..PORTS).prop_map(Action::Attach),
    ]
}

pub(super) fn plan(faults: Faults) -> impl Strategy<Value = Plan> {
    let gap = prop_oneof![8 => 1..20_000u64, 1 => 1..20 * MS, 1 => 1..2 * S];
    prop::collection::vec((gap, action(faults)), 1..150).prop_map(|actions| {
        let mut at = 0;
        let stamp = |(gap, action)| {
            at += gap;
            (at, action)
        };
        actions.into_iter().map(stamp).collect()
    })
}

/// Returns a wire with links slow enough that frames wait, and with varying latencies.
pub(super) fn plan_wire() -> Wire {
    let mut config = config(PORTS, Distribution::Uniform(10_000, 100_000));
    (config.link.bits_per_s, config.link.queue_bytes) = (500_000_000, 6_000);
    Wire::new(config, BootSeed::new(5)).unwrap()
}

pub(super) fn act(wire: &mut Wire, at: u64, number: usize, action: &Action) {
    match action {
        Action::Send { from, to, len } => {
            wire.send(*from, at, frame(to.map_or(BROADCAST, mac), mac(*from), *len, number as u32));
        }
        // This may fail, because an active fault may already have the number.
        Action::Apply(id, fault) => _ = wire.apply(*id, fault, at),
        Action::Heal(id) => _ = wire.heal(*id, at),
        Action::HealAll => wire.heal_all(at),
        Action::Detach(port) => wire.detach(*port, at),
        Action::Attach(port) => wire.attach(*port, at),
    }
}

/// Returns the message (frame, sender and receiver) whose outcome `step` is. Each message must have one outcome.
pub(super) fn message(step: &FrameStep) -> (u64, u8, Option<u8>) {
    (step.frame, step.from, step.to)
}

/// Returns the messages that arrived or were lost, and true if each of them has only one outcome.
pub(super) fn moves(steps: &[FrameStep]) -> (BTreeSet<(u64, u8, Option<u8>)>, bool) {
    let moved: Vec<_> =
        steps.iter().filter(|step| step.kind != FrameStepKind::Duplicate).map(message).collect();
    let once: BTreeSet<_> = moved.iter().copied().collect();
    let all = once.len() == moved.len();
    (once, all)
}
