//! virtio-console with multiport (virtio 1.2, section 5.3): six named ports for bytes. None of them is a console of the
//! guest.
//!
//! The device takes the guest's writes to a port at once, so when a write returns, Everett has the bytes. Bytes for the
//! guest wait in a bounded buffer until the guest has opened the port and supplied buffers.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::queue::{self, VirtQueue, total};
use super::{Cx, DeviceError, on_queue};
use crate::output::PORTS;

/// Names of the ports, by number: `/dev/virtio-ports/NAME` in the guest. A change requires a new machine version.
pub const PORT_NAMES: [&str; PORTS] =
    ["everett.log", "everett.control", "everett.history", "everett.sdk", "everett.debug", "everett.spare"];
/// Maximum bytes that wait for the guest in one port. Further bytes are refused.
pub const INPUT_BYTES_MAX: usize = 4 << 20;
/// Maximum number of control messages that wait for the guest's buffers. If more are waiting than this, the guest has
/// violated the protocol.
const CONTROL_MESSAGES_MAX: usize = 1024;
/// Maximum length of a single write of the guest to a port, in bytes.
const WRITE_BYTES_MAX: u64 = 1 << 20;

const RECEIVE_SIZE: u16 = 32;
const TRANSMIT_SIZE: u16 = 64;
const CONTROL_SIZE: u16 = 64;
const CONTROL_RECEIVE: u16 = 2;
const CONTROL_TRANSMIT: u16 = 3;

/// VIRTIO_CONSOLE_F_MULTIPORT, as a feature bit.
const F_MULTIPORT: u64 = 1 << 1;

/// Event numbers of `struct virtio_console_control`.
mod control {
    pub(super) const DEVICE_READY: u16 = 0;
    pub(super) const DEVICE_ADD: u16 = 1;
    pub(super) const PORT_READY: u16 = 3;
    pub(super) const PORT_OPEN: u16 = 6;
    pub(super) const PORT_NAME: u16 = 7;
}

/// Returns the sizes of the queues, in the order port 0, control, ports 1 to 5. Each has a receive queue and then a
/// transmit queue.
pub(super) fn queue_sizes() -> Vec<u16> {
    let mut sizes = vec![RECEIVE_SIZE, TRANSMIT_SIZE, CONTROL_SIZE, CONTROL_SIZE];
    for _ in 1..PORTS {
        sizes.extend([RECEIVE_SIZE, TRANSMIT_SIZE]);
    }
    sizes
}

/// Returns the number of a port's receive queue.
fn receive_queue(port: usize) -> u16 {
    if port == 0 { 0 } else { 2 + 2 * port as u16 }
}

