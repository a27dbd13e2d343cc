//! Tests that the arrivals on a wire depend only on the calls and their vtimes.

use everett_fault::PPM;
use everett_streams::{BootSeed, Seed};
use proptest::prelude::*;

use super::plan::{Action, Faults, act, plan, plan_wire};
use super::*;

const LATENCY: u64 = 200_000;

/// Times at which a test takes deliveries from the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fetch {
    /// All deliveries at the end.
    Last,
    /// At each action, the deliveries that are due.
    Due,
    /// At each action, all deliveries that the wire can already decide.
    Ahead,
    /// At each action, the deliveries that are due. The wire is stored and restored at each action.
    Stored,
}

fn run(plan: &[(u64, Action)], fetch: Fetch) -> (Vec<Delivery>, Vec<FrameStep>, Wire) {
    let mut wire = plan_wire();
    let (mut got, mut steps) = (vec![], vec![]);
    for (number, (at, action)) in plan.iter().enumerate() {
        act(&mut wire, *at, number, action);
        // Any action except a send can change frames that have not arrived, so `Fetch::Ahead` stops at the next such
        // action.
        let change = plan[number..].iter().skip(1).find(|(_, next)| !matches!(next, Action::Send { .. }));
        match fetch {
            Fetch::Last => (),
            Fetch::Due | Fetch::Stored => got.extend(drain(&mut wire, *at)),
            Fetch::Ahead => {
                let until = (at + wire.lookahead_ns()).min(change.map_or(u64::MAX, |(at, _)| *at));
                got.extend(drain(&mut wire, until));
            }
        }
        steps.extend(wire.take_steps());
        if fetch == Fetch::Stored {
            wire = stored(&wire);
        }
    }
    got.extend(drain(&mut wire, 1 << 60));
    steps.extend(wire.take_steps());
    steps.sort_by_key(|step| (step.vtime, step.frame, step.to));
    (got, steps, wire)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn it_does_not_matter_when_deliveries_are_fetched(plan in plan(Faults::Any)) {
        let last = run(&plan, Fetch::Last);
        for fetch in [Fetch::Due, Fetch::Ahead, Fetch::Stored] {
            let other = run(&plan, fetch);
            prop_assert_eq!(&last.0, &other.0, "{:?}", fetch);
            prop_assert_eq!(&last.1, &other.1, "{:?}", fetch);
            prop_assert_eq!(&last.2, &other.2, "{:?}", fetch);
        }
    }

    /// Nothing arrives before the vtime that `next_delivery` returned, and a frame arrives at that vtime.
    #[test]
    fn the_next_delivery_is_at_the_returned_vtime(plan in plan(Faults::Any)) {
        let mut wire = plan_wire();
        for (number, (at, action)) in plan.iter().enumerate() {
            act(&mut wire, *at, number, action);
        }
        while let Some(next) = wire.next_delivery() {
            prop_assert_eq!(wire.pop_due(next - 1), None);
            prop_assert_eq!(wire.pop_due(next).map(|delivery| delivery.at), Some(next));
        }
        prop_assert_eq!(wire.pop_due(u64::MAX), None);
    }
}

/// Returns faults on these links: one of each kind for which the wire draws random numbers.
fn drawing(links: &Links) -> Vec<NetworkFault> {
    let links = || links.clone();
    vec![
        NetworkFault::Loss { links: links(), ppm: 300_000 },
        NetworkFault::Latency { links: links(), extra: Distribution::Uniform(0, LATENCY) },
        NetworkFault::Duplicate { links: links(), ppm: 300_000 },
        NetworkFault::Reorder { links: links(), ppm: 300_000, hold: Distribution::Uniform(0, LATENCY) },
        NetworkFault::Corrupt { links: links(), ppm: 300_000 },
    ]
}

/// Returns the arrivals at n1 from n0 under these faults, while n2 and n3 talk, too.
fn beside(faults: &[NetworkFault]) -> Vec<(u64, Vec<u8>)> {
    let mut wire = wire(4, Distribution::Uniform(LATENCY, 2 * LATENCY));
    let start = teach(&mut wire);
    for (id, fault) in drawing(&one_way("n0", "n1")).iter().chain(faults).enumerate() {
        // Faults elsewhere get numbers before, between and after the numbers of the faults from n0 to n1.
        wire.apply((id as u64 * 7) % 11, fault, start).unwrap();
    }
    for i in 0..500u64 {
        wire.send(0, start + i * MS, frame(mac(1), mac(0), 60, i as u32));
        wire.send(2, start + i * MS, frame(mac(3), mac(2), 60, i as u32));
    }
    let got = drain(&mut wire, u64::MAX);
    got.into_iter()
        .filter(|delivery| delivery.port == 1)
        .map(|delivery| (delivery.at, delivery.bytes))
        .collect()
}

