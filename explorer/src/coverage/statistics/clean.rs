//! Upper bound on the probability of an event that never occurred.
//!
//! An event with probability p per trial is missed by all of n trials with probability (1-p)^n. At confidence c, n
//! trials without the event therefore bound p by 1 - (1-c)^(1/n). For large n and c = 95 % the bound is 3/n, the rule
//! of three.

/// Confidence of the stated bounds.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the largest probability that is still possible if the event did not occur in `clean` independent trials, at
/// [`CONFIDENCE`]. For display only.
#[must_use]
pub fn probability_below(clean: u64) -> f64 {
    probability_below_at(clean, CONFIDENCE)
}

/// Returns the largest probability that is still possible if the event did not occur in `clean` independent trials.
/// `confidence` lies between 0 and 1. For display only.
#[must_use]
pub fn probability_below_at(clean: u64, confidence: f64) -> f64 {
    if clean == 0 {
        return 1.0;
    }
    // For large n, 1 - x^(1/n) loses its digits, but ln and expm1 keep them.
    -((1.0 - confidence).ln() / clean as f64).exp_m1()
}
