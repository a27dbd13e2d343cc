//! Bound on the probability of an event that was never seen.
//!
//! An event with probability p per trial is missed by n trials with probability (1-p)^n. So n clean trials bound p: at
//! confidence c, p is less than 1 - (1-c)^(1/n). For large n and c = 95 % that is 3/n, the rule of three.

/// Confidence at which bounds are stated.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the largest probability that `clean` independent trials without a hit leave possible at [`CONFIDENCE`]. For
/// display only.
#[must_use]
pub fn probability_below(clean: u64) -> f64 {
    probability_below_at(clean, CONFIDENCE)
}

/// Returns the largest probability that `clean` independent trials without a hit leave possible at this confidence,
/// which lies between 0 and 1. For display only.
#[must_use]
pub fn probability_below_at(clean: u64, confidence: f64) -> f64 {
    if clean == 0 {
        return 1.0;
    }
    // 1 - x^(1/n) loses its digits for large n; ln and expm1 keep them.
    -((1.0 - confidence).ln() / clean as f64).exp_m1()
}
