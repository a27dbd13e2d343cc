//! Virtio 1.2 over MMIO: the transport, queues, and the devices blk, net, rng and console.
//!
//! [`mmio::Transport`] owns the registers, the queues and one [`Device`]. A device is plain state. It gets its queues
//! and everything else that it accesses (a [`Cx`]) as arguments. A request starts when the driver notifies a queue. It
//! completes at once or, if it has a latency, at a scheduled event.
//!
//! **Invariant.** The guest is an attacker. It may supply a queue outside RAM, or a descriptor chain that loops, lies
//! about its length or lacks what its device needs. The result is an error status if the device has one, otherwise
//! DEVICE_NEEDS_RESET. It is never a panic, an unbounded loop or unbounded memory. The network card instead drops
//! sent frames of a bad length, and received frames that do not fit into the chain that the driver supplied for them.

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

/// Everything that a device may access except its own state and its queues.
pub struct Cx<'a> {
    /// Current vtime, in nanoseconds.
    pub now: u64,
    /// Number of the device's virtio-mmio slot. Events that the device schedules contain it.
    pub slot: u8,
    /// Guest memory.
    pub ram: &'a Ram,
    /// The machine's disks, by index.
    pub disks: &'a mut [Disk],
    /// Queue of scheduled events.
    pub events: &'a mut EventQueue,
    /// Random streams of the machine.
    pub streams: &'a mut Streams,
    /// Output of the machine, for observers.
    pub output: &'a mut Output,
}

impl Cx<'_> {
    /// Schedules an event of this device at a vtime. `token` identifies the event to the device.
    pub fn schedule(&mut self, vtime: u64, token: u64) -> EventId {
        self.events.schedule(vtime, Event::Virtio { slot: self.slot, token })
    }
}

/// Error of a driver. It stops the device until the driver resets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A queue is malformed.
    #[error("queue {queue}")]
    Queue {
        /// Number of the queue.
        queue: u16,
        /// Defect of the queue.
        #[source]
        source: QueueError,
    },
    /// A request is malformed, so the device cannot answer it.
    #[error("queue {queue}: a request {reason}")]
    Request {
        /// Number of the queue.
        queue: u16,
        /// Defect of the request, as the words that follow "a request" in the error message.
        reason: &'static str,
    },
}

/// Adds the queue's number to an error.
pub(crate) fn on_queue<T>(queue: u16, result: Result<T, QueueError>) -> Result<T, DeviceError> {
    result.map_err(|source| DeviceError::Queue { queue, source })
}

/// Device behind a transport. It is an enum and not a trait object, because moments store and compare it as a value.
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
    /// Returns the device ID (virtio 1.2, section 5).
    pub fn id(&self) -> u32 {
        match self {
            Device::Net(_) => 1,
            Device::Blk(_) => 2,
            Device::Console(_) => 3,
            Device::Rng(_) => 4,
        }
    }
    /// Returns the device's name, which logs and digests contain.
    pub fn name(&self) -> &'static str {
        match self {
            Device::Net(_) => "net",
            Device::Blk(_) => "blk",
            Device::Console(_) => "console",
            Device::Rng(_) => "rng",
        }
    }
    /// Returns the properties that a driver cannot change. Devices with equal properties can restore each other's
    /// state.
    pub(crate) fn make(&self) -> (&'static str, Vec<u8>) {
        let own = match self {
            Device::Blk(d) => d.make(),
            Device::Net(d) => d.make(),
            Device::Rng(_) | Device::Console(_) => Vec::new(),
        };
        (self.name(), own)
    }
    /// Returns the device's own feature bits, without the transport's.
    pub(crate) fn features(&self) -> u64 {
        match self {
            Device::Blk(d) => d.features(),
            Device::Net(d) => d.features(),
            Device::Rng(_) => 0,
            Device::Console(d) => d.features(),
        }
    }
    /// Handles the features that the driver accepted.
    pub(crate) fn negotiated(&mut self, features: u64) {
        match self {
            Device::Blk(d) => d.negotiated(features),
            Device::Net(_) | Device::Rng(_) | Device::Console(_) => {}
        }
    }
    /// Returns the maximum size of each queue.
    pub(crate) fn queue_sizes(&self) -> Vec<u16> {
        match self {
            Device::Blk(_) => vec![blk::QUEUE_SIZE],
            Device::Net(_) => vec![net::QUEUE_SIZE; 2],
            Device::Rng(_) => vec![rng::QUEUE_SIZE],
            Device::Console(_) => console::queue_sizes(),
        }
    }
    /// Returns the bytes of the configuration space.
    pub(crate) fn config(&self) -> Vec<u8> {
        match self {
            Device::Blk(d) => d.config(),
            Device::Net(d) => d.config(),
            Device::Rng(_) => Vec::new(),
            Device::Console(d) => d.config(),
        }
    }
    /// Resets the device to its state before a driver used it.
    pub(crate) fn reset(&mut self, cx: &mut Cx<'_>) {
        match self {
            Device::Blk(d) => d.reset(cx),
            Device::Net(d) => d.reset(cx),
            Device::Rng(_) => {}
            Device::Console(d) => d.reset(),
        }
    }
    /// Handles buffers that the driver made available on a queue. Returns true if the device must interrupt the driver.
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
    /// Handles a due event that the device had scheduled. Returns true if the device must interrupt the driver.
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
