//! What this host can do.
//!
//! * [`examine`] looks at everything and changes nothing; [`host`] has cores, memory, disk and tools, [`kvm`] what small
//!   guests find out about `/dev/kvm`, [`perf`] the performance counters.
//!
//! **Invariant.** A capability counts only if the host showed it here and now; nothing is inferred from a name.

pub mod host;
pub mod kvm;
pub mod perf;

use kvm::probes::{Effort, Undefined};
use serde::Serialize;

/// How a finding bears on what Everett can do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing fails because of it.
    Note,
    /// Something that this version does cannot work here.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// What it means.
    pub verdict: Verdict,
    /// What was seen.
    pub detail: String,
    /// What that is good for, or what follows from it, if that is not plain.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub means: &'static str,
    /// Undefined status flags one by one, if that is what was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<Undefined>,
}

impl Finding {
    fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Finding {
        Finding { name, verdict, detail: detail.into(), means: "", undefined: Vec::new() }
    }
}

/// What was found, and what an exact kvm engine needs that this host did not show.
#[derive(Debug)]
pub struct Examination {
    /// One for each thing that was looked at.
    pub findings: Vec<Finding>,
    /// Names of findings.
    pub unproven: Vec<&'static str>,
}

/// Look at this host.
#[must_use]
pub fn examine() -> Examination {
    let mut findings = host::examine();
    findings.push(perf::examine());
    let kvm = kvm::examine(Effort::Look);
    findings.extend(kvm.findings);
    Examination { findings, unproven: kvm.unproven }
}

/// Look at nothing but `/dev/kvm`, and so hard that what holds only most of the time does not pass.
#[must_use]
pub fn prove() -> Examination {
    let kvm::Report { findings, unproven, .. } = kvm::examine(Effort::Proof);
    Examination { findings, unproven }
}
