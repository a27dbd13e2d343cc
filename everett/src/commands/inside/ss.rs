//! `everett ss`: prints the sockets of all machines at one instant, read from outside.

use anyhow::bail;
use everett_inspect::sockets::state::{Kind, State};
use everett_inspect::sockets::{Owner, Socket};
use serde::Serialize;

use super::super::Outcome;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
use super::socket_line::{OwnerLine, SocketLine, info};
use crate::ui::{Ui, printable, style};

/// Maximum width of a column of addresses. Longer addresses push the following columns to the right.
const ADDRESS_WIDTH_MAX: usize = 44;

/// `everett ss`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// Sockets of TCP. Default, without options of kinds: all kinds
    #[arg(short, long)]
    pub tcp: bool,
    /// Sockets of UDP
    #[arg(short, long)]
    pub udp: bool,
    /// Unix sockets
    #[arg(short = 'x', long)]
    pub unix: bool,
    /// Raw sockets
    #[arg(short = 'w', long)]
    pub raw: bool,
    /// Packet sockets
    #[arg(short = '0', long)]
    pub packet: bool,
    /// Only listening sockets
    #[arg(short, long)]
    pub listening: bool,
    /// Print timers and details of TCP connections, too
    #[arg(short, long)]
    pub info: bool,
    /// Only sockets of the process with this ID, or of the processes whose first thread has this name
    #[arg(long, value_name = "PID|NAME")]
    pub process: Option<String>,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    #[serde(flatten)]
    socket: SocketLine<'a>,
    owners: Vec<OwnerLine<'a>>,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let mut found = args.process.is_none();
    let all_read = guests::each_guest(ui, &args.instant, |inside| {
        let sockets = match inside.guest.sockets(&inside.processes) {
            Ok(sockets) => sockets,
            Err(error) => return guests::unreadable(ui, inside.node, None, None, &error),
        };
        if let Some(wanted) = &args.process {
            found |= inside.processes.iter().any(|process| guests::is_named(process, wanted));
        }
        let shown: Vec<&Socket> = sockets.found.iter().filter(|socket| is_wanted(args, socket)).collect();
        tell(ui, args, inside, &shown)?;
        for (pid, error) in &sockets.unreadable {
            inside.go_on()?;
            guests::unreadable(ui, inside.node, *pid, None, error)?;
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

fn is_wanted(args: &Args, socket: &Socket) -> bool {
    let any_kind = !(args.tcp || args.udp || args.unix || args.raw || args.packet);
    let of_kind = match socket.kind {
        Kind::Tcp => args.tcp,
        Kind::Udp | Kind::UdpLite => args.udp,
        Kind::Raw => args.raw,
        Kind::UnixStream | Kind::UnixDatagram | Kind::UnixPacket => args.unix,
        Kind::Packet => args.packet,
        Kind::Netlink | Kind::Other(_) => false,
    };
    let has_owner = |wanted: &String| {
        let is = |owner: &Owner| *wanted == owner.pid.to_string() || *wanted == owner.name;
        socket.owners.iter().any(is)
    };
    (any_kind || of_kind)
        && (!args.listening || socket.state == State::Listen)
        && args.process.as_ref().is_none_or(has_owner)
}

fn tell(ui: &Ui, args: &Args, inside: &Inside<'_>, sockets: &[&Socket]) -> anyhow::Result<()> {
    let rows: Vec<[String; 3]> = sockets
        .iter()
        .map(|socket| [socket.local.to_string(), socket.remote.to_string(), owners(socket)])
        .collect();
    let title = ["Local Address", "Peer Address"];
    let width = |n: usize| {
        let widths = rows.iter().map(|row| printable(&row[n]).to_string().chars().count());
        widths.max().unwrap_or(0).clamp(title[n].len(), ADDRESS_WIDTH_MAX)
    };
    let (local_width, remote_width) = (width(0), width(1));
    let head = format!(
        "    Netid State      Recv-Q Send-Q {:<local_width$} {:<remote_width$} Process",
        title[0], title[1]
    );
    ui.say(style::paint(style::FAINT, head))?;
    let first = sockets.first().map(|socket| socket.namespace);
    let has_several = sockets.iter().any(|socket| Some(socket.namespace) != first);
    let mut namespace = None;
    for (socket, [local, remote, owners]) in sockets.iter().zip(&rows) {
        inside.go_on()?;
        if has_several && namespace != Some(socket.namespace) {
            namespace = Some(socket.namespace);
            ui.say(style::paint(style::FAINT, format!("    network namespace {}", socket.namespace)))?;
        }
        ui.record(&Line {
            kind: "socket",
            node: inside.node,
            socket: SocketLine::of(socket, args.info),
            owners: socket.owners.iter().map(OwnerLine::of).collect(),
        })?;
        let (local, remote) = (printable(local).to_string(), printable(remote).to_string());
        let line = format!(
            "    {:<5} {:<10} {:>6} {:>6} {local:<local_width$} {remote:<remote_width$} {}",
            socket.kind.name(),
            socket.state.name(),
            socket.receive_queue,
            socket.send_queue,
            printable(owners),
        );
        ui.say(line.trim_end())?;
        if args.info
            && let Some(info) = info(socket)
        {
            ui.say(format!("          {}", printable(&info)))?;
        }
    }
    Ok(())
}

/// Returns the text of the last column.
fn owners(socket: &Socket) -> String {
    let owner = |owner: &Owner| format!("{} pid={} fd={}", owner.name, owner.pid, owner.descriptor);
    let mut parts: Vec<String> = socket.owners.iter().map(owner).collect();
    if socket.waits_for_accept {
        parts.push("(not accepted)".to_owned());
    }
    parts.join(", ")
}
