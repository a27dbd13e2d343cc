//! `/dev/kvm`: what it says that it can do, and what small guests find that it does.
//!
//! - [`guest`]: a small guest as data; [`host`]: who runs it, and what came of it; [`real`]: the host that is here;
//!   [`scripted`]: one for tests
//! - [`probes`]: which guests are run, and what their ends mean
//!
//! **Invariants.**
//! - Nothing is inferred from a name or a version: a property counts if a guest showed it here and now.
//! - A guest runs for a second at most, and all of them together for a minute: a signal ends the first, and whoever waits
//!   goes on without the second.

pub mod guest;
pub mod host;
pub mod probes;
pub mod real;
pub mod scripted;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use everett_vmm::kvm::{Host as Device, KvmError};

use super::{Finding, Verdict};
use probes::{Branches, Effort};
use real::Real;

/// What was found, and whether the kvm engine could be exact here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// One for each thing that was looked at.
    pub findings: Vec<Finding>,
    /// What an exact engine needs and this host did not show. Nothing if all was shown.
    pub unproven: Vec<&'static str>,
    /// What counts a guest's branches, if something does.
    pub branches: Option<Branches>,
}

/// How long all guests may take. Those of a software KVM take a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const DEVICE: &str = "/dev/kvm";

/// Look at the device and let guests run on it.
#[must_use]
pub fn examine(effort: Effort) -> Report {
    // Guests run on a thread that nobody has to wait for, should the host's kernel keep it.
    let (sender, receiver) = channel();
    let patience = PATIENCE * if effort == Effort::Proof { 10 } else { 1 };
    let probing = thread::Builder::new().name("probes".to_owned()).spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = sender.send(on_this_thread(effort));
    });
    let why = match probing {
        Err(error) => format!("no thread to look at it: {error}"),
        Ok(_) => match receiver.recv_timeout(patience) {
            Ok(report) => return report,
            Err(RecvTimeoutError::Timeout) => format!("did not answer in {} s", patience.as_secs()),
            Err(RecvTimeoutError::Disconnected) => "looking at it failed".to_owned(),
        },
    };
    nothing(why)
}

fn on_this_thread(effort: Effort) -> Report {
    match Device::open() {
        Ok(device) => probes::all(&mut Real::new(device), effort),
        Err(error @ (KvmError::Absent | KvmError::Denied)) => {
            nothing(format!("{}; the soft engine does not need it", short(&error)))
        }
        Err(error) => nothing(error.to_string()),
    }
}

/// The error without the device's name, which stands before it.
fn short(error: &KvmError) -> String {
    let text = error.to_string();
    text.strip_prefix(DEVICE)
        .map_or_else(|| text.clone(), |rest| rest.trim_start_matches([':', ' ']).to_owned())
}

fn nothing(why: String) -> Report {
    Report {
        findings: vec![Finding::new(DEVICE, Verdict::Note, why)],
        unproven: vec!["a usable /dev/kvm"],
        branches: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
