//! Upper bound on the probability that a run depends on the host, after a number of clean runs, i.e. runs that were all
//! equal.
//!
//! A leak is a dependence of runs on the host. If a leak shows in a run with probability p, then n runs miss it with
//! probability (1-p)^n. After n clean runs, p is therefore less than 1 - (1-c)^(1/n) at confidence c. Five runs still
//! miss a leak of 1 % in 95 of 100 cases.

use everett_explorer::coverage::statistics::probability_below;

/// Confidence of the stated bounds.
pub use everett_explorer::coverage::statistics::CONFIDENCE;

/// Returns the upper bound on the probability that a leak shows in a run, after `clean_runs` runs without a mismatch.
/// The bound holds at [`CONFIDENCE`].
#[must_use]
pub fn leak_probability(clean_runs: u32) -> f64 {
    probability_below(clean_runs.into())
}

/// Describes the bound in a sentence for the operator.
#[must_use]
pub fn sentence(clean_runs: u32) -> String {
    let percent = leak_probability(clean_runs) * 100.0;
    let digits = if percent < 0.1 { 4 } else { 2 };
    format!(
        "{clean_runs} clean runs: a leak that showed in more than {percent:.digits$} % of runs would have been seen \
         with {:.0} % confidence",
        CONFIDENCE * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_inverts_the_rule() {
        for n in [1, 2, 5, 20, 3000] {
            let missed = (1.0 - leak_probability(n)).powi(i32::try_from(n).unwrap());
            assert!((missed - 0.05).abs() < 1e-9, "{n}: {missed}");
        }
        assert!((leak_probability(3000) - 0.001).abs() < 1e-5);
        assert!((leak_probability(20) - 0.139).abs() < 1e-3);
        assert!((leak_probability(0) - 1.0).abs() < 1e-12);
    }
}
