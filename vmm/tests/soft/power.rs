//! Nodes that are paused, off or idle execute nothing, count nothing, and change nothing for other nodes.

use everett_snapshot::Pool;
use everett_vmm::Digest;
use everett_vmm::machine::{End, Moment};
use everett_vmm::world::{Captured, World};

use crate::card::{Script, TRANSMIT, frame, mac, node};
use crate::exact::busy;
use crate::guest::assemble;
use crate::plan::{MS, US, run, trio, working, world};
use crate::worker::{GOT, LONGEST, SENT, TICKS, player};

fn register(world: &World, node: usize, register: usize) -> u64 {
    world.nodes()[node].machine().cpu().gpr[register]
}

#[test]
fn a_paused_node_executes_nothing_and_misses_the_time_of_the_pause_at_once() {
    let mut world = world(trio());
    run(&mut world, MS);
    for node in [0, 1] {
        let retired = world.nodes()[node].retired();
        let paused_at = world.vtime();
        world.pause(node);
        for step in 1..=7 {
            run(&mut world, paused_at + step * 300_007);
            assert!(world.nodes()[node].is_paused());
            assert_eq!(world.nodes()[node].retired(), retired);
        }
        let missed = world.vtime() - world.nodes()[node].vtime();
        assert_eq!(missed, 7 * 300_007);
        world.resume(node);
        assert_eq!(world.nodes()[node].vtime(), world.vtime());
        assert_eq!(world.nodes()[node].retired(), retired);
        assert!(register(&world, node, LONGEST) < missed, "no round of the guest takes as long as the pause");
        let resumed_at = world.vtime();
        run(&mut world, resumed_at + 100 * US);
        assert!(register(&world, node, LONGEST) >= missed, "the guest's clock shows the pause");
        assert!(world.nodes()[node].retired() > retired);
    }
}

#[test]
fn a_drift_that_begins_during_a_pause_applies_from_then_on() {
    let mut world = world(trio());
    run(&mut world, MS);
    world.pause(0);
    run(&mut world, 3 * MS);
    world.drift(0, -500_000);
    run(&mut world, 5 * MS);
    world.resume(0);
    let shown = world.nodes()[0].machine().vtime();
    assert!(
        (4 * MS..4 * MS + 10).contains(&shown),
        "the clock shows {shown} ns after 3 ms at full speed and 2 ms at half speed"
    );
}

/// When a paused node continues, its guest receives each frame that was sent to the node during the pause, once.
#[test]
fn a_paused_node_receives_all_frames_that_were_sent() {
    let mut world = world(vec![working(0, true, mac(1)), working(1, false, mac(0))]);
    run(&mut world, 8 * MS);
    for (paused, other) in [(0, 1), (1, 0)] {
        world.pause(paused);
        let at = world.vtime();
        run(&mut world, at + MS);
        assert_eq!(register(&world, other, GOT), register(&world, paused, SENT));
        assert!(register(&world, paused, GOT) < register(&world, other, SENT));
        world.resume(paused);
    }
    assert!(register(&world, 0, SENT) > 256, "the rings wrapped around");
    assert!(register(&world, 0, TICKS) > 400);
}

/// Instruction counts of a node's boots, from which the test computes how many instructions the node has executed.
#[derive(Default, Clone, Copy)]
struct Lives {
    /// Number of instructions in boots that have ended.
    over: u64,
    /// Instruction count at which the current boot began.
    born_at: u64,
}

#[test]
fn executed_instructions_are_counted_once() {
    let pool = Pool::default();
    let mut world = world(trio());
    let moments = |world: &mut World| -> Vec<Moment> {
        (0..3).map(|node| world.node_mut(node).machine_mut().moment(&pool)).collect()
    };
    let cold = moments(&mut world);
    run(&mut world, 123_457);
    let warm = moments(&mut world);
    let mut lives = [Lives::default(); 3];
    let mut last = (0, [0; 3]);
    for step in 0..40 {
        let (at, node) = (world.vtime() + 70_001, step % 3);
        run(&mut world, at);
        let icount = world.nodes()[node].machine().icount();
        match step % 7 {
            0 | 4 if world.nodes()[node].is_on() => {
                lives[node].over += icount - lives[node].born_at;
                lives[node].born_at = icount;
                world.power_off(node);
            }
            // The node is already off, so the power-off has no effect.
            0 | 4 => world.power_off(node),
            2 | 5 if !world.nodes()[node].is_on() => {
                let moment = if step % 2 == 0 { &cold[node] } else { &warm[node] };
                lives[node].born_at = moment.icount();
                world.node_mut(node).machine_mut().restore(moment).unwrap();
                world.power_on(node);
            }
            _ => {}
        }
        let retired = [0, 1, 2].map(|node| world.nodes()[node].retired());
        for (node, life) in lives.iter().enumerate() {
            let now = world.nodes()[node].machine().icount();
            assert_eq!(retired[node], life.over + now - life.born_at, "step {step}, node {node}");
            assert!(retired[node] >= last.1[node]);
        }
        assert_eq!(world.icount(), retired.iter().sum::<u64>());
        assert!(world.icount() >= last.0);
        last = (world.icount(), retired);
    }
    assert!(lives.iter().all(|life| life.over > 100_000), "each node was off at least once");
}

