//! Tests of the random number streams: all of them restart at a fork, and a timeline draws no random number unless a
//! guest, a frame, a fault or a test command needs one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use everett_explorer::plan::{self as fault_plan, Names, NodeNames};
use everett_explorer::search::Fork;
use everett_streams::{BootSeed, Purpose, Seed};
use everett_vmm::MachineConfig;
use everett_vmm::boot::small_kernel;
use everett_vmm::layout::GENERATION_ID;
use everett_vmm::machine::{CardConfig, Machine, Until};
use everett_vmm::virtio::net::Wire;
use everett_vmm::wire::WireConfig;
use everett_vmm::wire::endpoint::EndpointConfig;
use everett_vmm::world::{Node, World};

use super::super::commands::tests::commands;
use super::super::director::Stage;
use super::super::faults::{FaultProgress, Faults, Restarts};
use super::*;
use crate::guest::agent_script::{AgentScript, HostCheck, host_port};
use crate::machines::EngineOptions;
use crate::world::conversation::tests::script;
use crate::world::event::What;
use crate::world::timeline::restart_point::RestartPoint;

/// Returns a timeline at power-on with two guests that halt forever, and a port for Everett on the wire.
fn booting() -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let kernel = folder.path().join("kernel");
    std::fs::write(&kernel, small_kernel(&[0xfb, 0xf4, 0xeb, 0xfc], 0)).unwrap();
    let machine = |name: &str, number: u8| {
        let mut config = MachineConfig::new(&kernel);
        config.name = name.to_owned();
        config.cards.push(CardConfig { mac: [2, 0, 0, 0, 0, number], wire: Wire::Attached });
        EngineOptions::default().machine(config).unwrap()
    };
    let wire = WireConfig { ports: vec![host_port()], ..WireConfig::default() };
    let world = World::new(vec![machine("a", 1), machine("faults", 2)], wire, BootSeed::new(0)).unwrap();
    let scripts = ["a", "faults"].map(|node| AgentScript { node: node.to_owned(), ..script() });
    Timeline::new(world, scripts.into(), Vec::new())
}

/// Returns a timeline that has just begun, with faults and test commands.
fn timeline(seed: u64) -> Timeline {
    let mut timeline = booting();
    timeline.begin_here(Seed::new(seed)).unwrap();
    let lineage = timeline.lineage();
    timeline.course.faults = Some(FaultProgress::new(&lineage, [0; 32]));
    let commands = commands();
    timeline.composing = Some(commands.check(2).unwrap());
    timeline.course.commands = Some(commands);
    timeline.restart_streams(&lineage);
    timeline
}

/// Draws the next random number from every stream of the timeline. The key names the stream: its owner, such as a node
/// or the wire, the owner's index and the stream's purpose.
fn next(timeline: &mut Timeline) -> BTreeMap<String, u64> {
    let mut values = BTreeMap::new();
    for owner in OwnerKind::ALL {
        let course = &timeline.course;
        let streams: Vec<Streams> = match owner {
            OwnerKind::Node => {
                timeline.world.nodes().iter().map(|node| node.machine().streams().clone()).collect()
            }
            OwnerKind::Wire => vec![timeline.world.wire().streams().clone()],
            OwnerKind::Endpoint => vec![course.endpoint_streams.clone()],
            OwnerKind::Faults => vec![course.faults.as_ref().unwrap().streams.clone()],
            OwnerKind::Composer => vec![course.commands.as_ref().unwrap().streams.clone()],
            OwnerKind::Fates | OwnerKind::Plan | OwnerKind::Search => continue,
        };
        for (number, mut streams) in streams.into_iter().enumerate() {
            for purpose in Purpose::each().into_iter().filter(|purpose| purpose.owners().contains(owner)) {
                values.insert(format!("{owner:?} {number} {purpose:?}"), streams.next_u64(purpose));
            }
        }
    }
    values
}

/// Returns the VM generation IDs in the guests' memory.
fn generations(timeline: &Timeline) -> Vec<[u8; 16]> {
    let read = |node: &Node| {
        let mut id = [0; 16];
        assert!(node.machine().ram().read(GENERATION_ID, &mut id));
        id
    };
    timeline.world.nodes().iter().map(read).collect()
}

fn forked(seed: u64, child: u64) -> Timeline {
    let mut timeline = timeline(seed);
    timeline.branch(Fork { vtime_ns: 5, child });
    timeline
}

#[test]
fn every_purpose_draws_other_values_after_a_fork() {
    let worlds =
        [&mut timeline(1), &mut timeline(2), &mut forked(1, 1), &mut forked(1, 2), &mut forked(2, 1)];
    let values = worlds.map(next);
    for (name, value) in values.iter().flatten() {
        let times = values.iter().filter(|values| values[name] == *value).count();
        assert_eq!(times, 1, "{name}: seeds and children share a value");
    }
    let all: BTreeSet<u64> = values.iter().flat_map(BTreeMap::values).copied().collect();
    assert_eq!(all.len(), 5 * values[0].len(), "two purposes share a value");
    assert_eq!(next(&mut forked(1, 2)), values[3], "a child must be the same each time");
}

