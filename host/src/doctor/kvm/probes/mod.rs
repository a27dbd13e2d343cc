//! The probe guests, and the interpretation of their results.
//!
//! - `speed`: speed of both rings, and cost of an exit
//! - `hidden`: CPUID, and instructions that the model does not have
//! - `time`: holding the TSC still
//! - `kernel`: registers, protection and instructions that a stock kernel's boot needs
//! - `machine`: memory, MSRs, interrupts, instructions that cannot be executed
//! - `counters`: counting of the guest's branches, and delay of the counter's signal
//! - `flags`: status flags that the manual calls undefined
//! - `approximations`: results that the manual does not define to the last bit

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
    /// Each property is checked once, in a few seconds.
    Look,
    /// Each property is checked often enough to catch one that holds only most of the time.
    Proof,
}

impl Effort {
    /// Returns the number of times that a property needed by an exact engine must hold.
    #[must_use]
    pub fn rounds(self) -> u32 {
        match self {
            Effort::Look => 1,
            Effort::Proof => 100,
        }
    }
}

/// Runs all probe guests.
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

/// Findings so far.
#[derive(Default)]
pub(super) struct Notes {
    findings: Vec<Finding>,
    unproven: Vec<&'static str>,
    branches: Option<Branches>,
    coherent: bool,
}

impl Notes {
    /// Records a property that is as it should be.
    fn ok(&mut self, name: &'static str, detail: impl Into<String>, means: &'static str) {
        self.findings.push(Finding { means, ..Finding::new(name, Verdict::Ok, detail) });
    }
    /// Records a property that is worth knowing.
    fn note(&mut self, name: &'static str, detail: impl Into<String>, means: &'static str) {
        self.findings.push(Finding { means, ..Finding::new(name, Verdict::Note, detail) });
    }
    /// Attaches rows of undefined flags to the last finding.
    fn undefined(&mut self, rows: Vec<Undefined>) {
        if let Some(finding) = self.findings.last_mut() {
            finding.undefined = rows;
        }
    }
    /// Records a property that an exact engine needs: whether it holds, and the observation.
    fn needed(&mut self, name: &'static str, holds: bool, detail: impl Into<String>, means: &'static str) {
        if holds {
            self.ok(name, detail, means);
        } else {
            self.unproven.push(name);
            self.note(name, detail, means);
        }
    }
}

/// Checks that each of `rounds` runs has the property. The error is the first deviation or failure.
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
