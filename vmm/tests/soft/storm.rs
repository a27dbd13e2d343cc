//! A guest sends as many frames as it can. Its neighbours still make progress, queues stay bounded, and the world stays
//! exact.

use std::collections::BTreeMap;

use everett_vmm::virtio::net::FRAMES_PER_MS_MAX;
use everett_vmm::wire::FRAMES_MAX;
use everett_vmm::wire::log::{DropReason, FrameStepKind};
use everett_vmm::world::{Captured, World};

use crate::card::{BROADCAST, HEADER, SIZE, Script, TRANSMIT, buffer, mac, node};
use crate::plan::{MS, US, run, working, world};
use crate::worker::{GOT, SENT, TICKS, player};

const END: u64 = MS + 500 * US;
/// Bytes of an ARP frame, without padding.
const ARP_BYTES: u32 = 42;

/// Returns the ARP request of 10.0.0.1 for the address 10.0.0.9.
fn arp() -> Vec<u8> {
    let request = [0, 1, 8, 0, 6, 4, 0, 1];
    [&BROADCAST[..], &mac(0), &[8, 6], &request, &mac(0), &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 9]].concat()
}

/// Returns a script (the stores that a guest executes) that fills the transmit ring of the guest's network card with
/// copies of one frame.
fn armed() -> Script {
    let mut script = Script::up();
    script.lay(buffer(TRANSMIT, 0), &[&[0; HEADER as usize][..], &arp()].concat());
    for i in 0..SIZE {
        script.sends(i, HEADER + ARP_BYTES);
    }
    script.spin(50_000);
    script
}

/// Adds `rings` notifications that each send the whole transmit ring, with `pause` iterations of an empty loop after
/// each. After 256 notifications, the available index (16 bits) wraps around.
fn rings_of(script: &mut Script, rings: u16, pause: u32) {
    for ring in 1..=rings {
        script.available(TRANSMIT, ring.wrapping_mul(SIZE));
        script.notify(TRANSMIT);
        script.spin(pause);
    }
}

/// Returns a world with an endless storm: far more frames than the links carry, and fewer than a card may send
/// (`FRAMES_PER_MS_MAX`).
fn storm() -> World {
    let mut script = armed();
    let from = script.here();
    rings_of(&mut script, 256, 7_500);
    script.again(from);
    stormy(&script)
}

/// Returns a world in which a node with this script sends a storm, and two other nodes send to each other.
fn stormy(script: &Script) -> World {
    world(vec![node(0, &player(), script), working(1, true, mac(2)), working(2, false, mac(1))])
}

#[test]
fn an_arp_storm_is_dropped_where_the_queues_end() {
    let mut world = storm();
    world.capture(true);
    let mut dropped = BTreeMap::new();
    let (mut sent, mut stormed, mut talked) = (0, 0, 0);
    for at in (1..).map(|i| i * 100 * US).take_while(|&at| at <= END) {
        run(&mut world, at);
        assert!(world.wire().frames_on_way() < FRAMES_MAX);
        assert_eq!(world.node_mut(0).machine_mut().output().lost(), (0, 0));
        for step in world.wire().take_steps() {
            if let FrameStepKind::Drop { why } = step.kind {
                *dropped.entry((step.from, why)).or_insert(0) += 1;
            }
        }
        assert_eq!(world.wire().steps_lost(), 0);
        for captured in world.take_captured() {
            match captured {
                Captured::Sent { port: 0, .. } => sent += 1,
                Captured::Delivered(delivery) if delivery.bytes[6..12] == mac(0) => stormed += 1,
                Captured::Delivered(_) if at > MS => talked += 1,
                _ => {}
            }
        }
    }
    assert!(sent > 15_000, "{sent}");
    assert!(stormed > 5_000, "{stormed}");
    assert_eq!(
        dropped.keys().collect::<Vec<_>>(),
        [&(0, DropReason::QueueFull)],
        "no other node loses a frame"
    );
    assert!(dropped[&(0, DropReason::QueueFull)] > 5_000, "{dropped:?}");
    assert!(talked > 50, "{talked}");
    for node in [1, 2] {
        let gpr = world.nodes()[node].machine().cpu().gpr;
        assert!(gpr[SENT] > 50 && gpr[GOT] > 2_000 && gpr[TICKS] > 80, "{gpr:?}");
    }
}

#[test]
fn a_storm_repeats_whatever_the_cuts() {
    let mut whole = storm();
    run(&mut whole, END);
    let expected = whole.breakdown();
    let mut cut = storm();
    for at in (1..).map(|i| i * 7_919).take_while(|&at| at < END) {
        run(&mut cut, at);
        if at % 5 == 0 {
            cut.digest();
        }
    }
    run(&mut cut, END);
    assert_eq!(cut.breakdown(), expected);
}

/// The guest offers more frames than a card may send in a millisecond. The same frames are lost whether the world runs
/// in one call of `run` or in many.
#[test]
fn a_flood_is_the_same_whatever_the_cuts() {
    const RINGS: u16 = 300;
    const { assert!(RINGS as usize * SIZE as usize > FRAMES_PER_MS_MAX as usize) };
    let mut script = armed();
    rings_of(&mut script, RINGS, 1);
    let mut whole = stormy(&script);
    whole.capture(true);
    run(&mut whole, MS);
    let sent = |captured: &Captured| matches!(captured, Captured::Sent { port: 0, .. });
    let sent = whole.take_captured().iter().filter(|captured| sent(captured)).count();
    assert_eq!(sent, FRAMES_PER_MS_MAX as usize);
    let expected = whole.breakdown();
    let mut cut = stormy(&script);
    for at in (1..).map(|i| i * 997).take_while(|&at| at < MS) {
        run(&mut cut, at);
    }
    run(&mut cut, MS);
    assert_eq!(cut.breakdown(), expected);
}
