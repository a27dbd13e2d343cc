//! Hostile writes to a network card's registers: invalid queues, notifications of queues that do not exist, and random
//! values.

use everett_vmm::layout::PAGE_TABLES;
use proptest::prelude::*;
use virtio_bindings::virtio_mmio as reg;

use crate::card::{HEADER, NEXT, RECEIVE, SIZE, Script, TRANSMIT, WRITE, encoded, mac, rings};
use crate::guest::{DATA, ENTRY};
use crate::hostile::{RAM, beside, only_hurt_themselves, silent};

/// Returns a script that sets up a queue with these values, puts a frame into it and notifies the card.
fn with_queue(queue: u32, size: u32, at: [u64; 3]) -> Script {
    let mut script = Script::default();
    script.negotiate();
    script.queue(queue, size, at);
    script.set(reg::VIRTIO_MMIO_STATUS, 4);
    script.descriptor(queue, 0, (DATA, HEADER + 13, if queue == RECEIVE { WRITE } else { 0 }, 0));
    script.available(queue, 1);
    script.notify(queue);
    script
}

#[test]
fn queues_outside_ram_break_the_card() {
    let at = rings(TRANSMIT);
    let places = [RAM, RAM - 16, 0xd000_0000, 1 << 32, u64::MAX - 15];
    let scripts = places.into_iter().flat_map(|place| {
        [0, 1, 2].map(|ring| {
            let mut at = at;
            at[ring] = place;
            (format!("ring {ring} at {place:#x}"), with_queue(TRANSMIT, u32::from(SIZE), at))
        })
    });
    only_hurt_themselves(true, scripts);
}

#[test]
fn invalid_queue_sizes_are_ignored() {
    let sizes = [0, 3, 255, 257, 512, 0x8000, 0x1_0000, u32::MAX];
    let scripts = [RECEIVE, TRANSMIT].into_iter().flat_map(|queue| {
        sizes.map(|size| (format!("queue {queue} of {size}"), with_queue(queue, size, rings(queue))))
    });
    only_hurt_themselves(false, scripts);
}

#[test]
fn notifications_without_a_ready_queue_are_ignored() {
    let mut never_up = Script::default();
    let mut no_such_queue = Script::up();
    let mut not_ready = Script::up();
    for queue in [0, 1, 2, 3, 255, 0xffff, 0x1_0000, 0x1_0001, u32::MAX] {
        never_up.notify(queue);
        if queue > TRANSMIT {
            no_such_queue.set(reg::VIRTIO_MMIO_QUEUE_SEL, queue);
            no_such_queue.set(reg::VIRTIO_MMIO_QUEUE_NUM, 8);
            no_such_queue.set(reg::VIRTIO_MMIO_QUEUE_READY, 1);
            no_such_queue.notify(queue);
        }
    }
    for queue in [RECEIVE, TRANSMIT] {
        not_ready.set(reg::VIRTIO_MMIO_QUEUE_SEL, queue);
        not_ready.set(reg::VIRTIO_MMIO_QUEUE_READY, 0);
        not_ready.available(queue, 5_000);
        not_ready.notify(queue);
    }
    let scripts = [("never up", never_up), ("no such queue", no_such_queue), ("not ready", not_ready)];
    only_hurt_themselves(false, scripts.map(|(what, script)| (what.to_owned(), script)));
}

/// The device writes to the addresses that the driver chose, but reaches only the memory of its own guest. These writes
/// may overwrite the guest's own code or page tables. Other nodes are not affected.
#[test]
fn rings_that_overlap_each_other_and_the_guest_hurt_only_the_guest() {
    let [table, available, used] = rings(TRANSMIT);
    let silent = silent();
    let overlaps = [
        [table, available, available],
        [table, available, available - 4],
        [table, available, table],
        [table, table, table],
        [available, available, used],
        [table, available, ENTRY],
        [table, available, PAGE_TABLES],
        [PAGE_TABLES, ENTRY, PAGE_TABLES],
    ];
    for at in overlaps {
        // All offered frames are too short. The first is at descriptor 0. The ring overlaps other data, so its later
        // entries name arbitrary descriptors.
        let mut script = with_queue(TRANSMIT, u32::from(SIZE), at);
        for index in [2, 40, 255, 300, 511] {
            script.store(at[1], index << 16);
            script.notify(TRANSMIT);
        }
        let outcome = beside(&script);
        assert_eq!(outcome.sent, 0, "{at:x?}");
        assert_eq!((outcome.neighbours, outcome.heard), (silent.neighbours, silent.heard.clone()), "{at:x?}");
    }
}

