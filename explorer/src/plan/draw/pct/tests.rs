//! Tests of the random priorities of nodes, and of the latencies that the priorities become in a fault plan.
//!
//! A chain is the sequence of frames that one node sends. Its level is the number of steps of latency that its frames
//! get: 0 for the highest priority. At random times a random chain falls, i.e. gets the lowest priority.

use std::collections::BTreeMap;

use chacha20::rand_core::SeedableRng;
use everett_input::causes::with_causes;
use proptest::prelude::*;

use super::*;
use crate::plan::{NodeNames, Plan};

const S: u64 = 1_000_000_000;

fn world(count: usize) -> Names {
    (0..count).map(|i| (format!("n{i:03}"), NodeNames::default())).collect()
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn config(depth: u32, least: u64, most: u64) -> PctConfig {
    PctConfig { depth, step: Between(Span(least), Span(most)) }
}

/// Returns the sender and the latency of an entry.
fn sent(entry: &PlanEntry) -> (&str, u64) {
    let What::Fault(Fault::Network(NetworkFault::Latency { links, extra: Distribution::Constant(ns) })) =
        &entry.what
    else {
        panic!("{entry:?}")
    };
    let Group::Nodes(nodes) = &links.from else { panic!("{entry:?}") };
    assert_eq!((nodes.len(), &links.to, links.both_ways), (1, &Group::All, false));
    (nodes.first().unwrap(), *ns)
}

/// Returns the latency of each chain at a given time.
fn latencies(entries: &[PlanEntry], names: &Names, at: u64) -> Vec<u64> {
    let mut by_node: BTreeMap<&str, u64> = names.nodes().map(|node| (node, 0)).collect();
    for entry in entries.iter().filter(|e| e.at_ns <= at && at < e.at_ns + e.for_ns.unwrap()) {
        let (node, ns) = sent(entry);
        let before = by_node.insert(node, ns);
        assert_eq!(before, Some(0), "two entries of {node} overlap");
    }
    by_node.into_values().collect()
}

/// Computes the level of each chain at a given time from all falls up to that time.
fn levels(drawn: &Priorities, at: u64) -> Vec<u64> {
    let mut levels = vec![0; drawn.order.len()];
    for (level, &chain) in drawn.order.iter().enumerate() {
        levels[chain] = level as u64;
    }
    for (_, chain) in drawn.falls.iter().filter(|(fall, _)| *fall <= at) {
        let lowest = *levels.iter().max().unwrap();
        if levels[*chain] < lowest {
            levels[*chain] = lowest + 1;
        }
    }
    levels
}

#[test]
fn an_example() {
    let (order, falls) = (vec![2, 0, 1], vec![(4 * S, 2), (7 * S, 2), (9 * S, 0)]);
    let drawn = Priorities { from_ns: S, to_ns: 20 * S, step_ns: 10, order, falls };
    let entries = drawn.entries(&["a", "b", "c"]);
    let shown: Vec<_> = entries.iter().map(|e| (e.at_ns / S, e.for_ns.unwrap() / S, sent(e))).collect();
    // At first `c` has the highest priority. It falls and cannot fall again, because it is now the lowest. Then `a`
    // falls below `c`.
    assert_eq!(shown, [(1, 8, ("a", 10)), (1, 19, ("b", 20)), (4, 16, ("c", 30)), (9, 11, ("a", 40))]);
}

proptest! {
    #[test]
    fn entries_match_the_drawn_priorities(
        seed: u64, count in 2usize..9, depth in 1u32..9, from in 0..5 * S, span in 1..10 * S, few: bool,
    ) {
        // Some spans are so short that several falls happen at once, or at the beginning.
        let to = from + if few { 1 + span % 4 } else { span };
        let (names, config) = (world(count), config(depth, 1_000_000, 50_000_000));
        let drawn = Priorities::draw(count, &config, from, to, &mut rng(seed));
        let entries = entries(&names, &config, from, to, &mut rng(seed));
        prop_assert!((1_000_000..=50_000_000).contains(&drawn.step_ns));
        prop_assert_eq!(drawn.falls.len() as u32, depth - 1);
        prop_assert!(drawn.falls.iter().all(|(at, chain)| (from..to).contains(at) && *chain < count));
        let mut sorted = drawn.order.clone();
        sorted.sort_unstable();
        prop_assert!(sorted.into_iter().eq(0..count));
        let around = |at: u64| [at.saturating_sub(1), at, at + 1];
        for at in drawn.falls.iter().flat_map(|(at, _)| around(*at)).chain(around(from)).chain(around(to - 1)) {
            let inside = (from..to).contains(&at);
            let expected = levels(&drawn, at).into_iter().map(|level| if inside { level * drawn.step_ns } else { 0 });
            prop_assert!(latencies(&entries, &names, at).into_iter().eq(expected), "wrong latencies at {}", at);
        }
        prop_assert!(entries.is_sorted_by_key(|entry| entry.at_ns));
        prop_assert!(entries.len() < count + depth as usize);
        prop_assert_eq!(Plan::new(entries.clone(), &names).map(|plan| plan.entries().to_vec()), Ok(entries));
    }

    /// Entries form a valid plan for any settings, span and world.
    #[test]
    fn odd_settings_give_valid_plans(
        seed: u64, count in prop_oneof![0usize..4, 250usize..300], depth: u32, least: u64, most: u64, shift in 0u32..64,
        from in 0..2 * AT_NS_MAX, to: u64,
    ) {
        let names = world(count);
        let entries = entries(&names, &config(depth, least >> shift, most), from, to >> (shift / 2), &mut rng(seed));
        prop_assert!(entries.iter().all(|entry| from <= entry.at_ns));
        prop_assert_eq!(Plan::new(entries.clone(), &names).map(|plan| plan.entries().to_vec()), Ok(entries));
    }

    #[test]
    fn more_depth_only_adds_falls(seed: u64, count in 2usize..6, depth in 1u32..8) {
        let draw = |depth| Priorities::draw(count, &config(depth, 5_000, 5_000_000), S, 9 * S, &mut rng(seed));
        let (less, more) = (draw(depth), draw(depth + 1));
        prop_assert_eq!((&less.order, less.step_ns), (&more.order, more.step_ns));
        prop_assert!(less.falls.iter().all(|fall| more.falls.contains(fall)));
        prop_assert_eq!(less.falls.len() + 1, more.falls.len());
    }
}

/// All orders are equally likely, and so are all times and chains of falls.
#[test]
fn draws_are_uniform() {
    let (mut rng, config, runs) = (rng(7), config(2, 1_000, 1_000_000), 24_000usize);
    let mut orders: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let (mut chains, mut quarters) = ([0usize; 4], [0usize; 4]);
    for _ in 0..runs {
        let drawn = Priorities::draw(4, &config, 100, 500, &mut rng);
        *orders.entry(drawn.order).or_default() += 1;
        let (at, chain) = drawn.falls[0];
        chains[chain] += 1;
        quarters[(at as usize - 100) / 100] += 1;
    }
    // The test allows four standard deviations of sqrt(24,000 p (1 - p)).
    assert!(orders.len() == 24 && orders.values().all(|n| n.abs_diff(1_000) < 125), "{orders:?}");
    for counts in [chains, quarters] {
        assert!(counts.iter().all(|n| n.abs_diff(6_000) < 270), "{counts:?}");
    }
}

#[test]
fn settings_have_bounds() {
    assert_eq!(PctConfig::default().check(), Ok(()));
    let errors = |config: PctConfig| -> Vec<String> {
        config.check().unwrap_err().iter().map(|error| with_causes(error)).collect()
    };
    assert_eq!(
        errors(config(0, 1_000, 11 * S)),
        ["depth: must be from 1 to 16, not 0", "step: must be from 1us to 10s, not 11s"]
    );
    assert_eq!(errors(config(16, S, 1_000)), ["step: the first of the two must not be above the second"]);
    let read: PctConfig = toml::from_str("depth = 2").unwrap();
    assert_eq!(read, PctConfig { depth: 2, ..PctConfig::default() });
    assert!(toml::from_str::<PctConfig>("steps = 2").unwrap_err().to_string().contains("unknown field"));
}
