//! Peers: other people's programs that do the same job. A missing one is named, with what to install.
#![allow(clippy::disallowed_types)] // Measuring host time is what benches are for.

pub mod loadvm;

use std::io::Read;
use std::process::{Command, Stdio};
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
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let mut output = child.stdout.take().ok_or_else(|| format!("{name} has no output"))?;
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    let found = loop {
        match output.read(&mut piece) {
            Ok(0) | Err(_) => break None,
            Ok(n) => said.extend_from_slice(&piece[..n]),
        }
        if said.windows(text.len()).any(|window| window == text.as_bytes()) {
            break Some(start.elapsed().as_secs_f64());
        }
        if start.elapsed() > PEER_TIMEOUT {
            break None;
        }
    };
    // Whether it still runs or has ended by itself does not matter any more.
    let _ = child.kill();
    let _ = child.wait();
    found.ok_or_else(|| format!("{name} ended without saying {text:?}"))
}
