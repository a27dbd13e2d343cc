//! The first difference between two timelines.
//!
//! Latencies and clocks differ on all timelines after a fork, so the vtimes of entries are not compared. The entries are
//! divided into streams: the lines of each program, the data of each TCP connection in each direction, other messages, the
//! faults, and each state variable. Two timelines differ where a stream has other parts, or lacks one. How TCP divides data
//! into segments, and which of them it sends again, makes no difference.

use std::collections::{BTreeMap, BTreeSet};

use everett_log_template::template;
use everett_vmm::wire::summary::{Payload, Summary};

use super::entry::{Entry, Happened, Kind, Message};
use super::index::Index;
use super::limits::COMPARED_BYTES;
use crate::world::event::What;

/// Flag of TCP: the first segment of a connection.
const SYN: u8 = 1 << 1;
/// Maximum length of a part of a connection's data that is compared as a whole, in bytes.
const PART_BYTES: usize = 64;

/// What is compared of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The whole text or data.
    Exact,
    /// The text or data without numbers, times and identifiers. Fewer entries differ, and those are more likely to
    /// matter.
    Template,
}

/// First difference between two timelines: an entry of each, by its number. One of them can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Number of the entry on this timeline.
    pub here: Option<usize>,
    /// Number of the entry on the other timeline.
    pub there: Option<usize>,
}

/// A stream of entries that are compared in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    Faults,
    Lines(String, String),
    Programs(String, String),
    /// Messages other than TCP segments, by nodes and by the port of the service.
    Messages(u8, Option<u8>, u16),
    /// Data of a TCP connection in one direction.
    Connection {
        from: u8,
        to: u8,
        service: u16,
        number: u32,
    },
    State(Option<String>, String),
}

/// A timeline that is compared: its index, and the vtime in nanoseconds at which it ends.
pub type Side<'s> = (&'s Index, u64);

impl Stream {
    /// Returns the kind of the stream's entries.
    fn kind(&self) -> Kind {
        match self {
            Stream::Faults => Kind::Fault,
            Stream::Lines(..) => Kind::Log,
            Stream::Programs(..) => Kind::Event,
            Stream::Messages(..) | Stream::Connection { .. } => Kind::Message,
            Stream::State(..) => Kind::State,
        }
    }
}

/// Part of a stream: the number of the entry that has it, or in which it begins, and what is compared of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    entry: usize,
    text: String,
    /// True if the text may go on. Only the last part of a connection is open.
    is_open: bool,
}

impl Part {
    /// True if the parts do not differ, as far as both are known.
    fn is_like(&self, other: &Part) -> bool {
        self.text == other.text
            || self.is_open && other.text.starts_with(&self.text)
            || other.is_open && self.text.starts_with(&other.text)
    }
}

