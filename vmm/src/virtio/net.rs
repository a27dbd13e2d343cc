//! virtio-net (virtio 1.2, section 5.1): a network card with one receive and one transmit queue, without offloads.
//!
//! The card puts frames of the guest on the attached wire, with their vtime. The wire chooses the vtime at which frames
//! for the guest arrive.
//!
//! Elsewhere: what the wire does with frames (`crate::wire`).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_MAC, VIRTIO_NET_F_MTU, VIRTIO_NET_F_STATUS, VIRTIO_NET_S_LINK_UP,
};

use super::queue::{self, VirtQueue, part, total};
use super::{Cx, DeviceError, on_queue};
use crate::output::Frame;

/// Maximum number of entries of each queue.
pub const QUEUE_SIZE: u16 = 256;
/// Maximum length of a frame in bytes: an Ethernet frame with a VLAN tag, without its checksum.
pub const FRAME_BYTES_MAX: usize = 1518;
/// MTU that the card announces to the driver.
const MTU: u16 = 1500;
/// Bytes of `struct virtio_net_hdr_v1`.
const HEADER_BYTES: u64 = 12;
/// Maximum number of received frames that wait for the driver's buffers. Further frames are dropped, as by a real
/// card's FIFO.
pub const BACKLOG_FRAMES_MAX: usize = 256;
/// Maximum number of frames on their way to this card. They can accumulate while its machine is stalled or paused.
/// Further frames are dropped.
pub const ARRIVING_FRAMES_MAX: usize = 65_536;
/// Maximum number of frames that the card sends in one millisecond of its machine's vtime, i.e. one per 61 ns. Further
/// frames are dropped.
pub const FRAMES_PER_MS_MAX: u32 = 16_384;
const NS_PER_MS: u64 = 1_000_000;

const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;

/// Destination of the frames that the guest sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wire {
    /// Nowhere: the card's cable is not plugged in.
    Unplugged,
    /// To the code that runs the machine, such as a world. This code takes the frames from the machine's `Output`.
    Attached,
}

/// Virtio network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Net {
    mac: [u8; 6],
    wire: Wire,
    next_token: u64,
    /// Frames on their way to the card, by the token of the event with which they arrive.
    arriving: BTreeMap<u64, Vec<u8>>,
    /// Frames that have arrived and wait for a buffer of the driver.
    backlog: VecDeque<Vec<u8>>,
    /// Millisecond in which the card last sent, and the number of frames that it sent in that millisecond.
    sending: (u64, u32),
    /// Number of dropped frames. Reasons are: too many frames waiting, no buffers, no driver, a reset by the driver, a
    /// bad length, and sending too fast.
    dropped: u64,
}

impl Net {
    /// Creates a card that no driver uses yet.
    pub fn new(mac: [u8; 6], wire: Wire) -> Net {
        let (arriving, backlog) = (BTreeMap::new(), VecDeque::new());
        Net { mac, wire, next_token: 0, arriving, backlog, sending: (0, 0), dropped: 0 }
    }

    /// Returns the card's hardware address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Returns the properties that a driver cannot change.
    pub(super) fn make(&self) -> Vec<u8> {
        let mut make = self.mac.to_vec();
        make.push(u8::from(self.wire == Wire::Attached));
        make
    }

    /// Returns the number of dropped frames. Reasons are: too many frames waiting, no buffers, no driver, a reset by
    /// the driver, a bad length, and sending too fast.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Schedules the arrival of a frame at vtime `at`. Returns false if the frame is too long or too many frames are on
    /// their way.
    pub(crate) fn deliver(&mut self, at: u64, bytes: Vec<u8>, cx: &mut Cx<'_>) -> bool {
        if bytes.len() > FRAME_BYTES_MAX || self.arriving.len() >= ARRIVING_FRAMES_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        let token = self.next_token;
        self.next_token += 1;
        self.arriving.insert(token, bytes);
        cx.schedule(at.max(cx.now), token);
        true
    }

    pub(super) fn features(&self) -> u64 {
        1 << VIRTIO_NET_F_MAC | 1 << VIRTIO_NET_F_STATUS | 1 << VIRTIO_NET_F_MTU
    }

