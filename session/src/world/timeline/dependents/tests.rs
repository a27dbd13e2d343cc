//! Tests of nodes that depend on each other, with guests that halt forever.

use std::sync::Arc;

use everett_explorer::plan::{self as fault_plan, Names, NodeNames};
use everett_streams::{BootSeed, Seed};
use everett_vmm::MachineConfig;
use everett_vmm::boot::small_kernel;
use everett_vmm::machine::{CardConfig, Until};
use everett_vmm::virtio::net::Wire;
use everett_vmm::wire::WireConfig;
use everett_vmm::world::World;
use everett_world_file::After;

use super::super::faults::{FaultProgress, Faults};
use super::super::state::SessionState;
use super::super::streams::tests::NoRestarts;
use super::*;
use crate::guest::agent_script::AgentScript;
use crate::guest::containers::Stop;
use crate::machines::EngineOptions;
use crate::world::conversation::state::tests::driven;
use crate::world::conversation::tests::script;
use crate::world::event::What;

const MS: u64 = 1_000_000;
/// Names of the nodes, by index.
const NODES: [&str; 3] = ["a", "b", "c"];
const A: usize = 0;
const B: usize = 1;

/// Returns a timeline at vtime 0 whose workload runs. `after` has the dependencies of each node. Services have 10 ms to
/// stop.
fn timeline(after: [Vec<After>; 3]) -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let kernel = folder.path().join("kernel");
    std::fs::write(&kernel, small_kernel(&[0xfb, 0xf4, 0xeb, 0xfc], 0)).unwrap();
    let machine = |name: &str| {
        let mut config = MachineConfig { name: name.to_owned(), ..MachineConfig::new(&kernel) };
        let mac = [2, 0, 0, 0, 0, name.as_bytes()[0]];
        config.cards.push(CardConfig { mac, wire: Wire::Attached });
        EngineOptions::default().machine(config).unwrap()
    };
    let world = World::new(NODES.map(machine).into(), WireConfig::default(), BootSeed::new(0)).unwrap();
    let stop = Stop { grace_ns: 10 * MS, ..script().stop };
    let scripts = NODES.into_iter().zip(after);
    let scripts = scripts.map(|(node, after)| AgentScript { node: node.to_owned(), after, stop, ..script() });
    let mut timeline = Timeline::new(world, scripts.collect(), Vec::new());
    timeline.end_after(1_000 * MS);
    for session in &mut timeline.nodes {
        session.conversation.restore(driven()).unwrap();
    }
    timeline.course.begun = Some(Seed::new(3));
    timeline.course.stage = Stage::Running { root: 0 };
    timeline
}

fn after(node: &str, ready: bool, restart: bool) -> After {
    After { node: node.to_owned(), ready, restart }
}

fn restarted(at_ms: u64, ready: bool) -> [Restarted; 1] {
    [Restarted { vtime_ns: at_ms * MS, ready }]
}

/// Runs to the vtime `to_ms`. Returns the effects of faults: vtime, node and text.
fn effects(timeline: &mut Timeline, to_ms: u64) -> Vec<(u64, String, String)> {
    timeline.run(&Until::vtime(to_ms * MS));
    let effect = |event: crate::world::event::Event| match event.what {
        What::Effect { text } => Some((event.vtime_ns, event.node, text)),
        _ => None,
    };
    timeline.take_events().into_iter().filter_map(effect).collect()
}

fn asked(at_ns: u64, node: &str) -> (u64, String, String) {
    (at_ns, node.to_owned(), "server is asked to end by signal 15".to_owned())
}

fn killed(at_ns: u64, node: &str) -> (u64, String, String) {
    (at_ns, node.to_owned(), "server has not ended within 10 ms and is killed".to_owned())
}

