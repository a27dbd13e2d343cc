//! `everett files`: prints the open files of processes at one instant, read from outside.

use anyhow::bail;
use everett_input::causes::with_causes;
use everett_inspect::files::OpenFile;
use everett_inspect::sockets::Socket;
use everett_inspect::special_files::{Special, Watch};
use everett_inspect::task::Process;
use serde::Serialize;

use super::super::Outcome;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
use super::socket_line::SocketLine;
use crate::ui::{Ui, printable, style};

/// `everett files`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// Only the process with this ID, or the processes whose first thread has this name. Default: all processes
    #[arg(long, value_name = "PID|NAME")]
    pub process: Option<String>,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    pid: u32,
    process: &'a str,
    fd: u32,
    #[serde(flatten)]
    file: Option<FileLine<'a>>,
    /// Why the file, or a part of it, cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct FileLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    offset: u64,
    flags: String,
    mount: u32,
    device: String,
    inode: u64,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    special_device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pipe_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watches: Option<Vec<WatchLine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<SocketLine<'a>>,
}

#[derive(Serialize)]
struct WatchLine {
    fd: u32,
    events: String,
}

/// Object behind an open file.
enum Detail {
    None,
    Special(Special),
    Socket(Box<Socket>),
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let mut found = args.process.is_none();
    let all_read = guests::each_guest(ui, &args.instant, |inside| {
        let is_wanted = |process: &&Process| match &args.process {
            Some(wanted) => guests::is_named(process, wanted),
            None => true,
        };
        for process in inside.processes.iter().filter(is_wanted) {
            inside.go_on()?;
            found = true;
            tell(ui, inside, process)?;
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

fn tell(ui: &Ui, inside: &Inside<'_>, process: &Process) -> anyhow::Result<()> {
    let files = match inside.guest.files(process) {
        Ok(files) => files,
        Err(error) => return guests::unreadable(ui, inside.node, Some(process.pid), None, &error),
    };
    let name = process.threads.first().map_or("", |thread| &thread.name);
    if !files.is_empty() {
        ui.say(format!("{:>8} {}", process.pid, printable(name)))?;
        ui.say(style::paint(style::FAINT, "            FD TYPE   FLAGS         OFFSET         SIZE NAME"))?;
    }
    for (fd, file) in &files {
        inside.go_on()?;
        let read = file.as_ref().map_err(|error| with_causes(error));
        let detail = match file {
            Ok(file) => detail(inside, file).map_err(|error| with_causes(&error)),
            Err(_) => Ok(Detail::None),
        };
        let error = read.as_ref().err().or(detail.as_ref().err()).map(String::as_str);
        let detail = detail.as_ref().unwrap_or(&Detail::None);
        ui.record(&Line {
            kind: "file",
            node: inside.node,
            pid: process.pid,
            process: name,
            fd: *fd,
            file: read.as_ref().ok().map(|file| line(file, detail)),
            error,
        })?;
        if let Ok(file) = read {
            ui.say(printable(&text(*fd, file, detail)))?;
        }
        if let Some(error) = error {
            let text =
                if file.is_ok() { format!("               {error}") } else { format!("{fd:>14} {error}") };
            ui.say(style::paint(style::BAD, printable(&text)))?;
        }
    }
    Ok(())
}

fn detail(inside: &Inside<'_>, file: &OpenFile) -> Result<Detail, everett_inspect::Error> {
    if let Some(sock) = file.sock {
        return Ok(Detail::Socket(Box::new(inside.guest.socket(sock)?)));
    }
    Ok(inside.guest.special(file)?.map_or(Detail::None, Detail::Special))
}

fn line<'a>(file: &'a OpenFile, detail: &'a Detail) -> FileLine<'a> {
    let device = |(major, minor)| format!("{major}:{minor}");
    let mut line = FileLine {
        kind: file.kind.name(),
        name: &file.name,
        offset: file.offset,
        flags: format!("0{:o}", file.flags),
        mount: file.mount,
        device: device(file.device),
        inode: file.inode,
        size: file.bytes,
        special_device: file.special_device.map(device),
        pipe_bytes: None,
        event_count: None,
        watches: None,
        socket: None,
    };
    let watch = |watch: &Watch| WatchLine { fd: watch.descriptor, events: format!("{:#x}", watch.events) };
    match detail {
        Detail::None => {}
        Detail::Special(Special::Pipe(bytes)) => line.pipe_bytes = Some(*bytes),
        Detail::Special(Special::Event(count)) => line.event_count = Some(*count),
        Detail::Special(Special::Epoll(watches)) => line.watches = Some(watches.iter().map(watch).collect()),
        Detail::Socket(socket) => line.socket = Some(SocketLine::of(socket, false)),
    }
    line
}

fn text(fd: u32, file: &OpenFile, detail: &Detail) -> String {
    let suffix = match detail {
        Detail::None => file.special_device.map(|(major, minor)| format!("device {major}:{minor}")),
        Detail::Special(Special::Pipe(bytes)) => Some(format!("holds {bytes} bytes")),
        Detail::Special(Special::Event(count)) => Some(format!("counts {count}")),
        Detail::Special(Special::Epoll(watches)) => {
            let watched: Vec<String> = watches.iter().map(|watch| watch.descriptor.to_string()).collect();
            Some(format!("watches {}", watched.join(" ")))
        }
        Detail::Socket(socket) => Some(format!(
            "{} {} {} -> {}",
            socket.kind.name(),
            socket.state.name(),
            socket.local,
            socket.remote
        )),
    };
    let suffix = suffix.map(|suffix| format!("  {suffix}")).unwrap_or_default();
    format!(
        "{fd:>14} {:<6} 0{:<9o} {:>10} {:>12} {}{suffix}",
        file.kind.name(),
        file.flags,
        file.offset,
        file.bytes,
        file.name
    )
}
