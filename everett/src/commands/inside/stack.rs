//! `everett stack`: prints the stacks of all threads of all machines at one instant, read from outside.

use anyhow::bail;
use everett_inspect::module::Modules;
use everett_inspect::program_stack::{Frame, ProgramStacks};
use everett_inspect::stack::Stack;
use everett_inspect::task::{Process, Thread};
use everett_session::inside::mapped_files::MappedFiles;
use serde::Serialize;

use super::super::Outcome;
use super::debug_files::DebugFilesArgs;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
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
    /// Debug files
    #[command(flatten)]
    pub debug_files: DebugFilesArgs,
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

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let debug = args.debug_files.folders()?;
    let mut found = args.process.is_none();
    let all_read = guests::each_guest(ui, &args.instant, |inside| {
        let files =
            MappedFiles::of_node(&inside.launcher.files, &inside.launcher.world, inside.node, debug.clone())?;
        let modules = match inside.guest.modules() {
            Ok(modules) => modules,
            Err(error) => {
                // Stacks without frames in modules can still be read.
                guests::unreadable(ui, inside.node, None, None, &error)?;
                Modules::default()
            }
        };
        for process in inside.processes.iter().filter(|process| is_wanted(args, process)) {
            inside.go_on()?;
            found = true;
            let mut programs = match inside.guest.program_stacks(process, &files) {
                Ok(programs) => programs,
                Err(error) => {
                    // The stacks of the kernel can still be read.
                    guests::unreadable(ui, inside.node, Some(process.pid), None, &error)?;
                    None
                }
            };
            for thread in &process.threads {
                inside.go_on()?;
                tell(ui, inside, &modules, process, thread, programs.as_mut())?;
            }
        }
        Ok(())
    })?;
    match &args.process {
        Some(process) if !found => {
            let machine = if all_read { "no machine" } else { "no machine that can be read" };
            bail!("--process: {machine} has a process {process} at this instant")
        }
        _ => Ok(Outcome::Fine),
    }
}

fn is_wanted(args: &Args, process: &Process) -> bool {
    args.process.as_ref().map_or(process.mm.is_some(), |wanted| guests::is_named(process, wanted))
}

fn tell(
    ui: &Ui,
    inside: &Inside<'_>,
    modules: &Modules,
    process: &Process,
    thread: &Thread,
    programs: Option<&mut ProgramStacks<'_>>,
) -> anyhow::Result<()> {
    let state = thread.state.letter();
    ui.say(format!("{:>8} {:>6} {state} {}", process.pid, thread.tid, printable(&thread.name)))?;
    let stack = match inside.guest.stack(process, thread, &inside.cpu, modules) {
        Ok(stack) => stack,
        Err(error) => {
            return guests::unreadable(ui, inside.node, Some(process.pid), Some(thread.tid), &error);
        }
    };
    let Stack { kernel, is_complete, user } = &stack;
    let symbols = inside.kernel.symbols();
    let kernel: Vec<String> = kernel.iter().map(|frame| frame.named(symbols, modules).to_string()).collect();
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
    for line in user.iter().flat_map(frame_lines) {
        ui.say(printable(&line))?;
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

/// Returns the lines of a frame: first those of inlined calls, the innermost first.
pub(super) fn frame_lines(frame: &Frame) -> Vec<String> {
    let inlined = frame.source.split_last().map_or(&[][..], |(_, inlined)| inlined);
    let mut lines: Vec<String> =
        inlined.iter().map(|call| format!("                        {call} (inlined)")).collect();
    lines.push(format!("         {frame}"));
    lines
}

#[cfg(test)]
mod tests {
    use everett_symbols::lines::SourcePlace;

    use super::*;

    #[test]
    fn inlined_calls_stand_before_the_function_that_contains_them() {
        let place = |function: &str, line| SourcePlace {
            function: Some(function.to_owned()),
            file: Some("/src/a.c".to_owned()),
            line: Some(line),
        };
        let frame = Frame {
            address: 0x7f00_1234,
            file: Some("/bin/a".to_owned()),
            in_file: Some(0x1234),
            function: Some("outer+0x4".to_owned()),
            source: vec![place("innermost", 3), place("inner", 7), place("outer", 20)],
        };
        let expected = [
            "                        innermost at /src/a.c:3 (inlined)",
            "                        inner at /src/a.c:7 (inlined)",
            "         0x7f001234 outer+0x4 (/bin/a) at /src/a.c:20",
        ];
        assert_eq!(frame_lines(&frame), expected);
        assert_eq!(
            frame_lines(&Frame { source: Vec::new(), ..frame }),
            ["         0x7f001234 outer+0x4 (/bin/a)"]
        );
    }
}