#[test]
fn a_dependent_follows_when_its_condition_holds() {
    let mut timeline = timeline([vec![], vec![after("a", true, true)], vec![after("a", false, true)]]);
    let distance_ns = timeline.distance_ns();
    timeline.note_restarts(A, &restarted(1, false));
    timeline.note_restarts(A, &restarted(2, true));
    let expected = [asked(MS + distance_ns, "c"), asked(2 * MS + distance_ns, "b")];
    assert_eq!(effects(&mut timeline, 5), expected);
    assert_eq!(timeline.next_restart_ns(), None);
}

#[test]
fn a_node_that_does_not_say_so_does_not_follow() {
    let mut timeline = timeline([vec![], vec![after("a", false, false)], vec![after("b", false, true)]]);
    timeline.note_restarts(A, &restarted(1, false));
    assert_eq!(timeline.next_restart_ns(), None);
}

#[test]
fn a_node_that_depends_on_two_is_restarted_once() {
    let mut timeline = timeline([vec![], vec![], vec![after("a", false, true), after("b", false, true)]]);
    let distance_ns = timeline.distance_ns();
    timeline.note_restarts(A, &restarted(1, false));
    timeline.note_restarts(B, &restarted(1, false));
    assert_eq!(effects(&mut timeline, 5), [asked(MS + distance_ns, "c")]);
}

#[test]
fn a_node_without_power_is_left_out() {
    let mut timeline = timeline([vec![], vec![after("a", false, true)], vec![]]);
    timeline.note_restarts(A, &restarted(1, false));
    timeline.world.power_off(B);
    assert_eq!(effects(&mut timeline, 5), []);
    assert_eq!(timeline.next_restart_ns(), None);
}

#[test]
fn nothing_follows_after_the_end_of_the_workload() {
    let mut timeline = timeline([vec![], vec![after("a", false, true)], vec![]]);
    timeline.end_after(2 * MS);
    timeline.note_restarts(A, &restarted(3, false));
    assert_eq!(effects(&mut timeline, 5), []);
    assert_eq!(timeline.next_restart_ns(), None);
    timeline.note_restarts(A, &restarted(5, false));
    assert_eq!(timeline.next_restart_ns(), None);
}

#[test]
fn a_timeline_that_is_stored_restarts_the_same() {
    let begun = || timeline([vec![], vec![after("a", false, true)], vec![after("a", true, true)]]);
    let mut straight = begun();
    straight.note_restarts(A, &restarted(1, false));
    straight.note_restarts(A, &restarted(2, true));
    let stored = SessionState::from_bytes(&straight.save().to_bytes().unwrap()).unwrap();
    let mut resumed = begun();
    resumed.restore(stored).unwrap();
    let expected = effects(&mut straight, 20);
    assert_eq!(expected.len(), 4, "{expected:?}");
    assert_eq!(effects(&mut resumed, 20), expected);
}

/// Services of a paused machine cannot stop, so their time limit for stopping does not run during the pause.
#[test]
fn a_paused_node_is_restarted_when_it_continues() {
    let mut timeline = timeline([vec![], vec![after("a", false, true)], vec![]]);
    let distance_ns = timeline.distance_ns();
    let names = Names::from_iter(NODES.map(|name| (name.to_owned(), NodeNames::default())));
    let pauses = r#"
        {"at":"1ms","for":"20ms","fault":"pause","node":"b"}
        {"at":"1ms","for":"20ms","fault":"pause","node":"c"}
    "#;
    let faults = Faults::new(fault_plan::Plan::parse(pauses, &names).unwrap(), Arc::new(NoRestarts));
    timeline.course.faults = Some(FaultProgress::new(&timeline.lineage(), faults.digest()));
    timeline.faults = Some(faults);
    timeline.nodes[2].conversation.restart_service("server", MS / 2);
    timeline.note_restarts(A, &restarted(2, false));
    let asked = [asked(MS / 2, "c"), asked(2 * MS + distance_ns, "b")];
    assert_eq!(effects(&mut timeline, 21), asked);
    assert_eq!(effects(&mut timeline, 40), [killed(30 * MS + MS / 2, "c"), killed(31 * MS, "b")]);
}