/// Returns the first difference of each kind of entries after the vtime `since_ns`, the earliest first. What one side lacks
/// counts only up to the end of this side.
#[must_use]
pub fn differences(
    here: Side<'_>,
    there: Side<'_>,
    since_ns: u64,
    comparison: Comparison,
) -> Vec<(Kind, Difference)> {
    let (ours, theirs) = (streams(here.0, since_ns, comparison), streams(there.0, since_ns, comparison));
    let all: BTreeSet<&Stream> = ours.keys().chain(theirs.keys()).collect();
    let mut found: Vec<(u64, Kind, Difference)> = Vec::new();
    for stream in all {
        let of = |side: &BTreeMap<Stream, Vec<Part>>| side.get(stream).cloned().unwrap_or_default();
        let (ours, theirs) = (of(&ours), of(&theirs));
        let is_like =
            |n: &usize| ours.get(*n).zip(theirs.get(*n)).is_some_and(|(one, other)| one.is_like(other));
        let Some(n) = (0..ours.len().max(theirs.len())).find(|n| !is_like(n)) else { continue };
        let entry = |parts: &[Part]| parts.get(n).map(|part| part.entry);
        let (one, other) = (entry(&ours), entry(&theirs));
        let vtime = |index: &Index, n: Option<usize>| Some(index.entries().get(n?)?.vtime_ns);
        let Some(at) = vtime(here.0, one).into_iter().chain(vtime(there.0, other)).min() else { continue };
        let is_after_end = one.is_none() && at > here.1 || other.is_none() && at > there.1;
        if !is_after_end {
            found.push((at, stream.kind(), Difference { here: one, there: other }));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    let mut kinds: Vec<(Kind, Difference)> = Vec::new();
    for (_, kind, difference) in found {
        if !kinds.iter().any(|(of, _)| *of == kind) {
            kinds.push((kind, difference));
        }
    }
    kinds
}

fn streams(index: &Index, since_ns: u64, comparison: Comparison) -> BTreeMap<Stream, Vec<Part>> {
    let mut streams: BTreeMap<Stream, Vec<Part>> = BTreeMap::new();
    let mut connections = Connections::default();
    for (entry, it) in index.entries().iter().enumerate() {
        // Connections can be older.
        if let Some(message) = it.message()
            && let Some((stream, data)) = connections.take(message)
        {
            if it.vtime_ns > since_ns {
                cut(streams.entry(stream).or_default(), entry, data);
            }
            continue;
        }
        if it.vtime_ns > since_ns
            && let Some(stream) = stream(it)
        {
            let text = text(it, comparison);
            streams.entry(stream).or_default().push(Part { entry, text, is_open: false });
        }
    }
    if comparison == Comparison::Template {
        let lines = streams.iter_mut().filter(|(stream, _)| matches!(stream, Stream::Connection { .. }));
        for part in lines.flat_map(|(_, parts)| parts) {
            // The template of a text's beginning can differ from the beginning of its template.
            part.text = if part.is_open { String::new() } else { template(&part.text) };
        }
    }
    streams
}

/// Adds data of a connection. A part ends with a line or after [`PART_BYTES`].
fn cut(parts: &mut Vec<Part>, entry: usize, data: &[u8]) {
    for byte in data {
        if !parts.last().is_some_and(|part| part.is_open) {
            parts.push(Part { entry, text: String::new(), is_open: true });
        }
        let Some(part) = parts.last_mut() else { return };
        // Every byte is another text, also if it is no character.
        part.text.push(char::from(*byte));
        part.is_open = *byte != b'\n' && part.text.chars().count() < PART_BYTES;
    }
}

/// TCP connections of a timeline. Each has a number among those of its service, and sends each byte once, however often
/// the segment with it is sent.
#[derive(Default)]
struct Connections {
    /// Stream, and sequence number of the next byte, by the nodes and ports of a direction.
    known: BTreeMap<(u8, u8, u16, u16), (Stream, u32)>,
    /// Number of connections of a service, by nodes and port.
    counts: BTreeMap<(u8, u8, u16), u32>,
}

impl Connections {
    /// Returns the stream of a TCP segment, and the data that no earlier segment had. `None` for other messages.
    fn take<'m>(&mut self, message: &'m Message) -> Option<(Stream, &'m [u8])> {
        let Summary::Ip { payload: Payload::Tcp { from_port, to_port, flags, seq, .. }, .. } =
            message.step.summary
        else {
            return None;
        };
        let (from, to) = (message.step.from, message.step.to?);
        // The port of the service is the lower one: those of clients are drawn from a high range.
        let service = from_port.min(to_port);
        let key = (from, to, from_port, to_port);
        let begins = flags & SYN != 0;
        if begins && self.known.get(&key).is_some_and(|(_, next)| *next == seq.wrapping_add(1)) {
            // The first segment is sent again.
            return Some((self.known.get(&key)?.0.clone(), &[]));
        }
        if begins || !self.known.contains_key(&key) {
            let count = self.counts.entry((from, to, service)).or_default();
            *count = count.saturating_add(1);
            let stream = Stream::Connection { from, to, service, number: *count };
            self.known.insert(key, (stream, seq.wrapping_add(u32::from(begins))));
        }
        let (stream, next) = self.known.get_mut(&key)?;
        let data = message.data.as_deref().unwrap_or_default();
        let known = next.wrapping_sub(seq);
        // A distance over half the range of numbers is one into the other direction: bytes before these are missing.
        let known = if known > u32::MAX / 2 { 0 } else { known as usize };
        let new = data.get(known..).unwrap_or_default();
        if !new.is_empty() {
            *next = seq.wrapping_add(data.len() as u32);
        }
        Some((stream.clone(), new))
    }
}

/// Returns the stream of an entry that is no TCP segment. `None` if the entry is not compared.
fn stream(entry: &Entry) -> Option<Stream> {
    Some(match &entry.what {
        Happened::State(change) => Stream::State(change.node.clone(), change.variable.clone()),
        Happened::Message(message) => {
            let port = match &message.step.summary {
                Summary::Ip { payload: Payload::Udp { from_port, to_port, .. }, .. } => {
                    (*from_port).min(*to_port)
                }
                _ => 0,
            };
            Stream::Messages(message.step.from, message.step.to, port)
        }
        Happened::Event(event) => match &event.what {
            What::Line { unit, .. } => Stream::Lines(event.node.clone(), unit.clone()),
            What::Kernel { .. } => Stream::Lines(event.node.clone(), "kernel".to_owned()),
            What::Fault { .. } | What::Healed { .. } | What::Effect { .. } | What::Loss(_) => Stream::Faults,
            What::Start { unit, .. } | What::Exit { unit, .. } => {
                Stream::Programs(event.node.clone(), unit.clone())
            }
            _ => return None,
        },
        Happened::Hit(_) => return None,
    })
}

/// Returns what is compared of an entry.
fn text(entry: &Entry, comparison: Comparison) -> String {
    let whole = |text: &str| match comparison {
        Comparison::Exact => text.to_owned(),
        Comparison::Template => template(head(text)),
    };
    match &entry.what {
        Happened::State(change) => format!("{:?}", change.new.as_deref().map(whole)),
        Happened::Message(message) => {
            let data: Option<String> =
                message.data.as_deref().map(|data| data.iter().map(|byte| char::from(*byte)).collect());
            format!("{:?}", data.as_deref().map(whole))
        }
        Happened::Event(event) => match &event.what {
            What::Line { text, .. } | What::Kernel { text } => whole(text),
            What::Fault { line, .. } => format!("begins {}", fault(line, comparison)),
            What::Healed { .. } => "ends".to_owned(),
            What::Effect { text } => whole(text),
            What::Loss(loss) => whole(&format!("{loss:?}")),
            What::Start { .. } => "starts".to_owned(),
            What::Exit { status, .. } => status.clone(),
            _ => String::new(),
        },
        Happened::Hit(hit) => hit.property.clone(),
    }
}

/// Returns what is compared of a fault: its line in the plan, or the line without the times.
fn fault(line: &str, comparison: Comparison) -> String {
    match serde_json::from_str(line) {
        Ok(serde_json::Value::Object(mut fields)) if comparison == Comparison::Template => {
            for time in ["at", "for"] {
                fields.remove(time);
            }
            serde_json::Value::Object(fields).to_string()
        }
        _ => line.to_owned(),
    }
}

/// Returns the beginning of a text.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(COMPARED_BYTES)]
}

