//! Lines that programs in a guest send through the SDK.
//!
//! Programs write packets to the SDK port, one packet with each write:
//!
//! ```text
//! L SENDER + BYTES        a piece of a line, more follow
//! L SENDER . BYTES \n     the last piece of a line
//! E EDGE MODULE           an edge of an instrumented program
//! ```
//!
//! Packets have no spaces between their parts. `SENDER` and `EDGE` are eight hexadecimal digits. The sender is the
//! number of a thread. All pieces of a line have the same sender, so lines of several programs do not mix. If `BYTES`
//! contains newlines before its end, Everett splits the text at them into several lines.
//!
//! **Invariants.** The events are a function of the packets and their vtimes. A guest can write any bytes, and the
//! memory for packets stays bounded. An invalid packet or line is a finding of the property `bad sdk line`, and
//! Everett continues to read packets.

use std::collections::BTreeMap;

use everett_explorer::property::builtin;
use everett_explorer::sdk::limits::{NAME_BYTES_MAX, SDK_LINE_BYTES_MAX};
use everett_explorer::sdk::{self, SdkLine};
use serde::{Deserialize, Serialize};

use super::state_error::StateError;
use super::{Conversation, What};

/// Length of the intervals in which the size of packets is limited, in nanoseconds of vtime.
const STRETCH_NS: u64 = 100_000_000;
/// Maximum size of the SDK packets in an interval, in bytes. Further packets of the interval are dropped.
const STRETCH_BYTES_MAX: u64 = 8 << 20;
/// Size added for each packet, in bytes, so that many short packets exceed the bound as well.
const PACKET_OVERHEAD_BYTES: u64 = 256;
/// Maximum number of senders with an unfinished line.
const SENDERS_MAX: usize = 64;
/// Maximum number of assertions violated during the boot that Everett keeps, to report them again when the timeline
/// begins.
const VIOLATIONS_MAX: usize = 64;
/// Length of the part of an invalid line that a finding shows, in bytes.
const SHOWN_BYTES: usize = 200;
/// Length of a packet's letter and number, in bytes.
const HEAD_BYTES: usize = 9;

/// Request for a quiet period, i.e. a time without faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    /// Vtime of the request, in nanoseconds.
    pub vtime_ns: u64,
    /// Length of the period, in nanoseconds of vtime.
    pub for_ns: u64,
}

/// State of the reader of packets, as moments store it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Packets {
    /// Vtime at which a program first reported that its setup is complete, in nanoseconds.
    pub(super) setup_ns: Option<u64>,
    /// Unfinished lines by sender.
    partial: BTreeMap<u32, Vec<u8>>,
    /// Lines with violated assertions that arrived before the timeline began.
    violations: Vec<String>,
    /// Number of the current interval, and the size of its packets so far in bytes.
    stretch: u64,
    bytes: u64,
}

impl Packets {
    /// Returns the state after a power loss or reset of the node. It keeps `setup_ns` and drops everything else.
    pub(super) fn after_restart(&self) -> Packets {
        Packets { setup_ns: self.setup_ns, ..Packets::default() }
    }

    /// Returns an error if a stored state exceeds a bound.
    pub(super) fn check(&self) -> Result<(), StateError> {
        let short = |length: usize| length <= SDK_LINE_BYTES_MAX;
        let fits = self.partial.len() <= SENDERS_MAX
            && self.violations.len() <= VIOLATIONS_MAX
            && self.partial.values().all(|line| short(line.len()))
            && self.violations.iter().all(|line| short(line.len()));
        if fits { Ok(()) } else { Err(StateError::Inconsistent("it has more SDK lines than the maximum")) }
    }

