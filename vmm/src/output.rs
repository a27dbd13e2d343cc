//! Output of a machine: console lines, port bytes, frames, and notes on guest errors.
//!
//! Output is for observers, such as the session that prints and checks it. It is not machine state: whether an observer
//! takes it changes nothing that the guest sees. Every buffer is bounded. When the buffer of a virtio console port is
//! full, the run loop stops ([`OutputFull`](crate::machine::Stop::OutputFull)), so no byte of a port is lost. Other
//! output that no observer takes in time is dropped.

use everett_cpu::WatchpointHit;
use serde::{Deserialize, Serialize};

/// Number of ports of the virtio console.
pub const PORTS: usize = 6;
/// Maximum bytes of a line. A longer line is cut, and the rest becomes a line of its own.
pub const OUTPUT_LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of the serial console that wait for an observer. Beyond it, the oldest half is dropped.
pub const CONSOLE_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of one port that wait for an observer. At this bound the run stops.
pub const PORT_BYTES_MAX: usize = 64 << 20;
/// Bytes that each write is charged in addition to its content, so that many small writes cannot evade the bound.
const WRITE_OVERHEAD_BYTES: usize = 64;
/// Maximum number of notes that wait for an observer. Later notes are lost and counted.
pub const NOTES_MAX: usize = 100_000;
/// Maximum number of frames that wait for an observer. Later frames are lost and counted.
pub const FRAMES_MAX: usize = 65_536;
/// Maximum number of notes on accesses to addresses without a device. Later accesses are only counted.
const UNKNOWN_NOTED_MAX: u64 = 32;

/// Something that happened in the guest, for observers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Time of the event, in nanoseconds of vtime.
    pub vtime: u64,
    /// The event and its data.
    pub event: NoteEvent,
}

/// Event of a [`Note`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteEvent {
    /// The guest printed a line on the serial console. The text excludes the line's end.
    Console {
        /// Bytes of the line. A guest may print anything.
        text: Vec<u8>,
        /// True if the line was longer than [`OUTPUT_LINE_BYTES_MAX`] and continues in the next note.
        cut: bool,
    },
    /// The guest accessed an address or port without a device. Only the first 32 accesses have notes.
    Unknown {
        /// True for an I/O port, false for a guest-physical address.
        port: bool,
        /// Port number or guest-physical address.
        address: u64,
        /// Size of the access, in bytes.
        size: u8,
        /// Value that was written; `None` for a read.
        value: Option<u64>,
    },
    /// The guest accessed bytes that a watchpoint covers.
    Access(WatchpointHit),
    /// A virtio device needs a reset because its driver made an error.
    Device {
        /// The device's slot.
        slot: u8,
        /// "blk", "net", "rng" or "console".
        kind: &'static str,
        /// The driver's error.
        error: String,
    },
}

/// Ethernet frame that a guest sent, with its vtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Time of sending, in nanoseconds of vtime.
    pub vtime: u64,
    /// Slot of the card that sent it.
    pub slot: u8,
    /// Bytes of the frame from the destination address on, without the checksum.
    pub bytes: Vec<u8>,
}

/// Bytes of one write to a port, with its vtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortWrite {
    /// Time of the write, in nanoseconds of vtime.
    pub vtime: u64,
    /// Bytes that the guest wrote.
    pub bytes: Vec<u8>,
}

/// All output of a machine that no observer has taken yet.
#[derive(Debug, Clone, Default)]
pub struct Output {
    console: Vec<u8>,
    line: Vec<u8>,
    notes: Vec<Note>,
    notes_lost: u64,
    ports: [Vec<PortWrite>; PORTS],
    port_bytes: [usize; PORTS],
    /// Ports on which the guest ended a line since the last [`Output::take_port_lines`]; bit i stands for port i.
    port_lines: u8,
    frames: Vec<Frame>,
    frames_lost: u64,
    unknown: u64,
}

