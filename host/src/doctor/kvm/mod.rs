//! Checks of `/dev/kvm`: the capabilities that it reports, and the behaviour that small guests observe.
//!
//! - [`guest`]: a probe guest: its instructions, initial registers and memory
//! - [`host`]: the interface to a host that runs guests; [`real`]: the actual host; [`scripted`]: hosts for tests
//! - [`probes`]: the probe guests, and the interpretation of their results
//!
//! **Invariants.**
//! - A property counts only if a guest has shown it on this host, in this examination. Nothing is inferred from a name
//!   or a version.
//! - A guest that still runs after about a second is stopped by a signal. The number of guests is bounded, but
//!   together they may take long on a slow host. If no guest ends for a minute, the host's kernel hangs in a guest, and
//!   [`examine`] returns without waiting for the probe thread.

pub mod guest;
pub mod host;
pub mod probes;
pub mod real;
pub mod scripted;
mod tsc_scaling;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use everett_input::causes::with_causes;
use everett_vmm::kvm::{Host as Device, KvmError};

use super::{Finding, Verdict};
use guest::Guest;
use host::{Host, Ran};
use probes::{Branches, Effort};
use real::Real;

/// Results of the checks of `/dev/kvm`, and properties of this host that an exact kvm engine needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// Results of the checks, one for each checked property.
    pub findings: Vec<Finding>,
    /// Properties that an exact engine needs and that this host did not show. Empty if the host showed all of them.
    pub unproven: Vec<&'static str>,
    /// The processor's performance event that counts a guest's branches. `None` if no event counts them exactly.
    pub branches: Option<Branches>,
    /// True if a guest sees the new content of memory that Everett has replaced. Before the guest continues, Everett
    /// flushes the address translations that the processor caches.
    pub coherent: bool,
}

/// Maximum time between the ends of two guests. After this time, the caller gives up. A guest takes milliseconds, or
/// some tens of milliseconds on an emulated host.
const PATIENCE: Duration = Duration::from_secs(60);
const DEVICE: &str = "/dev/kvm";

/// Message from the probe thread to the thread that waits for it.
enum Told {
    /// Another guest has ended.
    Progress,
    /// All probes have been made.
    Done(ProbeReport),
}

/// A host that also sends a message to the waiting thread whenever a guest ends.
struct Telling<H> {
    host: H,
    to: Sender<Told>,
}

impl<H: Host> Host for Telling<H> {
    fn capability(&mut self, number: u32) -> Result<u32, String> {
        self.host.capability(number)
    }
    fn tsc_control_lacks(&mut self) -> Option<String> {
        self.host.tsc_control_lacks()
    }
    fn run(&mut self, guest: &Guest) -> Result<Ran, String> {
        let ran = self.host.run(guest);
        // The message cannot be sent if the waiting thread has given up.
        let _ = self.to.send(Told::Progress);
        ran
    }
}

/// Opens the device and runs the probe guests on it.
#[must_use]
pub fn examine(effort: Effort) -> ProbeReport {
    // Guests run on a thread of their own, so that the caller need not wait if the host's kernel never returns from a
    // guest.
    let (sender, receiver) = channel();
    let probing = thread::Builder::new().name("probes".to_owned()).spawn(move || {
        let report = on_this_thread(effort, &sender);
        let _ = sender.send(Told::Done(report));
    });
    match probing {
        Err(error) => nothing(format!("cannot start a thread to probe it: {error}")),
        Ok(_) => wait(&receiver, PATIENCE).unwrap_or_else(nothing),
    }
}

/// Waits for the report. Returns the reason if no report comes.
fn wait(from: &Receiver<Told>, patience: Duration) -> Result<ProbeReport, String> {
    loop {
        match from.recv_timeout(patience) {
            Ok(Told::Progress) => {}
            Ok(Told::Done(report)) => return Ok(report),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("a guest did not end in {} s", patience.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err("the probe thread failed".to_owned()),
        }
    }
}

fn on_this_thread(effort: Effort, to: &Sender<Told>) -> ProbeReport {
    match Device::open() {
        Ok(device) => probes::all(&mut Telling { host: Real::new(device), to: to.clone() }, effort),
        Err(error @ (KvmError::Absent | KvmError::Denied)) => {
            nothing(format!("{}; the soft engine does not need it", short(&error)))
        }
        Err(error) => nothing(with_causes(&error)),
    }
}

/// Returns the error's message without the device's name at its start. The report shows the name anyway.
fn short(error: &KvmError) -> String {
    let text = error.to_string();
    text.strip_prefix(DEVICE)
        .map_or_else(|| text.clone(), |rest| rest.trim_start_matches([':', ' ']).to_owned())
}

fn nothing(why: String) -> ProbeReport {
    ProbeReport {
        findings: vec![Finding::new(DEVICE, Verdict::Note, why)],
        unproven: vec!["a usable /dev/kvm"],
        branches: None,
        coherent: false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
