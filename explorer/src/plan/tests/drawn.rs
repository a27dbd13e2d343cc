//! Tests of fault plans that are drawn at random.

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use everett_fault::{Fault, FaultKind, NodeFault};
use everett_input::causes::with_causes;
use everett_streams::{Lineage, Owner, Seed, Streams};
use serde_json::{Map, Value, json};

use super::*;
use crate::plan::draw::{Drawn, FaultConfig, RestartService, Span, draw};

const S: u64 = 1_000_000_000;

/// Returns a world of `count` nodes. Node `i` has `i` disks and `i` units (services).
fn world(count: u32) -> Names {
    let node = |i: u32| {
        let units: BTreeSet<String> = (0..i).map(|unit| format!("u{unit}")).collect();
        (format!("n{i}"), NodeNames { disks: i, services: units.clone(), units })
    };
    (0..count).map(node).collect()
}

fn drawn(config: &FaultConfig, names: &Names, horizon_ns: u64, seed: u64) -> Plan {
    draw(config, names, horizon_ns, &mut Streams::new(&Lineage::new(Seed::new(seed)), Owner::Plan)).plan
}

/// Returns fault settings under which plans have only faults of these kinds.
fn only(kinds: &[FaultKind]) -> FaultConfig {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    serde_json::from_value(json!({ "only": names, "quiet": { "enabled": false } })).unwrap()
}

/// Returns settings with random values of the right types, which may be invalid.
fn wild(seed: u64) -> FaultConfig {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut number = move |most: u64| {
        let shift = rng.next_u64() % 64;
        (rng.next_u64() >> shift) % (most + 1)
    };
    let mut table = Map::new();
    for kind in FaultKind::ALL {
        let mut span = |most_s: u64| json!(format!("{}ns", number(most_s * S)));
        let spans = json!([span(100), span(200_000)]);
        let (every, lasts) = (span(100), json!([span(20), span(200_000)]));
        let ppm = json!([number(1_100_000), number(1_100_000)]);
        let mut own = json!({ "enabled": number(9) > 0, "every": every });
        let mut put = |key: &str, value: Value| {
            if number(2) > 0 {
                own[key] = value;
            }
        };
        if kind.lasts() {
            put("for", lasts);
        }
        put("nodes", json!(["n1", "n2", "elsewhere"]));
        match kind {
            FaultKind::Latency | FaultKind::DiskLatency => put("extra", spans),
            FaultKind::Loss | FaultKind::Duplicate | FaultKind::Corrupt => put("ppm", ppm),
            FaultKind::Reorder => put("hold", spans),
            FaultKind::Bandwidth => put("bits_per_s", json!([1, 1_000_000_000_000_000u64])),
            FaultKind::Partition => put("links", json!({ "one_way": ppm[0], "everywhere": ppm[1] })),
            FaultKind::PowerLoss | FaultKind::Reset => put("cold", ppm[0].clone()),
            FaultKind::SlowCpu | FaultKind::ClockDrift => put("ppm", ppm),
            FaultKind::DiskError => put("requests", json!(["read", "flush"])),
            FaultKind::BitRot => put("bits", ppm),
            FaultKind::ClockStep => put("step", json!(["0ns", "5000000h"])),
            FaultKind::Stalls => put("stall", spans),
            FaultKind::Priorities => put("change", spans),
            FaultKind::Command => put("argv", json!([["sync"], ["echo", "x"], []])),
            FaultKind::Clog
            | FaultKind::Pause
            | FaultKind::DiskFull
            | FaultKind::Reseed
            | FaultKind::RestartService => {}
        }
        table.insert(kind.name().to_owned(), own);
    }
    let mut span = |most_s: u64| json!(format!("{}ns", number(most_s * S)));
    table.insert("start".to_owned(), span(60));
    table.insert("calm_end".to_owned(), span(30));
    table.insert("recovery".to_owned(), span(30));
    table.insert("quiet".to_owned(), json!({ "every": span(300), "for": span(40) }));
    if number(1) > 0 {
        table.insert("max_down".to_owned(), json!(number(4)));
    }
    serde_json::from_value(Value::Object(table)).unwrap()
}

