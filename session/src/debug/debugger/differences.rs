//! The first difference between two timelines.
//!
//! Latencies and clocks differ on all timelines after a fork, so the vtimes of entries are not compared. The entries are
//! divided into streams: the lines of each program, the data of each TCP connection in each direction, other messages, the
//! faults, and each state variable. Two timelines differ where a stream has other parts, or lacks one. How TCP divides data
//! into segments, and which of them it sends again, makes no difference.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use everett_log_template::template;
use everett_vmm::wire::summary::{Payload, Summary};

use super::entry::{Entry, Happened, Kind, Message};
use super::index::Index;
use super::limits::{COMPARED_BYTES, PARTS_MAX, STREAM_PARTS_MAX};
use crate::explore::path_runner::Interrupted;
use crate::world::event::What;

/// Flag of TCP: the first segment of a connection.
const SYN: u8 = 1 << 1;
/// Maximum length of a part of a connection's data that is compared as a whole, in bytes.
const PART_BYTES: usize = 64;

/// Content of entries that is compared.
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

/// A timeline that is compared: its index, and the vtime in nanoseconds up to which it is known.
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

/// Parts of a stream, in their order.
#[derive(Debug, Default)]
struct Parts {
    /// Texts of all parts, one after the other, as they are compared.
    text: Vec<u8>,
    /// The number of the entry that has a part, or in which it begins, and the end of the part in the text.
    ends: Vec<(usize, usize)>,
    /// True if the last part may go on. Only that of a connection does.
    is_open: bool,
}

/// Part of a stream.
struct Part<'p> {
    entry: usize,
    text: Cow<'p, [u8]>,
    is_open: bool,
}

impl Parts {
    /// Adds a part that is complete.
    fn add(&mut self, entry: usize, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.ends.push((entry, self.text.len()));
    }

    /// Adds data of a connection. A part ends with a line or after [`PART_BYTES`].
    fn cut(&mut self, entry: usize, data: &[u8]) {
        for byte in data {
            let start = match self.ends[..] {
                [.., (_, end)] if !self.is_open => end,
                [.., (_, end), _] => end,
                _ => 0,
            };
            self.text.push(*byte);
            let end = self.text.len();
            match self.ends.last_mut() {
                Some(last) if self.is_open => last.1 = end,
                _ => self.ends.push((entry, end)),
            }
            self.is_open = *byte != b'\n' && end - start < PART_BYTES;
        }
    }

    fn get(&self, n: usize) -> Option<Part<'_>> {
        let (entry, end) = *self.ends.get(n)?;
        let start = n.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |(_, end)| *end);
        let text = Cow::Borrowed(self.text.get(start..end)?);
        Some(Part { entry, text, is_open: self.is_open && n + 1 == self.ends.len() })
    }
}

impl Part<'_> {
    /// True if the parts do not differ, as far as both are known.
    fn is_like(&self, other: &Part<'_>) -> bool {
        self.text == other.text
            || self.is_open && other.text.starts_with(&self.text)
            || other.is_open && self.text.starts_with(&other.text)
    }

    /// Returns the part of a connection without numbers, times and identifiers.
    fn plain(self) -> Self {
        // The template of a text's beginning can differ from the beginning of its template.
        let text = if self.is_open { String::new() } else { template(&characters(&self.text)) };
        Part { text: Cow::Owned(text.into_bytes()), ..self }
    }
}

/// Returns bytes as a text of as many characters. Every byte is another text, also if it is no character.
fn characters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Differences between two timelines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differences {
    /// The first difference of each kind of entries, the earliest first.
    pub first: Vec<(Kind, Difference)>,
    /// Vtimes in nanoseconds up to which this and the other timeline were compared.
    pub until_ns: (u64, u64),
}

