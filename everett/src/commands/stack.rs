//! `everett stack`: prints the stacks of all threads of all machines at one instant, read from outside.

use everett_inspect::Guest;
use everett_inspect::program_stack::{Frame, ProgramStacks};
use everett_inspect::stack::Stack;
use everett_inspect::task::{Process, Thread};
use everett_session::inside::mapped_files::MappedFiles;
use serde::Serialize;

use super::Outcome;
use super::inside::{self, Inside, InstantArgs};
use crate::ui::{Ui, printable, style};

/// `everett stack`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// Only the process with this ID, or the processes whose first thread has this name. Default: all processes that
    /// run programs
    #[arg(long, value_name = "PID|NAME")]
    pub process: Option<String>,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    pid: u32,
    tid: u32,
    name: &'a str,
    state: char,
    kernel: Vec<String>,
    kernel_complete: bool,
    user: Vec<Frame>,
    user_complete: bool,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    inside::each_guest(ui, &args.instant, |inside| {
        ui.say(style::paint(style::HEAD, printable(inside.node)))?;
        match inside.guest.clone().and_then(|guest| Ok((guest, guest.processes()?))) {
            Ok((guest, processes)) => {
                let files = MappedFiles::of_node(inside.files, inside.node)?;
                for process in processes.iter().filter(|process| is_wanted(args, process)) {
                    let mut programs = match guest.program_stacks(process, &files) {
                        Ok(programs) => programs,
                        Err(error) => {
                            // The stacks of the kernel can still be read.
                            inside::unreadable(ui, inside.node, Some(process.pid), &error)?;
                            None
                        }
                    };
                    for thread in &process.threads {
                        tell(ui, inside, guest, process, thread, programs.as_mut())?;
                    }
                }
                Ok(())
            }
            Err(error) => inside::unreadable(ui, inside.node, None, &error),
        }
    })?;
    Ok(Outcome::Fine)
}

fn is_wanted(args: &Args, process: &Process) -> bool {
    match &args.process {
        None => process.mm.is_some(),
        Some(wanted) => {
            *wanted == process.pid.to_string()
                || process.threads.first().is_some_and(|thread| thread.name == *wanted)
        }
    }
}

fn tell(
    ui: &Ui,
    inside: &Inside<'_>,
    guest: Guest<'_>,
    process: &Process,
    thread: &Thread,
    programs: Option<&mut ProgramStacks<'_>>,
) -> anyhow::Result<()> {
    let state = thread.state.letter();
    ui.say(format!("{:>8} {:>6} {state} {}", process.pid, thread.tid, printable(&thread.name)))?;
    let stack = match guest.stack(thread, process.mm.is_some(), inside.cpu) {
        Ok(stack) => stack,
        Err(error) => return inside::unreadable(ui, inside.node, Some(process.pid), &error),
    };
    let Stack { kernel, is_complete, user } = &stack;
    let symbols = inside.kernel.symbols();
    let kernel: Vec<String> = kernel.iter().map(|address| symbols.show(*address).to_string()).collect();
    for frame in &kernel {
        ui.say(format!("         {}", printable(frame)))?;
    }
    if !is_complete {
        ui.say(style::paint(style::FAINT, "         further frames of the kernel are unknown"))?;
    }
    let (user, is_whole) = match (programs, user) {
        (Some(programs), Some(user)) => programs.frames(*user),
        (None, Some(_)) => (Vec::new(), false),
        (_, None) => (Vec::new(), true),
    };
    for frame in &user {
        ui.say(format!("         {}", printable(&frame.to_string())))?;
    }
    if !is_whole {
        ui.say(style::paint(style::FAINT, "         further frames of the program are unknown"))?;
    }
    Ok(ui.record(&Line {
        kind: "stack",
        node: inside.node,
        pid: process.pid,
        tid: thread.tid,
        name: &thread.name,
        state,
        kernel,
        kernel_complete: *is_complete,
        user,
        user_complete: is_whole,
    })?)
}
