//! Captures in pcap-ng (draft-ietf-opsawg-pcapng), for Wireshark and similar tools.
//! Each node is an interface; the frames that it sent are outbound, those that it received inbound. Packets are in the
//! order in which they are written.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};

use super::log::{Step, StepKind};
use super::{Delivery, PortConfig};
use crate::virtio::net::FRAME_BYTES_MAX;

/// Value of if_tsresol: 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// Value of epb_flags, bits 0 and 1, for a received packet.
const INBOUND: u32 = 1;
/// Value of epb_flags, bits 0 and 1, for a sent packet.
const OUTBOUND: u32 = 2;

/// Writer of a capture.
pub struct PcapNg<W: Write> {
    writer: PcapNgWriter<W>,
    epoch: Duration,
    interfaces: usize,
}

impl<W: Write> PcapNg<W> {
    /// Begins a capture of a world that started `epoch_s` seconds after 1970.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn new(out: W, ports: &[PortConfig], epoch_s: u64) -> io::Result<PcapNg<W>> {
        let mut writer = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(io_error)?;
        for port in ports {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: FRAME_BYTES_MAX as u32,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(&port.name)),
                    InterfaceDescriptionOption::IfMacAddr(Cow::Borrowed(&port.mac)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(io_error)?;
        }
        Ok(PcapNg { writer, epoch: Duration::from_secs(epoch_s), interfaces: ports.len() })
    }

    /// Writes frame number `frame`, which the card at `port` sent. Its losses in `steps` become comments.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn sent(&mut self, port: u8, at: u64, frame: u64, bytes: &[u8], steps: &[Step]) -> io::Result<()> {
        let drops =
            steps.iter().filter(|step| step.frame == frame && matches!(step.kind, StepKind::Drop { .. }));
        let options = drops.map(comment).collect();
        self.packet(port, at, bytes, bytes.len(), OUTBOUND, options)
    }

    /// Writes a frame that arrived.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn delivered(&mut self, delivery: &Delivery) -> io::Result<()> {
        let Delivery { at, port, bytes, .. } = delivery;
        self.packet(*port, *at, bytes, bytes.len(), INBOUND, vec![])
    }

    /// Writes a frame that was lost after it had been sent, at the port where it should have arrived: without its
    /// bytes, and with the reason as a comment.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error if no port has this number.
    pub fn lost(&mut self, step: &Step) -> io::Result<()> {
        let port = step.to.unwrap_or(step.from);
        self.packet(port, step.vtime, &[], step.len as usize, INBOUND, vec![comment(step)])
    }

    /// Returns the output of the writer.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }

    fn packet(
        &mut self,
        port: u8,
        at: u64,
        bytes: &[u8],
        original: usize,
        flags: u32,
        mut options: Vec<EnhancedPacketOption<'static>>,
    ) -> io::Result<()> {
        if usize::from(port) >= self.interfaces {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no port {port}")));
        }
        options.insert(0, EnhancedPacketOption::Flags(flags));
        let block = EnhancedPacketBlock {
            interface_id: port.into(),
            timestamp: self.epoch.saturating_add(Duration::from_nanos(at)),
            original_len: u32::try_from(original).unwrap_or(u32::MAX),
            // A guest may send more bytes than a frame holds.
            data: Cow::Borrowed(bytes.get(..FRAME_BYTES_MAX).unwrap_or(bytes)),
            options,
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(io_error)
    }
}

fn comment(step: &Step) -> EnhancedPacketOption<'static> {
    let why = match step.kind {
        StepKind::Drop { why } => format!("{why:?}"),
        kind => format!("{kind:?}"),
    };
    let to = step.to.map_or_else(String::new, |to| format!(" to port {to}"));
    EnhancedPacketOption::Comment(Cow::Owned(format!(
        "frame {}{to} lost: {why}: {}",
        step.frame, step.summary
    )))
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
