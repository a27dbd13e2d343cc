//! Compares estimates with values that were computed by hand: how often a bug is found, and how likely it stays hidden
//! although it is still there (its survival probability). A hit is an occurrence of the bug.

use super::super::*;
use everett_explorer::coverage::statistics::{Findability, Prior};

const TERMS: Terms = Terms { alpha: 0.05, half_life: f64::INFINITY, prior: Prior { a0: 0.0, b0: 0.0 } };

fn run(until_hit: u64, hits: u64, spent: u64) -> Observation {
    Observation { until_hit, hits, spent }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b.abs().max(1.0)
}

/// After a certain time without a hit, the confidence that the bug is gone reaches 95 %. For a given number of earlier
/// hits, this time is a fixed multiple of the time that was spent up to those hits.
#[test]
fn clean_times() {
    for (hits, times) in [(1, 19.0), (2, 3.472), (3, 1.714), (5, 0.8206), (10, 0.3493)] {
        let clean = outlook(&[run(1_000_000, hits, 2_000_000)], &TERMS).clean.unwrap();
        assert!((clean.needed / 1e6 - times).abs() < 5e-4, "{hits}: {}", clean.needed);
        // The explorer's own estimate (`Findability`) counts hits of older runs in full, and the report's estimate
        // counts them less. Here there are no older runs, so both estimates are the same.
        let other = Findability { time: 1_000_000, hits }.clean_time_needed(Prior::default(), 0.05).unwrap();
        assert!(close(clean.needed, other));
    }
}

#[test]
fn a_history_of_runs() {
    let runs = [run(100, 0, 100), run(80, 1, 100), run(100, 0, 100), run(100, 0, 100)];
    let told = outlook(&runs, &TERMS);
    assert_eq!((told.time, told.hits, told.mean, told.last_hit), (180, 1, Some(180.0), Some(1)));
    let expected = [None, Some(1.0), Some(180.0 / 280.0), Some(180.0 / 380.0)];
    for (p, expected) in told.survival.iter().zip(expected) {
        assert!(
            p.is_some() == expected.is_some() && close(p.unwrap_or(0.0), expected.unwrap_or(0.0)),
            "{p:?}"
        );
    }
    let clean = told.clean.unwrap();
    assert!(close(clean.spent, 200.0) && close(clean.needed, 180.0 * 19.0));
    // 3220 of the needed 3420 units of time remain, and each further run takes 100.
    assert_eq!((clean.runs_left, told.projected.len()), (Some(33), 33));
    assert!(told.projected[32] <= 0.05 && told.projected[31] > 0.05);
    // Another hit sets the survival probability to 1 again.
    let again = outlook(&[&runs[..], &[run(50, 2, 100)]].concat(), &TERMS);
    assert_eq!((again.survival[4], again.time, again.hits), (Some(1.0), 430, 3));
}

#[test]
fn old_hits_count_less_and_old_time_does_not() {
    let terms = Terms { half_life: 1.0, ..TERMS };
    let told = outlook(&[run(100, 4, 100), run(100, 0, 100), run(100, 1, 100)], &terms);
    assert!(close(told.weight, 2.0), "{}", told.weight);
    assert!(close(told.clean.unwrap().needed, 300.0 * (20f64.sqrt() - 1.0)));
    // The mean counts all hits in full, also those of older runs.
    assert!(close(told.mean.unwrap(), 60.0));
}

#[test]
fn edge_cases() {
    let never = outlook(&[run(100, 0, 100), run(300, 0, 300)], &TERMS);
    assert_eq!((never.mean, never.last_hit, never.clean, never.time), (None, None, None, 400));
    assert_eq!((never.survival, never.projected, never.mean_high), (vec![None, None], vec![], None));
    assert!(close(never.mean_low.unwrap(), 400.0 / 20f64.ln()));
    let nothing = outlook(&[], &TERMS);
    assert_eq!((nothing.time, nothing.mean_low, nothing.survival.len()), (0, None, 0));
    // Edge cases: a hit in every subtree, a single subtree, and hits that took no measurable time.
    let every = outlook(&[run(50, 10, 100)], &TERMS);
    assert!(close(every.mean.unwrap(), 5.0) && every.clean.unwrap().runs_left == Some(1));
    let one = outlook(&[run(7, 1, 9)], &TERMS);
    assert_eq!((one.mean, one.survival), (Some(7.0), vec![Some(1.0)]));
    let no_time = outlook(&[run(0, 3, 0)], &TERMS);
    assert_eq!((no_time.clean, no_time.mean_low, no_time.survival), (None, None, vec![Some(1.0)]));
    // A hostile run directory may have any numbers.
    let huge = outlook(&[run(u64::MAX, u64::MAX, u64::MAX); 3], &Terms::default());
    assert!(huge.survival.iter().flatten().all(|p| (0.0..=1.0).contains(p)));
    // A bug that was seen once in a long time needs more runs than the projection has.
    let rare = outlook(&[run(1_000_000, 1, 1_000_000), run(1, 0, 1)], &TERMS);
    assert_eq!((rare.clean.unwrap().runs_left, rare.projected.len()), (None, PROJECTED_MAX));
}

/// The bounds on a Poisson mean agree with Garwood's tables, and do not jump where the approximation begins.
#[test]
fn bounds_of_the_mean() {
    let of = |hits, confidence| {
        let (low, high) = mean_between(1.0, hits, confidence).unwrap();
        (1.0 / high, 1.0 / low)
    };
    for (hits, low, high) in
        [(1, 0.0253, 5.572), (5, 1.623, 11.668), (20, 12.217, 30.888), (100, 81.364, 121.627)]
    {
        let (a, b) = of(hits, 0.95);
        assert!((a - low).abs() < 1e-3 && (b - high).abs() < 1e-3, "{hits}: {a} {b}");
    }
    let ((a, b), (c, d)) = (of(199, 0.94), of(200, 0.94));
    assert!(c - a > 0.9 && c - a < 1.1 && d - b > 0.9 && d - b < 1.1, "{a} {b} {c} {d}");
    assert_eq!(mean_between(0.0, 3, 0.95), None);
    assert_eq!(mean_between(1.0, 3, 1.0), None);
}
