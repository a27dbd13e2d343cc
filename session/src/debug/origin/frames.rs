//! Frames on the wire, and the frame that brought bytes into memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use everett_inspect::memory::Ram as _;
use everett_vmm::world::Captured;

use super::limits::SEGMENT_BYTES_MAX;
use super::step::{Bytes, Happened};
use super::{FileBytes, Pending, Position, Search, Sent, Wanted};
use crate::debug::cursor::Listener;
use crate::explore::path_runner::{PathRunner, Watch};
use crate::inside::machine::MachineRam;

/// Frames of a timeline.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Sent frames by number: port, vtime, content.
    sent: BTreeMap<u64, (u8, u64, Vec<u8>)>,
    /// Arrivals in the order of their vtimes: vtime, port, number of the frame.
    arrivals: Vec<(u64, u8, u64)>,
    bytes: usize,
    /// Maximum of `bytes`.
    bytes_max: usize,
    /// True if frames are missing.
    pub(super) lacks: bool,
}

/// Watch that collects frames until the listener ends it.
struct Collector<'c> {
    frames: &'c mut Frames,
    listener: &'c mut dyn Listener,
}

impl Watch for Collector<'_> {
    fn frames(&mut self, frames: &[Captured]) {
        self.frames.add(frames);
    }

    fn at(&mut self, _: u64) -> bool {
        self.listener.goes_on()
    }
}

/// Length of an entry besides the bytes of a frame, in bytes.
const ENTRY_BYTES: usize = 64;

impl Frames {
    fn add(&mut self, frames: &[Captured]) {
        for frame in frames {
            match frame {
                Captured::Sent { port, at, frame, bytes } => {
                    self.bytes = self.bytes.saturating_add(bytes.len() + ENTRY_BYTES);
                    if self.bytes > self.bytes_max {
                        self.lacks = true;
                        continue;
                    }
                    self.sent.insert(*frame, (*port, *at, bytes.clone()));
                }
                Captured::Delivered(_) if self.lacks => {}
                Captured::Delivered(delivery) => {
                    self.bytes = self.bytes.saturating_add(ENTRY_BYTES);
                    self.arrivals.push((delivery.at, delivery.port, delivery.frame));
                }
            }
        }
    }
}

/// A TCP segment in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    source: SocketAddr,
    destination: SocketAddr,
    sequence: u32,
    /// Place of the TCP header in the frame.
    header: usize,
    /// Place of the payload in the frame.
    payload: Range<usize>,
}

impl Segment {
    /// Reads a frame from its destination address on. `None` if it has no whole TCP segment.
    fn of(frame: &[u8]) -> Option<Segment> {
        const ETHERNET: usize = 14;
        const TCP: u8 = 6;
        let u16_at = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
        let (source, destination, header, end): (IpAddr, IpAddr, usize, usize) = match u16_at(12)? {
            0x0800 => {
                let ip = frame.get(ETHERNET..ETHERNET + 20)?;
                let length = usize::from(ip[0] & 0xf) * 4;
                let is_fragment = u16_at(ETHERNET + 6)? & 0x3fff != 0;
                if ip[0] >> 4 != 4 || length < 20 || ip[9] != TCP || is_fragment {
                    return None;
                }
                let address = |at: usize| {
                    Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?)))
                };
                (address(12)?, address(16)?, ETHERNET + length, ETHERNET + usize::from(u16_at(ETHERNET + 2)?))
            }
            0x86dd => {
                let ip = frame.get(ETHERNET..ETHERNET + 40)?;
                if ip[6] != TCP {
                    return None;
                }
                let address = |at: usize| {
                    Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?)))
                };
                let header = ETHERNET + 40;
                (address(8)?, address(24)?, header, header + usize::from(u16_at(ETHERNET + 4)?))
            }
            _ => return None,
        };
        let tcp = frame.get(header..header + 20)?;
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().ok()?);
        let start = header + usize::from(tcp[12] >> 4) * 4;
        let is_whole = start >= header + 20 && start <= end && end <= frame.len();
        is_whole.then_some(Segment {
            source: SocketAddr::new(source, u16_at(header)?),
            destination: SocketAddr::new(destination, u16_at(header + 2)?),
            sequence,
            header,
            payload: start..end,
        })
    }
}

