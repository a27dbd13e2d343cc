//! Peers: other people's programs that do the same job. A missing one is named, with what to install.
#![allow(clippy::disallowed_types)] // Measuring host time is what benches are for.

pub mod loadvm;

use crate::marks::{Marks, Span};
use std::io::Read;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest that a peer may take.
const PEER_TIMEOUT: Duration = Duration::from_secs(300);

/// Whether a program is installed.
pub fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Seconds from the start of `command` until its standard output contains `text`.
///
/// # Errors
/// When it cannot be started, ends without saying it, or takes longer than five minutes: one line.
pub fn seconds_until(command: &mut Command, text: &str) -> Result<f64, String> {
    let mut said = Vec::new();
    let found = listen(command, &mut |piece, seconds| {
        said.extend_from_slice(piece);
        Ok(said.windows(text.len()).any(|window| window == text.as_bytes()).then_some(seconds))
    })?;
    found.ok_or_else(|| format!("{} ended without saying {text:?}", command.get_program().to_string_lossy()))
}

/// The pieces of work that a guest marks on the standard output of `command`, with seconds since its start.
///
/// # Errors
/// When it cannot be started, takes longer than five minutes, or its guest fails or ends before it is done: one line.
pub fn spans(command: &mut Command) -> Result<Vec<Span<f64>>, String> {
    let mut marks = Marks::default();
    let done = listen(command, &mut |piece, seconds| Ok(marks.hear(piece, seconds)?.then_some(())))?;
    match done {
        Some(()) => Ok(marks.into_spans()),
        None => {
            Err(format!("{}: the guest ended before it was done", command.get_program().to_string_lossy()))
        }
    }
}

/// What a program's listener is given: a piece of its output, and the seconds since its start.
type Listener<'l, T> = &'l mut dyn FnMut(&[u8], f64) -> Result<Option<T>, String>;

/// Starts `command` and gives its standard output to `listener` until that has what it wants. None when it ends before.
fn listen<T>(command: &mut Command, listener: Listener<'_, T>) -> Result<Option<T>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let output = child.stdout.take().ok_or_else(|| format!("{name} has no output"))?;
    let pieces = read_aside(output);
    let found = loop {
        let piece = match pieces.recv_timeout(PEER_TIMEOUT.saturating_sub(start.elapsed())) {
            Ok(piece) => piece,
            Err(RecvTimeoutError::Disconnected) => break Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                break Err(format!("{name} takes longer than {} seconds", PEER_TIMEOUT.as_secs()));
            }
        };
        match listener(&piece, start.elapsed().as_secs_f64()) {
            Ok(None) => {}
            found => break found,
        }
    };
    // Whether it still runs or has ended by itself does not matter any more.
    let _ = child.kill();
    let _ = child.wait();
    found
}

/// Reads in a thread of its own, which ends with the program: one that hangs says nothing, and a read would wait for ever.
fn read_aside(mut output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, pieces) = channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = output.read(&mut piece) {
            if sender.send(piece[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}
