//! `everett ask RUN ID futexes`: prints waits at futexes.

use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::futexes::{Futexes, Wait};
use serde::Serialize;

use super::at::{At, Thread};
use super::syncs::tell_left_out;
use super::wanted::Wanted;
use crate::ui::{Ui, printable};

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    at: At<'a>,
    address: String,
    /// ID of the thread that held the lock when the wait began.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<u32>,
    /// Vtime of the end. `None` for a wait that has not ended.
    end_ns: Option<u64>,
    result: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_by: Option<Waker<'a>>,
}

/// The thread that ended a wait.
#[derive(Serialize)]
struct Waker<'a> {
    #[serde(flatten)]
    thread: Thread<'a>,
    vtime_ns: u64,
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
    let mut found = |wait: Wait| tell(ui, nodes, &wait);
    let mut futexes = Futexes::new(&is_wanted, &goes_on, &mut found);
    follow(cursor, span, &mut futexes)?;
    let left_out = futexes.unfinished()?;
    tell_left_out(ui, left_out)
}

fn tell(ui: &Ui, nodes: &[String], wait: &Wait) -> anyhow::Result<()> {
    let Wait { thread, address, begin_ns, end, holder, woken, .. } = wait;
    let at = At::of(nodes, wait.node, *begin_ns, thread);
    let who = at.who(nodes);
    ui.record(&Line {
        kind: "futex_wait",
        at,
        address: format!("{address:#x}"),
        holder: *holder,
        end_ns: end.map(|(end_ns, _)| end_ns),
        result: end.map(|(_, result)| result),
        woken_by: woken
            .as_ref()
            .map(|(waker, vtime_ns)| Waker { thread: Thread::of(waker), vtime_ns: *vtime_ns }),
    })?;
    let held = holder.map_or(String::new(), |holder| format!(", held by {holder},"));
    let took = |end_ns: u64| Vtime(end_ns.saturating_sub(*begin_ns)).to_string().trim().to_owned();
    let end = match (end, woken) {
        (None, _) => "and still waits".to_owned(),
        (Some((end_ns, _)), Some((waker, _))) => {
            format!("for {}, until {} wakes it", took(*end_ns), Thread::of(waker))
        }
        (Some((end_ns, 0)), None) => format!("for {}", took(*end_ns)),
        (Some((end_ns, error)), None) => {
            format!("for {}, until error {}", took(*end_ns), error.unsigned_abs())
        }
    };
    Ok(ui.say(printable(&format!("{} {who:<28} waits at {address:#x}{held} {end}", Vtime(*begin_ns))))?)
}
