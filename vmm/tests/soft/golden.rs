//! Golden trails: the digests of a world of three small guests, in each clock mode, are literals in this file.
//!
//! Every host that runs the tests must produce these digests. They fix the behaviour of the CPU, devices, disks, the
//! wire, faults, random streams and forks on all hosts. Every parameter that has a default elsewhere is explicit here.
//! If you change trails on purpose, choose a new machine version, and copy the values that the assertion prints into
//! [`GOLDEN`].

use everett_assembler::*;
use everett_fault::{DiskFault, Distribution, Links, NetworkFault, Requests};
use everett_snapshot::Pool;
use everett_streams::{BootSeed, Lineage, Owner, Purpose, Seed, Streams};
use everett_vmm::clock::ClockMode;
use everett_vmm::disk::{Disk, PowerLossOptions, SectorSize};
use everett_vmm::layout::{VIRTIO, VIRTIO_STRIDE};
use everett_vmm::machine::{CardConfig, DiskConfig, MachineConfig, Moment};
use everett_vmm::ram::Ram;
use everett_vmm::virtio::blk::Latency;
use everett_vmm::virtio::net::Wire;
use everett_vmm::wire::{LinkConfig, WireConfig};
use everett_vmm::world::{World, WorldStop, WorldUntil};
use everett_vmm::{Machine, Stop};
use virtio_bindings::virtio_mmio as reg;
use vm_memory::{Bytes, GuestAddress};

use crate::card::{frame, mac};
use crate::guest::{assemble, config_in, count_tick, plain_in, store, timer};
use crate::plan::{MS, US};

/// Trail hashes of three timelines: without a fork, and forked as child 1 and as child 2.
const GOLDEN: [(ClockMode, [&str; 3]); 3] = [
    (ClockMode::Insn, ["48da35ac61d14bad", "49823998868141cc", "cd7610290d4ad9a7"]),
    (ClockMode::Exit, ["65f56fafde52f20b", "3151c53a493b63cd", "df0996ab828d64d3"]),
    (ClockMode::Branch, ["3ff5634869252050", "4b440917250ef97c", "99ce6ff2e8f75879"]),
];

const NODES: u8 = 3;
const SEED: u64 = 42;
const SECTOR: SectorSize = SectorSize::Bytes512;
/// Vtimes of the fork and of the end, in nanoseconds.
const FORK: u64 = 5 * MS;
const END: u64 = 8 * MS;
/// Maximum distance between two digests, in nanoseconds of vtime.
const STEP: u64 = MS / 2;

/// Slots of the virtio devices.
const RNG: u64 = 1;
const DISK: u64 = 2;
const CARD: u64 = 3;
/// Number of prepared disk requests. The guest makes them in turn, again and again.
const REQUESTS: u16 = 40;
/// Guest-physical address of the script: the stores with which the guest initialises its devices, in order.
const SCRIPT: u64 = 0x140_0000;
const BUFFERS: u64 = 0x130_0000;
const FRAME: u64 = 0x138_0000;
const ENTROPY: u64 = 0x139_0000;
const REQUEST: u64 = 0x150_0000;
/// Descriptor flag: another descriptor follows.
const NEXT: u16 = 1;
/// Descriptor flag: the device writes the buffer.
const WRITE: u16 = 2;
/// Size of `struct virtio_net_hdr_v1`, in bytes.
const HEADER: u64 = 12;

/// Virtio queue: the slot of the device, the number of the queue in the device, the number of entries, and the address
/// of the descriptor table, which the rings follow.
struct Queue {
    slot: u64,
    number: u32,
    size: u16,
    base: u64,
}

const RECEIVE: Queue = Queue { slot: CARD, number: 0, size: 256, base: 0x120_0000 };
const TRANSMIT: Queue = Queue { slot: CARD, number: 1, size: 256, base: 0x121_0000 };
const STORAGE: Queue = Queue { slot: DISK, number: 0, size: 128, base: 0x122_0000 };
const RANDOM: Queue = Queue { slot: RNG, number: 0, size: 64, base: 0x123_0000 };

impl Queue {
    fn available(&self) -> u64 {
        self.base + 0x4000
    }
    fn used(&self) -> u64 {
        self.base + 0x8000
    }
    fn descriptor(&self, ram: &Ram, i: u16, (address, len, flags): (u64, u32, u16)) {
        let at = self.base + 16 * u64::from(i);
        put(ram, at, &address.to_le_bytes());
        put(ram, at + 8, &len.to_le_bytes());
        put(ram, at + 12, &flags.to_le_bytes());
        put(ram, at + 14, &(i + 1).to_le_bytes());
    }
    fn entry(&self, ram: &Ram, i: u16, head: u16) {
        put(ram, self.available() + 4 + 2 * u64::from(i), &head.to_le_bytes());
    }
    fn register(&self, register: u32) -> u64 {
        VIRTIO + self.slot * VIRTIO_STRIDE + u64::from(register)
    }
}

