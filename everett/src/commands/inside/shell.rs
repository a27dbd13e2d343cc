//! `everett shell`: runs a command or a shell in a machine, in a throw-away fork at an instant.

use std::io::{self, IsTerminal, Read as _, Write};
use std::time::Duration;

use anyhow::{Context as _, bail};
use everett_host::interrupt::Interrupt;
use everett_input::units;
use everett_protocol::limits::{CONTROL_LINE_BYTES_MAX, EXEC_TEXT_BYTES_MAX};
use everett_protocol::{Exit, Stream};
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::fork::{Output, Progress};
use everett_session::inside::terminal::{GuestTerminal, TerminalProgress};
use serde::Serialize;

use super::super::Outcome;
use super::fork::{ForkArgs, ForkAt, at_place, seconds};
use super::raw_terminal::{self, Pace, RawTerminal};
use crate::ui::{Ui, printable, style};

/// Key that leaves an interactive shell, as in telnet: Ctrl-].
const LEAVE: u8 = 0x1d;

/// Time for which an interactive shell waits for a key while the fork is not behind host time.
const NAP: Duration = Duration::from_millis(4);

/// Vtime for which a fork runs before Everett looks for keys and signals again, in nanoseconds.
const SLICE_NS: u64 = 10_000_000;

/// Largest status of a command that becomes Everett's exit status. Shells use larger ones for commands that they could not
/// start or that a signal ended.
const STATUS_MAX: i32 = 125;

/// Maximum length of a command's input, in bytes. JSON needs up to six bytes for one of them.
const INPUT_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// `everett shell`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: that of the shell, or that of the command if it is at most 125; 2 otherwise, or if it could not run."
)]
pub struct Args {
    /// The fork
    #[command(flatten)]
    pub fork: ForkArgs,
    /// The node. Default: the only node of the world
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// User who runs the command. Default: root, or the user of the container image
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Pass standard input, which must be text, to the command
    #[arg(short, long, requires = "command")]
    pub input: bool,
    /// Kill the command after this vtime
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns, requires = "command")]
    pub limit: Option<u64>,
    /// Run the command on a terminal, as a shell
    #[arg(short, long, conflicts_with_all = ["input", "limit"])]
    pub terminal: bool,
    /// The command and its arguments. Default: a shell on this terminal
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Line of `--json`: output of the command.
#[derive(Serialize)]
struct OutputLine<'a> {
    kind: &'static str,
    node: &'a str,
    stream: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// The bytes, if they are no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<&'a [u8]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// Line of `--json`: end of the command.
#[derive(Serialize)]
struct ExitLine<'a> {
    kind: &'static str,
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    vtime_ns: u64,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let is_interactive = args.terminal || args.command.is_empty();
    if is_interactive && ui.json {
        bail!("--json: a shell on a terminal has no lines; give a command after --");
    }
    if is_interactive && !raw_terminal::is_there() {
        bail!("a shell needs a terminal; give a command after --");
    }
    let input = if args.input { Some(read_input()?) } else { None };
    let interrupt = Interrupt::install()?;
    let mut at = ForkAt::open(ui, &args.fork, args.node.as_deref(), &interrupt)?;
    let exit = match is_interactive {
        true => interact(&mut at, args, &interrupt)?,
        false => Some(command(ui, &mut at, args, input, &interrupt)?),
    };
    match exit {
        None => Ok(Outcome::Fine),
        // The last command of a shell can have ended with a signal. That is no failure of the shell.
        Some(Exit::Code(status)) if is_interactive => {
            Ok(Outcome::Status(u8::try_from(status).unwrap_or(u8::MAX)))
        }
        Some(Exit::Code(status)) if (0..=STATUS_MAX).contains(&status) => {
            Ok(Outcome::Status(u8::try_from(status).unwrap_or(u8::MAX)))
        }
        Some(exit) => bail!("{}: the command ended with {exit}", at.name),
    }
}

fn read_input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(INPUT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).context("--input")?;
    if bytes.len() > INPUT_BYTES_MAX {
        bail!("--input: standard input has more than {INPUT_BYTES_MAX} bytes");
    }
    String::from_utf8(bytes).ok().context("--input: standard input is no UTF-8 text")
}

