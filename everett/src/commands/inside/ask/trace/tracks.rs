//! Tracks of a trace, and the file to which they are written.

use std::collections::BTreeMap;
use std::io::{self, Write};

use everett_inspect::current::Current;
use prost::Message as _;

use super::messages::{
    DebugAnnotation, EventType, ProcessDescriptor, ThreadDescriptor, Trace, TracePacket, TrackDescriptor,
    TrackEvent,
};

/// Number of the only writer.
const SEQUENCE: u32 = 1;
/// Number of bits for thread IDs of a node. Linux has at most 2^22 (`PID_MAX_LIMIT`).
const TID_BITS: u32 = 22;

/// A track. Each node is a process of the trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    /// The whole world.
    World,
    /// A node.
    Node(usize),
    /// System calls, page faults and signals of a thread.
    Thread(usize, u32),
    /// Times at which a thread runs on the CPU.
    Cpu(usize, u32),
    /// Messages that a node sends.
    Sent(usize),
    /// Messages that a node receives.
    Received(usize),
    /// Requests to disks, which overlap: the row in which a request has room.
    Disk(usize, usize),
    /// Log lines.
    Log(usize, String),
}

/// An event on a track.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) category: &'static str,
    pub(super) values: Vec<(&'static str, String)>,
    pub(super) flow: Option<u64>,
    pub(super) ended_flow: Option<u64>,
}

/// Writer of a trace.
pub(super) struct Tracks<W> {
    out: W,
    nodes: Vec<String>,
    uuids: BTreeMap<Track, u64>,
    /// Number of written events.
    pub(super) events: u64,
}

impl<W: Write> Tracks<W> {
    pub(super) fn new(out: W, nodes: Vec<String>) -> Tracks<W> {
        Tracks { out, nodes, uuids: BTreeMap::new(), events: 0 }
    }

    /// Writes a slice.
    pub(super) fn slice(
        &mut self,
        track: &Track,
        thread: Option<&Current>,
        (begin_ns, end_ns): (u64, Option<u64>),
        mark: Mark,
    ) -> io::Result<()> {
        self.mark(track, thread, begin_ns, mark, EventType::SliceBegin)?;
        match end_ns {
            // The slice of something that has not ended is open.
            None => Ok(()),
            Some(end_ns) => self.mark(track, thread, end_ns, Mark::default(), EventType::SliceEnd),
        }
    }

    /// Writes an instant.
    pub(super) fn instant(
        &mut self,
        track: &Track,
        thread: Option<&Current>,
        at_ns: u64,
        mark: Mark,
    ) -> io::Result<()> {
        self.mark(track, thread, at_ns, mark, EventType::Instant)
    }

    /// Ends the trace.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn mark(
        &mut self,
        track: &Track,
        thread: Option<&Current>,
        at_ns: u64,
        mark: Mark,
        kind: EventType,
    ) -> io::Result<()> {
        let uuid = self.uuid(track, thread)?;
        let value = |(name, value): (&str, String)| DebugAnnotation {
            name: Some(name.to_owned()),
            string_value: Some(value),
        };
        let is_end = kind == EventType::SliceEnd;
        let event = TrackEvent {
            r#type: Some(kind.into()),
            track_uuid: Some(uuid),
            name: (!is_end).then_some(mark.name),
            categories: if is_end { Vec::new() } else { vec![mark.category.to_owned()] },
            debug_annotations: mark.values.into_iter().map(value).collect(),
            flow_ids: mark.flow.into_iter().collect(),
            terminating_flow_ids: mark.ended_flow.into_iter().collect(),
        };
        self.events += 1;
        self.packet(TracePacket {
            timestamp: Some(at_ns),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.out.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }

    /// Returns the number of a track. Describes the track the first time.
    fn uuid(&mut self, track: &Track, thread: Option<&Current>) -> io::Result<u64> {
        if let Some(uuid) = self.uuids.get(track) {
            return Ok(*uuid);
        }
        let parent = match track {
            Track::World | Track::Node(_) => None,
            Track::Cpu(node, tid) => Some(Track::Thread(*node, *tid)),
            Track::Thread(node, _)
            | Track::Sent(node)
            | Track::Received(node)
            | Track::Disk(node, _)
            | Track::Log(node, _) => Some(Track::Node(*node)),
        };
        let parent_uuid = match &parent {
            Some(parent) => Some(self.uuid(parent, thread)?),
            None => None,
        };
        let uuid = self.uuids.len() as u64 + 1;
        self.uuids.insert(track.clone(), uuid);
        let mut descriptor = TrackDescriptor { uuid: Some(uuid), parent_uuid, ..TrackDescriptor::default() };
        let name = match track {
            Track::World => "world".to_owned(),
            Track::Node(node) => {
                let process_name = Some(self.nodes.get(*node).cloned().unwrap_or_default());
                descriptor.process = Some(ProcessDescriptor { pid: Some(pid(*node)), process_name });
                String::new()
            }
            Track::Thread(node, tid) => {
                let name =
                    thread.map_or(String::new(), |thread| format!("{} {}", thread.process, thread.pid));
                let tid = Some(pid(*node) << TID_BITS | (*tid as i32 & ((1 << TID_BITS) - 1)));
                descriptor.thread =
                    Some(ThreadDescriptor { pid: Some(pid(*node)), tid, thread_name: Some(name) });
                descriptor.parent_uuid = None;
                String::new()
            }
            Track::Cpu(..) => "on the CPU".to_owned(),
            Track::Sent(_) => "messages sent".to_owned(),
            Track::Received(_) => "messages received".to_owned(),
            Track::Disk(_, row) => format!("disk requests {row}"),
            Track::Log(_, unit) => format!("log {unit}"),
        };
        descriptor.name = Some(name).filter(|name| !name.is_empty());
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(uuid)
    }
}

/// Returns the process ID of a node in the trace. A world has at most 64 nodes.
fn pid(node: usize) -> i32 {
    node as i32 + 1
}