/// By default the boot seed and the timeline's seed are both 0. Nevertheless, each stream of the timeline must begin
/// with a different number than the same stream of the boot. The VM generation IDs must differ, too, because a guest's
/// kernel ignores a new ID that equals the old one.
#[test]
fn a_timeline_under_the_boot_seed_repeats_no_draw_of_the_boot() {
    let mut timeline = booting();
    let streams = |timeline: &mut Timeline| {
        let nodes: Vec<Streams> =
            timeline.world.nodes().iter().map(|node| node.machine().streams().clone()).collect();
        nodes.into_iter().chain([timeline.world.wire().streams().clone()]).collect::<Vec<Streams>>()
    };
    let (boot, of_boot) = (streams(&mut timeline), generations(&timeline));
    timeline.begin_here(Seed::new(0)).unwrap();
    for (owner, (boot, begun)) in boot.into_iter().zip(streams(&mut timeline)).enumerate() {
        for purpose in Purpose::each() {
            // Rewinds each stream and compares only its first value, because some streams have already been used.
            let first = |streams: &Streams| {
                let mut streams = streams.clone();
                streams.get(purpose).set_word_pos(0);
                streams.next_u64(purpose)
            };
            assert_ne!(first(&boot), first(&begun), "owner {owner}, {purpose:?}");
        }
    }
    let begun = generations(&timeline);
    assert_eq!(BTreeSet::from_iter(of_boot.iter().chain(&begun)).len(), 4, "{of_boot:x?} {begun:x?}");
}

/// Implementation of [`Restarts`] that returns only errors, so that a node without power stays off.
pub(in crate::world::timeline) struct NoRestarts;

impl Restarts for NoRestarts {
    fn warm(&self, _: usize) -> Result<&RestartPoint, String> {
        Err("no restart point".to_owned())
    }
    fn cold(&self, _: usize, _: BootSeed, _: u64, _: &EngineOptions) -> Result<Machine, String> {
        Err("no machine".to_owned())
    }
}

/// Fault plan that takes no random numbers in this world, because the world has no frames and no data disks.
const PLAN: &str = r#"
    {"at":"10ms","for":"30ms","fault":"partition","links":"all"}
    {"at":"20ms","for":"30ms","fault":"latency","links":"all","extra":{"uniform":["1ms","2ms"]}}
    {"at":"30ms","for":"20ms","fault":"pause","node":"a"}
    {"at":"60ms","for":"20ms","fault":"slow_cpu","node":"a","ppm":500000}
    {"at":"70ms","for":"20ms","fault":"clock_drift","node":"faults","ppm":100}
    {"at":"90ms","fault":"power_loss","node":"faults","restart":"never"}
"#;

#[test]
fn continuing_draws_nothing() {
    let mut timeline = timeline(1);
    let names = Names::from_iter(["a", "faults"].map(|name| (name.to_owned(), NodeNames::default())));
    let faults = Faults::new(fault_plan::Plan::parse(PLAN, &names).unwrap(), Arc::new(NoRestarts));
    timeline.course.faults = Some(FaultProgress::new(&timeline.lineage(), faults.digest()));
    timeline.faults = Some(faults);
    timeline.course.stage = Stage::Running { root: 0 };
    let before = next(&mut timeline);
    // The guests have no agents to run test commands, so the commands are removed during the run.
    let commands = (timeline.course.commands.take(), timeline.composing.take());
    timeline.take_events();

    // The run covers the whole plan and at least one digest of the trail.
    timeline.run(&Until::vtime(150_000_000));
    assert_eq!(timeline.vtime(), 150_000_000);
    assert_eq!(timeline.trail().points().last().map(|&(vtime, _)| vtime), Some(100_000_000));
    let events = timeline.take_events();
    let told = |wanted: fn(&What) -> bool| events.iter().filter(|event| wanted(&event.what)).count();
    assert_eq!(told(|what| matches!(what, What::Fault { .. })), 6, "{events:?}");
    assert_eq!(told(|what| matches!(what, What::Healed { .. })), 5, "{events:?}");
    assert_eq!(told(|what| matches!(what, What::Effect { .. })), 0, "{events:?}");
    (timeline.course.commands, timeline.composing) = commands;
    assert_eq!(next(&mut timeline), before);
}

/// Returns the values that Everett draws for a new connection.
fn talks(mut timeline: Timeline) -> [u64; 2] {
    let check = HostCheck {
        name: "talk".to_owned(),
        node: 0,
        to: SocketAddr::from(([10, 0, 0, 1], 80)),
        host: EndpointConfig {
            port: 2,
            node: host_port(),
            ipv4: Some((Ipv4Addr::new(10, 0, 255, 254), 16)),
            ipv6: None,
        },
        send: Vec::new(),
        expect: Vec::new(),
        timeout_ns: 1_000_000_000,
    };
    timeline.start_talk(&check);
    let draws = timeline.save_talk().expect("Everett has a connection").draws;
    [draws.stack, draws.port]
}

#[test]
fn the_host_draws_different_values_in_each_child() {
    let drawn = [talks(timeline(1)), talks(forked(1, 1)), talks(forked(1, 2)), talks(timeline(2))];
    for values in [drawn.map(|[stack, _]| stack), drawn.map(|[_, port]| port)] {
        assert_eq!(BTreeSet::from(values).len(), 4, "{values:?}");
    }
    assert_eq!(talks(forked(1, 2)), drawn[2]);
}
