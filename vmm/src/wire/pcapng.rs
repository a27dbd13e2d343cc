//! Captures in the format pcap-ng (draft-ietf-opsawg-pcapng), for Wireshark and similar tools.
//!
//! Each node is an interface. Frames that the node sent are outbound, and frames that it received are inbound. Packets
//! are in the order in which the caller writes them. Comments say what faults did to a packet, and what else the caller
//! wants to stand before it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::log::{FrameStep, FrameStepKind};
use super::{Delivery, PortConfig};

/// Maximum number of bytes of a packet. All frames that a wire accepts are shorter.
const SNAP_BYTES: usize = 65_535;

/// Block type: section header, with which a capture begins.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Block type: description of an interface.
const INTERFACE: u32 = 1;
/// Block type: statistics of an interface.
const STATISTICS: u32 = 5;
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

/// Outcomes of frames, by the number of the frame.
#[derive(Debug, Clone, Default)]
pub struct Outcomes(BTreeMap<u64, Vec<FrameStep>>);

impl Outcomes {
    /// Sorts outcomes by the numbers of their frames.
    #[must_use]
    pub fn new(steps: &[FrameStep]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for step in steps {
            outcomes.0.entry(step.frame).or_default().push(*step);
        }
        outcomes
    }

    fn of(&self, frame: u64) -> &[FrameStep] {
        self.0.get(&frame).map_or(&[], Vec::as_slice)
    }
}

/// Writer of a pcap-ng capture.
pub struct PcapNg<W: Write> {
    out: W,
    /// Start of the world, in nanoseconds since 1970.
    epoch_ns: u64,
    /// Names of the ports.
    ports: Vec<String>,
    /// Comments on the next packet.
    comments: Vec<String>,
    /// Time of the last packet, in nanoseconds of vtime.
    last: u64,
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
            interface.put(&(SNAP_BYTES as u32).to_le_bytes());
            interface.option(IF_NAME, port.name.as_bytes());
            interface.option(IF_MAC_ADDRESS, &port.mac);
            interface.option(IF_RESOLUTION, &[NANOSECONDS]);
            interface.end_of_options();
            interface.write(&mut out)?;
        }
        let epoch_ns = epoch_s.saturating_mul(1_000_000_000);
        let ports = ports.iter().map(|port| port.name.clone()).collect();
        Ok(PcapNg { out, epoch_ns, ports, comments: Vec::new(), last: 0 })
    }

    /// Adds a comment to the next packet.
    pub fn comment(&mut self, text: String) {
        self.comments.push(text);
    }

    /// Writes frame number `frame`, which the card at `port` sent. Each loss of this frame among `outcomes` becomes a
    /// comment on the packet.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn sent(
        &mut self,
        port: u8,
        at: u64,
        frame: u64,
        bytes: &[u8],
        outcomes: &Outcomes,
    ) -> io::Result<()> {
        let is_lost = |step: &&FrameStep| matches!(step.kind, FrameStepKind::Drop { .. });
        let losses: Vec<String> =
            outcomes.of(frame).iter().filter(is_lost).map(|step| self.loss(step)).collect();
        self.comments.extend(losses);
        self.packet(port, at, bytes, bytes.len(), OUTBOUND)
    }

    /// Writes a frame that arrived. If its outcome among `outcomes` is not an undisturbed DELIVER, the outcome becomes a
    /// comment on the packet.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn delivered(&mut self, delivery: &Delivery, outcomes: &Outcomes) -> io::Result<()> {
        let Delivery { at, port, bytes, frame } = delivery;
        let here = |step: &&FrameStep| step.to == Some(*port) && step.vtime == *at;
        self.comments.extend(outcomes.of(*frame).iter().filter(here).flat_map(disturbances));
        self.packet(*port, *at, bytes, bytes.len(), INBOUND)
    }

    /// Writes a frame that was lost after it had been sent, as a packet of the interface at which it should have
    /// arrived. If the switch sent the frame nowhere, the packet belongs to the sender's interface. The packet has no
    /// bytes, and the reason is a comment.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn lost(&mut self, step: &FrameStep) -> io::Result<()> {
        let port = step.to.unwrap_or(step.from);
        self.comments.push(self.loss(step));
        self.packet(port, step.vtime, &[], step.len as usize, INBOUND)
    }

    /// Ends the capture and returns the writer that [`PcapNg::new`] got. Comments that no packet followed stand in
    /// statistics of the first interface.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.comments.is_empty() && !self.ports.is_empty() {
            let mut statistics = Block::new(STATISTICS);
            statistics.put(&0_u32.to_le_bytes());
            statistics.time(self.epoch_ns.saturating_add(self.last));
            self.end(statistics)?;
        }
        Ok(self.out)
    }

    fn packet(&mut self, port: u8, at: u64, bytes: &[u8], original: usize, direction: u32) -> io::Result<()> {
        if usize::from(port) >= self.ports.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no port {port}")));
        }
        let bytes = bytes.get(..SNAP_BYTES).unwrap_or(bytes);
        self.last = at;
        let mut packet = Block::new(PACKET);
        packet.put(&u32::from(port).to_le_bytes());
        packet.time(self.epoch_ns.saturating_add(at));
        packet.put(&(bytes.len() as u32).to_le_bytes());
        packet.put(&u32::try_from(original).unwrap_or(u32::MAX).to_le_bytes());
        packet.put(bytes);
        packet.option(PACKET_FLAGS, &direction.to_le_bytes());
        self.end(packet)
    }

    /// Returns the reason of a loss as a comment.
    fn loss(&self, step: &FrameStep) -> String {
        let why = match step.kind {
            FrameStepKind::Drop { why } => why.name(),
            FrameStepKind::Deliver | FrameStepKind::Duplicate | FrameStepKind::Timeout => "not lost",
        };
        let name = |port: u8| self.ports.get(usize::from(port)).map_or("?", String::as_str);
        let to = step.to.map_or_else(String::new, |to| format!(" to {}", name(to)));
        format!("frame {}{to} lost: {why}: {}", step.frame, step.summary)
    }

    /// Adds the comments to a block and writes it.
    fn end(&mut self, mut block: Block) -> io::Result<()> {
        for comment in std::mem::take(&mut self.comments) {
            block.option(COMMENT, comment.as_bytes());
        }
        block.end_of_options();
        block.write(&mut self.out)
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

    /// Appends a time in nanoseconds since 1970, its high half first.
    fn time(&mut self, time: u64) {
        self.put(&((time >> 32) as u32).to_le_bytes());
        self.put(&(time as u32).to_le_bytes());
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

/// Returns what distinguishes an arrival from an undisturbed one, as comments.
fn disturbances(step: &FrameStep) -> Vec<String> {
    let frame = step.frame;
    let us = step.vtime.saturating_sub(step.sent_at) / 1_000;
    let late = (step.kind == FrameStepKind::Timeout)
        .then(|| format!("frame {frame} delayed: it arrives {us} us after it was sent"));
    let copy =
        (step.kind == FrameStepKind::Duplicate).then(|| format!("frame {frame} duplicated: an extra copy"));
    let flipped = step.flipped.then(|| format!("frame {frame} corrupted: a fault flipped bits of it"));
    late.into_iter().chain(copy).chain(flipped).collect()
}
