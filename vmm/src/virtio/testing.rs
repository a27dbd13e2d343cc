//! Driver of a virtio device, for tests. It sets up queues in RAM and submits well-formed or malformed chains.

use everett_streams::{Lineage, Owner, Seed, Streams};
use virtio_bindings::virtio_mmio as reg;
use vm_memory::{Bytes, GuestAddress};

use super::mmio::Transport;
use super::{Cx, Device};
use crate::disk::Disk;
use crate::events::{Event, EventQueue};
use crate::output::{Note, Output};
use crate::ram::Ram;

/// Address of the rings of queue 0. The rings of each further queue are `RING_BYTES` higher.
const RINGS: u64 = 0x10_0000;
const RING_BYTES: u64 = 0x1_0000;
/// Address of the first buffer.
const BUFFERS: u64 = 0x100_0000;

pub(super) const NEXT: u16 = 1;
pub(super) const WRITE: u16 = 2;
pub(super) const INDIRECT: u16 = 4;

/// Returns the random streams of a new rig.
pub(super) fn streams() -> Streams {
    Streams::new(&Lineage::new(Seed::new(1)), Owner::Node("test"))
}

/// Test rig: a virtio transport with the RAM, disks, events and random streams that it needs.
pub(super) struct Rig {
    pub(super) transport: Transport,
    pub(super) ram: Ram,
    pub(super) disks: Vec<Disk>,
    pub(super) events: EventQueue,
    pub(super) streams: Streams,
    pub(super) output: Output,
    pub(super) now: u64,
    /// Features that the driver declines. By default it declines event indices, because the tests count interrupts, and
    /// event indices suppress some interrupts.
    pub(super) declined: u64,
    size: u16,
    /// For each queue: the next available index, and the used index up to which the driver has read.
    positions: Vec<(u16, u16)>,
    next_buffer: u64,
}

impl Rig {
    /// Creates a rig whose transport is in its reset state.
    pub(super) fn new(device: Device, disks: Vec<Disk>) -> Rig {
        Rig {
            transport: Transport::new(device),
            ram: Ram::new(32 << 20).unwrap(),
            disks,
            events: EventQueue::default(),
            streams: streams(),
            output: Output::default(),
            now: 0,
            declined: 1 << 29,
            size: 0,
            positions: Vec::new(),
            next_buffer: BUFFERS,
        }
    }

    /// Creates a rig with a running driver that has `queues` queues of `size` entries each.
    pub(super) fn running(device: Device, disks: Vec<Disk>, queues: u16, size: u16) -> Rig {
        let mut rig = Rig::new(device, disks);
        rig.start(queues, size);
        rig
    }

    pub(super) fn start(&mut self, queues: u16, size: u16) {
        self.size = size;
        self.set(reg::VIRTIO_MMIO_STATUS, 3);
        for select in [0, 1] {
            self.set(reg::VIRTIO_MMIO_DEVICE_FEATURES_SEL, select);
            let features = self.get(reg::VIRTIO_MMIO_DEVICE_FEATURES);
            self.set(reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL, select);
            let declined = (self.declined >> (32 * select)) as u32;
            self.set(reg::VIRTIO_MMIO_DRIVER_FEATURES, features & !declined);
        }
        self.set(reg::VIRTIO_MMIO_STATUS, 11);
        assert_eq!(self.get(reg::VIRTIO_MMIO_STATUS), 11);
        for queue in 0..queues {
            for index in [0x8002, 0xc002] {
                self.ram.memory().write_obj(0u16, GuestAddress(Rig::rings(queue) + index)).unwrap();
            }
            self.set_queue(queue, Rig::rings(queue));
            assert_eq!(self.get(reg::VIRTIO_MMIO_QUEUE_READY), 1);
        }
        self.set(reg::VIRTIO_MMIO_STATUS, 15);
    }

    pub(super) fn rings(queue: u16) -> u64 {
        RINGS + RING_BYTES * u64::from(queue)
    }

    pub(super) fn set_queue(&mut self, queue: u16, base: u64) {
        self.set(reg::VIRTIO_MMIO_QUEUE_SEL, queue.into());
        self.set(reg::VIRTIO_MMIO_QUEUE_NUM, self.size.into());
        for (low, at) in [
            (reg::VIRTIO_MMIO_QUEUE_DESC_LOW, base),
            (reg::VIRTIO_MMIO_QUEUE_AVAIL_LOW, base + 0x8000),
            (reg::VIRTIO_MMIO_QUEUE_USED_LOW, base + 0xc000),
        ] {
            self.set(low, at as u32);
            self.set(low + 4, (at >> 32) as u32);
        }
        self.set(reg::VIRTIO_MMIO_QUEUE_READY, 1);
        self.positions.resize(self.positions.len().max(usize::from(queue) + 1), (0, 0));
        self.positions[usize::from(queue)] = (0, 0);
    }

