//! What random priorities promise: with n chains of events and k events in all, a run finds a bug of depth d with a
//! probability of at least 1 / (n k^(d-1)). It holds only for events that the strategy fully orders.

/// What was run. All are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pct {
    /// n.
    pub chains: u64,
    /// k.
    pub events: u64,
    /// d: how many orders of two events the bug needs.
    pub depth: u32,
}

impl Pct {
    /// How many runs it takes until one is expected to find the bug: n k^(d-1). `None` if that is beyond all numbers, or
    /// nothing was run.
    #[must_use]
    pub fn runs_expected(&self) -> Option<u128> {
        let changes = self.depth.checked_sub(1)?;
        if self.chains == 0 || self.events == 0 {
            return None;
        }
        u128::from(self.events).checked_pow(changes)?.checked_mul(u128::from(self.chains))
    }

    /// The probability that at least one of so many runs finds the bug: 1 - (1 - p)^runs. For show. 0 if nothing is promised.
    #[must_use]
    pub fn accumulated(&self, runs: u64) -> f64 {
        let Some(expected) = self.runs_expected() else { return 0.0 };
        if runs == 0 {
            return 0.0;
        }
        // Written out, it would be 0 for a small p.
        -((runs as f64) * (-1.0 / expected as f64).ln_1p()).exp_m1()
    }
}