impl Search<'_, '_> {
    /// Collects the frames, if it has not yet been done: runs the branch once more, up to the instant of the question.
    fn collect(&mut self) -> anyhow::Result<()> {
        if self.frames.is_some() {
            return Ok(());
        }
        let mut frames = Frames { bytes_max: self.bounds.frames_bytes, ..Frames::default() };
        let mut runner = PathRunner::new(self.cursor.setting())?;
        runner.timeline().world_mut().capture(true);
        let mut collector = Collector { frames: &mut frames, listener: &mut *self.listener };
        runner.seek(self.cursor.path(), self.at_ns, &mut collector)?;
        // Frames since the runner's last look.
        let world = runner.timeline().world_mut();
        let rest = world.take_captured();
        frames.lacks |= world.captured_lost() > 0;
        frames.add(&rest);
        self.frames = Some(frames);
        Ok(())
    }

    /// Looks for the frame that brought bytes into RAM at `physical`, before the instant of `pending`. The frame is found if
    /// its TCP header and its whole payload are around these bytes. Returns false if there is none.
    pub(super) fn arrived(
        &mut self,
        pending: &Pending,
        node: usize,
        physical: u64,
        expected: &[u8],
    ) -> anyhow::Result<bool> {
        self.collect()?;
        let Some(frames) = &self.frames else { return Ok(false) };
        let ram = MachineRam(self.cursor.timeline().machine(node));
        // The bytes before the wanted ones, as far as they can belong to the segment.
        let first = physical.saturating_sub(SEGMENT_BYTES_MAX);
        let mut around = vec![0; (physical - first) as usize];
        if !ram.read(first, &mut around) {
            return Ok(false);
        }
        let before_ns = pending.position.vtime_ns;
        let arrivals = frames
            .arrivals
            .iter()
            .rev()
            .filter(|(at, port, _)| usize::from(*port) == node && *at <= before_ns);
        let mut found = None;
        'arrivals: for (_, _, number) in arrivals {
            let Some((port, sent_ns, bytes)) = frames.sent.get(number) else { continue };
            let Some(segment) = Segment::of(bytes) else { continue };
            let payload = &bytes[segment.payload.clone()];
            for (offset, _) in
                payload.windows(expected.len()).enumerate().filter(|(_, part)| *part == expected)
            {
                // From the TCP header up to the wanted bytes.
                let to = segment.payload.start + offset;
                let rest = &bytes[segment.header..to];
                if !around.ends_with(rest) {
                    continue;
                }
                let mut all = vec![0; segment.payload.end - to];
                if ram.read(physical, &mut all) && all == bytes[to..segment.payload.end] {
                    found = Some((*number, *port, *sent_ns, segment, offset));
                    break 'arrivals;
                }
            }
        }
        let Some((number, port, sent_ns, segment, offset)) = found else { return Ok(false) };
        let expected = expected.to_vec();
        self.follow_segment(pending, (number, port, sent_ns), &segment, offset, expected);
        Ok(true)
    }

    /// Adds the step of a frame that brought bytes, and looks for the call that sent them.
    fn follow_segment(
        &mut self,
        pending: &Pending,
        (message, port, sent_ns): (u64, u8, u64),
        segment: &Segment,
        offset: usize,
        bytes: Vec<u8>,
    ) {
        let sequence = segment.sequence.wrapping_add(offset as u32);
        let (source, destination) = (segment.source, segment.destination);
        let from = usize::from(port);
        let what = Happened::Message {
            message,
            from,
            source,
            destination,
            offset: offset as u64,
            sequence,
            bytes: Bytes(bytes.clone()),
        };
        let sender = Position { vtime_ns: sent_ns, node: from, count: u64::MAX };
        if from >= self.cursor.timeline().world().nodes().len() {
            let origin = "Everett itself sent the message, not a node".to_owned();
            let number = self.step(pending.explains, pending.position, what, false);
            self.step(Some(number), pending.position, Happened::Origin { origin }, false);
            return;
        }
        let number = self.step(pending.explains, sender, what, false);
        let sent = Sent { source, destination, sequence, bytes };
        self.want(Some(number), pending.depth, sender, Wanted::Sent(sent));
    }

    /// Returns the number of the last frame with a TCP segment that contains `text`, and the place of the text in the payload.
    pub(super) fn message_with(&mut self, node: Option<usize>, text: &[u8]) -> anyhow::Result<(u64, u64)> {
        self.collect()?;
        let frames = self.frames.iter().flat_map(|frames| frames.sent.iter().rev());
        let of_node = frames
            .filter(|(_, (port, at, _))| *at <= self.at_ns && node.is_none_or(|it| it == usize::from(*port)));
        let mut found = of_node.filter_map(|(number, (_, _, frame))| {
            let payload = &frame[Segment::of(frame)?.payload];
            let at = payload.windows(text.len().max(1)).position(|part| part == text)?;
            Some((*number, at as u64))
        });
        match found.next() {
            Some(found) => Ok(found),
            None => anyhow::bail!(
                "payload: no message with a TCP segment that contains this text was sent before this instant{}",
                self.missing()
            ),
        }
    }

    /// Returns a part of a sentence about frames that are missing.
    fn missing(&self) -> &'static str {
        if self.lacks_frames() {
            ", or it is one of the frames that are missing, because the timeline has too many"
        } else {
            ""
        }
    }

    /// Begins with bytes of a frame.
    pub(super) fn message(&mut self, message: u64, offset: u64, bytes: u64) -> anyhow::Result<()> {
        self.collect()?;
        let frame = self.frames.as_ref().and_then(|frames| frames.sent.get(&message)).cloned();
        let Some((port, sent_ns, content)) = frame else {
            anyhow::bail!(
                "message:{message}: no such message was sent before this instant{}",
                self.missing()
            );
        };
        let Some(segment) = Segment::of(&content) else {
            anyhow::bail!("message:{message}: only messages with a TCP segment are followed");
        };
        let payload = &content[segment.payload.clone()];
        let range = offset.try_into().ok().and_then(|from: usize| payload.get(from..));
        let Some(rest) = range.filter(|rest| !rest.is_empty()) else {
            anyhow::bail!("message:{message}@{offset}: its TCP payload has {} bytes", payload.len());
        };
        let bytes = rest[..rest.len().min(bytes as usize)].to_vec();
        let position = Position { vtime_ns: sent_ns, node: usize::from(port), count: u64::MAX };
        let pending = Pending {
            explains: None,
            depth: 0,
            position,
            wanted: Wanted::File(FileBytes { path: String::new(), offset, bytes: 0 }),
        };
        self.follow_segment(&pending, (message, port, sent_ns), &segment, offset as usize, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_in_frames() {
        let mut frame = vec![0; 14 + 20 + 20 + 5];
        frame[12..14].copy_from_slice(&[8, 0]);
        let ip = [0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        frame[14..34].copy_from_slice(&ip);
        frame[34..42].copy_from_slice(&[0, 80, 1, 0, 0, 0, 1, 2]);
        frame[46] = 0x50;
        let segment = Segment::of(&frame).unwrap();
        let expected = Segment {
            source: "10.0.0.1:80".parse().unwrap(),
            destination: "10.0.0.2:256".parse().unwrap(),
            sequence: 0x102,
            header: 34,
            // Bytes after the IP packet are padding.
            payload: 54..57,
        };
        assert_eq!(segment, expected);
        for end in 0..57 {
            assert_eq!(Segment::of(&frame[..end]), None, "{end}");
        }
        frame[46] = 0xf0;
        assert_eq!(Segment::of(&frame), None, "the header is longer than the packet");
        frame[46] = 0x40;
        assert_eq!(Segment::of(&frame), None, "the header is too short");
    }
}
