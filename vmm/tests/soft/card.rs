//! A network card driven from ring 0: the test puts queues and a script of stores into guest memory, and a small guest
//! (see `worker`) executes the script.

use everett_cpu::CacheConfig;
use everett_vmm::Machine;
use everett_vmm::layout::{VIRTIO, VIRTIO_STRIDE};
use everett_vmm::machine::CardConfig;
use everett_vmm::virtio::net::Wire;
use virtio_bindings::virtio_mmio as reg;
use vm_memory::{Bytes, GuestAddress};

use crate::guest::machine;

/// Address of the card's registers, after those of the console and the entropy source.
pub(crate) const CARD: u64 = VIRTIO + 2 * VIRTIO_STRIDE;
pub(crate) const RECEIVE: u32 = 0;
pub(crate) const TRANSMIT: u32 = 1;
/// Number of entries of a queue.
pub(crate) const SIZE: u16 = 256;
/// Size of `struct virtio_net_hdr_v1`, in bytes.
pub(crate) const HEADER: u32 = 12;
/// Descriptor flag: another descriptor follows.
pub(crate) const NEXT: u16 = 1;
/// Descriptor flag: the device writes the buffer.
pub(crate) const WRITE: u16 = 2;
/// Descriptor flag: the buffer holds a table of descriptors.
pub(crate) const INDIRECT: u16 = 4;
/// Broadcast address.
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];

/// Address of the script.
pub(crate) const SCRIPT: u64 = 0x140_0000;
pub(crate) const ENTRY_BYTES: u64 = 16;
/// Address that marks a script entry as a jump. The value of a jump is the address of the script entry at which the
/// guest continues.
pub(crate) const JUMP: u64 = 1;
/// Values of the status register that a driver writes in turn: ACKNOWLEDGE, DRIVER, FEATURES_OK, DRIVER_OK.
const STATUS: [u32; 4] = [1, 2, 8, 4];
/// Bit of VIRTIO_F_VERSION_1 in the upper 32 bits of the features.
const VERSION_1: u32 = 1;

/// Returns the addresses of a queue's descriptor table, available ring and used ring.
pub(crate) fn rings(queue: u32) -> [u64; 3] {
    let base = 0x120_0000 + u64::from(queue) * 0x1_0000;
    [base, base + 0x4000, base + 0x8000]
}

/// Returns the address of a buffer of 2 KiB.
pub(crate) fn buffer(queue: u32, number: u16) -> u64 {
    0x130_0000 + (u64::from(queue) * u64::from(SIZE) + u64::from(number)) * 0x800
}

/// Returns a node's MAC address.
pub(crate) fn mac(node: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, node]
}

/// Returns a frame with the EtherType for local experiments.
pub(crate) fn frame(to: [u8; 6], from: [u8; 6], bytes: usize) -> Vec<u8> {
    let mut frame = [&to[..], &from, &[0x88, 0xb5]].concat();
    frame.resize(bytes, 0x55);
    frame
}

/// Initial content of a guest's memory, and the stores that the guest executes in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    image: Vec<(u64, Vec<u8>)>,
    /// Address, value, and number of iterations of an empty loop after the store.
    stores: Vec<(u64, u32, u32)>,
}

impl Script {
    /// Returns a script that initialises the card with empty rings.
    pub(crate) fn up() -> Script {
        let mut script = Script::default();
        script.bring_up();
        script
    }

    pub(crate) fn bring_up(&mut self) {
        self.negotiate();
        for queue in [RECEIVE, TRANSMIT] {
            self.queue(queue, u32::from(SIZE), rings(queue));
        }
        self.set(reg::VIRTIO_MMIO_STATUS, STATUS[3]);
    }

    /// Returns the script of a well-behaved driver: all receive buffers are available, and each transmit descriptor
    /// refers to `frame`.
    pub(crate) fn driver(frame: &[u8]) -> Script {
        let mut script = Script::up();
        for i in 0..SIZE {
            script.descriptor(RECEIVE, i, (buffer(RECEIVE, i), 0x800, WRITE, 0));
            script.ring(RECEIVE, i, i);
            script.sends(i, frame.len() as u32 + HEADER);
        }
        script.lay(buffer(TRANSMIT, 0), &[&[0; HEADER as usize], frame].concat());
        script.available(RECEIVE, SIZE);
        script.notify(RECEIVE);
        script
    }

    /// Puts descriptor `i`, with the first `bytes` bytes of the first buffer, into entry `i` of the transmit ring.
    pub(crate) fn sends(&mut self, i: u16, bytes: u32) {
        self.descriptor(TRANSMIT, i, (buffer(TRANSMIT, 0), bytes, 0, 0));
        self.ring(TRANSMIT, i, i);
    }

