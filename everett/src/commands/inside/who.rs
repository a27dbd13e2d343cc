//! `everett who`: finds who wrote bytes, and where that program had them from, back to the origin.

use anyhow::{Context as _, bail};
use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_session::debug::cursor::{Aim, Cursor, Unless};
use everett_session::debug::origin::limits::{BYTES_MAX, DEPTH_MAX, INSTRUCTIONS_MAX};
use everett_session::debug::origin::step::{Happened, Step};
use everett_session::debug::origin::{Extent, Memory, Search, Source};
use everett_session::inside::machine::MachineRam;
use everett_session::inside::mapped_files::MappedFiles;
use serde::Serialize;

use super::super::{Outcome, resources};
use super::debug_files::DebugFilesArgs;
use super::guests;
use super::instant::{Instant, InstantArgs};
use super::named_bytes::NamedBytes;
use super::stack::frame_lines;
use crate::ui::{Ui, printable, style};

/// `everett who`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// The bytes: memory:ADDRESS[+LEN], the name of a variable of the program or kernel, file:/PATH, message:NUMBER, or
    /// payload:TEXT for the last message before the instant with this text. All but the first can end with @OFFSET[+LEN]
    pub what: NamedBytes,
    /// Process with this ID or name, whose memory or variable is meant. Default: the kernel
    #[arg(long, value_name = "PID|NAME")]
    pub process: Option<String>,
    /// Number of computations on the way back to which the search goes on. Copies are always followed
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = depth)]
    pub depth: usize,
    /// Number of instructions before a store among which the search looks for the origin of its value
    #[arg(long, value_name = "NUMBER", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=INSTRUCTIONS_MAX))]
    pub instructions: u64,
    /// Folders with debug files
    #[command(flatten)]
    pub debug_files: DebugFilesArgs,
}

/// Reads the value of `--depth`.
fn depth(text: &str) -> Result<usize, String> {
    let depth = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if depth <= DEPTH_MAX { Ok(depth) } else { Err(format!("at most {DEPTH_MAX}")) }
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    /// Node that sent the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<&'a str>,
    #[serde(flatten)]
    step: &'a Step,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let debug = args.debug_files.folders()?;
    let instant = Instant::open(ui, &args.instant, &interrupt)?;
    let kernel = guests::kernel(&instant.setting)?;
    let mut files = Vec::new();
    for node in instant.nodes() {
        let launcher = &instant.setting.launcher;
        files.push(MappedFiles::of_node(&launcher.files, &launcher.world, node, debug.clone())?);
    }
    let mut cursor = instant.cursor(resources::default_memory())?;
    let wanted = || interrupt.wanted();
    let mut listener = Unless(&wanted);
    cursor.seek(Aim::Vtime(instant.at_ns), &mut listener)?;
    let source = source(args, &instant, &cursor, &kernel, &files)?;
    let extent = Extent { depth: args.depth, instructions: args.instructions };
    let steps = Search::new(&mut cursor, &kernel, &files, extent, &mut listener).origins(source)?;
    let name = |node: usize| instant.nodes().get(node).map_or("", String::as_str);
    let sender = |step: &Step| match &step.what {
        Happened::Message { from, .. } => Some(name(*from)),
        _ => None,
    };
    let named: Vec<_> = steps.iter().map(|step| (name(step.node), sender(step), step)).collect();
    for ((node, sender, step), lines) in named.iter().zip(lines(&named)) {
        ui.record(&Line { kind: "who", node, sender: *sender, step })?;
        for (n, line) in lines.into_iter().enumerate() {
            match n {
                0 => ui.say(style::paint(style::HEAD, line))?,
                _ => ui.say(line)?,
            }
        }
    }
    instant.warn_of_engine(ui)?;
    Ok(Outcome::Fine)
}

