//! Tests that add latencies (faults that make frames late) to drawn and handwritten plans.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use everett_fault::{Distribution, Fault, Group, Links, NetworkFault, NodeFault};
use everett_streams::{Lineage, Owner, Seed, Streams};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::plan::NodeNames;
use crate::plan::draw::pct::{PctConfig, entries};
use crate::plan::draw::{FaultConfig, draw};

const S: u64 = 1_000_000_000;

fn world(count: u32) -> Names {
    (0..count).map(|i| (format!("n{i}"), NodeNames { disks: 1, ..NodeNames::default() })).collect()
}

fn latency(at_ns: u64, for_ns: impl Into<Option<u64>>) -> PlanEntry {
    let extra = Distribution::Constant(at_ns + 1);
    let links = Links { from: Group::Nodes(["n0".to_owned()].into()), to: Group::All, both_ways: false };
    PlanEntry {
        at_ns,
        for_ns: for_ns.into(),
        what: What::Fault(Fault::Network(NetworkFault::Latency { links, extra })),
    }
}

fn calm(at_ns: u64, for_ns: Option<u64>) -> PlanEntry {
    PlanEntry { at_ns, for_ns, what: if for_ns.is_some() { What::Quiet } else { What::Heal } }
}

fn plan(entries: Vec<PlanEntry>) -> Plan {
    Plan::new(entries, &world(2)).unwrap()
}

/// Returns the entries of `merged` that are not in `plan`. Asserts that `merged` has all entries of `plan` in their
/// order.
fn added<'p>(merged: &'p Plan, plan: &Plan) -> Vec<&'p PlanEntry> {
    let mut of_plan = plan.entries().iter().peekable();
    let added = merged.entries().iter().filter(|entry| of_plan.next_if_eq(entry).is_none()).collect();
    assert_eq!(of_plan.next(), None, "every entry of the plan is kept");
    added
}

fn times(entries: &[&PlanEntry]) -> Vec<(u64, u64)> {
    entries.iter().map(|entry| (entry.at_ns, entry.at_ns + entry.for_ns.unwrap())).collect()
}

#[test]
fn latencies_are_cut_at_heals_and_quiet_periods() {
    let periods =
        [(10, Some(5)), (12, Some(6)), (14, Some(1)), (20, None), (20, None), (30, Some(5)), (35, Some(1))];
    let plan = plan(periods.iter().map(|&(at, lasts)| calm(at, lasts)).collect());
    let merge_one = |entry: PlanEntry| {
        let merged = merge(&plan, &[entry], &world(2));
        assert_eq!(Plan::new(merged.entries().to_vec(), &world(2)), Ok(merged.clone()));
        times(&added(&merged, &plan))
    };
    assert_eq!(merge_one(latency(5, 40)), [(5, 10), (18, 20), (20, 30), (36, 45)]);
    assert_eq!(merge_one(latency(5, 5)), [(5, 10)]);
    assert_eq!(merge_one(latency(10, 8)), []);
    assert_eq!(merge_one(latency(11, 8)), [(18, 19)]);
    assert_eq!(merge_one(latency(36, 1)), [(36, 37)]);
    assert_eq!(merge_one(latency(40, None)), [(40, 40 + FOR_NS_MAX)]);
}

#[test]
fn invalid_entries_are_dropped_one_by_one() {
    let plan = plan(vec![calm(AT_NS_MAX - 1, Some(S))]);
    let other = PlanEntry {
        what: What::Fault(Fault::Node { node: "n0".to_owned(), fault: NodeFault::Pause }),
        ..latency(1, 1)
    };
    let mut nowhere = latency(2, 1);
    if let What::Fault(Fault::Network(NetworkFault::Latency { links, .. })) = &mut nowhere.what {
        links.to = Group::Nodes(["n9".to_owned()].into());
    }
    let wrong = [other, nowhere, latency(3, 0), latency(AT_NS_MAX + 1, 1), calm(4, None), latency(5, 1)];
    let merged = merge(&plan, &wrong, &world(2));
    assert_eq!(times(&added(&merged, &plan)), [(5, 6)]);
    // The quiet period of `plan` cuts this latency into two pieces. The second piece would begin after the latest
    // allowed start of a fault.
    let merged = merge(&plan, &[latency(7, FOR_NS_MAX)], &world(2));
    assert_eq!(times(&added(&merged, &plan)), [(7, AT_NS_MAX - 1)]);
}

