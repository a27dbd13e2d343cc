//! Lower bound on the probability that probabilistic concurrency testing (PCT) finds a bug.
//!
//! A run has n chains of events, e.g. the messages of n senders, and k events in total. A bug of depth d needs d
//! ordering constraints, each of which says that one event comes before another. PCT gives the chains random
//! priorities, and a run then finds the bug with a probability p of at least 1 / (n k^(d-1)). The bound holds only if
//! all events happen in the order of the priorities.

/// Parameters of a run, each at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pct {
    /// Number n of chains.
    pub chains: u64,
    /// Number k of events.
    pub events: u64,
    /// Depth d: number of ordering constraints that the bug needs.
    pub depth: u32,
}

impl Pct {
    /// Returns an upper bound of the expected number of runs until a run finds the bug: n k^(d-1). Returns `None` if
    /// the number overflows, or if a parameter is 0.
    #[must_use]
    pub fn runs_expected(&self) -> Option<u128> {
        let changes = self.depth.checked_sub(1)?;
        if self.chains == 0 || self.events == 0 {
            return None;
        }
        u128::from(self.events).checked_pow(changes)?.checked_mul(u128::from(self.chains))
    }

    /// Returns a lower bound of the probability that at least one of `runs` runs finds the bug: 1 - (1 - p)^runs, where
    /// p is 1 / (n k^(d-1)). Returns 0 if a parameter is 0 or n k^(d-1) overflows. For display only.
    #[must_use]
    pub fn accumulated(&self, runs: u64) -> f64 {
        let Some(expected) = self.runs_expected() else { return 0.0 };
        if runs == 0 {
            return 0.0;
        }
        // In floating point, the formula 1 - (1 - p)^runs would give 0 for a small p.
        -((runs as f64) * (-1.0 / expected as f64).ln_1p()).exp_m1()
    }
}