/// Returns the bytes that the arguments name. Only memory needs a guest that can be read.
fn source(
    args: &Args,
    instant: &Instant,
    cursor: &Cursor<'_>,
    kernel: &Kernel,
    files: &[MappedFiles],
) -> anyhow::Result<Source> {
    let node = || match &args.instant.node {
        Some(name) => instant.number_of(name).context("--node: no such node"),
        None if instant.nodes().len() == 1 => Ok(0),
        None => bail!("--node: name the node of these bytes; the nodes are {}", instant.nodes().join(", ")),
    };
    match &args.what {
        NamedBytes::Message(message) => {
            let sender = args.instant.node.as_deref().and_then(|name| instant.number_of(name));
            Ok(Source::Message(sender, message.clone()))
        }
        NamedBytes::File(file) => Ok(Source::File(node()?, file.clone())),
        NamedBytes::Address { address, bytes } => {
            memory(args, cursor, kernel, node()?, |_, _| Ok((*address, *bytes)))
        }
        NamedBytes::Variable { name, offset, bytes } => {
            let node = node()?;
            memory(args, cursor, kernel, node, |guest, process| {
                let (start, length) = match process {
                    Some(process) => variable(guest, process, &files[node], name)?,
                    None => (kernel.address_of(name).with_context(|| no_variable("the kernel", name))?, 8),
                };
                let rest = match length.checked_sub(*offset) {
                    _ if length == 0 => 1,
                    None | Some(0) => bail!("{name}: it has {length} bytes"),
                    Some(rest) => rest,
                };
                Ok((start.wrapping_add(*offset), bytes.unwrap_or(rest).min(BYTES_MAX)))
            })
        }
    }
}