/// At most `NETWORK_FAULTS_MAX` network faults may be active at once. An added latency is dropped if it would exclude a
/// fault of the plan, even if the latency begins earlier.
#[test]
fn the_plans_own_faults_have_priority() {
    let full = plan((0..NETWORK_FAULTS_MAX as u64).map(|i| latency(100 + i, 1_000)).collect());
    let more = [latency(0, 356), latency(0, 355), latency(1, 2_000), latency(1_100, 9), latency(1_099, 9)];
    let merged = merge(&full, &more, &world(2));
    // The last fault of the plan begins at 355, and the first fault ends at 1100.
    assert_eq!(times(&added(&merged, &full)), [(0, 355), (1_100, 1_109)]);
    assert_eq!(Plan::new(merged.entries().to_vec(), &world(2)), Ok(merged));
    // A fault that clogs a network card also counts as a network fault, even if it has no end.
    let clog = |node: &str| PlanEntry {
        what: What::Fault(Fault::Network(NetworkFault::Clog { node: node.to_owned() })),
        ..latency(9, None)
    };
    let many = (0..NETWORK_FAULTS_MAX as u64 - 1).map(|_| latency(5, 10)).chain([clog("n0")]).collect();
    let full = plan(many);
    let merged = merge(&full, &[latency(5, 5), latency(5, 4), latency(14, 1), latency(15, 1)], &world(2));
    assert_eq!(times(&added(&merged, &full)), [(5, 9), (15, 16)]);
}

#[test]
fn a_full_plan_is_unchanged() {
    let full = plan((0..LINES_MAX as u64).map(|i| latency(2 * i, 1)).collect());
    assert_eq!(merge(&full, &[latency(1, 1)], &world(2)), full);
    let nearly = plan((1..LINES_MAX as u64).map(|i| latency(2 * i, 1)).collect());
    let merged = merge(&nearly, &[latency(9, 1), latency(1, 1)], &world(2));
    assert_eq!(times(&added(&merged, &nearly)), [(1, 2)], "the earlier latency is entered");
}

fn busy(every_s: u64, quiet_s: u64) -> FaultConfig {
    let often = json!({ "every": "300ms", "for": ["1ms", "20s"] });
    serde_json::from_value(json!({
        "latency": often, "loss": often, "clog": often, "calm_end": format!("{}s", quiet_s / 2),
        "quiet": { "enabled": quiet_s > 0, "every": format!("{every_s}s"), "for": format!("{quiet_s}s") },
    }))
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// A merged plan is valid, and adds only requested latencies. In some cases the original plan has `crowd`
    /// latencies, which last from its start to the first heal (which ends all faults) or quiet period. These latencies
    /// leave little or no room for further network faults.
    #[test]
    fn merged_plans_pass_the_checks(
        seed: u64, count in 2u32..6, every in 10u64..40, quiet in 0u64..9, horizon in 1..90 * S, default: bool,
        crowd in prop_oneof![Just(0usize), 200usize..256], from in 0..20 * S,
    ) {
        let names = world(count);
        let config = if default { FaultConfig::default() } else { busy(every, quiet) };
        let drawn = draw(&config, &names, horizon, &mut Streams::new(&Lineage::new(Seed::new(seed)), Owner::Plan)).plan;
        let crowded = drawn.entries().iter().cloned().chain((0..crowd).map(|_| latency(0, None)));
        let plan = Plan::new(crowded.collect(), &names).unwrap_or(drawn);
        let more = entries(&names, &PctConfig::default(), from, horizon, &mut ChaCha20Rng::seed_from_u64(seed));
        let merged = merge(&plan, &more, &names);
        prop_assert_eq!(Plan::new(merged.entries().to_vec(), &names), Ok(merged.clone()));
        let new = added(&merged, &plan);
        let quiet = QuietPeriods::of(plan.entries().iter().enumerate());
        let lasts = |entry: &PlanEntry, at: u64| entry.at_ns <= at && at < entry.at_ns + entry.for_ns.unwrap_or(u64::MAX / 2);
        for i in 0..50 {
            let at = i * horizon / 50;
            let there: Vec<&What> = new.iter().filter(|entry| lasts(entry, at)).map(|entry| &entry.what).collect();
            let meant = more.iter().filter(|entry| lasts(entry, at)).map(|entry| &entry.what);
            let meant: Vec<&What> = meant.filter(|_| quiet.around(at).is_none()).collect();
            prop_assert!(there.iter().all(|what| meant.contains(what)), "at {}", at);
            // If there is room, all latencies are added.
            if crowd == 0 {
                prop_assert_eq!(there.len(), meant.len(), "at {}", at);
            }
        }
    }
}
