//! Peers: other people's programs that do the same job. A missing one is named, with what to install.
#![allow(clippy::disallowed_types)] // Measuring host time is what benches are for.

pub mod loadvm;

use crate::marks::{Marks, Span};
use std::fs::File;
use std::io::{Read, Seek as _};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest that a peer may take.
const PEER_TIMEOUT: Duration = Duration::from_secs(300);

/// No program complains at greater length.
const COMPLAINTS_BYTES_MAX: u64 = 64 << 10;

/// The program that most benches are run beside.
pub const QEMU: &str = "qemu-system-x86_64";

/// Whether QEMU is installed; says so if not.
pub fn has_qemu(bench: &str) -> bool {
    let installed = installed(QEMU);
    if !installed {
        eprintln!("{bench}: {QEMU} is not installed, so there is no peer: apt-get install qemu-system-x86");
    }
    installed
}

/// QEMU with a kernel of its own and one CPU of our model's kind, its console on its standard output.
#[must_use]
pub fn qemu(
    acceleration: &[&str],
    memory_mib: u64,
    kernel: &Path,
    initramfs: &Path,
    cmdline: &str,
) -> Command {
    let mut command = Command::new(QEMU);
    command
        .args(["-M", "q35", "-smp", "1", "-cpu", "Nehalem", "-nographic", "-no-reboot", "-nodefaults"])
        .args(["-serial", "stdio", "-m", &memory_mib.to_string()])
        .args(acceleration)
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", cmdline]);
    command
}

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
    listen(command, &format!("without saying {text:?}"), &mut |piece, seconds| {
        said.extend_from_slice(piece);
        Ok(said.windows(text.len()).any(|window| window == text.as_bytes()).then_some(seconds))
    })
}

/// The pieces of work that a guest marks on the standard output of `command`, with seconds since its start.
///
/// # Errors
/// When it cannot be started, takes longer than five minutes, or its guest fails or ends before it is done: one line.
pub fn spans(command: &mut Command) -> Result<Vec<Span<f64>>, String> {
    let mut marks = Marks::default();
    let hear = &mut |piece: &[u8], seconds| Ok(marks.hear(piece, seconds)?.then_some(()));
    listen(command, "before its guest was done", hear)?;
    Ok(marks.into_spans())
}

/// What a program's listener is given: a piece of its output, and the seconds since its start.
type Listener<'l, T> = &'l mut dyn FnMut(&[u8], f64) -> Result<Option<T>, String>;

/// Starts `command` and gives its standard output to `listener` until that has what it wants. When it ends before, the error
/// says so with `before` and with the last line of its complaints.
fn listen<T>(command: &mut Command, before: &str, listener: Listener<'_, T>) -> Result<T, String> {
    let mut complaints = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let stderr = complaints.try_clone().map_err(|error| format!("no temporary file: {error}"))?;
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
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
    found?.ok_or_else(|| format!("{name} ended {before}{}", last_line(&mut complaints)))
}

/// What a program complained of at last, to be put behind an error.
fn last_line(complaints: &mut File) -> String {
    let mut text = Vec::new();
    // What cannot be read is not there.
    let _ = complaints.rewind().and_then(|()| complaints.take(COMPLAINTS_BYTES_MAX).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .rfind(|line| !line.trim().is_empty())
        .map_or_else(String::new, |line| format!(": {}", line.trim()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_early_is_heard_out() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        assert!(seconds_until(&mut shell("echo ready"), "ready").is_ok());
        let error = seconds_until(&mut shell("echo no; echo first >&2; echo cause >&2"), "ready");
        assert_eq!(error, Err(String::from("sh ended without saying \"ready\": cause")));
        let error = spans(&mut shell("echo 'everett-bench: begin a'"));
        assert_eq!(error, Err(String::from("sh ended before its guest was done")));
    }
}