fn put(ram: &Ram, at: u64, bytes: &[u8]) {
    ram.memory().write_slice(bytes, GuestAddress(at)).unwrap();
}

/// Returns the stores that set up a device with these queues.
fn bring_up(queues: &[&Queue], features: u32) -> Vec<(u64, u32)> {
    let mut stores = Vec::new();
    let mut set = |queue: &Queue, register: u32, value: u32| stores.push((queue.register(register), value));
    for status in [0, 1, 3] {
        set(queues[0], reg::VIRTIO_MMIO_STATUS, status);
    }
    for (select, value) in [(0, features), (1, 1)] {
        set(queues[0], reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL, select);
        set(queues[0], reg::VIRTIO_MMIO_DRIVER_FEATURES, value);
    }
    set(queues[0], reg::VIRTIO_MMIO_STATUS, 11);
    for queue in queues {
        set(queue, reg::VIRTIO_MMIO_QUEUE_SEL, queue.number);
        set(queue, reg::VIRTIO_MMIO_QUEUE_NUM, queue.size.into());
        set(queue, reg::VIRTIO_MMIO_QUEUE_DESC_LOW, queue.base as u32);
        set(queue, reg::VIRTIO_MMIO_QUEUE_AVAIL_LOW, queue.available() as u32);
        set(queue, reg::VIRTIO_MMIO_QUEUE_USED_LOW, queue.used() as u32);
        set(queue, reg::VIRTIO_MMIO_QUEUE_READY, 1);
    }
    set(queues[0], reg::VIRTIO_MMIO_STATUS, 15);
    stores
}

/// Writes rings, buffers and the script into a node's memory.
fn lay(ram: &Ram, number: u8) {
    for i in 0..RECEIVE.size {
        RECEIVE.descriptor(ram, i, (BUFFERS + 0x800 * u64::from(i), 0x800, WRITE));
        RECEIVE.entry(ram, i, i);
        TRANSMIT.descriptor(ram, i, (FRAME, HEADER as u32 + 60, 0));
        TRANSMIT.entry(ram, i, i);
    }
    put(ram, FRAME + HEADER, &frame(mac((number + 1) % NODES), mac(number), 60));
    for i in 0..RANDOM.size {
        RANDOM.descriptor(ram, i, (ENTROPY, 24, WRITE));
        RANDOM.entry(ram, i, i);
    }
    for i in 0..REQUESTS {
        let (at, head) = (REQUEST + 0x1000 * u64::from(i), 3 * i);
        // Every fifth request is a flush; the others write two sectors.
        let kind: u32 = if i % 5 == 4 { 4 } else { 1 };
        put(ram, at, &kind.to_le_bytes());
        put(ram, at + 8, &u64::from(3 * i % 50).to_le_bytes());
        put(ram, at + 0x200, &[i as u8 + 1; 1024]);
        let mut parts = vec![(at, 16, NEXT), (at + 0x200, 1024, NEXT), (at + 0x20, 1, WRITE)];
        if kind == 4 {
            parts.remove(1);
        }
        for (descriptor, part) in (head..).zip(parts) {
            STORAGE.descriptor(ram, descriptor, part);
        }
    }
    for i in 0..STORAGE.size {
        STORAGE.entry(ram, i, 3 * (i % REQUESTS));
    }
    // The driver negotiates VIRTIO_BLK_F_FLUSH, so the disk has a write cache.
    let stores =
        [bring_up(&[&RANDOM], 0), bring_up(&[&STORAGE], 1 << 9), bring_up(&[&RECEIVE, &TRANSMIT], 0)];
    for (i, (address, value)) in stores.concat().into_iter().enumerate() {
        let entry = [address.to_le_bytes(), u64::from(value).to_le_bytes()].concat();
        put(ram, SCRIPT + 16 * i as u64, &entry);
    }
}

/// Emits code that sets the queue's available index to R13 and notifies the device. Uses RBX.
fn publish(a: &mut Assembler, queue: &Queue) -> Result<(), Error> {
    a.mov(rbx, queue.available() + 2)?;
    a.mov(word_ptr(rbx), r13w)?;
    store(a, queue.register(reg::VIRTIO_MMIO_QUEUE_NOTIFY), queue.number)
}

