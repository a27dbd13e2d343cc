//! The guarantee of probabilistic concurrency testing (PCT): with n chains of events and k events in all, a run with
//! random priorities finds a bug of depth d with a probability of at least 1 / (n k^(d-1)). It holds only for events
//! that the strategy fully orders.

/// Parameters of a run. All are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pct {
    /// n: number of chains.
    pub chains: u64,
    /// k: number of events.
    pub events: u64,
    /// d: number of event orders that the bug needs.
    pub depth: u32,
}

impl Pct {
    /// Returns the expected number of runs until one finds the bug: n k^(d-1). `None` if that overflows, or if a
    /// parameter is 0.
    #[must_use]
    pub fn runs_expected(&self) -> Option<u128> {
        let changes = self.depth.checked_sub(1)?;
        if self.chains == 0 || self.events == 0 {
            return None;
        }
        u128::from(self.events).checked_pow(changes)?.checked_mul(u128::from(self.chains))
    }

    /// Returns the probability that at least one of `runs` runs finds the bug: 1 - (1 - p)^runs. For display only. 0 if
    /// nothing is guaranteed.
    #[must_use]
    pub fn accumulated(&self, runs: u64) -> f64 {
        let Some(expected) = self.runs_expected() else { return 0.0 };
        if runs == 0 {
            return 0.0;
        }
        // Computed directly, the result would be 0 for a small p.
        -((runs as f64) * (-1.0 / expected as f64).ln_1p()).exp_m1()
    }
}
