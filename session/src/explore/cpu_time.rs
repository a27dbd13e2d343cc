//! CPU time of workers by activity, for statistics.

use std::ops::AddAssign;

use serde::Serialize;

/// CPU time by activity, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CpuTime {
    /// Execution of guests, their devices and the wire.
    pub guest_ns: u64,
    /// Restoring moments.
    pub restore_ns: u64,
    /// Digests of the trail.
    pub digest_ns: u64,
    /// Observation: coverage and properties.
    pub witness_ns: u64,
    /// Checks of the histories of clients' operations, e.g. for linearizability.
    pub history_ns: u64,
    /// Taking moments at the ends of branches.
    pub moment_ns: u64,
}

impl CpuTime {
    /// Returns each CPU time in nanoseconds, with its name.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 6] {
        [
            ("guest", self.guest_ns),
            ("digests", self.digest_ns),
            ("moments", self.moment_ns),
            ("coverage", self.witness_ns),
            ("histories", self.history_ns),
            ("restores", self.restore_ns),
        ]
    }

    /// Returns the sum of all CPU times, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.parts().into_iter().map(|(_, ns)| ns).sum()
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: CpuTime) {
        self.guest_ns += other.guest_ns;
        self.restore_ns += other.restore_ns;
        self.digest_ns += other.digest_ns;
        self.witness_ns += other.witness_ns;
        self.history_ns += other.history_ns;
        self.moment_ns += other.moment_ns;
    }
}
