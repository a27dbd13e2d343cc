//! `everett ps`: lists the processes of all machines at one instant, read from outside.

use everett_input::causes::with_causes;
use everett_inspect::Guest;
use everett_inspect::task::{Process, Thread};
use serde::Serialize;

use super::Outcome;
use super::inside::{self, InstantArgs};
use crate::ui::{Ui, printable, style};

/// `everett ps`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// Print the threads, too
    #[arg(long)]
    pub threads: bool,
    /// Print the mappings, too, as /proc/PID/maps shows them
    #[arg(long)]
    pub maps: bool,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    pid: u32,
    parent: u32,
    user: u32,
    state: char,
    name: &'a str,
    command: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads: Vec<ThreadLine<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    maps: Vec<String>,
    /// Why the mappings cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct ThreadLine<'a> {
    tid: u32,
    state: char,
    name: &'a str,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    inside::each_guest(ui, &args.instant, |inside| {
        let node = inside.node;
        ui.say(style::paint(style::HEAD, printable(node)))?;
        match inside.guest.clone().and_then(|guest| Ok((guest, guest.processes()?))) {
            Ok((guest, processes)) => list(ui, args, node, guest, &processes),
            Err(error) => inside::unreadable(ui, node, None, &error),
        }
    })?;
    Ok(Outcome::Fine)
}

fn list(ui: &Ui, args: &Args, node: &str, guest: Guest<'_>, processes: &[Process]) -> anyhow::Result<()> {
    ui.say(style::paint(style::FAINT, "     PID   PPID    UID S COMMAND"))?;
    for process in processes {
        let Some(first) = process.threads.first() else { continue };
        let mapped = if args.maps { guest.mappings(process) } else { Ok(Vec::new()) };
        let error = mapped.as_ref().err().map(|error| with_causes(error));
        let maps: Vec<String> = mapped.iter().flatten().map(ToString::to_string).collect();
        let threads: &[Thread] = if args.threads { &process.threads } else { &[] };
        let thread = |thread: &Thread| (thread.tid, thread.state.letter(), thread.name.clone());
        ui.record(&Line {
            kind: "process",
            node,
            pid: process.pid,
            parent: process.parent,
            user: process.user,
            state: first.state.letter(),
            name: &first.name,
            command: &process.command,
            threads: threads
                .iter()
                .map(|thread| ThreadLine {
                    tid: thread.tid,
                    state: thread.state.letter(),
                    name: &thread.name,
                })
                .collect(),
            maps: maps.clone(),
            error: error.clone(),
        })?;
        let command = match process.command.is_empty() {
            true => format!("[{}]", first.name),
            false => process.command.join(" "),
        };
        ui.say(format!(
            "{:>8} {:>6} {:>6} {} {}",
            process.pid,
            process.parent,
            process.user,
            first.state.letter(),
            printable(&command)
        ))?;
        for (tid, state, name) in threads.iter().map(thread) {
            ui.say(format!("{tid:>8}               {state} {}", printable(&name)))?;
        }
        for line in &maps {
            ui.say(format!("         {}", printable(line)))?;
        }
        if let Some(error) = error {
            ui.say(style::paint(style::BAD, format!("         {}", printable(&error))))?;
        }
    }
    Ok(())
}
