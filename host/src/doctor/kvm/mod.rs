//! Checks of `/dev/kvm`: the capabilities that it reports, and the behaviour that small guests observe.
//!
//! - [`guest`]: a probe guest as data
//! - [`host`]: the interface to a host that runs guests; [`real`]: the actual host; [`scripted`]: a host for tests
//! - [`probes`]: the guests that are run, and the interpretation of their results
//!
//! **Invariants.**
//! - Nothing is inferred from a name or a version: a property counts if a guest showed it here and now.
//! - A guest runs for at most about a second, and all guests together for at most a minute (ten minutes for a proof).
//!   A signal stops a single guest; after the total time, [`examine`] returns without waiting for the probe thread.

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

/// Findings about `/dev/kvm`, and the properties that the exact kvm engine lacks here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// One finding for each property that was checked.
    pub findings: Vec<Finding>,
    /// Properties that an exact engine needs and this host did not show. Empty if it showed all of them.
    pub unproven: Vec<&'static str>,
    /// The event that counts a guest's branches, if one does.
    pub branches: Option<Branches>,
}

/// Time limit for all guests together. On a software KVM they take a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const DEVICE: &str = "/dev/kvm";

/// Opens the device and runs the probe guests on it.
#[must_use]
pub fn examine(effort: Effort) -> Report {
    // Guests run on a thread of their own. If the host's kernel never returns from one, the caller does not have to
    // wait.
    let (sender, receiver) = channel();
    let patience = PATIENCE * if effort == Effort::Proof { 10 } else { 1 };
    let probing = thread::Builder::new().name("probes".to_owned()).spawn(move || {
        // Sending fails if the receiver has already timed out.
        let _ = sender.send(on_this_thread(effort));
    });
    let why = match probing {
        Err(error) => format!("cannot start a thread to probe it: {error}"),
        Ok(_) => match receiver.recv_timeout(patience) {
            Ok(report) => return report,
            Err(RecvTimeoutError::Timeout) => format!("did not answer in {} s", patience.as_secs()),
            Err(RecvTimeoutError::Disconnected) => "the probe thread failed".to_owned(),
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

/// Returns the error's message without a leading device name, which the report shows anyway.
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
