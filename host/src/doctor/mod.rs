//! Checks of what this host can do.
//!
//! * [`examine`] checks everything and changes nothing. [`host`] checks cores, memory, disk and tools, [`kvm`] checks
//!   `/dev/kvm` with small guests, [`perf`] checks the performance counters.
//!
//! **Invariant.** A capability counts only if the host showed it here and now; nothing is inferred from a name.

pub mod host;
pub mod kvm;
pub mod perf;

use kvm::probes::{Effort, Undefined};
use serde::Serialize;

/// Effect of a finding on what Everett can do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing fails because of it.
    Note,
    /// A function of this version cannot work here.
    Bad,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub name: &'static str,
    /// Verdict on the observation.
    pub verdict: Verdict,
    /// Observation, in words.
    pub detail: String,
    /// Purpose or consequence of the observation, where it is not obvious; else empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub means: &'static str,
    /// Undefined status flags one by one, if this finding is about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<Undefined>,
}

impl Finding {
    fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Finding {
        Finding { name, verdict, detail: detail.into(), means: "", undefined: Vec::new() }
    }
}

/// All findings, and the properties that an exact kvm engine needs and this host did not show.
#[derive(Debug)]
pub struct Examination {
    /// One finding for each check.
    pub findings: Vec<Finding>,
    /// Names of the findings that an exact kvm engine needs and this host did not show.
    pub unproven: Vec<&'static str>,
}

/// Examines this host.
#[must_use]
pub fn examine() -> Examination {
    let mut findings = host::examine();
    findings.push(perf::examine());
    let kvm = kvm::examine(Effort::Look);
    findings.extend(kvm.findings);
    Examination { findings, unproven: kvm.unproven }
}

/// Examines only `/dev/kvm`, with enough repetitions to catch a property that holds only most of the time.
#[must_use]
pub fn prove() -> Examination {
    let kvm::ProbeReport { findings, unproven, .. } = kvm::examine(Effort::Proof);
    Examination { findings, unproven }
}