/// Returns the port of a queue, and true if the queue transmits. Returns `None` for the control queues.
fn port_of(queue: u16) -> Option<(usize, bool)> {
    let transmit = queue & 1 == 1;
    match queue / 2 {
        0 => Some((0, transmit)),
        1 => None,
        pair => Some((usize::from(pair) - 1, transmit)),
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Port {
    /// True if a program in the guest has opened the port.
    open: bool,
    input: VecDeque<u8>,
}

/// The console device and its ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Console {
    ports: [Port; PORTS],
    /// Encoded control messages that wait for the guest's buffers.
    owed: VecDeque<Vec<u8>>,
}

impl Console {
    /// Queues bytes for the guest in a port. Returns the number of bytes accepted, which is less than all if the buffer
    /// is full.
    pub(crate) fn input(&mut self, port: usize, bytes: &[u8]) -> usize {
        let Some(port) = self.ports.get_mut(port) else { return 0 };
        let taken = bytes.len().min(INPUT_BYTES_MAX.saturating_sub(port.input.len()));
        port.input.extend(&bytes[..taken]);
        taken
    }

    /// Returns the number of bytes that wait for the guest in a port.
    pub fn waiting(&self, port: usize) -> usize {
        self.ports.get(port).map_or(0, |port| port.input.len())
    }

    pub(super) fn features(&self) -> u64 {
        F_MULTIPORT
    }

    /// Returns `struct virtio_console_config`: cols, rows, max_nr_ports, emerg_wr.
    pub(super) fn config(&self) -> Vec<u8> {
        let mut config = vec![0; 4];
        config.extend((PORTS as u32).to_le_bytes());
        config.extend([0; 4]);
        config
    }

    /// Closes the ports and drops control messages. Keeps bytes that wait for the guest, for the next reader of the
    /// port.
    pub(super) fn reset(&mut self) {
        self.owed.clear();
        for port in &mut self.ports {
            port.open = false;
        }
    }

    pub(super) fn notify(
        &mut self,
        queue: u16,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        match port_of(queue) {
            Some((port, true)) => self.transmit(port, queue, queues, cx),
            Some((_, false)) => self.flush_input(queues, cx),
            None if queue == CONTROL_TRANSMIT => {
                let used = self.take_control(queues, cx)?;
                // Sends the answers to these messages, and the waiting bytes of ports that were opened.
                Ok(self.flush_input(queues, cx)? | used)
            }
            None => self.flush_input(queues, cx),
        }
    }

    /// Passes control messages and waiting bytes to the guest as long as the guest has supplied buffers.
    pub(super) fn flush_input(
        &mut self,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        let mut interrupt = self.send_control(queues, cx)?;
        for number in 0..PORTS {
            let index = receive_queue(number);
            let port = &mut self.ports[number];
            let Some(buffers) = queues.get_mut(usize::from(index)) else { continue };
            while port.open && !port.input.is_empty() {
                let Some(chain) = on_queue(index, buffers.pop(cx.ram))? else { break };
                let room = usize::try_from(total(&chain.writable)).unwrap_or(usize::MAX);
                let bytes: Vec<u8> = port.input.drain(..room.min(port.input.len())).collect();
                let written = on_queue(index, queue::write(cx.ram, &chain.writable, &bytes))?;
                interrupt |= on_queue(index, buffers.push_used(cx.ram, chain.head, written))?;
            }
            on_queue(index, buffers.want_notification(cx.ram))?;
        }
        Ok(interrupt)
    }

    fn transmit(
        &mut self,
        port: usize,
        index: u16,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        let Some(buffers) = queues.get_mut(usize::from(index)) else { return Ok(false) };
        let mut interrupt = false;
        while let Some(chain) = on_queue(index, buffers.pop(cx.ram))? {
            if total(&chain.readable) > WRITE_BYTES_MAX {
                return Err(DeviceError::Request { queue: index, reason: "writes more than 1 MiB at once" });
            }
            let bytes = on_queue(index, queue::read(cx.ram, &chain.readable, WRITE_BYTES_MAX))?;
            cx.output.port(cx.now, port, &bytes);
            interrupt |= on_queue(index, buffers.push_used(cx.ram, chain.head, 0))?;
        }
        on_queue(index, buffers.want_notification(cx.ram))?;
        Ok(interrupt)
    }

    /// Handles the guest's messages: `struct virtio_console_control { le32 id; le16 event; le16 value; }`.
    fn take_control(&mut self, queues: &mut [VirtQueue], cx: &mut Cx<'_>) -> Result<bool, DeviceError> {
        let Some(buffers) = queues.get_mut(usize::from(CONTROL_TRANSMIT)) else { return Ok(false) };
        let mut interrupt = false;
        while let Some(chain) = on_queue(CONTROL_TRANSMIT, buffers.pop(cx.ram))? {
            let message = on_queue(CONTROL_TRANSMIT, queue::read(cx.ram, &chain.readable, 8))?;
            if let Ok([a, b, c, d, e, f, g, h]) = <[u8; 8]>::try_from(message) {
                let port = u32::from_le_bytes([a, b, c, d]) as usize;
                self.control(port, u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]))?;
            }
            interrupt |= on_queue(CONTROL_TRANSMIT, buffers.push_used(cx.ram, chain.head, 0))?;
        }
        on_queue(CONTROL_TRANSMIT, buffers.want_notification(cx.ram))?;
        Ok(interrupt)
    }

    fn control(&mut self, port: usize, event: u16, value: u16) -> Result<(), DeviceError> {
        if self.owed.len() >= CONTROL_MESSAGES_MAX {
            return Err(DeviceError::Request {
                queue: CONTROL_TRANSMIT,
                reason: "comes while 1024 control messages are unread",
            });
        }
        match event {
            control::DEVICE_READY if value == 1 => {
                for number in 0..PORTS {
                    self.owe(number, control::DEVICE_ADD, 1, "");
                }
            }
            control::PORT_READY if value == 1 && port < PORTS => {
                self.owe(port, control::PORT_NAME, 1, PORT_NAMES[port]);
                self.owe(port, control::PORT_OPEN, 1, "");
            }
            control::PORT_OPEN if port < PORTS => self.ports[port].open = value == 1,
            _ => {}
        }
        Ok(())
    }

    fn owe(&mut self, port: usize, event: u16, value: u16, name: &str) {
        let mut message = (port as u32).to_le_bytes().to_vec();
        message.extend(event.to_le_bytes());
        message.extend(value.to_le_bytes());
        message.extend(name.as_bytes());
        self.owed.push_back(message);
    }

    fn send_control(&mut self, queues: &mut [VirtQueue], cx: &mut Cx<'_>) -> Result<bool, DeviceError> {
        let Some(buffers) = queues.get_mut(usize::from(CONTROL_RECEIVE)) else { return Ok(false) };
        let mut interrupt = false;
        while !self.owed.is_empty() {
            let Some(chain) = on_queue(CONTROL_RECEIVE, buffers.pop(cx.ram))? else { break };
            let Some(message) = self.owed.pop_front() else { break };
            let written = on_queue(CONTROL_RECEIVE, queue::write(cx.ram, &chain.writable, &message))?;
            interrupt |= on_queue(CONTROL_RECEIVE, buffers.push_used(cx.ram, chain.head, written))?;
        }
        on_queue(CONTROL_RECEIVE, buffers.want_notification(cx.ram))?;
        Ok(interrupt)
    }
}