fn faults(plan: &Plan) -> impl Iterator<Item = (&PlanEntry, &Fault)> {
    plan.entries().iter().filter_map(|entry| match &entry.what {
        What::Fault(fault) => Some((entry, fault)),
        _ => None,
    })
}

/// Returns the maximum number of nodes that are off or paused at once. The number rises only when a fault starts, so
/// only starts are examined.
fn most_down(plan: &Plan) -> usize {
    let down = |fault: &Fault| {
        matches!(
            fault,
            Fault::Node { fault: NodeFault::PowerLoss { .. }, .. }
                | Fault::Node { fault: NodeFault::Pause, .. }
        )
    };
    let spans: Vec<(u64, u64)> = faults(plan)
        .filter(|(_, fault)| down(fault))
        .map(|(entry, _)| (entry.at_ns, entry.at_ns + entry.for_ns.unwrap_or(u64::MAX / 2)))
        .collect();
    let at_once = |at: u64| spans.iter().filter(|(from, to)| *from <= at && at < *to).count();
    spans.iter().map(|(from, _)| at_once(*from)).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn drawn_plans_pass_the_checks(seed: u64, settings: u64, count in 0u32..6, horizon in 0..100 * S) {
        let (config, names) = (wild(settings), world(count));
        let table = serde_json::to_value(&config).unwrap();
        let plan = drawn(&config, &names, horizon, seed);
        prop_assert_eq!(Plan::new(plan.entries().to_vec(), &names), Ok(plan.clone()));
        prop_assert_eq!(Plan::parse(&plan.write(), &names), Ok(plan.clone()));
        let minority = (count.saturating_sub(1) / 2).max(1);
        prop_assert!(most_down(&plan) <= config.max_down.unwrap_or(minority) as usize);
        for (entry, fault) in faults(&plan) {
            prop_assert!(config.start.0 <= entry.at_ns && entry.at_ns < horizon);
            prop_assert_eq!(entry.for_ns.is_some(), fault.kind().lasts());
            let last_calm = horizon.saturating_sub(config.calm_end.0);
            if config.calm_end.0 > 0 {
                prop_assert!(entry.at_ns + entry.for_ns.unwrap_or(0) <= last_calm);
            }
            let settings = &table[fault.kind().name()];
            prop_assert_eq!(&settings["enabled"], &json!(true));
            if let (Some(node), Some(nodes)) = (fault.node(), settings["nodes"].as_array()) {
                prop_assert!(nodes.contains(&json!(node)));
            }
            if let Some(links) = fault.links() {
                let meant = |node: &&str| settings["nodes"].as_array().is_none_or(|nodes| nodes.contains(&json!(node)));
                let everywhere = links.to == Group::All && links.both_ways
                    && names.nodes().all(|node| links.from.contains(node) == meant(&node));
                let sides = names.nodes().all(|node| links.from.contains(node) != links.to.contains(node));
                prop_assert!(everywhere || sides, "{:?}", links);
            }
        }
        prop_assert_eq!(drawn(&config, &names, horizon, seed), plan);
    }

    /// A fault with target nodes affects only links of these nodes.
    #[test]
    fn links_are_those_of_target_nodes(seed: u64, count in 2u32..7) {
        let mut config = only(&[FaultKind::Partition]);
        config.partition.nodes = Some(["n0".to_owned(), "n1".to_owned()].into());
        let names = world(count);
        for (_, fault) in faults(&drawn(&config, &names, 300 * S, seed)) {
            let links = fault.links().unwrap();
            let group = |group: &Group| match group {
                Group::All => false,
                Group::Nodes(nodes) => {
                    nodes.len() <= (count as usize / 2).max(1) && nodes.iter().all(|n| n == "n0" || n == "n1")
                }
            };
            // The fault may also affect all links of the target nodes.
            let everywhere = links.to == Group::All && links.both_ways
                && Group::Nodes(config.partition.nodes.clone().unwrap()) == links.from;
            prop_assert!(everywhere || group(&links.from) || group(&links.to), "{:?}", links);
        }
    }
}