/// Returns memory of the process that the arguments name, or of the kernel. `place` returns the address of the first byte and
/// the number of bytes.
fn memory(
    args: &Args,
    cursor: &Cursor<'_>,
    kernel: &Kernel,
    node: usize,
    place: impl FnOnce(&Guest<'_>, Option<&Process>) -> anyhow::Result<(u64, u64)>,
) -> anyhow::Result<Source> {
    let ram = MachineRam(cursor.timeline().machine(node));
    let guest = Guest::new(kernel, &ram)?;
    let process = args.process.as_ref().map(|wanted| find(&guest, wanted)).transpose()?;
    let root = match &process {
        Some(process) => {
            guest.memory_of_process(process)?.context("--process: it has no memory of its own")?.root()
        }
        None => guest.memory().root(),
    };
    let (address, bytes) = place(&guest, process.as_ref())?;
    Ok(Source::Memory(Memory { node, root, address, bytes }))
}

fn no_variable(whose: &str, name: &str) -> String {
    format!("{name}: {whose} has no variable of this name; write memory:ADDRESS for an address")
}

/// Finds the process with a name or ID.
fn find(guest: &Guest<'_>, wanted: &str) -> anyhow::Result<Process> {
    let processes = guest.processes()?.into_iter();
    let mut found: Vec<Process> =
        processes.filter(|process| process.mm.is_some() && guests::is_named(process, wanted)).collect();
    match found.len() {
        0 => bail!("--process: the machine has no program {wanted} at this instant"),
        1 => Ok(found.swap_remove(0)),
        _ => {
            let all: Vec<String> = found.iter().map(|process| process.pid.to_string()).collect();
            bail!("--process: several processes are named {wanted}: {}; choose by ID", all.join(", "))
        }
    }
}

/// Returns address and length of a variable of a process's program or libraries.
fn variable(
    guest: &Guest<'_>,
    process: &Process,
    files: &MappedFiles,
    name: &str,
) -> anyhow::Result<(u64, u64)> {
    let stacks = guest.program_stacks(process, files)?;
    let found = stacks.map(|stacks| stacks.variables_named(name)).unwrap_or_default();
    match found[..] {
        [] => bail!("{}", no_variable("the process", name)),
        [one] => Ok(one),
        _ => {
            let all: Vec<String> = found.iter().map(|(address, _)| format!("memory:{address:#x}")).collect();
            bail!("{name}: several variables have this name; choose among {}", all.join(", "))
        }
    }
}

/// Returns the lines of a step's stack, from the innermost frame outwards.
fn stack(step: &Step) -> Vec<String> {
    let Some(thread) = &step.thread else { return Vec::new() };
    let mut lines: Vec<String> = thread.kernel.iter().map(|frame| format!("         {frame}")).collect();
    if !thread.kernel_complete {
        lines.push("         further frames of the kernel are unknown".to_owned());
    }
    lines.extend(thread.user.iter().flat_map(frame_lines));
    if !thread.user_complete {
        lines.push("         further frames of the program are unknown".to_owned());
    }
    lines
}

/// Returns the number of the earlier step whose stack ends most like the last one, and the number of their equal lines. Each
/// stack has its node's number; stacks of different nodes are not compared.
fn rest_of_earlier(stacks: &[(usize, Vec<String>)]) -> (Option<usize>, usize) {
    /// Number of equal lines from which on they are left out.
    const EQUAL: usize = 3;
    let Some(((node, own), earlier)) = stacks.split_last() else { return (None, 0) };
    let mut best = (None, 0);
    for (n, (_, other)) in earlier.iter().enumerate().filter(|(_, (there, _))| there == node) {
        let same = own.iter().rev().zip(other.iter().rev()).take_while(|(own, other)| own == other).count();
        if same >= EQUAL && same > best.1 {
            best = (Some(n + 1), same);
        }
    }
    best
}

/// Returns the lines of each step: a heading, what happened, and the stack as far as it differs from those of earlier steps.
/// `steps` have the names of their nodes and, for messages, of the senders.
pub(super) fn lines(steps: &[(&str, Option<&str>, &Step)]) -> Vec<Vec<String>> {
    let stacks: Vec<(usize, Vec<String>)> = steps.iter().map(|(.., step)| (step.node, stack(step))).collect();
    let all = steps.iter().enumerate();
    all.map(|(n, (node, sender, step))| step_lines((node, *sender, step), &stacks[..=n])).collect()
}

/// Returns the lines of a step. `stacks` are the nodes and stacks of the steps up to this one.
fn step_lines(
    (node, sender, step): (&str, Option<&str>, &Step),
    stacks: &[(usize, Vec<String>)],
) -> Vec<String> {
    let explains = step.explains.filter(|explained| explained + 1 != step.number);
    let explains = explains.map(|explained| format!(" (for step {explained})")).unwrap_or_default();
    let sends = sender.map(|sender| format!(", sent by {sender}")).unwrap_or_default();
    let vtime = Vtime(step.vtime_ns).to_string();
    let who = match &step.thread {
        Some(thread) if thread.pid == thread.tid => format!(" {} {}", thread.pid, thread.name),
        Some(thread) => format!(" {} {} {}", thread.pid, thread.tid, thread.name),
        None => String::new(),
    };
    let mut lines = vec![
        format!("{:>3}. {} s {node}{who}{explains}", step.number, vtime.trim()),
        format!("     {}{sends}", step.what),
    ];
    let own = stacks.last().map_or(&[][..], |(_, lines)| lines);
    let (rest, same) = rest_of_earlier(stacks);
    lines.extend_from_slice(&own[..own.len() - same]);
    if let Some(rest) = rest {
        let what = if same == own.len() { "all" } else { "the rest" };
        lines.push(format!("         {what} as in step {rest}"));
    }
    lines.iter().map(|line| printable(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ends_of_stacks_are_left_out() {
        let stack = |frames: &str| frames.chars().map(String::from).collect::<Vec<_>>();
        let rest = |stacks: &[&str]| {
            rest_of_earlier(&stacks.iter().map(|frames| (0, stack(frames))).collect::<Vec<_>>())
        };
        assert_eq!(rest(&["abcd"]), (None, 0));
        assert_eq!(rest(&["abcd", "xcd"]), (None, 0));
        assert_eq!(rest(&["abcd", "", "xbcd"]), (Some(1), 3));
        assert_eq!(rest(&["abcd", "xbcd", "yxbcd"]), (Some(2), 4));
        assert_eq!(rest(&["abcd", "abcd", "abcd"]), (Some(1), 4));
        assert_eq!(rest_of_earlier(&[(0, stack("abcd")), (1, stack("abcd"))]), (None, 0));
    }
}
