//! Runs a program, and passes its input and output on: over a terminal, or over pipes.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, ioctl_tiocsctty, pidfd_open, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::frames::{self, Frames};
use crate::input::{Input, Record};
use crate::shell;

/// Number of bytes of input that may wait for the program. Further records stay in the file.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Number of bytes that one read takes from the program's output.
const READ_BYTES: usize = 32 << 10;

/// Maximum number of reads of each output after the program has ended. Its children may go on writing for ever.
const LAST_READS_MAX: usize = 64;

/// Exit statuses with which container engines report a program that cannot be started.
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Runs the program of the command line until it ends.
pub(crate) fn run(words: &[&OsStr], frames: &mut Frames) -> Result<(), String> {
    let wrong = || String::from("wrong use of the program inside: run");
    let (input, words) = words.split_first().ok_or_else(wrong)?;
    let (tty, words) = match words {
        [option, size, rest @ ..] if *option == "--tty" => (Some(window(size).ok_or_else(wrong)?), rest),
        words => (None, words),
    };
    let Some((separator, argv)) = words.split_first() else { return Err(wrong()) };
    if *separator != "--" {
        return Err(wrong());
    }
    let input = Input::open(Path::new(input))?;
    let shell = if argv.is_empty() { shell::shell()? } else { Vec::new() };
    let argv: Vec<&OsStr> = argv.iter().copied().chain(shell.iter().map(OsStr::new)).collect();
    let relay = match tty {
        Some(size) => Relay::on_terminal(&argv, size, input)?,
        None => Relay::on_pipes(&argv, input)?,
    };
    relay.run(frames)
}

fn window(text: &OsStr) -> Option<(u16, u16)> {
    let (rows, columns) = text.to_str()?.split_once('x')?;
    Some((rows.parse().ok()?, columns.parse().ok()?))
}

fn size_of((ws_row, ws_col): (u16, u16)) -> Winsize {
    Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }
}

/// A running program, and its ends of the terminal or of the pipes.
struct Relay {
    child: Child,
    /// Becomes readable when the program has ended.
    ended: OwnedFd,
    input: Input,
    /// Standard input of the program, unless it is closed.
    to: Option<OwnedFd>,
    /// Bytes that the program has not taken yet.
    waiting: Vec<u8>,
    /// True if standard input is to be closed after the waiting bytes.
    ends: bool,
    /// Outputs that are open, with the letters of their frames.
    from: Vec<(OwnedFd, char)>,
    is_terminal: bool,
}

