//! `everett ask RUN ID syscalls`: prints system calls with their arguments and results.

use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::syscalls::{Call, Calls};
use serde::Serialize;

use super::at::At;
use super::wanted::Wanted;
use crate::ui::{Ui, printable};

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    at: At<'a>,
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
    let at = At::of(nodes, call.node, call.begin_ns, &call.thread);
    let who = at.who(nodes);
    let ended = call.end.as_ref().map(|(_, ended)| ended);
    let arguments = ended.map_or(&call.begun.arguments, |ended| &ended.arguments);
    ui.record(&Line {
        kind: "syscall",
        at,
        name: &call.begun.name,
        number: call.begun.number,
        values: call.begun.values.map(|value| format!("{value:#x}")),
        arguments,
        end_ns: call.end.as_ref().map(|(end_ns, _)| *end_ns),
        result: ended.map(|ended| ended.result.as_str()),
        error: ended.and_then(|ended| ended.error.as_deref()),
    })?;
    Ok(ui.say(printable(&text(call, &who)))?)
}

/// Returns a call as a line of text.
/// `who` is the thread that made it.
fn text(call: &Call, who: &str) -> String {
    let begun = &call.begun;
    let arguments = call.end.as_ref().map_or(&begun.arguments, |(_, ended)| &ended.arguments).join(", ");
    let end = match &call.end {
        Some((end_ns, ended)) => {
            let took_ns = end_ns.saturating_sub(call.begin_ns);
            format!(" = {} <{}>", ended.result, Vtime(took_ns).to_string().trim())
        }
        None => " <unfinished>".to_owned(),
    };
    format!("{} {who:<24} {}({arguments}){end}", Vtime(call.begin_ns), begun.name)
}
