//! Cost of a branch's final phase: what a timeline does after the branch's end, up to and including the checks. Everett
//! discards the final phase afterwards, so other branches do not continue from it.

use serde::{Deserialize, Serialize};

/// Cost of a part of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Number of guest instructions.
    pub instructions: u64,
    /// Length, in nanoseconds of vtime.
    pub vtime_ns: u64,
}

/// Cost of the final phase of a branch with checks. The branch's cost includes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalPhase {
    /// Cost from the end of the faults to the start of the checks and of the test template's `finally_` or
    /// `eventually_` commands. In this time drivers stop, machines come back, and the world settles.
    pub calm: Span,
    /// Cost of the checks and of the test template's `finally_` or `eventually_` commands.
    pub checks: Span,
}

impl FinalPhase {
    /// Returns the number of guest instructions in both parts.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.calm.instructions.saturating_add(self.checks.instructions)
    }

    /// Returns the length of both parts, in nanoseconds of vtime.
    #[must_use]
    pub fn vtime_ns(&self) -> u64 {
        self.calm.vtime_ns.saturating_add(self.checks.vtime_ns)
    }

    /// Adds another final phase. The sums saturate, because numbers from files are untrusted.
    pub(super) fn add(&mut self, other: &FinalPhase) {
        for (sum, more) in [(&mut self.calm, other.calm), (&mut self.checks, other.checks)] {
            sum.instructions = sum.instructions.saturating_add(more.instructions);
            sum.vtime_ns = sum.vtime_ns.saturating_add(more.vtime_ns);
        }
    }
}
