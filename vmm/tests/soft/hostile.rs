//! A guest with a hostile driver of its network card harms only itself: the digests of the other nodes are the same as
//! in a world in which this guest does not use its card.

use everett_vmm::Digest;
use everett_vmm::output::NoteEvent;
use everett_vmm::wire::Delivery;
use everett_vmm::world::Captured;

use crate::card::{
    BROADCAST, HEADER, INDIRECT, NEXT, RECEIVE, SIZE, Script, TRANSMIT, WRITE, encoded, frame, mac, node,
    rings,
};
use crate::guest::DATA;
use crate::plan::{MS, run, working, world};
use crate::worker::player;

/// End of RAM.
pub(crate) const RAM: u64 = 32 << 20;
const HOSTILE: usize = 0;
const END: u64 = MS;

/// Result of a world with a hostile node.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Digests of the other nodes' machines.
    pub(crate) neighbours: [Digest; 2],
    /// Frames that arrived at the last node. If the hostile node sent no frame, all of them came from the middle node.
    pub(crate) heard: Vec<Delivery>,
    /// Number of frames that the hostile node sent.
    pub(crate) sent: usize,
    /// True if the hostile node's card stopped because of invalid input, so that it needs a reset.
    pub(crate) broken: bool,
}

/// Runs three nodes: the first is hostile, the second broadcasts, and the third sends to the second.
pub(crate) fn beside(script: &Script) -> Outcome {
    let machines = vec![node(0, &player(), script), working(1, false, BROADCAST), working(2, false, mac(1))];
    let mut world = world(machines);
    world.capture(true);
    run(&mut world, END);
    let neighbours = [1, 2].map(|node| world.node_mut(node).machine_mut().digest());
    let notes = world.node_mut(HOSTILE).machine_mut().output().take_notes();
    let broken = notes.iter().any(|note| matches!(note.event, NoteEvent::Device { .. }));
    let (mut heard, mut sent) = (Vec::new(), 0);
    for captured in world.take_captured() {
        match captured {
            Captured::Sent { port, .. } => sent += usize::from(usize::from(port) == HOSTILE),
            Captured::Delivered(delivery) if delivery.port == 2 => heard.push(delivery),
            Captured::Delivered(_) => {}
        }
    }
    Outcome { neighbours, heard, sent, broken }
}

pub(crate) fn silent() -> Outcome {
    let outcome = beside(&Script::default());
    assert!(outcome.heard.len() > 30 && !outcome.broken && outcome.sent == 0);
    outcome
}

/// Checks that each script sends nothing and harms no other node. If `breaks` is true, the hostile node's card must
/// need a reset afterwards.
pub(crate) fn only_hurt_themselves(breaks: bool, scripts: impl IntoIterator<Item = (String, Script)>) {
    let silent = silent();
    for (what, script) in scripts {
        let outcome = beside(&script);
        assert_eq!(outcome.sent, 0, "{what}");
        assert_eq!(outcome.neighbours, silent.neighbours, "{what}");
        assert_eq!(outcome.heard, silent.heard, "{what}");
        assert_eq!(outcome.broken, breaks, "{what}");
    }
}

/// Returns the script of a driver that waits until the other nodes have exchanged frames, and then offers these chains
/// of descriptors with one notification.
fn offered(queue: u32, descriptors: &[(u64, u32, u16, u16)], heads: &[u16]) -> Script {
    let mut script = Script::up();
    script.spin(100_000);
    for (i, &descriptor) in descriptors.iter().enumerate() {
        script.descriptor(queue, i as u16, descriptor);
    }
    for (i, &head) in heads.iter().enumerate() {
        script.ring(queue, i as u16, head);
    }
    script.available(queue, heads.len() as u16);
    script.notify(queue);
    script
}

/// Returns a script that sends frames of these lengths, header included, in one descriptor each.
fn lengths(lengths: &[u32]) -> Script {
    let descriptors: Vec<_> = lengths.iter().map(|&bytes| (DATA, bytes, 0, 0)).collect();
    offered(TRANSMIT, &descriptors, &(0..lengths.len() as u16).collect::<Vec<_>>())
}

#[test]
fn one_valid_frame_is_heard() {
    let silent = silent();
    let mut script = lengths(&[HEADER + 14]);
    script.lay(DATA, &[&[0; HEADER as usize][..], &frame(BROADCAST, mac(0), 14)].concat());
    let outcome = beside(&script);
    assert_eq!((outcome.sent, outcome.broken), (1, false));
    assert!(outcome.neighbours.iter().zip(&silent.neighbours).all(|(beside, silent)| beside != silent));
    assert_eq!(outcome.heard.len(), silent.heard.len() + 1);
}

