//! Cost of what follows a branch: its final phase, which is thrown away.

use serde::{Deserialize, Serialize};

/// Cost of a part of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Guest instructions.
    pub instructions: u64,
    /// Length, in nanoseconds of vtime.
    pub vtime_ns: u64,
}

/// Cost of the final phase of a branch with checks: everything after the end of its segment. The branch's cost includes
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalPhase {
    /// From the end of the faults until the first last command or check: drivers stop, machines come back, and the
    /// world settles.
    pub calm: Span,
    /// The last commands of a test template, and the checks.
    pub checks: Span,
}

impl FinalPhase {
    /// Returns the guest instructions of both parts.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.calm.instructions.saturating_add(self.checks.instructions)
    }

    /// Returns the length of both parts, in nanoseconds of vtime.
    #[must_use]
    pub fn vtime_ns(&self) -> u64 {
        self.calm.vtime_ns.saturating_add(self.checks.vtime_ns)
    }

    /// Adds another final phase without overflow, because numbers from files are untrusted.
    pub(super) fn add(&mut self, other: &FinalPhase) {
        for (sum, more) in [(&mut self.calm, other.calm), (&mut self.checks, other.checks)] {
            sum.instructions = sum.instructions.saturating_add(more.instructions);
            sum.vtime_ns = sum.vtime_ns.saturating_add(more.vtime_ns);
        }
    }
}
