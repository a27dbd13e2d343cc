//! `everett ask RUN ID syscalls`: prints system calls with their arguments and results.

use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::syscalls::{Call, Calls};
use serde::Serialize;

use super::wanted::Wanted;
use crate::ui::{Ui, printable};

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    vtime_ns: u64,
    node: &'a str,
    pid: u32,
    tid: u32,
    process: &'a str,
    name: &'a str,
    number: u64,
    values: [String; 6],
    arguments: &'a [String],
    /// Vtime of the end. `None` for a call that has not ended.
    end_ns: Option<u64>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

pub(super) fn run(
    ui: &Ui,
    nodes: &[String],
    cursor: &mut Cursor<'_>,
    span: &Span<'_>,
    wanted: &Wanted<'_>,
    strings: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let is_wanted = |thread: &_| wanted.is(thread);
    let goes_on = || !interrupt.wanted();
    let mut found = |call: Call| tell(ui, nodes, &call);
    let mut calls = Calls::new(&is_wanted, strings, &goes_on, &mut found);
    follow(cursor, span, &mut calls)?;
    calls.unfinished()
}

fn tell(ui: &Ui, nodes: &[String], call: &Call) -> anyhow::Result<()> {
    let node = nodes.get(call.node).map_or("?", String::as_str);
    let ended = call.end.as_ref().map(|(_, ended)| ended);
    let arguments = ended.map_or(&call.begun.arguments, |ended| &ended.arguments);
    ui.record(&Line {
        kind: "syscall",
        vtime_ns: call.begin_ns,
        node,
        pid: call.thread.pid,
        tid: call.thread.tid,
        process: &call.thread.process,
        name: &call.begun.name,
        number: call.begun.number,
        values: call.begun.values.map(|value| format!("{value:#x}")),
        arguments,
        end_ns: call.end.as_ref().map(|(end_ns, _)| *end_ns),
        result: ended.map(|ended| ended.result.as_str()),
        error: ended.and_then(|ended| ended.error.as_deref()),
    })?;
    Ok(ui.say(printable(&text(call, node, nodes.len() > 1)))?)
}

/// Returns a call as a line of text.
fn text(call: &Call, node: &str, several_nodes: bool) -> String {
    let node = if several_nodes { format!("{node}/") } else { String::new() };
    let (thread, begun) = (&call.thread, &call.begun);
    let arguments = call.end.as_ref().map_or(&begun.arguments, |(_, ended)| &ended.arguments).join(", ");
    let end = match &call.end {
        Some((end_ns, ended)) => {
            let took_ns = end_ns.saturating_sub(call.begin_ns);
            format!(" = {} <{}>", ended.result, Vtime(took_ns).to_string().trim())
        }
        None => " <unfinished>".to_owned(),
    };
    let who = format!("{node}{} {}/{}", thread.process, thread.pid, thread.tid);
    format!("{} {who:<24} {}({arguments}){end}", Vtime(call.begin_ns), begun.name)
}