impl Output {
    /// Takes the raw bytes of the serial console since the last call.
    pub fn take_console(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.console)
    }
    /// Takes the notes since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
    /// True if writes to ports or notes wait for an observer.
    pub fn has_writes_or_notes(&self) -> bool {
        !self.notes.is_empty() || self.ports.iter().any(|writes| !writes.is_empty())
    }
    /// Takes the guest's writes to a port since the last call.
    pub fn take_port(&mut self, port: usize) -> Vec<PortWrite> {
        let Some(writes) = self.ports.get_mut(port) else { return Vec::new() };
        self.port_bytes[port] = 0;
        std::mem::take(writes)
    }
    /// Takes the frames that the guest sent since the last call.
    pub fn take_frames(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }
    /// Returns the console line that the guest has begun and not ended.
    pub fn partial_line(&self) -> &[u8] {
        &self.line
    }
    /// Drops all output. Called when the machine continues from a moment. `line` is the console line that was
    /// unfinished at the moment.
    pub(crate) fn restart(&mut self, line: Vec<u8>) {
        *self = Output { line, ..Output::default() };
    }
    /// Sets the console bytes to those that the run printed before the moment from which this machine continues.
    pub fn console_again(&mut self, bytes: &[u8]) {
        self.console = bytes.to_vec();
    }
    /// Returns the number of accesses to addresses and ports without a device.
    pub fn unknown_accesses(&self) -> u64 {
        self.unknown
    }
    /// Returns the number of lost notes and the number of lost frames. They were lost because observers had not taken
    /// earlier ones.
    pub fn lost(&self) -> (u64, u64) {
        (self.notes_lost, self.frames_lost)
    }

    /// Records a byte of the serial line.
    pub(crate) fn serial(&mut self, vtime: u64, byte: u8) {
        if self.console.len() >= CONSOLE_BYTES_MAX {
            self.console.drain(..CONSOLE_BYTES_MAX / 2);
        }
        self.console.push(byte);
        let cut = self.line.len() >= OUTPUT_LINE_BYTES_MAX;
        if byte == b'\n' || cut {
            let mut text = std::mem::take(&mut self.line);
            if !cut && text.last() == Some(&b'\r') {
                text.pop();
            }
            self.note(vtime, NoteEvent::Console { text, cut });
        }
        if byte != b'\n' {
            self.line.push(byte);
        }
    }

    pub(crate) fn port(&mut self, vtime: u64, port: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if bytes.contains(&b'\n') {
            self.port_lines |= 1 << port;
        }
        self.port_bytes[port] += bytes.len() + WRITE_OVERHEAD_BYTES;
        self.ports[port].push(PortWrite { vtime, bytes: bytes.to_vec() });
    }

    /// Takes the ports on which the guest ended a line since the last call. Bit i stands for port i.
    pub(crate) fn take_port_lines(&mut self) -> u8 {
        std::mem::take(&mut self.port_lines)
    }

    /// True if the guest ended a line on one of these ports (bit i stands for port i) and [`Output::take_port_lines`]
    /// has not reported it.
    pub(crate) fn has_port_lines(&self, ports: u8) -> bool {
        self.port_lines & ports != 0
    }

    /// Returns the first port that holds [`PORT_BYTES_MAX`] bytes or more.
    pub(crate) fn full_port(&self) -> Option<usize> {
        self.port_bytes.iter().position(|&bytes| bytes >= PORT_BYTES_MAX)
    }

    pub(crate) fn frame(&mut self, frame: Frame) {
        if self.frames.len() < FRAMES_MAX {
            self.frames.push(frame);
        } else {
            self.frames_lost += 1;
        }
    }

    pub(crate) fn unknown_access(
        &mut self,
        vtime: u64,
        port: bool,
        address: u64,
        size: u8,
        value: Option<u64>,
    ) {
        self.unknown = self.unknown.saturating_add(1);
        if self.unknown <= UNKNOWN_NOTED_MAX {
            self.note(vtime, NoteEvent::Unknown { port, address, size, value });
        }
    }

    pub(crate) fn access(&mut self, vtime: u64, hit: WatchpointHit) {
        self.note(vtime, NoteEvent::Access(hit));
    }

    pub(crate) fn device_error(&mut self, vtime: u64, slot: u8, kind: &'static str, error: String) {
        self.note(vtime, NoteEvent::Device { slot, kind, error });
    }

    fn note(&mut self, vtime: u64, event: NoteEvent) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(Note { vtime, event });
        } else {
            self.notes_lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(output: &mut Output) -> Vec<(u64, Vec<u8>, bool)> {
        output
            .take_notes()
            .into_iter()
            .map(|note| match note.event {
                NoteEvent::Console { text, cut } => (note.vtime, text, cut),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn lines_are_split_and_stamped() {
        let mut output = Output::default();
        for (i, byte) in b"one\r\n\ntail".iter().enumerate() {
            output.serial(i as u64, *byte);
        }
        assert_eq!(lines(&mut output), [(4, b"one".to_vec(), false), (5, vec![], false)]);
        assert_eq!(output.partial_line(), b"tail");
        assert_eq!(output.take_console(), b"one\r\n\ntail");
    }

    #[test]
    fn a_long_line_is_cut_not_lost() {
        let mut output = Output::default();
        for _ in 0..OUTPUT_LINE_BYTES_MAX + 3 {
            output.serial(1, b'x');
        }
        output.serial(2, b'\n');
        let lines = lines(&mut output);
        assert_eq!((lines[0].1.len(), lines[0].2), (OUTPUT_LINE_BYTES_MAX, true));
        assert_eq!((lines[1].1.len(), lines[1].2), (3, false));
    }

    #[test]
    fn everything_is_bounded() {
        let mut output = Output::default();
        for i in 0..NOTES_MAX as u64 + 5 {
            output.serial(i, b'\n');
            output.unknown_access(i, true, 0x80, 1, None);
        }
        assert_eq!(output.unknown_accesses(), NOTES_MAX as u64 + 5);
        assert_eq!(output.take_notes().len(), NOTES_MAX);
        assert_eq!(output.lost().0, 5 + UNKNOWN_NOTED_MAX);
        for _ in 0..CONSOLE_BYTES_MAX + 10 {
            output.serial(0, b'y');
        }
        assert!(output.take_console().len() <= CONSOLE_BYTES_MAX);
        output.port(0, 2, &vec![0; PORT_BYTES_MAX]);
        assert_eq!(output.full_port(), Some(2));
        output.take_port(2);
        assert_eq!(output.full_port(), None);
    }
}