    /// Resets the card and initialises it up to the status FEATURES_OK.
    pub(crate) fn negotiate(&mut self) {
        for status in [0, STATUS[0], STATUS[1]] {
            self.set(reg::VIRTIO_MMIO_STATUS, status);
        }
        self.set(reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
        self.set(reg::VIRTIO_MMIO_DRIVER_FEATURES, VERSION_1);
        self.set(reg::VIRTIO_MMIO_STATUS, STATUS[2]);
    }

    /// Adds stores that set up a queue with this size and these addresses.
    pub(crate) fn queue(&mut self, queue: u32, size: u32, [table, available, used]: [u64; 3]) {
        self.set(reg::VIRTIO_MMIO_QUEUE_SEL, queue);
        self.set(reg::VIRTIO_MMIO_QUEUE_NUM, size);
        let registers = [
            (reg::VIRTIO_MMIO_QUEUE_DESC_LOW, reg::VIRTIO_MMIO_QUEUE_DESC_HIGH, table),
            (reg::VIRTIO_MMIO_QUEUE_AVAIL_LOW, reg::VIRTIO_MMIO_QUEUE_AVAIL_HIGH, available),
            (reg::VIRTIO_MMIO_QUEUE_USED_LOW, reg::VIRTIO_MMIO_QUEUE_USED_HIGH, used),
        ];
        for (low, high, address) in registers {
            self.set(low, address as u32);
            self.set(high, (address >> 32) as u32);
        }
        self.set(reg::VIRTIO_MMIO_QUEUE_READY, 1);
    }

    /// Adds bytes to the initial content of the guest's memory.
    pub(crate) fn lay(&mut self, address: u64, bytes: &[u8]) {
        self.image.push((address, bytes.to_vec()));
    }

    pub(crate) fn descriptor(&mut self, queue: u32, i: u16, descriptor: (u64, u32, u16, u16)) {
        self.lay(rings(queue)[0] + 16 * u64::from(i), &encoded(descriptor));
    }

    /// Sets an entry of the available ring.
    pub(crate) fn ring(&mut self, queue: u32, i: u16, head: u16) {
        self.lay(rings(queue)[1] + 4 + 2 * u64::from(i), &head.to_le_bytes());
    }

    /// Adds a store that sets the queue's available index.
    pub(crate) fn available(&mut self, queue: u32, index: u16) {
        self.store(rings(queue)[1], u32::from(index) << 16);
    }

    pub(crate) fn notify(&mut self, queue: u32) {
        self.set(reg::VIRTIO_MMIO_QUEUE_NOTIFY, queue);
    }

    /// Adds a store to a register of the card.
    pub(crate) fn set(&mut self, register: u32, value: u32) {
        self.store(CARD + u64::from(register), value);
    }

    pub(crate) fn store(&mut self, address: u64, value: u32) {
        self.stores.push((address, value, 0));
    }

    /// Adds a pause: a loop without effect that makes this many iterations.
    pub(crate) fn spin(&mut self, times: u32) {
        self.stores.push((SCRIPT - 8, 0, times));
    }

    /// Returns the address of the next script entry, for [`Script::again`].
    pub(crate) fn here(&self) -> u32 {
        (SCRIPT + ENTRY_BYTES * self.stores.len() as u64) as u32
    }

    /// Makes the guest repeat the script from the entry at `from` on, without end.
    pub(crate) fn again(&mut self, from: u32) {
        self.store(JUMP, from);
    }

    fn put(&self, machine: &Machine) {
        let memory = machine.ram().memory();
        for (address, bytes) in &self.image {
            memory.write_slice(bytes, GuestAddress(*address)).unwrap();
        }
        for (i, (address, value, spins)) in self.stores.iter().enumerate() {
            let entry = [&address.to_le_bytes()[..], &value.to_le_bytes(), &spins.to_le_bytes()].concat();
            memory.write_slice(&entry, GuestAddress(SCRIPT + ENTRY_BYTES * i as u64)).unwrap();
        }
    }
}

/// Returns a descriptor in its memory format.
pub(crate) fn encoded((addr, len, flags, next): (u64, u32, u16, u16)) -> Vec<u8> {
    [&addr.to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()].concat()
}

/// Returns a node that is about to execute `code` with this script. Its card is attached to the wire.
pub(crate) fn node(number: u8, code: &[u8], script: &Script) -> Machine {
    let machine = machine(code, CacheConfig::default(), |config| {
        config.name = format!("n{number}");
        config.cards.push(CardConfig { mac: mac(number), wire: Wire::Attached });
    });
    script.put(&machine);
    machine
}