impl Relay {
    fn on_terminal(argv: &[&OsStr], size: (u16, u16), input: Input) -> Result<Relay, String> {
        let what = |error: io::Error| format!("cannot open a terminal: {error}");
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).map_err(|error| what(error.into()))?;
        grantpt(&ours).and_then(|()| unlockpt(&ours)).map_err(|error| what(error.into()))?;
        tcsetwinsize(&ours, size_of(size)).map_err(|error| what(error.into()))?;
        let name = ptsname(&ours, Vec::new()).map_err(|error| what(error.into()))?;
        let name = name.to_str().map_err(|_| String::from("cannot open a terminal: its name is no text"))?;
        // This process has no controlling terminal, and must not get this one.
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty());
        let theirs = theirs.map_err(|error| what(error.into()))?;
        let copy = || theirs.try_clone().map_err(what);
        let mut command = Command::new("/proc/self/exe");
        command.arg("start").arg("--").args(argv);
        command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
        drop(theirs);
        let child = command.spawn().map_err(|error| format!("cannot start a program: {error}"))?;
        // The command holds the program's end of the terminal.
        drop(command);
        let to = ours.try_clone().map_err(what)?;
        Relay::new(child, input, Some(to), vec![(ours, frames::OUTPUT)], true)
    }

    fn on_pipes(argv: &[&OsStr], input: Input) -> Result<Relay, String> {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let mut child =
            child.map_err(|error| format!("cannot start {}: {error}", Path::new(argv[0]).display()))?;
        let to = child.stdin.take().map(OwnedFd::from);
        let output = child.stdout.take().map(|pipe| (OwnedFd::from(pipe), frames::OUTPUT));
        let errors = child.stderr.take().map(|pipe| (OwnedFd::from(pipe), frames::ERRORS));
        Relay::new(child, input, to, output.into_iter().chain(errors).collect(), false)
    }

    fn new(
        child: Child,
        input: Input,
        to: Option<OwnedFd>,
        from: Vec<(OwnedFd, char)>,
        is_terminal: bool,
    ) -> Result<Relay, String> {
        let what = |error: Errno| format!("cannot watch the program: {error}");
        let pid =
            i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("a program without a number")?;
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(what)?;
        for fd in to.iter().chain(from.iter().map(|(fd, _)| fd)) {
            ioctl_fionbio(fd, true).map_err(what)?;
        }
        Ok(Relay { child, ended, input, to, waiting: Vec::new(), ends: false, from, is_terminal })
    }

    fn run(mut self, frames: &mut Frames) -> Result<(), String> {
        loop {
            self.take_input()?;
            self.feed()?;
            let has_ended = self.wait()?;
            self.forward(1, frames)?;
            if has_ended {
                let status =
                    self.child.wait().map_err(|error| format!("cannot wait for the program: {error}"))?;
                self.forward(LAST_READS_MAX, frames)?;
                return frames.fields(frames::EXIT, &ending(status));
            }
        }
    }

    /// Waits until there is something to do. Returns true if the program has ended.
    fn wait(&self) -> Result<bool, String> {
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        // If many bytes wait for the program, records stay in the file.
        if self.waiting.len() < WAITING_BYTES_MAX {
            fds.push(PollFd::new(&self.input, PollFlags::IN));
        }
        fds.extend(self.from.iter().map(|(fd, _)| PollFd::new(fd, PollFlags::IN)));
        if !self.waiting.is_empty() {
            fds.extend(self.to.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)));
        }
        match poll(&mut fds, None) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(format!("cannot wait: {error}")),
        }
    }

    fn take_input(&mut self) -> Result<(), String> {
        while self.waiting.len() < WAITING_BYTES_MAX
            && let Some(record) = self.input.next()?
        {
            match record {
                Record::Bytes(bytes) => self.waiting.extend(bytes),
                Record::End => self.ends = !self.is_terminal,
                Record::Window(rows, columns) => {
                    let terminal = self.to.as_ref().filter(|_| self.is_terminal);
                    let changed = terminal.map(|fd| tcsetwinsize(fd, size_of((rows, columns))));
                    changed.transpose().map_err(|error| format!("cannot set the window size: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Passes waiting bytes to the program.
    fn feed(&mut self) -> Result<(), String> {
        while let Some(to) = &self.to
            && !self.waiting.is_empty()
        {
            match rustix::io::write(to, &self.waiting) {
                Ok(written) => {
                    self.waiting.drain(..written);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // The program does not read any more.
                Err(Errno::PIPE | Errno::IO) => self.to = None,
                Err(error) => return Err(format!("cannot write to the program: {error}")),
            }
        }
        if self.to.is_none() {
            self.waiting.clear();
        }
        if self.ends && self.waiting.is_empty() {
            self.to = None;
        }
        Ok(())
    }

    /// Passes output on, with at most `reads` reads of each stream.
    fn forward(&mut self, reads: usize, frames: &mut Frames) -> Result<(), String> {
        let mut buffer = [0; READ_BYTES];
        let mut open = Vec::new();
        for (fd, kind) in std::mem::take(&mut self.from) {
            let mut is_open = true;
            for _ in 0..reads {
                match rustix::io::read(&fd, &mut buffer) {
                    Ok(length) if length > 0 => frames.bytes(kind, &buffer[..length])?,
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    // A terminal that no program has open reports an I/O error.
                    Ok(_) | Err(Errno::IO) => {
                        is_open = false;
                        break;
                    }
                    Err(error) => return Err(format!("cannot read the program's output: {error}")),
                }
            }
            if is_open {
                open.push((fd, kind));
            }
        }
        self.from = open;
        Ok(())
    }
}

/// Returns the fields of a frame that reports the end of the program.
fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or(0)),
    }
}

/// Becomes the program of the command line, with standard input as its controlling terminal. Returns only after a
/// failure, which it prints on the terminal.
pub(crate) fn start(words: &[&OsStr]) -> ExitCode {
    let Some((_, argv)) = words.split_first().filter(|(_, argv)| !argv.is_empty()) else {
        return ExitCode::from(CANNOT_EXECUTE);
    };
    let error = match become_program(argv) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("everett: cannot start {}: {error}", Path::new(argv[0]).display());
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { NOT_FOUND } else { CANNOT_EXECUTE })
}

fn become_program(argv: &[&OsStr]) -> Result<Infallible, io::Error> {
    setsid()?;
    let terminal: File = io::stdin().as_fd().try_clone_to_owned()?.into();
    ioctl_tiocsctty(&terminal)?;
    drop(terminal);
    Err(Command::new(argv[0]).args(&argv[1..]).exec())
}
