//! `everett ps`: lists the processes of all machines at one instant, read from outside.
//!
//! - [`compare`]: compares them with what the guests say of themselves

mod compare;

use everett_input::causes::with_causes;
use everett_inspect::task::{Process, Thread};
use serde::Serialize;

use super::super::Outcome;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
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
    /// Compare processes, threads, kernel stacks and mappings with what the guests' own /proc says, in a throw-away fork
    #[arg(long, conflicts_with_all = ["threads", "maps"])]
    pub compare: bool,
    /// Compare at this number of random instants of the branch instead
    #[arg(long, value_name = "N", requires = "compare", conflicts_with = "at",
          value_parser = clap::value_parser!(u16).range(1..=INSTANTS_MAX))]
    pub instants: Option<u16>,
}

/// Maximum number of instants of a comparison.
const INSTANTS_MAX: i64 = 1000;

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
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    maps: &'a [String],
    /// Why the mappings cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct ThreadLine<'a> {
    tid: u32,
    state: char,
    name: &'a str,
}

impl ThreadLine<'_> {
    fn of(thread: &Thread) -> ThreadLine<'_> {
        ThreadLine { tid: thread.tid, state: thread.state.letter(), name: &thread.name }
    }
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.compare {
        return compare::run(ui, &args.instant, args.instants);
    }
    guests::each_guest(ui, &args.instant, |inside| {
        ui.say(style::paint(style::FAINT, "     PID   PPID    UID S COMMAND"))?;
        for process in &inside.processes {
            inside.go_on()?;
            tell(ui, args, inside, process)?;
        }
        Ok(())
    })?;
    Ok(Outcome::Fine)
}

fn tell(ui: &Ui, args: &Args, inside: &Inside<'_>, process: &Process) -> anyhow::Result<()> {
    let Some(first) = process.threads.first() else { return Ok(()) };
    let mapped = if args.maps { inside.guest.mappings(process) } else { Ok(Vec::new()) };
    let error = mapped.as_ref().err().map(|error| with_causes(error));
    let maps: Vec<String> = mapped.iter().flatten().map(ToString::to_string).collect();
    let threads: &[Thread] = if args.threads { &process.threads } else { &[] };
    let state = first.state.letter();
    ui.record(&Line {
        kind: "process",
        node: inside.node,
        pid: process.pid,
        parent: process.parent,
        user: process.user,
        state,
        name: &first.name,
        command: &process.command,
        threads: threads.iter().map(ThreadLine::of).collect(),
        maps: &maps,
        error: error.as_deref(),
    })?;
    let command = match process.command.is_empty() {
        true => format!("[{}]", first.name),
        false => process.command.join(" "),
    };
    let (pid, parent, user) = (process.pid, process.parent, process.user);
    ui.say(format!("{pid:>8} {parent:>6} {user:>6} {state} {}", printable(&command)))?;
    for thread in threads {
        let (tid, state) = (thread.tid, thread.state.letter());
        ui.say(format!("{tid:>8}               {state} {}", printable(&thread.name)))?;
    }
    for line in &maps {
        ui.say(format!("         {}", printable(line)))?;
    }
    if let Some(error) = error {
        ui.say(style::paint(style::BAD, format!("         {}", printable(&error))))?;
    }
    Ok(())
}
