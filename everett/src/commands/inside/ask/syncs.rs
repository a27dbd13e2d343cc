//! `everett ask RUN ID syncs`: prints calls that make files durable, and the writes that they cover.

use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_report::exploration::figures::counted;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::syncs::{Sync, Syncs, Unsynced};
use serde::Serialize;

use super::at::At;
use super::wanted::Wanted;
use crate::ui::{Ui, printable, style};

/// Line of `--json` for a call.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    at: At<'a>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    end_ns: u64,
    failed: bool,
    covers: Vec<Writes<'a>>,
}

/// Writes to a file in `--json`.
#[derive(Serialize)]
struct Writes<'a> {
    file: &'a str,
    writes: u64,
    bytes: u64,
    since_ns: u64,
}

/// Line of `--json` for writes that no call has made durable.
#[derive(Serialize)]
struct Rest<'a> {
    kind: &'static str,
    node: &'a str,
    #[serde(flatten)]
    writes: Writes<'a>,
}

/// Line of `--json` for calls that were not followed.
#[derive(Serialize)]
pub(super) struct LeftOut {
    kind: &'static str,
    calls: u64,
}

impl<'a> Writes<'a> {
    fn of(writes: &'a Unsynced) -> Writes<'a> {
        let Unsynced { file, writes, bytes, since_ns } = writes;
        Writes { file, writes: *writes, bytes: *bytes, since_ns: *since_ns }
    }
}

pub(super) fn run(
    ui: &Ui,
    nodes: &[String],
    cursor: &mut Cursor<'_>,
    span: &Span<'_>,
    wanted: &Wanted<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let is_wanted = |thread: &_| wanted.is(thread);
    let goes_on = || !interrupt.wanted();
    let mut found = |sync: Sync| tell(ui, nodes, &sync);
    let mut syncs = Syncs::new(&is_wanted, &goes_on, &mut found);
    follow(cursor, span, &mut syncs)?;
    let (rest, left_out) = syncs.unsynced();
    for (node, writes) in &rest {
        let node = nodes.get(*node).map_or("?", String::as_str);
        ui.record(&Rest { kind: "unsynced", node, writes: Writes::of(writes) })?;
        let node = if nodes.len() > 1 { format!("{node} ") } else { String::new() };
        ui.say(printable(&format!("{:>14} {node}not durable: {}", "", in_words(writes))))?;
    }
    tell_left_out(ui, left_out)
}

/// Says how many calls were not followed.
pub(super) fn tell_left_out(ui: &Ui, calls: u64) -> anyhow::Result<()> {
    if calls == 0 {
        return Ok(());
    }
    ui.record(&LeftOut { kind: "left-out", calls })?;
    let line = format!("{} could not be followed", counted(calls, "call", "calls"));
    Ok(ui.say(style::paint(style::BAD, line))?)
}

fn in_words(writes: &Unsynced) -> String {
    let Unsynced { file, writes, bytes, since_ns } = writes;
    format!(
        "{file}: {}, {bytes} bytes since {}",
        counted(*writes, "write", "writes"),
        Vtime(*since_ns).to_string().trim()
    )
}

fn tell(ui: &Ui, nodes: &[String], sync: &Sync) -> anyhow::Result<()> {
    let Sync { thread, name, file, begin_ns, end_ns, covered, has_failed, .. } = sync;
    let at = At::of(nodes, sync.node, *begin_ns, thread);
    let who = at.who(nodes);
    ui.record(&Line {
        kind: "sync",
        at,
        name,
        file: file.as_deref(),
        end_ns: *end_ns,
        failed: *has_failed,
        covers: covered.iter().map(Writes::of).collect(),
    })?;
    let took = Vtime(end_ns.saturating_sub(*begin_ns)).to_string();
    let file = file.as_deref().unwrap_or_default();
    let failed = if *has_failed { " failed" } else { "" };
    ui.say(printable(&format!("{} {who:<24} {name}({file}){failed} <{}>", Vtime(*begin_ns), took.trim())))?;
    for writes in covered {
        ui.say(printable(&format!("{:>14}   {}", "", in_words(writes))))?;
    }
    Ok(())
}