#[test]
fn the_defaults_try_everything_that_software_claims_to_survive() {
    let (config, names) = (FaultConfig::default(), world(5));
    assert_eq!(config.check(&names), Ok(()));
    let mut counts: BTreeMap<FaultKind, u32> = BTreeMap::new();
    let minutes = 200;
    for seed in 0..minutes / 10 {
        let plan = drawn(&config, &names, 600 * S, seed.into());
        assert!(most_down(&plan) <= 2);
        for (entry, fault) in faults(&plan) {
            *counts.entry(fault.kind()).or_default() += 1;
            if let Fault::Node { fault: NodeFault::Pause, .. } = fault {
                assert!(entry.for_ns.unwrap() < 10 * S);
            }
            if let Fault::Node { fault: NodeFault::PowerLoss { restart, tear_sectors }, .. } = fault {
                assert_eq!((*restart, *tear_sectors), (Some(Restart::Warm), false));
            }
        }
        let quiet =
            plan.entries().iter().filter(|entry| entry.what == What::Quiet).map(|entry| entry.at_ns / S);
        assert!(quiet.eq((60..600).step_by(60)));
    }
    let absent: Vec<FaultKind> =
        FaultKind::ALL.into_iter().filter(|kind| !counts.contains_key(kind)).collect();
    assert_eq!(absent, [FaultKind::BitRot, FaultKind::Command, FaultKind::RestartService]);
    let total: u32 = counts.values().sum();
    assert!((8 * minutes..18 * minutes).contains(&total), "{total}");
    let count = |kind| counts[&kind];
    let most = counts.values().max();
    assert_eq!(most, Some(&count(FaultKind::Partition)), "{counts:?}");
    for often in [FaultKind::Partition, FaultKind::PowerLoss, FaultKind::Pause, FaultKind::Latency] {
        for rare in [FaultKind::DiskError, FaultKind::DiskFull, FaultKind::Corrupt] {
            assert!(count(often) > 2 * count(rare), "{counts:?}");
        }
    }
}

/// A change of one kind's frequency affects other kinds only through conflicts. The same holds if the kind is switched
/// off.
#[test]
fn kinds_do_not_affect_each_others_draws() {
    // These kinds conflict with each other, because they need a running node or count as taking a node down.
    let entangled = |kind: FaultKind| {
        kind.needs_agent() || matches!(kind, FaultKind::PowerLoss | FaultKind::Reset | FaultKind::Pause)
    };
    let names = world(4);
    let base = FaultConfig::default();
    for seed in 0..3 {
        let before = drawn(&base, &names, 600 * S, seed);
        for changed in FaultKind::ALL {
            for settings in [json!({ "enabled": false }), json!({ "every": "3s" })] {
                let mut table = serde_json::to_value(&base).unwrap();
                for (key, value) in settings.as_object().unwrap() {
                    table[changed.name()][key] = value.clone();
                }
                let config: FaultConfig = serde_json::from_value(table).unwrap();
                let after = drawn(&config, &names, 600 * S, seed);
                let rest = |plan: &Plan| -> Vec<PlanEntry> {
                    let apart = |kind| kind != changed && !(entangled(changed) && entangled(kind));
                    faults(plan)
                        .filter(|(_, fault)| apart(fault.kind()))
                        .map(|(entry, _)| entry.clone())
                        .collect()
                };
                assert_eq!(rest(&before), rest(&after), "{changed:?}");
            }
        }
    }
}

#[test]
fn faults_come_as_often_as_they_should() {
    let mut config = only(&[FaultKind::Reseed]);
    config.reseed.every = Span::s(9);
    let count = drawn(&config, &world(3), 36_000 * S, 7).entries().len();
    // 4,000 faults are expected, with a standard deviation of 63. The test allows four standard deviations.
    assert!(count.abs_diff(4_000) < 253, "{count}");
}

