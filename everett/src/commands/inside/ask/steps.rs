//! `everett ask RUN ID switches|faults|signals`: prints context switches, page faults and signals.

use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_session::debug::calls::signal_name;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::steps::{Happened, Kind, Step, Steps};
use serde::Serialize;

use super::at::{At, Thread};
use super::wanted::Wanted;
use crate::ui::{Ui, printable};

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    at: At<'a>,
    /// The other thread of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Thread<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_program: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_kernel: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protection: Option<bool>,
}

pub(super) fn run(
    ui: &Ui,
    nodes: &[String],
    cursor: &mut Cursor<'_>,
    span: &Span<'_>,
    (wanted, kinds): (&Wanted<'_>, &[Kind]),
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let is_wanted = |thread: &_| wanted.is(thread);
    let goes_on = || !interrupt.wanted();
    let mut found = |step: Step| tell(ui, nodes, &step);
    follow(cursor, span, &mut Steps { kinds, wanted: &is_wanted, goes_on: &goes_on, found: &mut found })
}

/// Returns how a page was accessed, from the error code of the CPU.
fn access(code: u64) -> &'static str {
    match code {
        _ if code & 0x10 != 0 => "executes",
        _ if code & 2 != 0 => "stores to",
        _ => "loads from",
    }
}

fn tell(ui: &Ui, nodes: &[String], step: &Step) -> anyhow::Result<()> {
    let thread = &step.thread;
    let mut line = Line {
        kind: "",
        at: At::of(nodes, step.node, step.vtime_ns, thread),
        to: None,
        signal: None,
        by_program: None,
        address: None,
        instruction: None,
        access: None,
        by_kernel: None,
        protection: None,
    };
    let text = match &step.what {
        Happened::Switch(to) => {
            (line.kind, line.to) = ("switch", Some(Thread::of(to)));
            format!("-> {}", Thread::of(to))
        }
        Happened::Fault { address, instruction, code } => {
            line.kind = "page_fault";
            line.address = Some(format!("{address:#x}"));
            line.instruction = Some(format!("{instruction:#x}"));
            (line.access, line.by_kernel) = (Some(access(*code)), Some(code & 4 == 0));
            line.protection = Some(code & 1 != 0);
            let why = if code & 1 != 0 { "not allowed" } else { "not in memory" };
            let by = if code & 4 == 0 { " by the kernel" } else { "" };
            format!("{} {address:#x} ({why}){by} at {instruction:#x}", access(*code))
        }
        Happened::Sent { signal, to, is_by_program } => {
            (line.kind, line.to, line.by_program) =
                ("signal_sent", Some(Thread::of(to)), Some(*is_by_program));
            line.signal = Some(signal_name(*signal));
            // The kernel sends signals also while another thread runs.
            let by = if *is_by_program { "sends" } else { "runs while the kernel sends" };
            format!("{by} {} to {}", signal_name(*signal), Thread::of(to))
        }
        Happened::Handled(signal) => {
            (line.kind, line.signal) = ("signal_handled", Some(signal_name(*signal)));
            format!("handles {}", signal_name(*signal))
        }
        Happened::Killed(signal) => {
            (line.kind, line.signal) = ("killed", Some(signal_name(*signal)));
            format!("ends by {}", signal_name(*signal))
        }
        Happened::Woken(to) => {
            (line.kind, line.to) = ("woken", Some(Thread::of(to)));
            format!("wakes {}", Thread::of(to))
        }
        // No question that is printed asks for disks.
        Happened::DiskStart { .. } | Happened::DiskEnd { .. } => return Ok(()),
    };
    ui.record(&line)?;
    let who = line.at.who(nodes);
    Ok(ui.say(printable(&format!("{} {who:<28} {text}", Vtime(step.vtime_ns))))?)
}