/// Runs three nodes. The second node executes the code `second` and has the memory content and stores of `script`.
/// Before the run, `change` changes the world, e.g. pauses a node. Returns the digests of the first and the third node
/// at several vtimes.
fn beside(second: &[u8], script: &Script, change: impl FnOnce(&mut World)) -> Vec<[Digest; 2]> {
    let mut world = world(vec![working(0, true, mac(2)), node(1, second, script), working(2, true, mac(0))]);
    change(&mut world);
    let mut digests = Vec::new();
    for at in (1..28).map(|i| i * 110_017) {
        run(&mut world, at);
        digests.push([0, 2].map(|node| world.node_mut(node).machine_mut().digest()));
    }
    assert!(register(&world, 2, GOT) > 10);
    digests
}

#[test]
fn an_idle_node_is_as_if_it_were_off() {
    let silent = beside(&player(), &Script::default(), |_| {});
    assert_eq!(silent, beside(&player(), &Script::default(), |world| world.power_off(1)), "node 1 is off");
    assert_eq!(silent, beside(&player(), &Script::default(), |world| world.pause(1)), "node 1 is paused");
    assert_eq!(silent, beside(&player(), &Script::up(), |_| {}), "node 1's card is up");
    let halts = assemble(|a| {
        a.cli()?;
        a.hlt()
    });
    let over = beside(&halts, &Script::default(), |world| {
        run(world, US);
        assert_eq!(world.nodes()[1].machine().end(), Some(&End::HaltedForever));
    });
    assert_eq!(silent, over, "node 1 has ended by itself");
    let mut sends = Script::driver(&frame(mac(2), mac(1), 60));
    sends.available(TRANSMIT, 1);
    sends.notify(TRANSMIT);
    assert_ne!(silent, beside(&player(), &sends, |_| {}), "one frame makes a difference");
}

/// Nodes run in rounds, i.e. one after the other up to a common vtime. A node that computes and sleeps without sending
/// changes where rounds end, but its neighbours cannot see that.
#[test]
fn a_busy_node_that_sends_nothing_changes_nothing() {
    let silent = beside(&player(), &Script::default(), |_| {});
    assert_eq!(silent, beside(&busy(), &Script::default(), |_| {}));
}

/// Sends a frame from the first of three nodes to the second. The run stops at the vtimes `stops`, and node `off` loses
/// power at `off_at`. Returns the captured events of the frame.
fn sends_one(stops: &[u64], off: usize, off_at: u64) -> Vec<Captured> {
    let mut sends = Script::driver(&frame(mac(1), mac(0), 60));
    sends.available(TRANSMIT, 1);
    sends.notify(TRANSMIT);
    let machines = vec![node(0, &player(), &sends), working(1, false, mac(0)), working(2, false, mac(0))];
    let mut world = world(machines);
    world.capture(true);
    for &at in stops.iter().chain([&off_at]) {
        run(&mut world, at);
    }
    world.power_off(off);
    run(&mut world, off_at + MS);
    let of_frame = |captured: &Captured| match captured {
        Captured::Sent { port, .. } => *port == 0,
        Captured::Delivered(delivery) => delivery.port == 1 && delivery.bytes[6..12] == mac(0),
    };
    world.take_captured().into_iter().filter(of_frame).collect()
}

/// Node `off` loses power after a frame from node 0 to node 1 has left the card of node 0. The frame arrives unchanged,
/// whether or not the run stopped directly after the frame was sent.
fn arrives_in_time(off: usize) {
    let frames = sends_one(&[], off, MS);
    let [Captured::Sent { at, .. }, Captured::Delivered(_)] = &frames[..] else { panic!("{frames:?}") };
    // The card needs 480 ns to send the frame.
    for off_at in [at + 481, at + 5 * US, at + 90 * US] {
        assert_eq!(
            sends_one(&[at + 1], off, off_at),
            frames,
            "powered off at {off_at}, and a round ends directly after the frame was sent"
        );
        assert_eq!(sends_one(&[], off, off_at), frames, "powered off at {off_at}");
    }
}

#[test]
fn a_frame_that_left_its_card_before_the_node_lost_power_arrives() {
    arrives_in_time(0);
}

#[test]
fn a_power_loss_elsewhere_delays_nothing() {
    arrives_in_time(2);
}
