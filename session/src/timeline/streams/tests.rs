//! All streams restart at a fork, and nothing else moves them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use everett_explorer::search::Fork;
use everett_streams::Purpose;
use everett_vmm::MachineConfig;
use everett_vmm::boot::small_kernel;
use everett_vmm::machine::CardConfig;
use everett_vmm::virtio::net::Wire;
use everett_vmm::wire::WireConfig;
use everett_vmm::wire::endpoint::EndpointConfig;
use everett_vmm::world::World;

use super::super::commands::tests::commands;
use super::super::faults::Progress;
use super::*;
use crate::agent_script::{HostCheck, Plan, host_port};
use crate::conversation::tests::plan;
use crate::machines::EngineOptions;

/// Two guests that halt for ever, with faults, test commands, and a port for the host.
fn timeline(seed: u64) -> Timeline {
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
    let world = World::new(vec![machine("a", 1), machine("faults", 2)], wire, 0).unwrap();
    let plans = ["a", "faults"].map(|node| Plan { node: node.to_owned(), ..plan() });
    let mut timeline = Timeline::new(world, plans.into(), Vec::new());
    timeline.begin_here(seed).unwrap();
    let lineage = timeline.lineage();
    timeline.course.faults = Some(Progress::new(&lineage, [0; 32]));
    let commands = commands();
    timeline.composing = Some(commands.check(2).unwrap());
    timeline.course.commands = Some(commands);
    timeline.restart_streams(&lineage);
    timeline
}

/// The next value of every purpose of every owner in the timeline.
fn next(timeline: &mut Timeline) -> BTreeMap<String, u64> {
    let mut values = BTreeMap::new();
    for owner in OwnerKind::ALL {
        let course = &timeline.course;
        let streams: Vec<Streams> = match owner {
            OwnerKind::Node => {
                timeline.world.nodes().iter().map(|node| node.machine().streams().clone()).collect()
            }
            OwnerKind::Wire => vec![timeline.world.wire().streams().clone()],
            OwnerKind::Host => vec![course.host.clone()],
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
    assert_eq!(all.len(), 5 * values[0].len(), "no two purposes share a value either");
    assert_eq!(next(&mut forked(1, 2)), values[3], "a child is the same each time");
}

#[test]
fn going_on_moves_no_stream() {
    let mut timeline = timeline(1);
    let before = next(&mut timeline);
    // The machines halt, and nothing is drawn.
    timeline.world.run(&everett_vmm::world::WorldUntil {
        vtime: 1_000_000,
        port_lines: 0,
        node: 0,
        icount: u64::MAX,
        breakpoints: &[],
    });
    assert_eq!(next(&mut timeline), before);
}

/// What the host draws for a connection that it makes now.
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
    let draws = timeline.save_talk().expect("the host talks").draws;
    [draws.stack, draws.port]
}

#[test]
fn the_host_draws_otherwise_in_each_child_of_a_fork() {
    let drawn = [talks(timeline(1)), talks(forked(1, 1)), talks(forked(1, 2)), talks(timeline(2))];
    for values in [drawn.map(|[stack, _]| stack), drawn.map(|[_, port]| port)] {
        assert_eq!(BTreeSet::from(values).len(), 4, "{values:?}");
    }
    assert_eq!(talks(forked(1, 2)), drawn[2]);
}
