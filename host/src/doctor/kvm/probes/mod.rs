//! Which guests are run, and what their ends mean.
//!
//! - `speed`: of both rings, and of an exit; `hidden`: CPUID, and instructions that the model does not have
//! - `time`: whether the TSC can be held; `machine`: memory, MSRs, interrupts, instructions that cannot be executed
//! - `counters`: whether the guest's branches can be counted, and how late the host hears of it
//! - `flags`: what the processor leaves in status flags that the manual calls undefined

mod counters;
pub(crate) mod flags;
mod hidden;
mod machine;
mod speed;
mod time;

use super::super::{Finding, Verdict};
pub use counters::Branches;
pub use flags::Undefined;

use super::Report;
use super::host::Host;

/// How hard to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Once, in a few seconds.
    Look,
    /// So often that what holds most of the time does not pass.
    Proof,
}

impl Effort {
    /// How often a property that an exact engine needs has to show itself.
    #[must_use]
    pub fn rounds(self) -> u32 {
        match self {
            Effort::Look => 1,
            Effort::Proof => 100,
        }
    }
}

/// Run all guests.
#[must_use]
pub fn all(host: &mut dyn Host, effort: Effort) -> Report {
    let mut notes = Notes::default();
    notes.ok("/dev/kvm", "API version 12", "");
    speed::probe(host, &mut notes);
    hidden::probe(host, effort, &mut notes);
    time::probe(host, effort, &mut notes);
    machine::probe(host, effort, &mut notes);
    flags::probe(host, &mut notes);
    counters::probe(host, effort, &mut notes);
    Report { findings: notes.findings, unproven: notes.unproven, branches: notes.branches }
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Notes {
    findings: Vec<Finding>,
    unproven: Vec<&'static str>,
    branches: Option<Branches>,
}

impl Notes {
    /// As it should be.
    fn ok(&mut self, name: &'static str, detail: impl Into<String>, means: &'static str) {
        self.findings.push(Finding { means, ..Finding::new(name, Verdict::Ok, detail) });
    }
    /// Worth knowing.
    fn note(&mut self, name: &'static str, detail: impl Into<String>, means: &'static str) {
        self.findings.push(Finding { means, ..Finding::new(name, Verdict::Note, detail) });
    }
    /// The flags that the last finding is about, one by one.
    fn undefined(&mut self, rows: Vec<Undefined>) {
        if let Some(finding) = self.findings.last_mut() {
            finding.undefined = rows;
        }
    }
    /// Something that an exact engine needs: whether it is so, and what was seen.
    fn needed(&mut self, name: &'static str, holds: bool, detail: impl Into<String>, means: &'static str) {
        if holds {
            self.ok(name, detail, means);
        } else {
            self.unproven.push(name);
            self.note(name, detail, means);
        }
    }
}

/// Whether each of so many runs has the property; else, what one did instead.
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
