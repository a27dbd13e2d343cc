//! `everett ask RUN ID trace`: writes a trace of a span of a timeline for Perfetto.
//!
//! - `messages`: the messages of the format
//! - `tracks`: tracks, and the file

mod messages;
mod tracks;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufWriter};
use std::path::Path;

use everett_host::interrupt::Interrupt;
use everett_inspect::arguments::DiskRequest;
use everett_inspect::current::Current;
use everett_session::debug::calls;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::everything::Everything;
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::steps::{Happened, Kind, Step, Steps};
use everett_session::debug::questions::syscalls::{Call, Calls};
use everett_session::world::event;
use everett_session::world::event::Event;
use everett_vmm::wire::log::{FrameStep, FrameStepKind};
use serde::Serialize;

use super::super::new_file::NewFile;
use super::wanted::Wanted;
use crate::ui::Ui;
use tracks::{Mark, Track, Tracks};

/// Maximum number of disk requests of a node in the trace at a time.
const DISK_ROWS_MAX: usize = 1_024;
/// Steps in the trace.
const KINDS: [Kind; 8] = [
    Kind::Woken,
    Kind::Switch,
    Kind::Fault,
    Kind::Sent,
    Kind::Handled,
    Kind::Ends,
    Kind::DiskStart,
    Kind::DiskEnd,
];

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    file: &'a str,
    events: u64,
}

/// Row of the trace for requests to disks: the address, vtime and content of a request that is not completed.
type Row = Option<(u64, u64, DiskRequest)>;

/// Everything that is written to a trace.
struct Writer<W> {
    tracks: Tracks<W>,
    nodes: Vec<String>,
    /// Nodes whose steps are wanted.
    wanted: Vec<usize>,
    since_ns: u64,
    until_ns: u64,
    /// Threads that run, by node, and the vtimes since when.
    running: BTreeMap<usize, (Current, u64)>,
    /// Requests that the disks of a node have not completed, by row: address, vtime and content.
    requests: BTreeMap<usize, Vec<Row>>,
}

