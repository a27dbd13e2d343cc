//! The probe guests, and the interpretation of their results. A probe guest is a small guest that shows how `/dev/kvm`
//! behaves on this host. The results tell whether the kvm engine would be exact, i.e. repeat every timeline to the bit.
//!
//! - `speed`: speed of guests in ring 0 and in ring 3, and cost of an exit
//! - `hidden`: CPUID, and instructions that the CPU model lacks
//! - `time`: holding the TSC at one value
//! - `kernel`: registers, protection and instructions that a stock kernel needs at boot
//! - `machine`: memory, MSRs, interrupts, and instructions that KVM cannot execute
//! - `counters`: counting of the guest's branches, and delay of the counter's signal
//! - `flags`: status flags that the manual leaves undefined
//! - `approximations`: instructions whose results the manual does not define to the last bit

pub(crate) mod approximations;
mod counters;
pub(crate) mod flags;
mod hidden;
mod kernel;
mod machine;
mod speed;
mod time;

use super::super::{Finding, Verdict};
pub use counters::Branches;
pub use flags::Undefined;

use super::ProbeReport;
use super::host::Host;

/// Thoroughness of the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Each property is checked once. All checks take a few seconds.
    Look,
    /// Each property is checked many times, to notice a property that holds only most of the time.
    Proof,
}

impl Effort {
    /// Returns how many times the probes check each property that an exact engine needs. The property must hold every
    /// time.
    #[must_use]
    pub fn rounds(self) -> u32 {
        match self {
            Effort::Look => 1,
            Effort::Proof => 100,
        }
    }
}

/// Runs all probe guests on a host.
#[must_use]
pub fn all(host: &mut dyn Host, effort: Effort) -> ProbeReport {
    let mut notes = Notes::default();
    notes.ok("/dev/kvm", "API version 12", "");
    speed::probe(host, &mut notes);
    hidden::probe(host, effort, &mut notes);
    time::probe(host, effort, &mut notes);
    kernel::probe(host, effort, &mut notes);
    machine::probe(host, effort, &mut notes);
    flags::probe(host, &mut notes);
    approximations::probe(host, &mut notes);
    counters::probe(host, effort, &mut notes);
    let Notes { findings, unproven, branches, coherent } = notes;
    ProbeReport { findings, unproven, branches, coherent }
}

/// Findings (results of checks) that the probes have recorded so far.
#[derive(Default)]
pub(super) struct Notes {
    findings: Vec<Finding>,
    unproven: Vec<&'static str>,
    branches: Option<Branches>,
    coherent: bool,
}

impl Notes {
    /// Records that the checked property is as it should be.
    fn ok(&mut self, name: &'static str, detail: impl Into<String>, means: &'static str) {
        self.findings.push(Finding { means, ..Finding::new(name, Verdict::Ok, detail) });
    }
    /// Records an observation that the operator should know. It does not prevent an exact engine.
    fn note(&mut self, name: &'static str, detail: impl Into<String>, means: &'static str) {
        self.findings.push(Finding { means, ..Finding::new(name, Verdict::Note, detail) });
    }
    /// Attaches comparisons of undefined flags to the last finding.
    fn undefined(&mut self, rows: Vec<Undefined>) {
        if let Some(finding) = self.findings.last_mut() {
            finding.undefined = rows;
        }
    }
    /// Records a property that an exact engine needs. `holds` is true if the host has the property.
    fn needed(&mut self, name: &'static str, holds: bool, detail: impl Into<String>, means: &'static str) {
        if holds {
            self.ok(name, detail, means);
        } else {
            self.unproven.push(name);
            self.note(name, detail, means);
        }
    }
}

/// Runs a check up to `rounds` times. If a run shows that the host lacks the property, or if the check itself fails,
/// stops and returns the reason as an error.
pub(super) fn always(
    rounds: u32,
    mut once: impl FnMut() -> Result<Option<String>, String>,
) -> Result<(), String> {
    for _ in 0..rounds {
        if let Some(otherwise) = once()? {
            return Err(otherwise);
        }
    }
    Ok(())
}
