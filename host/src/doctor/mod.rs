//! Checks of what this host can do.
//!
//! - [`examine`] makes all checks. It changes nothing on the host.
//! - [`host`] checks cores, memory, disk and tools. [`kvm`] checks `/dev/kvm` with small guests. [`perf`] checks the
//!   performance counters.
//!
//! **Invariant.** A capability counts only if the host has shown it in this examination. Nothing is inferred from
//! a name, e.g. of the processor.

pub mod host;
pub mod kvm;
pub mod perf;

use kvm::probes::{Effort, Undefined};
use serde::Serialize;

/// Severity of a check's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The checked property is as it should be.
    Ok,
    /// The operator should know the observation, but nothing fails because of it.
    Note,
    /// A feature of this version of Everett cannot work on this host.
    Bad,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub name: &'static str,
    /// Consequence of the observation for Everett.
    pub verdict: Verdict,
    /// Observation in words.
    pub detail: String,
    /// Purpose of the checked property, or consequence of the observation. Empty if obvious.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub means: &'static str,
    /// Comparisons of the host's processor with Everett's CPU model, one for each status flag that an instruction
    /// leaves undefined. Empty for all checks except the check of these flags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<Undefined>,
}

impl Finding {
    fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Finding {
        Finding { name, verdict, detail: detail.into(), means: "", undefined: Vec::new() }
    }
}

/// Result of all checks of a host.
#[derive(Debug)]
pub struct Examination {
    /// Findings, one for each check.
    pub findings: Vec<Finding>,
    /// Names of the properties that an exact kvm engine needs and that this host did not show.
    pub unproven: Vec<&'static str>,
}

/// Makes all checks of this host, each property once.
#[must_use]
pub fn examine() -> Examination {
    let mut findings = host::examine();
    findings.push(perf::examine());
    let kvm = kvm::examine(Effort::Look);
    findings.extend(kvm.findings);
    Examination { findings, unproven: kvm.unproven }
}

/// Checks only `/dev/kvm`, each property many times, to notice a property that holds only most of the time.
#[must_use]
pub fn prove() -> Examination {
    let kvm::ProbeReport { findings, unproven, .. } = kvm::examine(Effort::Proof);
    Examination { findings, unproven }
}