    /// Adds a packet. Returns its content if it completes a line or has an edge.
    fn push(&mut self, packet: &[u8], vtime_ns: u64) -> Result<Packet, &'static str> {
        let stretch = vtime_ns / STRETCH_NS;
        if stretch != self.stretch {
            (self.stretch, self.bytes) = (stretch, 0);
        }
        let was_full = self.bytes > STRETCH_BYTES_MAX;
        self.bytes = self.bytes.saturating_add(packet.len() as u64 + PACKET_OVERHEAD_BYTES);
        if self.bytes > STRETCH_BYTES_MAX {
            // The first packet over the bound is an error. Later packets of the interval are dropped.
            return if was_full {
                Ok(Packet::Nothing)
            } else {
                Err("too many lines or edges in 100 ms of vtime")
            };
        }
        const MALFORMED: &str = "a program wrote to the SDK's port directly";
        let (head, content) = packet.split_at_checked(HEAD_BYTES).ok_or(MALFORMED)?;
        let number = head[1..].iter().try_fold(0u32, |number, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            Some(number << 4 | digit)
        });
        let number = number.ok_or(MALFORMED)?;
        match (head[0], content.split_first()) {
            (b'E', _) if content.len() <= NAME_BYTES_MAX => {
                Ok(Packet::Edge(String::from_utf8_lossy(content).into_owned(), number))
            }
            (b'L', Some((b'.', last))) => {
                let mut line = self.partial.remove(&number).unwrap_or_default();
                line.extend_from_slice(last);
                Ok(Packet::Lines(line))
            }
            (b'L', Some((b'+', piece))) => {
                if self.partial.len() >= SENDERS_MAX && !self.partial.contains_key(&number) {
                    return Err("too many programs write long lines at once");
                }
                let line = self.partial.entry(number).or_default();
                if line.len() + piece.len() > SDK_LINE_BYTES_MAX {
                    self.partial.remove(&number);
                    return Err("a line is too long");
                }
                line.extend_from_slice(piece);
                Ok(Packet::Nothing)
            }
            _ => Err(MALFORMED),
        }
    }
}

/// Content of a packet.
#[derive(Debug, PartialEq, Eq)]
enum Packet {
    /// The packet completes no line and has no edge, or it was dropped.
    Nothing,
    /// Complete lines.
    Lines(Vec<u8>),
    /// Edge of an instrumented program: the name of its module, and the number of the edge.
    Edge(String, u32),
}

impl Conversation {
    /// Returns the vtime at which a program first reported that its setup is complete, in nanoseconds.
    #[must_use]
    pub fn setup_ns(&self) -> Option<u64> {
        self.at.sdk.setup_ns
    }

    /// Takes the requests for quiet periods since the last call.
    pub fn take_quiets(&mut self) -> Vec<Quiet> {
        std::mem::take(&mut self.quiets)
    }