#[test]
fn faults_of_other_links_change_no_draw() {
    let alone = beside(&[]);
    assert!(alone.len() > 300 && alone.len() != 500);
    assert_eq!(beside(&drawing(&one_way("n2", "n3"))), alone);
    assert_eq!(beside(&drawing(&one_way("n1", "n0"))), alone, "the other direction is another link");
    assert_ne!(beside(&drawing(&one_way("n0", "n1"))), alone);
}

/// Faults do not change the base latency that the wire draws for each frame. A fault without effect changes nothing.
#[test]
fn faults_change_no_base_draw() {
    let delays = |faults: &[NetworkFault]| {
        let mut wire = wire(2, Distribution::Uniform(LATENCY, 2 * LATENCY));
        for (id, fault) in faults.iter().enumerate() {
            wire.apply(id as u64, fault, 0).unwrap();
        }
        stream(&mut wire, 0, 500, 10 * MS);
        drain(&mut wire, u64::MAX).iter().map(|delivery| (delivery.frame, delivery.at)).collect::<Vec<_>>()
    };
    let plain = delays(&[]);
    let lossy = delays(&[NetworkFault::Loss { links: Links::all(), ppm: PPM / 2 }]);
    assert!((200..300).contains(&lossy.len()));
    assert!(lossy.iter().all(|delivery| plain.contains(delivery)));
    let idle = |links: &Links| {
        let never = drawing(links).into_iter().map(|fault| match fault {
            NetworkFault::Loss { links, .. } => NetworkFault::Loss { links, ppm: 0 },
            NetworkFault::Latency { links, .. } => {
                NetworkFault::Latency { links, extra: Distribution::Constant(0) }
            }
            NetworkFault::Duplicate { links, .. } => NetworkFault::Duplicate { links, ppm: 0 },
            NetworkFault::Reorder { links, hold, .. } => NetworkFault::Reorder { links, ppm: 0, hold },
            NetworkFault::Corrupt { links, .. } => NetworkFault::Corrupt { links, ppm: 0 },
            other => other,
        });
        never.collect::<Vec<_>>()
    };
    assert_eq!(delays(&idle(&Links::all())), plain);
}

#[test]
fn each_seed_and_branch_has_its_own_draws_and_a_restart_leaves_no_trace() {
    let jitter = || Distribution::Uniform(LATENCY, 2 * LATENCY);
    let delays = |wire: &mut Wire, start: u64| -> Vec<u64> {
        let times = stream(wire, start, 20, MS);
        let got = drain(wire, start + S);
        got.iter().zip(times).map(|(delivery, sent)| delivery.at - sent).collect()
    };
    let mut fresh = Wire::new(config(2, jitter()), BootSeed::new(9)).unwrap();
    let mut used = Wire::new(config(2, jitter()), BootSeed::new(1)).unwrap();
    let mut branched = fresh.clone();
    let first = delays(&mut used, 0);
    used.restart_streams(&Lineage::new(Seed::new(1)).child(5, 5));
    used.restart_streams(&Lineage::boot(BootSeed::new(9)));
    let ninth = delays(&mut fresh, 2 * S);
    assert_eq!(delays(&mut used, 2 * S), ninth);
    branched.restart_streams(&Lineage::new(Seed::new(9)).child(2 * S, 0));
    let child = delays(&mut branched, 2 * S);
    let mut other = Wire::new(config(2, jitter()), BootSeed::new(9)).unwrap();
    other.restart_streams(&Lineage::new(Seed::new(9)).child(2 * S, 1));
    let sibling = delays(&mut other, 2 * S);
    let all = std::collections::BTreeSet::from([first, ninth, child, sibling]);
    assert_eq!(all.len(), 4);
}

/// Compares random draws with recorded ones: a change here changes every trail and requires a new machine version.
#[test]
fn the_draws_are_pinned() {
    let mut wire = wire(2, Distribution::Uniform(LATENCY, 2 * LATENCY));
    for (id, fault) in drawing(&Links::all()).iter().enumerate() {
        wire.apply(id as u64, fault, 0).unwrap();
    }
    stream(&mut wire, 0, 200, MS);
    let mut hasher = blake3::Hasher::new();
    for delivery in drain(&mut wire, u64::MAX) {
        hasher.update(&delivery.at.to_le_bytes());
        hasher.update(&delivery.bytes);
    }
    assert_eq!(hasher.finalize().to_hex()[..16], *PINNED);
}
const PINNED: &str = "410ba8f87cfdab1c";
