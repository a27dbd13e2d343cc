//! Peers: other programs that do the same job as Everett. If a peer is not installed, benches print its name and
//! package. [`loadvm`] restores moments with QEMU.
#![allow(clippy::disallowed_types)] // Benches measure host time.

pub mod loadvm;

use crate::marks::{Marks, Span};
use std::fs::File;
use std::io::{Read, Seek as _};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time limit for a peer.
const PEER_TIMEOUT: Duration = Duration::from_secs(900);

/// Maximum number of bytes that are read from a program's error output.
const COMPLAINTS_BYTES_MAX: u64 = 64 << 10;

/// Program of the peer that most benches use.
pub const QEMU: &str = "qemu-system-x86_64";

/// True if QEMU is installed. Prints a note if it is not.
pub fn has_qemu(bench: &str) -> bool {
    let installed = installed(QEMU);
    if !installed {
        eprintln!(
            "{bench}: {QEMU} is missing, so nothing is compared with it; install it with: apt-get install qemu-system-x86"
        );
    }
    installed
}

/// Returns a QEMU command with a kernel and one x86-64-v2 CPU, like the CPU of Everett's guests. The guest's console
/// is the standard output of the command.
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

/// True if a program is installed.
pub fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Returns the time from the start of `command` until its standard output contains `text`, in seconds.
///
/// # Errors
/// Returns a one-line message if the program cannot be started, ends without printing `text`, or takes longer than
/// fifteen minutes.
pub fn seconds_until(command: &mut Command, text: &str) -> Result<f64, String> {
    let mut said = Vec::new();
    listen(command, &format!("without saying {text:?}"), &mut |piece, seconds| {
        said.extend_from_slice(piece);
        Ok(said.windows(text.len()).any(|window| window == text.as_bytes()).then_some(seconds))
    })
}

/// Runs a guest with `command`, and parses the marks on its standard output: lines that say when a piece of work begins
/// or ends. Returns the pieces of work, with their beginnings and ends in seconds since the start of `command`.
///
/// # Errors
/// Returns a one-line message if the program cannot be started or takes longer than fifteen minutes, or if its guest
/// fails or ends before it is done.
pub fn spans(command: &mut Command) -> Result<Vec<Span<f64>>, String> {
    let mut marks = Marks::default();
    let hear = &mut |piece: &[u8], seconds| Ok(marks.hear(piece, seconds)?.then_some(()));
    listen(command, "before its guest was done", hear)?;
    Ok(marks.into_spans())
}

/// Callback for a part of a program's output and the seconds since the program's start. Returning a value ends the
/// program.
type Listener<'l, T> = &'l mut dyn FnMut(&[u8], f64) -> Result<Option<T>, String>;

/// Starts `command` and passes its standard output to `listener` until `listener` returns a value. If the program ends
/// first, the error message consists of "NAME ended", `before` (e.g. "without saying …") and the last line of the
/// program's error output.
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
    // The program may have ended already.
    let _ = child.kill();
    let _ = child.wait();
    found?.ok_or_else(|| format!("{name} ended {before}{}", last_line(&mut complaints)))
}

/// Returns a colon and the last line of a program's error output, to be appended to an error message. Returns an
/// empty text if no line can be read.
fn last_line(complaints: &mut File) -> String {
    let mut text = Vec::new();
    // Error output that cannot be read counts as empty.
    let _ = complaints.rewind().and_then(|()| complaints.take(COMPLAINTS_BYTES_MAX).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .rfind(|line| !line.trim().is_empty())
        .map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// Reads output in a separate thread, which ends with the program. A direct read would block forever if the program
/// hangs.
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
    fn the_error_of_a_program_that_ends_early_quotes_its_last_line() {
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
