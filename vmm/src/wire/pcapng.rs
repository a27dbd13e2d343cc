//! Captures in the format pcap-ng (draft-ietf-opsawg-pcapng), for Wireshark and similar tools.
//!
//! Each node is an interface. Frames that the node sent are outbound, and frames that it received are inbound. Packets
//! are in the order in which the caller writes them.

use std::io::{self, Write};

use super::log::{FrameStep, FrameStepKind};
use super::{Delivery, PortConfig};
use crate::virtio::net::FRAME_BYTES_MAX;

/// Block type: section header, with which a capture begins.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Block type: description of an interface.
const INTERFACE: u32 = 1;
/// Block type: a packet.
const PACKET: u32 = 6;
/// Value in a section header that shows the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Link type of Ethernet.
const ETHERNET: u16 = 1;

/// Option of any block: a comment.
const COMMENT: u16 = 1;
/// Option of an interface: name.
const IF_NAME: u16 = 2;
/// Option of an interface: MAC address.
const IF_MAC_ADDRESS: u16 = 6;
/// Option of an interface: resolution of times, as a negative power of 10.
const IF_RESOLUTION: u16 = 9;
/// Option of a packet: direction, in bits 0 and 1.
const PACKET_FLAGS: u16 = 2;

/// Resolution of times: 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// Direction of a received packet.
const INBOUND: u32 = 1;
/// Direction of a sent packet.
const OUTBOUND: u32 = 2;

/// Writer of a pcap-ng capture.
pub struct PcapNg<W: Write> {
    out: W,
    /// Start of the world, in nanoseconds since 1970.
    epoch_ns: u64,
    interfaces: usize,
}

impl<W: Write> PcapNg<W> {
    /// Begins a capture of a world that started `epoch_s` seconds after 1970.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn new(mut out: W, ports: &[PortConfig], epoch_s: u64) -> io::Result<PcapNg<W>> {
        let mut header = Block::new(SECTION_HEADER);
        header.put(&BYTE_ORDER.to_le_bytes());
        // Version 1.0. The length of the section is unspecified.
        header.put(&[1, 0, 0, 0]);
        header.put(&u64::MAX.to_le_bytes());
        header.write(&mut out)?;
        for port in ports {
            let mut interface = Block::new(INTERFACE);
            // Link type, two reserved bytes, and the maximum length of a packet.
            interface.put(&u32::from(ETHERNET).to_le_bytes());
            interface.put(&(FRAME_BYTES_MAX as u32).to_le_bytes());
            interface.option(IF_NAME, port.name.as_bytes());
            interface.option(IF_MAC_ADDRESS, &port.mac);
            interface.option(IF_RESOLUTION, &[NANOSECONDS]);
            interface.end_of_options();
            interface.write(&mut out)?;
        }
        Ok(PcapNg { out, epoch_ns: epoch_s.saturating_mul(1_000_000_000), interfaces: ports.len() })
    }

    /// Writes frame number `frame`, which the card at `port` sent. Each loss of this frame that `steps` reports
    /// becomes a comment on the packet.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn sent(
        &mut self,
        port: u8,
        at: u64,
        frame: u64,
        bytes: &[u8],
        steps: &[FrameStep],
    ) -> io::Result<()> {
        let drops = steps
            .iter()
            .filter(|step| step.frame == frame && matches!(step.kind, FrameStepKind::Drop { .. }));
        let comments: Vec<String> = drops.map(comment).collect();
        self.packet(port, at, bytes, bytes.len(), OUTBOUND, &comments)
    }

    /// Writes a frame that arrived.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn delivered(&mut self, delivery: &Delivery) -> io::Result<()> {
        let Delivery { at, port, bytes, .. } = delivery;
        self.packet(*port, *at, bytes, bytes.len(), INBOUND, &[])
    }

    /// Writes a frame that was lost after it had been sent, as a packet of the interface at which it should have
    /// arrived. If the switch sent the frame nowhere, the packet belongs to the sender's interface. The packet has no
    /// bytes, and the reason is a comment.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn lost(&mut self, step: &FrameStep) -> io::Result<()> {
        let port = step.to.unwrap_or(step.from);
        self.packet(port, step.vtime, &[], step.len as usize, INBOUND, &[comment(step)])
    }

    /// Returns the writer that [`PcapNg::new`] got.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn packet(
        &mut self,
        port: u8,
        at: u64,
        bytes: &[u8],
        original: usize,
        direction: u32,
        comments: &[String],
    ) -> io::Result<()> {
        if usize::from(port) >= self.interfaces {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no port {port}")));
        }
        // A guest may send more bytes than an Ethernet frame may have.
        let bytes = bytes.get(..FRAME_BYTES_MAX).unwrap_or(bytes);
        let time = self.epoch_ns.saturating_add(at);
        let mut packet = Block::new(PACKET);
        packet.put(&u32::from(port).to_le_bytes());
        packet.put(&((time >> 32) as u32).to_le_bytes());
        packet.put(&(time as u32).to_le_bytes());
        packet.put(&(bytes.len() as u32).to_le_bytes());
        packet.put(&u32::try_from(original).unwrap_or(u32::MAX).to_le_bytes());
        packet.put(bytes);
        packet.option(PACKET_FLAGS, &direction.to_le_bytes());
        for comment in comments {
            packet.option(COMMENT, comment.as_bytes());
        }
        packet.end_of_options();
        packet.write(&mut self.out)
    }
}

/// A block: its type, its length, fields that are padded to four bytes, and its length again.
struct Block(Vec<u8>);

impl Block {
    fn new(kind: u32) -> Block {
        // The length is filled in when the block is complete.
        Block([kind.to_le_bytes(), [0; 4]].concat())
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends an option. Cuts a value that is longer than an option may be.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.0.extend(code.to_le_bytes());
        self.0.extend((value.len() as u16).to_le_bytes());
        self.put(value);
    }

    fn end_of_options(&mut self) {
        self.put(&[0; 4]);
    }

    fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        let length = (self.0.len() as u32 + 4).to_le_bytes();
        self.0[4..8].copy_from_slice(&length);
        self.0.extend(length);
        out.write_all(&self.0)
    }
}

/// Returns the reason of a loss as a comment.
fn comment(step: &FrameStep) -> String {
    let why = match step.kind {
        FrameStepKind::Drop { why } => format!("{why:?}"),
        kind => format!("{kind:?}"),
    };
    let to = step.to.map_or_else(String::new, |to| format!(" to port {to}"));
    format!("frame {}{to} lost: {why}: {}", step.frame, step.summary)
}