pub(super) fn run(
    ui: &Ui,
    nodes: &[String],
    cursor: &mut Cursor<'_>,
    span: &Span<'_>,
    wanted: &Wanted<'_>,
    (output, strings): (&Path, usize),
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let file = NewFile::create(output)?;
    let writer = RefCell::new(Writer {
        tracks: Tracks::new(BufWriter::new(file.file()), nodes.to_vec()),
        nodes: nodes.to_vec(),
        wanted: span.nodes.clone(),
        since_ns: span.since_ns,
        until_ns: span.until_ns,
        running: BTreeMap::new(),
        requests: BTreeMap::new(),
    });
    let mut failed: Option<io::Error> = None;
    {
        let failed = RefCell::new(&mut failed);
        let note = |result: io::Result<()>| {
            if let Err(error) = result {
                failed.borrow_mut().get_or_insert(error);
            }
        };
        let is_wanted = |thread: &_| wanted.is(thread);
        let goes_on = || !interrupt.wanted() && failed.borrow().is_none();
        let mut call = |call: Call| Ok(writer.borrow_mut().call(&call)?);
        let mut step = |step: Step| Ok(writer.borrow_mut().step(step)?);
        let mut event = |event: &Event| note(writer.borrow_mut().event(event));
        let mut message = |step: &FrameStep| note(writer.borrow_mut().message(step));
        let steps = Steps { kinds: &KINDS, wanted: &is_wanted, goes_on: &goes_on, found: &mut step };
        let calls = Calls::new(&is_wanted, strings, &goes_on, &mut call);
        let mut all = Everything { calls, steps, event: &mut event, message: &mut message };
        let followed = follow(cursor, span, &mut all).and_then(|()| all.calls.unfinished());
        if failed.borrow().is_none() {
            followed?;
        }
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    let mut writer = writer.into_inner();
    writer.finish()?;
    let events = writer.tracks.events;
    drop(writer);
    file.keep()?;
    let name = output.display().to_string();
    ui.record(&Line { kind: "trace", file: &name, events })?;
    Ok(ui.say(format!("{name}: {events} events; open it at https://ui.perfetto.dev"))?)
}

impl<W: io::Write> Writer<W> {
    fn call(&mut self, call: &Call) -> io::Result<()> {
        let (end_ns, ended) = match &call.end {
            Some((end_ns, ended)) => (Some(*end_ns), Some(ended)),
            None => (None, None),
        };
        let arguments = ended.map_or(&call.begun.arguments, |ended| &ended.arguments);
        let mut values = vec![("arguments", arguments.join(", "))];
        values.extend(ended.map(|ended| ("result", ended.result.clone())));
        let mark = Mark { name: call.begun.name.clone(), category: "syscall", values, ..Mark::default() };
        let track = Track::Thread(call.node, call.thread.tid);
        self.tracks.slice(&track, Some(&call.thread), (call.begin_ns, end_ns), mark)
    }

    fn step(&mut self, step: Step) -> io::Result<()> {
        let Step { node, vtime_ns, thread, what } = step;
        let instant = |name: String, category, values| Mark { name, category, values, ..Mark::default() };
        let signal = calls::signal_name;
        let mark = match what {
            Happened::Switch(to) => return self.switch(node, vtime_ns, to),
            Happened::DiskStart { request, content } => {
                self.disk_start(node, vtime_ns, request, content);
                return Ok(());
            }
            Happened::DiskEnd { request, has_failed } => {
                return self.disk_end(node, vtime_ns, request, has_failed);
            }
            Happened::Fault { address, instruction, .. } => {
                let values =
                    vec![("address", format!("{address:#x}")), ("instruction", format!("{instruction:#x}"))];
                instant("page fault".to_owned(), "fault", values)
            }
            Happened::Sent { signal: number, to, .. } => {
                let values = vec![("to", format!("{} {}", to.process, to.pid))];
                instant(format!("sends {}", signal(number)), "signal", values)
            }
            Happened::Handled(number) => instant(format!("handles {}", signal(number)), "signal", Vec::new()),
            Happened::Killed(number) => instant(format!("ends by {}", signal(number)), "signal", Vec::new()),
            Happened::Woken(to) => {
                let values = vec![("to", format!("{} {}", to.process, to.tid))];
                instant("wakes".to_owned(), "futex", values)
            }
        };
        self.tracks.instant(&Track::Thread(node, thread.tid), Some(&thread), vtime_ns, mark)
    }

    fn switch(&mut self, node: usize, vtime_ns: u64, to: Current) -> io::Result<()> {
        match self.running.insert(node, (to, vtime_ns)) {
            Some((from, since_ns)) => self.ran(node, &from, since_ns, vtime_ns),
            None => Ok(()),
        }
    }

    /// Writes the time for which a thread has run. The idle thread has no track.
    fn ran(&mut self, node: usize, thread: &Current, since_ns: u64, until_ns: u64) -> io::Result<()> {
        if thread.tid == 0 {
            return Ok(());
        }
        let mark = Mark { name: "runs".to_owned(), category: "cpu", ..Mark::default() };
        let track = Track::Cpu(node, thread.tid);
        self.tracks.slice(&track, Some(thread), (since_ns, Some(until_ns)), mark)
    }

    fn disk_start(&mut self, node: usize, vtime_ns: u64, request: u64, content: DiskRequest) {
        let rows = self.requests.entry(node).or_default();
        // A request that the kernel passes to the disk again begins anew.
        let same = |row: &Row| row.as_ref().is_some_and(|(at, _, _)| *at == request);
        let place = rows.iter().position(same).or_else(|| rows.iter().position(Option::is_none));
        let entry = Some((request, vtime_ns, content));
        match place {
            Some(place) => rows[place] = entry,
            None if rows.len() < DISK_ROWS_MAX => rows.push(entry),
            None => {}
        }
    }

    fn disk_end(&mut self, node: usize, vtime_ns: u64, request: u64, has_failed: bool) -> io::Result<()> {
        let rows = self.requests.entry(node).or_default();
        let same = |row: &Row| row.as_ref().is_some_and(|(at, _, _)| *at == request);
        let Some(row) = rows.iter().position(same) else { return Ok(()) };
        let Some((_, begin_ns, content)) = rows[row].take() else { return Ok(()) };
        self.disk(node, row, &content, (begin_ns, Some(vtime_ns)), has_failed)
    }

    fn disk(
        &mut self,
        node: usize,
        row: usize,
        content: &DiskRequest,
        times: (u64, Option<u64>),
        has_failed: bool,
    ) -> io::Result<()> {
        let mut values = vec![
            ("disk", content.disk.clone()),
            ("sector", content.sector.to_string()),
            ("bytes", content.bytes.to_string()),
        ];
        if has_failed {
            values.push(("result", "failed".to_owned()));
        }
        let name = format!("{} {}", content.disk, content.operation.name());
        self.tracks.slice(
            &Track::Disk(node, row),
            None,
            times,
            Mark { name, category: "disk", values, ..Mark::default() },
        )
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        if !(self.since_ns..=self.until_ns).contains(&event.vtime_ns) {
            return Ok(());
        }
        let node = self.nodes.iter().position(|name| *name == event.node);
        if node.is_some_and(|node| !self.wanted.contains(&node)) {
            return Ok(());
        }
        let (track, name, category) = match (&event.what, node) {
            (event::What::Line { unit, text, .. }, Some(node)) => {
                (Track::Log(node, unit.clone()), text.clone(), "log")
            }
            (event::What::Kernel { text }, Some(node)) => {
                (Track::Log(node, "kernel".to_owned()), text.clone(), "log")
            }
            (event::What::Fault { line, .. }, _) => (Track::World, line.clone(), "fault"),
            (event::What::Effect { text }, _) => (Track::World, text.clone(), "fault"),
            (event::What::Healed { id }, _) => (Track::World, format!("fault #{id} ends"), "fault"),
            (event::What::Finding { property, text }, _) => {
                (Track::World, format!("{property}: {text}"), "finding")
            }
            _ => return Ok(()),
        };
        self.tracks.instant(&track, None, event.vtime_ns, Mark { name, category, ..Mark::default() })
    }

    fn message(&mut self, step: &FrameStep) -> io::Result<()> {
        let from = usize::from(step.from);
        let to = step.to.map(usize::from);
        let is_wanted = self.wanted.contains(&from) || to.is_some_and(|to| self.wanted.contains(&to));
        if step.vtime < self.since_ns || step.sent_at > self.until_ns || !is_wanted {
            return Ok(());
        }
        let name = step.summary.to_string();
        let values = vec![("bytes", step.len.to_string())];
        // Each receiver of a frame has an arrow of its own.
        let flow = step.frame << 7 | to.map_or(0, |to| to as u64 + 1);
        let arrives = matches!(step.kind, FrameStepKind::Deliver | FrameStepKind::Duplicate);
        let sent = Mark {
            name: name.clone(),
            category: "message",
            values: values.clone(),
            flow: arrives.then_some(flow),
            ..Mark::default()
        };
        self.tracks.slice(&Track::Sent(from), None, (step.sent_at, Some(step.sent_at)), sent)?;
        let (name, ended_flow) = match step.kind {
            FrameStepKind::Deliver | FrameStepKind::Duplicate => (name, Some(flow)),
            FrameStepKind::Drop { why } => (format!("DROP ({}) {name}", why.name()), None),
            FrameStepKind::Timeout => (format!("TIMEOUT {name}"), None),
        };
        let mark = Mark { name, category: "message", values, ended_flow, ..Mark::default() };
        let track = Track::Received(to.unwrap_or(from));
        self.tracks.slice(&track, None, (step.vtime, Some(step.vtime)), mark)
    }

    /// Writes what has not ended at the end of the span.
    fn finish(&mut self) -> io::Result<()> {
        for (node, (thread, since_ns)) in std::mem::take(&mut self.running) {
            self.ran(node, &thread, since_ns, self.until_ns.max(since_ns))?;
        }
        for (node, rows) in std::mem::take(&mut self.requests) {
            for (row, request) in rows.into_iter().enumerate() {
                if let Some((_, begin_ns, content)) = request {
                    self.disk(node, row, &content, (begin_ns, None), false)?;
                }
            }
        }
        self.tracks.flush()
    }
}