#[cfg(test)]
mod tests {
    use everett_vmm::wire::log::{FrameStep, FrameStepKind};

    use super::*;
    use crate::world::event::{Event, StreamName};

    fn index(lines: &[(u64, &str, &str)]) -> Index {
        let mut index = Index::default();
        for (vtime_ns, unit, text) in lines {
            let what = What::Line {
                unit: (*unit).to_owned(),
                stream: StreamName::Stdout,
                text: (*text).to_owned(),
                truncated: false,
            };
            let event = Event { vtime_ns: *vtime_ns, node: "a".to_owned(), what };
            index.add(Entry { vtime_ns: *vtime_ns, what: Happened::Event(event) });
        }
        index.complete();
        index
    }

    #[test]
    fn only_contents_within_a_stream_count() {
        let one = index(&[(1, "x", "before"), (10, "x", "a 1"), (11, "y", "b"), (12, "x", "elected")]);
        let other = index(&[(1, "x", "else"), (9, "y", "b"), (13, "x", "a 2"), (20, "x", "lost")]);
        let first = |comparison| differences((&one, 30), (&other, 30), 5, comparison);
        assert_eq!(first(Comparison::Exact), [(Kind::Log, Difference { here: Some(1), there: Some(2) })]);
        assert_eq!(first(Comparison::Template), [(Kind::Log, Difference { here: Some(3), there: Some(3) })]);
    }

    /// Returns the outcome of a TCP segment from a client to a service.
    fn segment(flags: u8, seq: u32, data: &[u8]) -> Message {
        let payload =
            Payload::Tcp { from_port: 50_000, to_port: 80, flags, seq, ack: 0, len: data.len() as u16 };
        let address = std::net::IpAddr::from([10, 0, 0, 1]);
        let step = FrameStep {
            kind: FrameStepKind::Deliver,
            vtime: 1,
            sent_at: 1,
            from: 0,
            to: Some(1),
            frame: 1,
            len: 60,
            flipped: false,
            summary: Summary::Ip { from: address, to: address, payload },
        };
        Message { step, data: Some(data.into()) }
    }

    #[test]
    fn segments_of_a_connection_are_one_text() {
        let texts = |segments: &[Message]| {
            let (mut connections, mut parts) = (Connections::default(), Vec::new());
            for (n, segment) in segments.iter().enumerate() {
                let (_, data) = connections.take(segment).unwrap();
                cut(&mut parts, n, data);
            }
            parts.into_iter().map(|part| (part.entry, part.text)).collect::<Vec<_>>()
        };
        let last = u32::MAX;
        let whole = [segment(SYN, last, b""), segment(SYN, last, b""), segment(16, 0, b"a 1\nb 2\nc")];
        assert_eq!(texts(&whole), [(2, "a 1\n".to_owned()), (2, "b 2\n".to_owned()), (2, "c".to_owned())]);
        let pieces = [
            segment(16, 0, b"a 1"),
            segment(16, 0, b"a 1\nb"),
            segment(16, 0, b"a 1"),
            segment(16, 5, b" 2\nc"),
        ];
        assert_eq!(texts(&pieces), [(0, "a 1\n".to_owned()), (1, "b 2\n".to_owned()), (3, "c".to_owned())]);
        assert_eq!(texts(&[segment(16, 0, &[0x80; 100])]).len(), 2);
    }

    #[test]
    fn a_missing_entry_counts_up_to_the_end_of_the_shorter_timeline() {
        let (one, other) = (index(&[(10, "x", "a"), (20, "x", "b")]), index(&[(10, "x", "a")]));
        let first = |end_ns| differences((&one, 30), (&other, end_ns), 5, Comparison::Exact);
        assert_eq!(first(30), [(Kind::Log, Difference { here: Some(1), there: None })]);
        assert_eq!(first(15), []);
    }
}