    /// Handles a packet that a program wrote at `vtime_ns`. In a world without the SDK, packets are ignored.
    pub(super) fn packet(&mut self, bytes: &[u8], vtime_ns: u64) {
        if self.script.sdk.is_none() {
            return;
        }
        match self.at.sdk.push(bytes, vtime_ns) {
            Ok(Packet::Nothing) => {}
            Ok(Packet::Edge(module, edge)) => self.event(vtime_ns, What::Edge { module, edge }),
            Ok(Packet::Lines(lines)) => {
                let lines = String::from_utf8_lossy(&lines).into_owned();
                for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                    self.sdk_line(line, vtime_ns);
                }
            }
            Err(why) => self.finding(vtime_ns, builtin::BAD_SDK_LINE, why),
        }
    }

    fn sdk_line(&mut self, text: &str, vtime_ns: u64) {
        match sdk::parse(text) {
            Err(problem) => {
                let shown = text.get(..text.floor_char_boundary(SHOWN_BYTES)).unwrap_or(text);
                return self.finding(vtime_ns, builtin::BAD_SDK_LINE, format!("{problem}: {shown}"));
            }
            Ok(SdkLine::Setup) => {
                self.at.sdk.setup_ns.get_or_insert(vtime_ns);
            }
            Ok(SdkLine::Quiet(for_ns)) => self.quiets.push(Quiet { vtime_ns, for_ns }),
            Ok(SdkLine::Assertion(assertion)) if assertion.is_violated() && self.at.seed.is_none() => {
                let earlier = &mut self.at.sdk.violations;
                if earlier.len() < VIOLATIONS_MAX {
                    earlier.push(text.to_owned());
                }
            }
            Ok(_) => {}
        }
        self.event(vtime_ns, What::Sdk { text: text.to_owned() });
    }

    /// Reports again the assertions that were violated before the timeline began. All timelines that start from the
    /// same boot share these violations, and each must report them.
    pub(super) fn repeat_violations(&mut self, vtime_ns: u64) {
        for text in std::mem::take(&mut self.at.sdk.violations) {
            self.event(vtime_ns, What::Sdk { text });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(sender: u32, mark: char, text: &str) -> Vec<u8> {
        format!("L{sender:08x}{mark}{text}").into_bytes()
    }

    #[test]
    fn pieces_of_several_senders_are_put_together() {
        let mut packets = Packets::default();
        assert_eq!(packets.push(&piece(1, '+', "a"), 0), Ok(Packet::Nothing));
        assert_eq!(packets.push(&piece(2, '+', "x"), 0), Ok(Packet::Nothing));
        assert_eq!(packets.push(&piece(1, '.', "b\n"), 0), Ok(Packet::Lines(b"ab\n".to_vec())));
        assert_eq!(packets.push(&piece(2, '.', "y\n"), 0), Ok(Packet::Lines(b"xy\n".to_vec())));
        assert_eq!(packets.push(b"E0000002aserver", 0), Ok(Packet::Edge("server".to_owned(), 42)));
        assert_eq!(packets, Packets { bytes: packets.bytes, ..Packets::default() });
    }

    #[test]
    fn bounds_hold_and_are_reported() {
        let mut packets = Packets::default();
        let part = "x".repeat(16 << 10);
        let parts = SDK_LINE_BYTES_MAX / part.len();
        for _ in 0..parts {
            assert_eq!(packets.push(&piece(1, '+', &part), 0), Ok(Packet::Nothing));
        }
        assert_eq!(packets.push(&piece(1, '+', &part), 0), Err("a line is too long"));
        assert!(packets.partial.is_empty());
        for sender in 0..SENDERS_MAX as u32 {
            assert_eq!(packets.push(&piece(sender, '+', ""), 0), Ok(Packet::Nothing));
        }
        assert!(packets.push(&piece(99, '+', ""), 0).is_err());
        assert!(packets.check().is_ok());
        for bad in [&b""[..], b"L0000000", b"L0000000g.", b"L00000000", b"L00000000-", b"X00000000."] {
            assert!(packets.push(bad, 0).is_err(), "{bad:?}");
        }
        let long_name = format!("E00000000{}", "n".repeat(NAME_BYTES_MAX + 1));
        assert!(packets.push(long_name.as_bytes(), 0).is_err());
    }

    #[test]
    fn a_flood_is_reported_once_in_each_interval() {
        let mut packets = Packets::default();
        let mut floods = 0;
        let mut taken = 0;
        for at in [0, STRETCH_NS] {
            for _ in 0..2 * STRETCH_BYTES_MAX / PACKET_OVERHEAD_BYTES {
                match packets.push(b"E00000000m", at) {
                    Ok(Packet::Edge(..)) => taken += 1,
                    Ok(_) => {}
                    Err(_) => floods += 1,
                }
            }
        }
        assert_eq!((floods, taken), (2, 2 * (STRETCH_BYTES_MAX / (PACKET_OVERHEAD_BYTES + 10))));
    }

    proptest! {
        /// No packet causes a failure or exceeds a bound. A stored state continues like a state that was never stored.
        #[test]
        fn any_packets_are_taken(
            packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), 0..3u32, 0..4u8), 0..100),
        ) {
            let (mut one, mut other) = (Packets::default(), Packets::default());
            for (bytes, sender, form) in packets {
                let packet = match form {
                    0 => bytes,
                    1 => [&b"E0000000f"[..], &bytes].concat(),
                    2 => [format!("L{sender:08x}+").as_bytes(), &bytes].concat(),
                    _ => [format!("L{sender:08x}.").as_bytes(), &bytes].concat(),
                };
                let state = postcard::to_stdvec(&other).unwrap();
                other = postcard::from_bytes(&state).unwrap();
                prop_assert_eq!(one.push(&packet, 5), other.push(&packet, 5));
                prop_assert!(one.check().is_ok());
            }
            prop_assert_eq!(one, other);
        }
    }
}