    /// Returns `struct virtio_net_config`: mac, status, max_virtqueue_pairs, mtu.
    pub(super) fn config(&self) -> Vec<u8> {
        let mut config = self.mac.to_vec();
        config.extend((VIRTIO_NET_S_LINK_UP as u16).to_le_bytes());
        config.extend(1u16.to_le_bytes());
        config.extend(MTU.to_le_bytes());
        config
    }

    /// Drops the frames that waited for the old driver's buffers. Frames on their way still arrive.
    pub(super) fn reset(&mut self, _: &mut Cx<'_>) {
        self.dropped = self.dropped.saturating_add(self.backlog.len() as u64);
        self.backlog.clear();
    }

    pub(super) fn notify(
        &mut self,
        queue: u16,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        if queue == TRANSMIT { self.transmit(queues, cx) } else { self.receive(queues, cx) }
    }

    /// Receives the frame with this token, which arrives now.
    pub(super) fn event(
        &mut self,
        token: u64,
        queues: &mut [VirtQueue],
        cx: &mut Cx<'_>,
    ) -> Result<bool, DeviceError> {
        let Some(bytes) = self.arriving.remove(&token) else { return Ok(false) };
        if self.backlog.len() >= BACKLOG_FRAMES_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return Ok(false);
        }
        self.backlog.push_back(bytes);
        self.receive(queues, cx)
    }

    /// Drops the frame with this token, because it arrives while no driver is running.
    pub(super) fn lose(&mut self, token: u64) {
        if self.arriving.remove(&token).is_some() {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    fn receive(&mut self, queues: &mut [VirtQueue], cx: &mut Cx<'_>) -> Result<bool, DeviceError> {
        let Some(buffers) = queues.get_mut(usize::from(RECEIVE)) else { return Ok(false) };
        let mut interrupt = false;
        while !self.backlog.is_empty() {
            let Some(chain) = on_queue(RECEIVE, buffers.pop(cx.ram))? else { break };
            let Some(frame) = self.backlog.pop_front() else { break };
            let mut content = vec![0; HEADER_BYTES as usize];
            // num_buffers, the last field of the header: the frame lies in one chain.
            content[10] = 1;
            content.extend(frame);
            let fits = total(&chain.writable) >= content.len() as u64;
            let written = if fits {
                on_queue(RECEIVE, queue::write(cx.ram, &chain.writable, &content))?
            } else {
                self.dropped = self.dropped.saturating_add(1);
                0
            };
            interrupt |= on_queue(RECEIVE, buffers.push_used(cx.ram, chain.head, written))?;
        }
        on_queue(RECEIVE, buffers.want_notification(cx.ram))?;
        Ok(interrupt)
    }

    /// True if the card may send one more frame in this millisecond. Counts that frame.
    fn has_time(&mut self, now: u64) -> bool {
        let (ms, sent) = &mut self.sending;
        if *ms != now / NS_PER_MS {
            (*ms, *sent) = (now / NS_PER_MS, 0);
        }
        *sent = sent.saturating_add(1);
        *sent <= FRAMES_PER_MS_MAX
    }

    fn transmit(&mut self, queues: &mut [VirtQueue], cx: &mut Cx<'_>) -> Result<bool, DeviceError> {
        let Some(buffers) = queues.get_mut(usize::from(TRANSMIT)) else { return Ok(false) };
        let mut interrupt = false;
        while let Some(chain) = on_queue(TRANSMIT, buffers.pop(cx.ram))? {
            let bytes = total(&chain.readable);
            let valid = (HEADER_BYTES + 14..=HEADER_BYTES + FRAME_BYTES_MAX as u64).contains(&bytes);
            if !valid || !self.has_time(cx.now) {
                self.dropped = self.dropped.saturating_add(1);
            } else if self.wire == Wire::Attached {
                let segments = part(&chain.readable, HEADER_BYTES, bytes);
                let bytes = on_queue(TRANSMIT, queue::read(cx.ram, &segments, FRAME_BYTES_MAX as u64))?;
                cx.output.frame(Frame { vtime: cx.now, slot: cx.slot, bytes });
            }
            interrupt |= on_queue(TRANSMIT, buffers.push_used(cx.ram, chain.head, 0))?;
        }
        on_queue(TRANSMIT, buffers.want_notification(cx.ram))?;
        Ok(interrupt)
    }
}