/// An address, in most cases a valid one.
fn place() -> impl Strategy<Value = u64> {
    prop_oneof![50 => DATA..DATA + 0x1000, 2 => 0..RAM, 1 => RAM - 2_000..RAM + 2_000, 1 => any::<u64>()]
}

/// A descriptor of a queue; most are valid.
fn descriptor(queue: u32) -> impl Strategy<Value = (u64, u32, u16, u16)> {
    let length = prop_oneof![50 => 0u32..2_000, 1 => any::<u32>()];
    let right = if queue == RECEIVE { WRITE } else { 0 };
    let flags = prop_oneof![30 => Just(right), 6 => Just(right | NEXT), 1 => 0u16..8];
    (place(), length, flags, prop_oneof![30 => 0u16..16, 1 => any::<u16>()])
}

/// Content of a queue's table and of its available ring.
type Filled = (Vec<(u64, u32, u16, u16)>, Vec<u16>);

fn filled(queue: u32) -> impl Strategy<Value = Filled> {
    let heads = prop_oneof![100 => 0u16..16, 1 => any::<u16>()];
    (proptest::collection::vec(descriptor(queue), 16), proptest::collection::vec(heads, 64))
}

/// A value for a register: a small number, an address, or any number.
fn value() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..16, 1 => Just(rings(TRANSMIT)[1] as u32), 1 => any::<u32>()]
}

/// Action of a guest on its card.
#[derive(Debug, Clone)]
enum Move {
    Set(u32, u32),
    /// Makes this many further entries of a queue available, and notifies the card.
    Offer(u32, u16),
    Jump(u32, u16),
    Notify(u32),
    Up,
    Wait(u32),
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        1 => (0u32..0x42, value()).prop_map(|(register, value)| Move::Set(4 * register, value)),
        8 => (0u32..2, 0u16..8).prop_map(|(queue, more)| Move::Offer(queue, more)),
        1 => (0u32..2, any::<u16>()).prop_map(|(queue, index)| Move::Jump(queue, index)),
        1 => any::<u32>().prop_map(Move::Notify),
        1 => Just(Move::Up),
        2 => (0u32..20_000).prop_map(Move::Wait),
    ]
}

fn scripted(moves: &[Move]) -> Script {
    let mut script = Script::up();
    let mut index = [0; 2];
    for a_move in moves {
        match *a_move {
            Move::Set(register, value) => script.set(register, value),
            Move::Offer(queue, more) => {
                index[queue as usize] += more;
                script.available(queue, index[queue as usize]);
                script.notify(queue);
            }
            Move::Jump(queue, index) => script.available(queue, index),
            Move::Notify(queue) => script.notify(queue),
            Move::Up => {
                index = [0; 2];
                script.bring_up();
            }
            Move::Wait(times) => script.spin(times),
        }
    }
    script
}

/// Returns a script whose queues have these contents. The tables are also copied to [`DATA`], where an indirect
/// descriptor then finds a table.
fn noise(queues: &[Filled; 2], moves: &[Move]) -> Script {
    let mut script = scripted(moves);
    for (queue, (descriptors, heads)) in queues.iter().enumerate() {
        for (i, &descriptor) in descriptors.iter().enumerate() {
            script.descriptor(queue as u32, i as u16, descriptor);
            script.lay(DATA + 0x100 * queue as u64 + 16 * i as u64, &encoded(descriptor));
        }
        for (i, &head) in heads.iter().enumerate() {
            script.ring(queue as u32, i as u16, head);
        }
    }
    script
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Rings, tables and the order of register writes are random. If the hostile guest sends no frame, the other nodes
    /// must end in the same state as beside a silent guest. Otherwise the last node must still receive node 1's
    /// frames, and a second run must end in the same state.
    #[test]
    fn noise_hurts_only_its_guest(
        queues in (filled(RECEIVE), filled(TRANSMIT)),
        moves in proptest::collection::vec(a_move(), 1..30),
    ) {
        let script = noise(&queues.into(), &moves);
        let outcome = beside(&script);
        let silent = SILENT.with(|silent| silent.clone());
        if outcome.sent == 0 {
            prop_assert_eq!(outcome.neighbours, silent.neighbours);
            prop_assert_eq!(outcome.heard, silent.heard);
        } else {
            let others = outcome.heard.iter().filter(|frame| frame.bytes[6..12] == mac(1)).count();
            // The hostile guest may forward frames that it received from node 1, so more frames than those of node 1
            // may arrive.
            prop_assert!(others >= silent.heard.len());
            prop_assert_eq!(beside(&script).neighbours, outcome.neighbours);
        }
    }
}

thread_local! {
    /// Outcome beside a silent guest, computed once because it is the same for every case.
    static SILENT: crate::hostile::Outcome = silent();
}
