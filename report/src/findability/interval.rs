//! Confidence bounds on the mean time between hits, computed from the number of hits. A subtree of branches in which
//! the bug was found counts as one hit.
//!
//! The number of hits in a total time T is approximately Poisson-distributed. The classical bounds on its mean
//! (Garwood, 1936) contain the true mean with at least the stated probability.

/// Least number of hits for which the Poisson quantiles are approximated (Wilson and Hilferty, 1931). For this and
/// larger numbers, the relative error is below 1e-4.
const MANY: u64 = 200;
/// Number of bisections that find a quantile to the precision of a float.
const HALVINGS: u32 = 80;

/// Returns the confidence bounds on the mean time between hits, if `hits` hits came in `time`. Without a hit, the
/// upper bound is infinite. `None` if the time is not positive or the confidence is not between 0 and 1.
#[must_use]
pub fn mean_between(time: f64, hits: u64, confidence: f64) -> Option<(f64, f64)> {
    if !(time > 0.0 && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    if hits == 0 {
        // Only the lower bound is finite, so it may use the whole probability of error instead of half of it.
        return Some((time / -(1.0 - confidence).ln(), f64::INFINITY));
    }
    let tail = (1.0 - confidence) / 2.0;
    Some((time / upper(hits, tail), time / lower(hits, tail)))
}

/// Returns the Poisson mean at which `hits` or fewer events have the probability `tail`.
fn upper(hits: u64, tail: f64) -> f64 {
    if hits >= MANY {
        return approximate(hits as f64 + 1.0, -normal_quantile(tail));
    }
    let most = 2.0 * hits as f64 + 40.0 - 4.0 * tail.ln();
    solve(0.0, most, |mean| at_most(hits, mean) - tail)
}

/// Returns the Poisson mean at which `hits` or more events have the probability `tail`.
fn lower(hits: u64, tail: f64) -> f64 {
    if hits >= MANY {
        return approximate(hits as f64, normal_quantile(tail));
    }
    solve(0.0, hits as f64, |mean| tail - (1.0 - at_most(hits - 1, mean)))
}

/// Returns the zero of a falling function, by bisection.
fn solve(mut low: f64, mut high: f64, falling: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if falling(middle) > 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the probability of at most `hits` events if `mean` events are expected.
fn at_most(hits: u64, mean: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..=hits {
        term *= mean / k as f64;
        sum += term;
    }
    sum * (-mean).exp()
}

/// Approximates a quantile of the Gamma distribution with this shape and scale 1. `z` is the quantile of the standard
/// normal distribution for the same probability.
fn approximate(shape: f64, z: f64) -> f64 {
    let ninth = 1.0 / (9.0 * shape);
    shape * (1.0 - ninth + z * ninth.sqrt()).powi(3)
}

/// Returns the quantile of the standard normal distribution for a probability below one half (Abramowitz and Stegun,
/// 26.2.23, absolute error below 4.5e-4).
fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    above / below - t
}