/// Runs the command of the command line to its end, as fast as the host can.
fn command(
    ui: &Ui,
    at: &mut ForkAt,
    args: &Args,
    input: Option<String>,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let mut command = at.fork.command(at.node, args.command.clone(), args.user.as_deref());
    command.stdin = input;
    command.limit_ms = args.limit.map(|ns| ns.div_ceil(1_000_000));
    let here = || at.name.clone();
    let job = at.fork.start(at.node, command).with_context(here)?;
    let mut is_cut = false;
    loop {
        let until_ns = at.fork.vtime().saturating_add(SLICE_NS);
        match at.fork.next(job, until_ns).map_err(|error| at_place(error, &at.name))? {
            Progress::Output(output) => {
                is_cut |= output.truncated;
                print(ui, &at.name, &output)?;
            }
            Progress::Ended(exit) => {
                let (status, signal) = match exit {
                    Exit::Code(status) => (Some(status), None),
                    Exit::Signal(signal) => (None, Some(signal)),
                };
                let vtime_ns = at.fork.vtime();
                ui.record(&ExitLine { kind: "exit", node: &at.name, status, signal, vtime_ns })?;
                if is_cut {
                    bail!(
                        "{}: the command printed a line of more than {EXEC_TEXT_BYTES_MAX} bytes, and the rest of it is lost; \
                         to get a file, use everett cp",
                        at.name
                    );
                }
                return Ok(exit);
            }
            Progress::Runs => {}
        }
        if interrupt.wanted() {
            return Err(Interrupted.into());
        }
    }
}

/// Prints output of a command: on a terminal as safe text, otherwise its bytes.
fn print(ui: &Ui, node: &str, output: &Output) -> anyhow::Result<()> {
    let Output { stream, bytes, truncated } = output;
    let text = std::str::from_utf8(bytes).ok();
    if ui.json {
        let stream = if *stream == Stream::Stdout { "stdout" } else { "stderr" };
        let bytes = if text.is_none() { Some(&bytes[..]) } else { None };
        return Ok(ui.record(&OutputLine {
            kind: "output",
            node,
            stream,
            text,
            bytes,
            truncated: *truncated,
        })?);
    }
    match stream {
        Stream::Stdout => write(&mut io::stdout().lock(), bytes)?,
        Stream::Stderr => write(&mut io::stderr().lock(), bytes)?,
    }
    Ok(())
}

fn write(out: &mut (impl Write + IsTerminal), bytes: &[u8]) -> io::Result<()> {
    if out.is_terminal() {
        let line = bytes.strip_suffix(b"\n");
        let text = String::from_utf8_lossy(line.unwrap_or(bytes));
        // Lines of terminals end with a carriage return, too.
        out.write_all(printable(text.trim_end_matches('\r')).as_bytes())?;
        out.write_all(if line.is_some() { b"\n" } else { b"" })?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

/// Connects this terminal with a program on a terminal of the fork. Returns `None` if the user leaves it.
fn interact(at: &mut ForkAt, args: &Args, interrupt: &Interrupt) -> anyhow::Result<Option<Exit>> {
    let told = format!(
        "{} at {} s, in a fork that is thrown away: the timeline stays as it is. Ctrl-] leaves.",
        at.name,
        seconds(at.at_ns)
    );
    anstream::eprintln!("{}", style::paint(style::FAINT, printable(&told)));
    let term = std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned());
    let size = raw_terminal::size();
    let opened = GuestTerminal::open(&mut at.fork, at.node, &args.command, args.user.as_deref(), &term, size);
    let mut terminal = opened.with_context(|| at.name.clone())?;
    let raw = RawTerminal::enter()?;
    let exit = relay(at, &mut terminal, &raw, size, interrupt);
    drop(raw);
    let now = seconds(at.fork.vtime());
    anstream::eprintln!("\n{}", style::paint(style::FAINT, format!("The fork ended at {now} s.")));
    exit
}

fn relay(
    at: &mut ForkAt,
    terminal: &mut GuestTerminal,
    raw: &RawTerminal,
    mut size: (u16, u16),
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Exit>> {
    let mut pace = Pace::from(at.fork.vtime());
    loop {
        if interrupt.wanted() {
            return Ok(None);
        }
        let due_ns = pace.due_ns(at.fork.vtime());
        let nap = if due_ns > at.fork.vtime() { Duration::ZERO } else { NAP };
        let Some(mut keys) = raw.keys(nap)? else { return Ok(None) };
        let leaves = keys.iter().position(|&key| key == LEAVE);
        keys.truncate(leaves.unwrap_or(keys.len()));
        if !keys.is_empty() {
            terminal.press(&mut at.fork, &keys).map_err(|error| at_place(error, &at.name))?;
        }
        if leaves.is_some() {
            return Ok(None);
        }
        let now = raw_terminal::size();
        if now != size {
            size = now;
            terminal.resize(&mut at.fork, size).map_err(|error| at_place(error, &at.name))?;
        }
        let until_ns = due_ns.min(at.fork.vtime().saturating_add(SLICE_NS));
        match terminal.next(&mut at.fork, until_ns).map_err(|error| at_place(error, &at.name))? {
            TerminalProgress::Output(bytes) => raw.show(&bytes)?,
            TerminalProgress::Ended(exit) => return Ok(Some(exit)),
            TerminalProgress::Runs => {}
        }
    }
}