/// If at most one node may be down, the next node goes down only after the previous node has recovered.
#[test]
fn a_node_that_recovers_counts_as_down() {
    let mut config = only(&[FaultKind::PowerLoss, FaultKind::Reset, FaultKind::Pause]);
    for every in [&mut config.power_loss.every, &mut config.reset.every, &mut config.pause.every] {
        *every = Span::s(2);
    }
    let plan = drawn(&config, &world(4), 3_600 * S, 1);
    let (mut down, mut others) = (("", 0), 0);
    for (entry, fault) in faults(&plan) {
        let node = fault.node().unwrap();
        if node != down.0 {
            assert!(entry.at_ns >= down.1, "{fault:?}");
            others += 1;
        }
        let recovery = if fault.kind() == FaultKind::Pause { 0 } else { config.recovery.0 };
        let until = entry.at_ns + entry.for_ns.unwrap_or(0) + recovery;
        down = (node, if node == down.0 { until.max(down.1) } else { until });
    }
    assert!(others > 100, "{others}");
}

#[test]
fn small_worlds() {
    let config = FaultConfig::default();
    assert!(faults(&drawn(&config, &world(0), 600 * S, 1)).next().is_none());
    let alone = drawn(&config, &world(1), 600 * S, 1);
    assert!(faults(&alone).all(|(_, fault)| fault.links().is_none()));
    assert!(faults(&alone).any(|(_, fault)| fault.kind() == FaultKind::PowerLoss));
    assert_eq!(drawn(&config, &world(3), 0, 1), Plan::default());
}

#[test]
fn a_plan_stops_at_its_bounds() {
    let mut config = only(&[FaultKind::Loss]);
    config.loss.every = Span(0);
    let Drawn { plan, full_at_ns } =
        draw(&config, &world(3), u64::MAX, &mut Streams::new(&Lineage::new(Seed::new(1)), Owner::Plan));
    assert_eq!(plan.entries().len(), limits::LINES_MAX);
    assert!(full_at_ns >= plan.entries().last().map(|entry| entry.at_ns) && full_at_ns.is_some());
    assert!(parse_in(&plan, &world(3)));
    // These names are so long that the plan reaches its maximum size first.
    let names: Names =
        ["a", "b"].map(|name| (name.repeat(20_000), NodeNames::default())).into_iter().collect();
    let plan = drawn(&config, &names, u64::MAX, 1);
    assert!((150..limits::LINES_MAX).contains(&plan.entries().len()));
    assert!(parse_in(&plan, &names));
}

fn parse_in(plan: &Plan, names: &Names) -> bool {
    Plan::parse(&plan.write(), names).as_ref() == Ok(plan)
}

/// Pins the drawn plans. A change of these values changes every exploration.
#[test]
fn the_draws_are_pinned() {
    let text = drawn(&FaultConfig::default(), &world(3), 20 * S, 1).write();
    assert_eq!(text.lines().collect::<Vec<_>>(), PINNED);
}
const PINNED: &[&str] = &[
    r#"{"at":"1.894112354s","fault":"reset","node":"n0","restart":"warm"}"#,
    r#"{"at":"5.254941863s","for":"5.195358784s","fault":"partition","links":{"from":["n2"],"to":["n0","n1"],"both_ways":true},"mode":"slow"}"#,
    r#"{"at":"8.368525612s","for":"1.207933719s","fault":"loss","links":{"from":["n1"],"to":["n0","n2"],"both_ways":true},"ppm":41647}"#,
    r#"{"at":"9.304933038s","for":"5.683673815s","fault":"partition","links":{"from":["n2"],"to":["n0","n1"],"both_ways":true},"mode":"drop"}"#,
    r#"{"at":"11.679394987s","for":"1.407108337s","fault":"stalls","node":"n1","every_instructions":79612177,"stall":{"uniform":["3.400038ms","3.826353ms"]}}"#,
    r#"{"at":"12.671022238s","for":"2.89245812s","fault":"latency","links":{"from":["n1"],"to":["n0","n2"],"both_ways":true},"extra":{"uniform":["1.6632ms","429.307465ms"]}}"#,
    r#"{"at":"14.0593476s","fault":"clock_step","node":"n0","step":"-568.44157ms"}"#,
    r#"{"at":"16.765510777s","for":"2.724909944s","fault":"partition","links":"all","mode":"drop"}"#,
    r#"{"at":"17.986979906s","for":"14.62767138s","fault":"power_loss","node":"n2","restart":"warm","tear_sectors":false}"#,
    r#"{"at":"18.974454231s","for":"2.00164224s","fault":"loss","links":{"from":["n0"],"to":["n1","n2"],"both_ways":true},"ppm":48234}"#,
];

