//! What this host can do.
//!
//! * [`examine`] looks at everything and changes nothing; [`host`] has cores, memory, disk and tools, [`kvm`] the
//!   device and its capabilities, [`perf`] the performance counters.
//!
//! **Invariant.** A capability counts only if the host showed it here and now; nothing is inferred from a name.

pub mod host;
pub mod kvm;
pub mod perf;

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
}

impl Finding {
    fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Finding {
        Finding { name, verdict, detail: detail.into() }
    }
}

/// The engine that `--engine auto` takes on this host, and why, in one line.
#[must_use]
pub fn engine_choice() -> (&'static str, &'static str) {
    ("soft", "exact on every x86-64 host; the kvm engine is not built into this version")
}

/// Look at this host.
#[must_use]
pub fn examine() -> Vec<Finding> {
    let mut findings = host::examine();
    findings.extend(kvm::examine());
    findings.push(perf::examine());
    findings
}
