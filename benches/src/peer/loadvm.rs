//! QEMU's way of restoring a moment: `loadvm` of an internal snapshot, requested over QMP.
#![allow(clippy::disallowed_types)] // Benches measure host time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Guest memory, in MiB.
const MEMORY_MIB: usize = 256;
/// Part of the guest's memory that is not zero, in MiB.
const WRITTEN_MIB: usize = 128;

/// Returns the durations of `times` calls of `loadvm`, in seconds. The guest has 256 MiB, of which 128 MiB are
/// written, and does not run.
///
/// # Errors
/// Returns a one-line message if `qemu_img` fails, if a file cannot be written, or if QEMU cannot be started or
/// refuses a request.
pub fn seconds(qemu: &str, qemu_img: &str, folder: &Path, times: usize) -> Result<Vec<f64>, String> {
    let (disk, content) = (folder.join("peer.qcow2"), folder.join("peer.bin"));
    let created = Command::new(qemu_img).args(["create", "-q", "-f", "qcow2"]).arg(&disk).arg("1G").status();
    if !created.is_ok_and(|status| status.success()) {
        return Err(format!("{qemu_img} cannot create {}", disk.display()));
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let bytes: Vec<u8> = words.take((WRITTEN_MIB << 20) / 8).flatten().collect();
    std::fs::write(&content, bytes).map_err(|error| format!("{}: {error}", content.display()))?;

    let mut monitor = Monitor::start(
        Command::new(qemu)
            .args(["-M", "q35", "-accel", "tcg", "-S", "-display", "none", "-nodefaults", "-qmp", "stdio"])
            .args(["-m", &MEMORY_MIB.to_string()])
            .arg("-drive")
            .arg(format!("if=none,id=disk,format=qcow2,file={}", disk.display()))
            .args(["-device", "virtio-blk-pci,drive=disk", "-device"])
            .arg(format!("loader,file={},addr=0x2000000,force-raw=on", content.display())),
    )?;
    monitor.ask("{\"execute\":\"qmp_capabilities\"}")?;
    monitor.human("savevm there")?;
    (0..times)
        .map(|_| {
            let start = Instant::now();
            monitor.human("loadvm there")?;
            Ok(start.elapsed().as_secs_f64())
        })
        .collect()
}

/// Running QEMU process, with a connection to its monitor.
struct Monitor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Monitor {
    fn start(command: &mut Command) -> Result<Monitor, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start QEMU: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(String::from("QEMU has no monitor"));
        };
        let mut monitor = Monitor { child, input, output: BufReader::new(output) };
        monitor.line()?;
        Ok(monitor)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) | Err(_) => Err(String::from("QEMU's monitor closed")),
            Ok(_) => Ok(line),
        }
    }

    /// Sends a request and waits for the answer. Skips events.
    fn ask(&mut self, request: &str) -> Result<(), String> {
        writeln!(self.input, "{request}").map_err(|error| format!("QEMU's monitor: {error}"))?;
        loop {
            let line = self.line()?;
            if line.starts_with("{\"return\": {}") || line.starts_with("{\"return\": \"\"") {
                return Ok(());
            }
            if line.starts_with("{\"return\"") || line.starts_with("{\"error\"") {
                return Err(format!("QEMU refuses {request}: {}", line.trim()));
            }
        }
    }

    fn human(&mut self, command: &str) -> Result<(), String> {
        self.ask(&format!(
            "{{\"execute\":\"human-monitor-command\",\"arguments\":{{\"command-line\":\"{command}\"}}}}"
        ))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