/// Returns the first difference of each kind of entries after the vtime `since_ns`. What one side lacks counts only up to
/// the end of this side. The comparison ends when `goes_on` returns false.
///
/// # Errors
/// Returns [`Interrupted`] if `goes_on` ended the comparison.
pub fn differences(
    here: Side<'_>,
    there: Side<'_>,
    since_ns: u64,
    comparison: Comparison,
    goes_on: &dyn Fn() -> bool,
) -> Result<Differences, Interrupted> {
    let maxima = (PARTS_MAX, STREAM_PARTS_MAX);
    let (all_ours, our_end_ns) = streams(here, since_ns, comparison, maxima, goes_on)?;
    let (all_theirs, their_end_ns) = streams(there, since_ns, comparison, maxima, goes_on)?;
    let all: BTreeSet<&Stream> = all_ours.keys().chain(all_theirs.keys()).collect();
    let mut found: Vec<(u64, Kind, Difference)> = Vec::new();
    let none = Parts::default();
    for stream in all {
        if !goes_on() {
            return Err(Interrupted);
        }
        let ours = all_ours.get(stream).unwrap_or(&none);
        let theirs = all_theirs.get(stream).unwrap_or(&none);
        let is_plain = comparison == Comparison::Template && matches!(stream, Stream::Connection { .. });
        let is_like = |n: &usize| match (ours.get(*n), theirs.get(*n)) {
            (Some(one), Some(other)) if is_plain && one.text != other.text => {
                one.plain().is_like(&other.plain())
            }
            (Some(one), Some(other)) => one.is_like(&other),
            _ => false,
        };
        let Some(n) = (0..ours.ends.len().max(theirs.ends.len())).find(|n| !is_like(n)) else { continue };
        let entry = |parts: &Parts| parts.get(n).map(|part| part.entry);
        let (one, other) = (entry(ours), entry(theirs));
        let vtime = |index: &Index, n: Option<usize>| Some(index.entries().get(n?)?.vtime_ns);
        let Some(at) = vtime(here.0, one).into_iter().chain(vtime(there.0, other)).min() else { continue };
        let is_after_end = one.is_none() && at > our_end_ns || other.is_none() && at > their_end_ns;
        if !is_after_end {
            found.push((at, stream.kind(), Difference { here: one, there: other }));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    let mut first: Vec<(Kind, Difference)> = Vec::new();
    for (_, kind, difference) in found {
        if !first.iter().any(|(of, _)| *of == kind) {
            first.push((kind, difference));
        }
    }
    Ok(Differences { first, until_ns: (our_end_ns, their_end_ns) })
}

/// Returns the streams of a timeline, and the vtime in nanoseconds up to which they are complete. `maxima` are the maximum
/// numbers of parts of all streams, and of one.
fn streams(
    (index, end_ns): Side<'_>,
    since_ns: u64,
    comparison: Comparison,
    (parts_max, stream_parts_max): (usize, usize),
    goes_on: &dyn Fn() -> bool,
) -> Result<(BTreeMap<Stream, Parts>, u64), Interrupted> {
    let mut streams: BTreeMap<Stream, Parts> = BTreeMap::new();
    let mut connections = Connections::default();
    let mut count: usize = 0;
    for (entry, it) in index.entries().iter().enumerate() {
        if it.vtime_ns > end_ns {
            break;
        }
        if !goes_on() {
            return Err(Interrupted);
        }
        // Connections can be older.
        let data = it.message().and_then(|message| connections.take(message));
        if it.vtime_ns <= since_ns {
            continue;
        }
        let parts = match (&data, stream(it)) {
            (Some((stream, _)), _) => streams.entry(stream.clone()).or_default(),
            (None, Some(stream)) => streams.entry(stream).or_default(),
            (None, None) => continue,
        };
        let before = parts.ends.len();
        match data {
            Some((_, data)) => parts.cut(entry, data),
            None => parts.add(entry, &text(it, comparison)),
        }
        // An entry has at most as many parts as a frame has bytes.
        count += parts.ends.len() - before;
        if count >= parts_max || parts.ends.len() >= stream_parts_max {
            return Ok((streams, end_ns.min(it.vtime_ns.saturating_sub(1))));
        }
    }
    Ok((streams, end_ns))
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
        Happened::State(change) => {
            let value = change.new.as_deref().map(whole);
            value.map_or_else(|| "none".to_owned(), |value| format!("value {value}"))
        }
        Happened::Message(message) => {
            let data = message.data.as_deref().map(|data| whole(&characters(data)));
            data.map_or_else(|| "unknown".to_owned(), |data| format!("data {data}"))
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

    fn first(here: Side<'_>, there: Side<'_>, comparison: Comparison) -> Vec<(Kind, Difference)> {
        differences(here, there, 5, comparison, &|| true).unwrap().first
    }

    #[test]
    fn only_contents_within_a_stream_count() {
        let one = index(&[(1, "x", "before"), (10, "x", "a 1"), (11, "y", "b"), (12, "x", "elected")]);
        let other = index(&[(1, "x", "else"), (9, "y", "b"), (13, "x", "a 2"), (20, "x", "lost")]);
        let first = |comparison| first((&one, 30), (&other, 30), comparison);
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
            let (mut connections, mut parts) = (Connections::default(), Parts::default());
            for (n, segment) in segments.iter().enumerate() {
                let (_, data) = connections.take(segment).unwrap();
                parts.cut(n, data);
            }
            let all = (0..).map_while(|n| parts.get(n));
            all.map(|part| (part.entry, characters(&part.text))).collect::<Vec<_>>()
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
        let first = |end_ns| first((&one, 30), (&other, end_ns), Comparison::Exact);
        assert_eq!(first(30), [(Kind::Log, Difference { here: Some(1), there: None })]);
        assert_eq!(first(15), []);
    }

    #[test]
    fn a_comparison_ends_at_the_bound_of_parts() {
        let mut one = Index::default();
        for (vtime_ns, seq) in [(10, 0), (11, 8), (12, 16)] {
            let message = Message { data: None, ..segment(16, seq, b"") };
            let step = FrameStep { vtime: vtime_ns, frame: u64::from(seq), ..message.step };
            one.add_data(u64::from(seq), &[b'\n'; 8]);
            one.add(Entry { vtime_ns, what: Happened::Message(Message { step, data: None }) });
        }
        one.complete();
        let parts = |maxima| {
            let (all, end_ns) = streams((&one, 20), 5, Comparison::Exact, maxima, &|| true).unwrap();
            (all.values().map(|parts| parts.ends.len()).sum::<usize>(), end_ns)
        };
        assert_eq!((parts((100, 100)), parts((16, 100)), parts((100, 9))), ((24, 20), (16, 10), (16, 10)));
    }

    #[test]
    fn a_comparison_ends_where_data_is_missing() {
        let (one, other) =
            (index(&[(10, "x", "a"), (20, "x", "b")]), index(&[(10, "x", "a"), (20, "x", "c")]));
        assert_eq!(first((&one, 30), (&other, 30), Comparison::Exact).len(), 1);
        assert_eq!(first((&one, 19), (&other, 30), Comparison::Exact), []);
        assert_eq!(first((&one, 30), (&other, 19), Comparison::Exact), []);
    }

    #[test]
    fn a_comparison_can_be_interrupted() {
        let one = index(&[(10, "x", "a")]);
        let interrupted = differences((&one, 30), (&one, 30), 5, Comparison::Exact, &|| false);
        assert_eq!(interrupted, Err(Interrupted));
    }
}