/// Returns a guest that initialises its devices and then works in rounds: it computes, writes to its disk, reads
/// entropy, sends a frame with its results so far, and sleeps until the next tick.
fn guest() -> Vec<u8> {
    assemble(|a| {
        let (handler, round, inner) = (a.create_label(), a.create_label(), a.create_label());
        let (next, done) = (a.create_label(), a.create_label());
        a.mov(rsi, SCRIPT)?;
        a.set_label(next)?;
        a.mov(rbx, qword_ptr(rsi))?;
        a.mov(rax, qword_ptr(rsi + 8))?;
        a.add(rsi, 16)?;
        a.test(rbx, rbx)?;
        a.jz(done)?;
        a.mov(dword_ptr(rbx), eax)?;
        a.jmp(next)?;
        a.set_label(done)?;
        a.xor(r13d, r13d)?;
        a.xor(r15d, r15d)?;
        timer(a, 60_000, handler)?;
        // All receive buffers are available from the start.
        store(a, RECEIVE.available(), u32::from(RECEIVE.size) << 16)?;
        a.sti()?;
        a.set_label(round)?;
        a.mov(ecx, 500)?;
        a.set_label(inner)?;
        a.mov(rbx, ENTROPY)?;
        a.add(r8, qword_ptr(rbx))?;
        a.ror(r8, 7)?;
        a.add(r8, rcx)?;
        a.dec(ecx)?;
        a.jnz(inner)?;
        a.rdtsc()?;
        a.mov(rbx, FRAME + HEADER + 14)?;
        a.mov(dword_ptr(rbx), eax)?;
        a.mov(qword_ptr(rbx + 8), r8)?;
        a.mov(qword_ptr(rbx + 16), r13)?;
        a.mov(rbx, RECEIVE.used())?;
        a.mov(rax, qword_ptr(rbx))?;
        a.mov(rbx, FRAME + HEADER + 38)?;
        a.mov(qword_ptr(rbx), rax)?;
        // Replaces the data of request 0, so that this request writes other data each time.
        a.mov(rbx, REQUEST + 0x200)?;
        a.mov(qword_ptr(rbx), r8)?;
        a.inc(r13)?;
        publish(a, &STORAGE)?;
        publish(a, &RANDOM)?;
        publish(a, &TRANSMIT)?;
        // Makes as many receive buffers available as the network card has used.
        a.mov(rbx, RECEIVE.used())?;
        a.movzx(eax, word_ptr(rbx + 2))?;
        a.add(eax, i32::from(RECEIVE.size))?;
        a.mov(rbx, RECEIVE.available())?;
        a.mov(word_ptr(rbx + 2), ax)?;
        store(a, RECEIVE.register(reg::VIRTIO_MMIO_QUEUE_NOTIFY), RECEIVE.number)?;
        a.hlt()?;
        a.jmp(round)?;
        a.set_label(handler)?;
        count_tick(a)
    })
}

/// Returns a node with a disk and a network card. The node has just been switched on.
fn node(clock: ClockMode, number: u8) -> Machine {
    let (mut config, _folder) = config_in(clock, &guest());
    let content: Vec<u8> = (0..256u32 << 10).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let disk = Disk::from_bytes(content.into()).unwrap().with_sectors(SECTOR).unwrap();
    let latency = Latency { read_ns: 20 * US, write_ns: 15 * US, flush_ns: 100 * US, kib_ns: 500 };
    config = MachineConfig {
        name: format!("n{number}"),
        memory_bytes: 32 << 20,
        cpu_hz: 1_000_000_000,
        boot_seed: BootSeed::new(SEED),
        epoch_unix_s: 1_000_000_000,
        cmdline: "golden".to_owned(),
        disks: vec![DiskConfig { disk, serial: "golden".to_owned(), read_only: false, latency }],
        cards: vec![CardConfig { mac: mac(number), wire: Wire::Attached }],
        ..config
    };
    let machine = Machine::new(config, |ram| Ok(plain_in(clock, ram))).unwrap();
    lay(machine.ram(), number);
    machine
}

/// The streams of random numbers for faults, and a hash of all digests so far.
#[derive(Clone)]
struct Past {
    faults: Streams,
    trail: blake3::Hasher,
}

struct Course {
    world: World,
    first: Vec<Moment>,
    past: Past,
}

impl Course {
    fn new(clock: ClockMode) -> Course {
        let mut machines: Vec<_> = (0..NODES).map(|number| node(clock, number)).collect();
        let pool = Pool::default();
        let first = machines.iter_mut().map(|machine| machine.moment(&pool)).collect();
        let latency = Distribution::Uniform(100 * US, 150 * US);
        let link = LinkConfig { latency, bits_per_s: 1_000_000_000, queue_bytes: 1 << 20 };
        let wire = WireConfig { ports: Vec::new(), link, overrides: Vec::new() };
        let world = World::new(machines, wire, BootSeed::new(SEED)).unwrap();
        let faults = Streams::new(&Lineage::new(Seed::new(SEED)), Owner::Faults);
        Course { world, first, past: Past { faults, trail: blake3::Hasher::new() } }
    }