#[test]
fn runts_and_jumbo_frames_go_nowhere() {
    let runts: Vec<u32> = (0..HEADER + 14).collect();
    let jumbo: Vec<u32> = [1_519, 1_520, 9_000, 65_535, 65_536, 1 << 20].map(|bytes| HEADER + bytes).to_vec();
    let whole = (RAM - DATA) as u32;
    let scripts = [("runts", runts), ("jumbo", jumbo), ("all of RAM", vec![whole])];
    only_hurt_themselves(false, scripts.map(|(what, bytes)| (what.to_owned(), lengths(&bytes))));
    // A chain with one descriptor for each entry of the queue. The lengths of its buffers add up to about 4 GB.
    let link = |i: u16| (0, 16_000_000, if i + 1 < SIZE { NEXT } else { 0 }, i + 1);
    let chain: Vec<_> = (0..SIZE).map(link).collect();
    let parts: Vec<_> = (0..13u16).map(|i| (DATA, 1, if i < 12 { NEXT } else { 0 }, i + 1)).collect();
    let scripts = [("a chain of 4 GB", chain), ("a header and a byte, one byte in each descriptor", parts)];
    only_hurt_themselves(
        false,
        scripts.map(|(what, chain)| (what.to_owned(), offered(TRANSMIT, &chain, &[0]))),
    );
}

#[test]
fn bogus_descriptors_break_the_card() {
    let table = rings(TRANSMIT)[0];
    let scripts = [RECEIVE, TRANSMIT].into_iter().flat_map(|queue| {
        let flags = if queue == RECEIVE { WRITE } else { 0 };
        let one = |what: &str, descriptor| (what.to_owned(), vec![descriptor]);
        let chains = [
            one("beyond RAM", (RAM, 64, flags, 0)),
            one("over the end of RAM", (RAM - 63, 64, flags, 0)),
            one("around the end of addresses", (u64::MAX - 7, 64, flags, 0)),
            one("a device", (0xd000_0000, 64, flags, 0)),
            one("all of 4 GiB", (0x1000, u32::MAX, flags, 0)),
            one("a loop", (DATA, 64, flags | NEXT, 0)),
            one("next beyond the table", (DATA, 64, flags | NEXT, SIZE)),
            one("an indirect table without the feature", (DATA, 64, INDIRECT, 0)),
            one("an indirect table with a partial entry", (DATA, 17, INDIRECT, 0)),
            one("an empty indirect table", (DATA, 0, INDIRECT, 0)),
            one("an indirect table beyond RAM", (RAM, 16, INDIRECT, 0)),
            one("an indirect table in itself", (rings(queue)[0], 16, INDIRECT, 0)),
            one("an indirect table of 4 GiB", (table, u32::MAX - 15, INDIRECT, 0)),
            ("readable after writable".to_owned(), vec![(DATA, 64, WRITE | NEXT, 1), (DATA, 64, 0, 0)]),
            ("a loop of two".to_owned(), vec![(DATA, 64, flags | NEXT, 1), (DATA, 64, flags | NEXT, 0)]),
            ("more than 4 GiB".to_owned(), (0..SIZE).map(|i| (0, RAM as u32, flags | NEXT, i + 1)).collect()),
        ];
        chains.map(|(what, chain)| {
            (format!("queue {queue}: {what}"), indirect_loop(offered(queue, &chain, &[0])))
        })
    });
    only_hurt_themselves(true, scripts);
}

/// Adds an indirect table of descriptors at `DATA`. The descriptors form a loop, so that their chain never ends.
fn indirect_loop(mut script: Script) -> Script {
    for i in 0..4 {
        script.lay(DATA + 16 * i, &encoded((DATA, 16, NEXT | WRITE, (i as u16 + 1) % 4)));
    }
    script
}

#[test]
fn wrong_directions_go_nowhere() {
    let scripts = [
        ("a frame to send in a writable buffer", offered(TRANSMIT, &[(DATA, 64, WRITE, 0)], &[0])),
        ("a readable buffer to receive into", offered(RECEIVE, &[(DATA, 2_000, 0, 0)], &[0])),
        ("no room", offered(RECEIVE, &[(DATA, HEADER + 59, WRITE, 0)], &[0])),
        ("nothing at all", offered(RECEIVE, &[(0, 0, WRITE, 0)], &[0])),
        ("the end of RAM", offered(RECEIVE, &[(RAM, 0, WRITE | NEXT, 1), (RAM - 1, 1, WRITE, 0)], &[0])),
    ];
    only_hurt_themselves(false, scripts.map(|(what, script)| (what.to_owned(), script)));
}

#[test]
fn indices_that_jump_break_the_card() {
    let scripts = [RECEIVE, TRANSMIT].into_iter().flat_map(|queue| {
        let heads =
            [SIZE, SIZE + 1, u16::MAX].map(|head| (format!("head {head}"), offered(queue, &[], &[head])));
        let jumps = [SIZE + 1, 5_000, 0x8000, u16::MAX].map(|index| {
            let mut script = offered(queue, &[], &[]);
            script.available(queue, index);
            script.notify(queue);
            (format!("index {index}"), script)
        });
        heads.into_iter().chain(jumps).map(move |(what, script)| (format!("queue {queue}: {what}"), script))
    });
    only_hurt_themselves(true, scripts);
}