    pub(super) fn get(&mut self, register: u32) -> u32 {
        self.transport.read(register.into(), 4) as u32
    }
    pub(super) fn set(&mut self, register: u32, value: u32) {
        self.access(register.into(), 4, value.into());
    }
    pub(super) fn access(&mut self, offset: u64, size: u8, value: u64) {
        self.with(|transport, cx| transport.write(offset, size, value, cx));
    }
    pub(super) fn with<T>(&mut self, act: impl FnOnce(&mut Transport, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx {
            now: self.now,
            slot: 3,
            ram: &self.ram,
            disks: &mut self.disks,
            events: &mut self.events,
            streams: &mut self.streams,
            output: &mut self.output,
        };
        act(&mut self.transport, &mut cx)
    }

    /// Advances time to `to` and handles each event that becomes due.
    pub(super) fn advance(&mut self, to: u64) {
        while let Some((id, event)) = self.events.pop_due(to) {
            self.now = id.vtime;
            let Event::Virtio { slot: 3, token } = event else { panic!("{event:?}") };
            self.with(|transport, cx| transport.event(token, cx));
        }
        self.now = to;
    }

    /// Copies `content` into a new buffer. Returns the buffer's address.
    pub(super) fn buffer(&mut self, content: &[u8]) -> u64 {
        let at = self.next_buffer;
        self.next_buffer += (content.len() as u64).next_multiple_of(4096);
        self.ram.memory().write_slice(content, GuestAddress(at)).unwrap();
        at
    }
    pub(super) fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut buf = vec![0; len];
        self.ram.memory().read_slice(&mut buf, GuestAddress(at)).unwrap();
        buf
    }

    pub(super) fn descriptor(
        &mut self,
        queue: u16,
        index: u16,
        (addr, len, flags, next): (u64, u32, u16, u16),
    ) {
        self.raw_descriptor(Rig::rings(queue) + 16 * u64::from(index), (addr, len, flags, next));
    }
    pub(super) fn raw_descriptor(&mut self, at: u64, (addr, len, flags, next): (u64, u32, u16, u16)) {
        let memory = self.ram.memory();
        memory.write_obj(addr, GuestAddress(at)).unwrap();
        memory.write_obj(len, GuestAddress(at + 8)).unwrap();
        memory.write_obj(flags, GuestAddress(at + 12)).unwrap();
        memory.write_obj(next, GuestAddress(at + 14)).unwrap();
    }

    /// Makes the chain that begins with descriptor `head` available, and notifies the device.
    pub(super) fn submit(&mut self, queue: u16, head: u16) {
        let (next, _) = self.positions[usize::from(queue)];
        let available = Rig::rings(queue) + 0x8000;
        let memory = self.ram.memory();
        memory.write_obj(head, GuestAddress(available + 4 + 2 * u64::from(next % self.size))).unwrap();
        memory.write_obj(next.wrapping_add(1), GuestAddress(available + 2)).unwrap();
        self.positions[usize::from(queue)].0 = next.wrapping_add(1);
        self.set(reg::VIRTIO_MMIO_QUEUE_NOTIFY, queue.into());
    }

    /// Submits a chain of parts (address, length, writable). It uses the descriptors from `head` on.
    pub(super) fn chain(&mut self, queue: u16, head: u16, parts: &[(u64, u32, bool)]) {
        for (i, &(addr, len, writable)) in parts.iter().enumerate() {
            let last = i + 1 == parts.len();
            let flags = if last { 0 } else { NEXT } | if writable { WRITE } else { 0 };
            let index = head + i as u16;
            self.descriptor(queue, index, (addr, len, flags, index + 1));
        }
        self.submit(queue, head);
    }

    /// Takes the elements (head and length) that the device added to the used ring since the last call.
    pub(super) fn used(&mut self, queue: u16) -> Vec<(u32, u32)> {
        let ring = Rig::rings(queue) + 0xc000;
        let memory = self.ram.memory();
        let index: u16 = memory.read_obj(GuestAddress(ring + 2)).unwrap();
        let seen = &mut self.positions[usize::from(queue)].1;
        let mut used = Vec::new();
        while *seen != index {
            let at = ring + 4 + 8 * u64::from(*seen % self.size);
            let word = |at: u64| memory.read_obj::<u32>(GuestAddress(at)).unwrap();
            used.push((word(at), word(at + 4)));
            *seen = seen.wrapping_add(1);
        }
        used
    }

    pub(super) fn needs_reset(&mut self) -> bool {
        self.get(reg::VIRTIO_MMIO_STATUS) & 0x40 != 0
    }
    pub(super) fn notes(&mut self) -> Vec<Note> {
        self.output.take_notes()
    }
    /// Reads the interrupt status and acknowledges it.
    pub(super) fn interrupt(&mut self) -> u32 {
        let status = self.get(reg::VIRTIO_MMIO_INTERRUPT_STATUS);
        self.set(reg::VIRTIO_MMIO_INTERRUPT_ACK, status);
        status
    }
}