    /// Runs to a vtime, and takes a digest at every step.
    fn run(&mut self, to: u64) {
        while self.world.vtime() < to {
            let vtime = (self.world.vtime() / STEP * STEP + STEP).min(to);
            let until = WorldUntil { vtime, port_lines: 0, node: 0, icount: u64::MAX };
            while let WorldStop::Node { stop, node } = self.world.run(&until) {
                assert!(matches!(&stop, Stop::End(end) if !end.is_failure()), "node {node}: {stop:?}");
            }
            self.past.trail.update(&vtime.to_le_bytes()).update(&self.world.digest().0);
        }
    }

    fn off(&mut self, node: usize) {
        self.world.power_off(node);
    }

    /// Restarts a node from the snapshot of its machine at power-on, with the current content of its disks.
    fn on(&mut self, node: usize) {
        let boot_seed = self.past.faults.next_boot_seed(node as u16);
        let machine = self.world.node_mut(node).machine_mut();
        let disks = machine.disks().to_vec();
        machine.restore(&self.first[node]).unwrap();
        machine.restart_streams(&Lineage::boot(boot_seed));
        machine.put_disks(disks).unwrap();
        self.world.power_on(node);
    }

    fn power_loss(&mut self, node: usize) -> bool {
        let options = PowerLossOptions { tear_sectors: true };
        let machine = self.world.node_mut(node).machine_mut();
        let losses = machine.power_loss(&mut self.past.faults, node as u16, options);
        self.off(node);
        losses[0].lost_anything()
    }

    /// Runs up to the fork.
    fn begin(&mut self) {
        self.run(600_007);
        let links = Links::all;
        let faults = [
            NetworkFault::Loss { links: links(), ppm: 100_000 },
            NetworkFault::Duplicate { links: links(), ppm: 100_000 },
            NetworkFault::Reorder { links: links(), ppm: 100_000, hold: Distribution::Uniform(0, 300 * US) },
            NetworkFault::Corrupt { links: links(), ppm: 50_000 },
            NetworkFault::Latency { links: links(), extra: Distribution::Uniform(0, 100 * US) },
        ];
        for (fault, id) in faults.iter().zip(0..) {
            self.world.wire().apply(id, fault, 600_007).unwrap();
        }
        let disk = self.world.node_mut(1).machine_mut().disk_mut(0).unwrap();
        disk.apply(7, DiskFault::Error { requests: Requests::Write, ppm: 200_000 }).unwrap();
        disk.apply(8, DiskFault::Latency { extra: Distribution::Uniform(0, 50 * US) }).unwrap();
        self.world.drift(2, 437);
        self.run(3 * MS + 11);
        assert!(self.power_loss(0), "the cache of node 0's disk must hold something");
        self.run(3 * MS + 500_003);
        self.on(0);
        let rng = self.past.faults.get(Purpose::Rot { node: 2, disk: 0 });
        assert!(self.world.node_mut(2).machine_mut().disk_mut(0).unwrap().rot(32, rng).len() > 20);
        self.run(4 * MS + 200_001);
        self.world.node_mut(1).machine_mut().reset_disks(&mut self.past.faults, 1);
        self.off(1);
        self.on(1);
        self.run(FORK);
    }

    /// Runs from the fork to the end. Returns the hash of the digests.
    fn finish(&mut self, child: Option<u64>) -> String {
        if let Some(child) = child {
            let lineage = Lineage::new(Seed::new(SEED)).child(FORK, child);
            self.world.wire().restart_streams(&lineage);
            self.world.nodes_mut().for_each(|node| node.machine_mut().restart_streams(&lineage));
            self.past.faults = Streams::new(&lineage, Owner::Faults);
        }
        self.run(6 * MS + 3);
        self.power_loss(2);
        self.run(6 * MS + 400_001);
        self.on(2);
        self.run(END);
        self.past.trail.finalize().to_hex()[..16].to_owned()
    }
}

fn trails(clock: ClockMode) -> [String; 3] {
    let pool = Pool::default();
    let mut course = Course::new(clock);
    course.begin();
    let (moment, past) = (course.world.moment(&pool), course.past.clone());
    let whole = course.finish(None);
    let again = |course: &mut Course, child| {
        course.world.restore(&moment).unwrap();
        course.past = past.clone();
        course.finish(child)
    };
    let children = [1, 2].map(|child| again(&mut course, Some(child)));
    assert_eq!(
        again(&mut course, None),
        whole,
        "{clock:?}: a restored moment continues like the original run"
    );
    let [one, other] = children;
    [whole, one, other]
}

#[test]
fn trails_are_golden() {
    let now = GOLDEN.map(|(clock, _)| (clock, trails(clock)));
    for (clock, [whole, one, other]) in &now {
        assert!(whole != one && one != other && whole != other, "{clock:?}: {now:?}");
    }
    let golden = GOLDEN.map(|(clock, trails)| (clock, trails.map(str::to_owned)));
    assert!(now == golden, "the trails have changed; if this is intended, the new values are\n{now:#?}");
}
