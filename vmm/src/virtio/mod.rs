//! Virtio 1.2 over MMIO: the transport, queues, and the devices blk, net, rng and console.
//!
//! [`mmio::Transport`] owns the registers, the queues and one [`Device`]. A device is plain state; what it touches
//! besides comes as a [`Cx`]. Work starts at a queue notification and ends at once or, with a latency, at an event.
//!
//! **Invariant.** The guest is an attacker. A queue outside RAM, a descriptor chain that loops, lies about its length or
//! lacks what its device needs ends in an error status where the device has one, else in DEVICE_NEEDS_RESET: never in a
//! panic, an unbounded loop or unbounded memory.

pub mod blk;
pub mod console;
pub mod mmio;
pub mod net;
pub mod queue;
pub mod rng;

use everett_streams::Streams;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::events::{Event, EventId, EventQueue};
use crate::output::Output;
use crate::ram::Ram;
use queue::{QueueError, VirtQueue};

/// What a device may touch besides its own state.
pub struct Cx<'a> {
    /// Nanoseconds of vtime.
    pub now: u64,
    /// Which slot the device is in, for its events.
    pub slot: u8,
    /// Guest memory.
    pub ram: &'a Ram,
    /// The machine's disks, by index.
    pub disks: &'a mut [Disk],
    /// What will happen by itself.
    pub events: &'a mut EventQueue,
    /// Randomness.
    pub streams: &'a mut Streams,
    /// What goes out to the host.
    pub output: &'a mut Output,
}

impl Cx<'_> {
    /// Schedule this device's event `token`.
    pub fn schedule(&mut self, vtime: u64, token: u64) -> EventId {
        self.events.schedule(vtime, Event::Virtio { slot: self.slot, token })
    }
}

/// Why a device cannot go on before the driver resets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A queue is broken.
    #[error("queue {queue}: {source}")]
    Queue {
        /// Which.
        queue: u16,
        /// How.
        #[source]
        source: QueueError,
    },
    /// A request lacks what the device needs to answer it.
    #[error("queue {queue}: a request {reason}")]
    Request {
        /// Which.
        queue: u16,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// Attach the queue's number to its errors.
pub(crate) fn on_queue<T>(queue: u16, result: Result<T, QueueError>) -> Result<T, DeviceError> {
    result.map_err(|source| DeviceError::Queue { queue, source })
}

/// The devices behind one transport. An enum, not a trait object: state is stored and compared as a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Device {
    /// Block device.
    Blk(blk::Blk),
    /// Network card.
    Net(net::Net),
    /// Entropy source.
    Rng(rng::Rng),
    /// Console with named ports.
    Console(console::Console),
}

impl Device {
    /// Device ID (virtio 1.2, section 5).
    pub fn id(&self) -> u32 {
        match self {
            Device::Net(_) => 1,
            Device::Blk(_) => 2,
            Device::Console(_) => 3,
            Device::Rng(_) => 4,
        }
    }
    /// A name for logs and digests.
    pub fn name(&self) -> &'static str {
        match self {
            Device::Net(_) => "net",
            Device::Blk(_) => "blk",
            Device::Console(_) => "console",
            Device::Rng(_) => "rng",
        }
    }
    /// What a driver cannot change: devices of one make may take each other's state.
    pub(crate) fn make(&self) -> (&'static str, Vec<u8>) {
        let own = match self {
            Device::Blk(d) => d.make(),
            Device::Net(d) => d.make(),
            Device::Rng(_) | Device::Console(_) => Vec::new(),
        };
        (self.name(), own)
    }
    /// Feature bits of the device's own, besides the transport's.
    pub(crate) fn features(&self) -> u64 {
        match self {
            Device::Blk(d) => d.features(),
            Device::Net(d) => d.features(),
            Device::Rng(_) => 0,
            Device::Console(d) => d.features(),
        }
    }
    /// The driver took these features.
    pub(crate) fn negotiated(&mut self, features: u64) {
        match self {
            Device::Blk(d) => d.negotiated(features),
            Device::Net(_) | Device::Rng(_) | Device::Console(_) => {}
        }
    }
    /// The largest size of each queue.
    pub(crate) fn queue_sizes(&self) -> Vec<u16> {
        match self {
            Device::Blk(_) => vec![blk::QUEUE_SIZE],
            Device::Net(_) => vec![net::QUEUE_SIZE; 2],
            Device::Rng(_) => vec![rng::QUEUE_SIZE],
            Device::Console(_) => console::queue_sizes(),
        }
    }
    /// The configuration space.
    pub(crate) fn config(&self) -> Vec<u8> {
        match self {
            Device::Blk(d) => d.config(),
            Device::Net(d) => d.config(),
            Device::Rng(_) => Vec::new(),
            Device::Console(d) => d.config(),
        }
    }
    /// Back to the state before the driver came. Events of the device are cancelled.
    pub(crate) fn reset(&mut self, cx: &mut Cx<'_>) {
        match self {
            Device::Blk(d) => d.reset(cx),
            Device::Net(d) => d.reset(cx),
            Device::Rng(_) => {}
            Device::Console(d) => d.reset(),
        }
    }
    /// The driver made buffers available on a queue. Returns whether used buffers want an interrupt.
    pub(crate) fn notify(
        &mut self,
        queue: u16,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        match self {
            Device::Blk(d) => d.notify(queues, cx),
            Device::Net(d) => d.notify(queue, queues, cx),
            Device::Rng(d) => d.notify(queues, cx),
            Device::Console(d) => d.notify(queue, queues, cx),
        }
    }
    /// An event that the device scheduled is due. Returns whether used buffers want an interrupt.
    pub(crate) fn event(
        &mut self,
        token: u64,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        match self {
            Device::Blk(d) => d.event(token, queues, cx),
            Device::Net(d) => d.event(token, queues, cx),
            Device::Rng(_) => Ok(false),
            Device::Console(d) => d.flush_input(queues, cx),
        }
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