#[test]
fn a_table_is_read_strictly_and_written_back() {
    let config: FaultConfig = toml::from_str(
        r#"
        start = "1.5s"
        max_down = 2
        quiet = { enabled = false }
        partition = { every = "5s", for = ["1s", "2s"], links = { one_way = 0 }, nodes = ["n1"] }
        disk_error = { enabled = false, requests = ["flush"] }
        [command]
        argv = [["nodetool", "repair"]]
        "#,
    )
    .unwrap();
    assert_eq!((config.start, config.max_down, config.quiet.enabled), (Span(1_500_000_000), Some(2), false));
    assert_eq!((config.partition.every, config.partition.links.one_way), (Span::s(5), 0));
    assert_eq!(config.partition.links.everywhere, 100_000);
    assert!(config.partition.enabled && !config.disk_error.enabled);
    let restarting = FaultConfig {
        restart_service: RestartService { enabled: true, ..RestartService::default() },
        ..config.clone()
    };
    for (config, has_restarts) in [(config, false), (restarting, true)] {
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<FaultConfig>(&text), Ok(config.clone()));
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(text.contains("\"restart_service\""), has_restarts, "{text}");
        assert_eq!(serde_json::from_str::<FaultConfig>(&text).unwrap(), config);
    }
    for bad in [
        "parttion = {}",
        "partition = { ppm = 1 }",
        "partition = { every = 5 }",
        "partition = { every = \"5\" }",
        "partition = { for = \"5s\" }",
        "quiet = false",
        "partition = { links = { both = 1 } }",
    ] {
        assert!(toml::from_str::<FaultConfig>(bad).is_err(), "{bad}");
    }
}

#[test]
fn invalid_settings_are_reported() {
    let wrong = |text: &str| -> Vec<String> {
        let config: FaultConfig = toml::from_str(text).unwrap();
        let errors = config.check(&names()).err().unwrap_or_default();
        errors.iter().map(|error| with_causes(error)).collect()
    };
    assert_eq!(wrong(""), [""; 0]);
    for (text, errors) in [
        (r#"start = "25h""#, vec!["start: must be from 0ns to 86400s, not 90000s"]),
        (
            r#"quiet = { every = "10s", for = "10s" }"#,
            vec!["quiet.for: quiet periods must end before the next one begins"],
        ),
        (
            r#"quiet = { every = "9s", for = "0s" }"#,
            vec![
                "quiet.every: must be from 10s to 86400s, not 9s",
                "quiet.for: must be from 1ns to 86400s, not 0ns",
            ],
        ),
        (r#"quiet = { enabled = false, every = "0s" }"#, vec![]),
        (r#"loss = { every = "99ms" }"#, vec!["loss.every: must be from 100ms to 86400000s, not 99ms"]),
        (
            r#"loss = { for = ["2s", "1s"] }"#,
            vec!["loss.for: the first of the two must not be above the second"],
        ),
        (r#"loss = { ppm = [0, 1000001] }"#, vec!["loss.ppm: must be from 0 to 1000000, not 1000001"]),
        (
            r#"loss = { links = { one_way = 1000001 } }"#,
            vec!["loss.links: must be from 0 to 1000000, not 1000001"],
        ),
        (
            r#"slow_cpu = { ppm = [0, 5], nodes = ["n1", "n7"] }"#,
            vec![
                "slow_cpu.ppm: must be from 1000 to 1000000, not 0",
                r#"slow_cpu.nodes: there is no node "n7"; did you mean "n1"?"#,
            ],
        ),
        (r#"disk_error = { requests = [] }"#, vec!["disk_error.requests: must be from 1 to 16, not 0"]),
        (
            r#"command = { argv = [["sync"], []] }"#,
            vec!["command.argv[1]: the first element must name a program"],
        ),
    ] {
        assert_eq!(wrong(text), errors, "{text}");
    }
}
