//! Checks the confidence with which the report calls a bug gone. In the simulated histories, the bug is never fixed.
//!
//! A hit is an occurrence of the bug. A run consists of subtrees, and a subtree consists of all branches that descend
//! from one branch at the root moment.
//!
//! A history is a sequence of runs. It ends with the `found`-th run that has a hit, because a developer would then
//! try to fix the bug. Afterwards the bug may stay hidden for the time that the report demands before it calls a bug
//! gone. The confidence, 1 - α, holds if that happens in at most a share α of the histories.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use super::super::*;

const HISTORIES: u32 = 10_000;
/// One unit of simulated time, in nanoseconds.
const UNIT: f64 = 1e9;

/// Distribution of the time to the first hit in a subtree.
#[derive(Clone, Copy)]
enum Process {
    /// Constant rate of hits.
    Exponential { mean: f64 },
    /// Rate that differs between subtrees (a Gamma mixture), so the tail is a power law.
    Lomax { shape: f64, scale: f64 },
}

impl Process {
    /// Returns the logarithm of the probability that a subtree of this length has no hit.
    fn ln_survival(self, time: f64) -> f64 {
        match self {
            Process::Exponential { mean } => -time / mean,
            Process::Lomax { shape, scale } => -shape * (time / scale).ln_1p(),
        }
    }

    fn draw(self, dice: &mut ChaCha20Rng) -> f64 {
        // A random number above 0 and at most 1.
        let u = ((dice.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        match self {
            Process::Exponential { mean } => -mean * u.ln(),
            Process::Lomax { shape, scale } => scale * (u.powf(-1.0 / shape) - 1.0),
        }
    }
}

/// Returns a run whose subtrees have these lengths.
fn run(process: Process, subtrees: &[f64], dice: &mut ChaCha20Rng) -> Observation {
    let mut seen = Observation { until_hit: 0, hits: 0, spent: 0 };
    for &length in subtrees {
        let first = process.draw(dice);
        seen.hits += u64::from(first <= length);
        seen.until_hit += (first.min(length) * UNIT) as u64;
        seen.spent += (length * UNIT) as u64;
    }
    seen
}

/// Returns runs up to the `found`-th run with a hit. `lengths(i)` gives the lengths of the subtrees of run i.
fn history(
    process: Process,
    lengths: &dyn Fn(usize) -> Vec<f64>,
    found: usize,
    dice: &mut ChaCha20Rng,
) -> Vec<Observation> {
    let mut runs = Vec::new();
    let mut with_hit = 0;
    while with_hit < found {
        let seen = run(process, &lengths(runs.len()), dice);
        with_hit += usize::from(seen.hits > 0);
        runs.push(seen);
    }
    runs
}

/// Returns the share of histories in which the bug stays hidden for the demanded time, and three standard errors of
/// that share.
fn missed(process: Process, lengths: &dyn Fn(usize) -> Vec<f64>, found: usize, terms: &Terms) -> (f64, f64) {
    let mut dice = ChaCha20Rng::seed_from_u64(found as u64);
    let mut missed = 0.0;
    for _ in 0..HISTORIES {
        let runs = history(process, lengths, found, &mut dice);
        let needed = outlook(&runs, terms).clean.unwrap().needed / UNIT;
        // The runs after the end of the history have subtrees of the same lengths as its last run.
        let last = lengths(runs.len() - 1);
        let whole: f64 = last.iter().sum();
        let none: f64 = last.iter().map(|length| process.ln_survival(*length)).sum();
        missed += (none * needed / whole).exp();
    }
    let noise = 3.0 * (terms.alpha * (1.0 - terms.alpha) / f64::from(HISTORIES)).sqrt();
    (missed / f64::from(HISTORIES), noise)
}

/// Exact case: each run is one subtree that lasts until its hit. The bug then stays hidden for the demanded time in
/// exactly a share α of the histories.
#[test]
fn uncensored_histories_have_exactly_the_stated_confidence() {
    let process = Process::Exponential { mean: 5.0 };
    for alpha in [0.06, 0.2] {
        for found in [1, 3, 10] {
            let terms = Terms { alpha, half_life: f64::INFINITY, ..Terms::default() };
            let (missed, noise) = missed(process, &|_| vec![1e6], found, &terms);
            assert!((missed - alpha).abs() < noise, "{found} hits: {missed} is not {alpha}");
        }
    }
}

/// Runs that end before a hit, runs with many subtrees, and rare and frequent bugs.
#[test]
fn censored_histories_keep_the_stated_confidence() {
    let terms = Terms::default();
    for mean in [2.0, 20.0, 200.0, 2_000.0] {
        for found in [1, 2, 5] {
            let (missed, noise) = missed(Process::Exponential { mean }, &|_| vec![1.0; 40], found, &terms);
            assert!(missed < terms.alpha + noise, "mean {mean}, {found} runs: {missed}");
        }
    }
    // Each run has one subtree, and a history ends with the first run that has a hit.
    let (missed, noise) = missed(Process::Exponential { mean: 30.0 }, &|_| vec![10.0], 1, &terms);
    assert!(missed < terms.alpha + noise && missed > terms.alpha / 4.0, "{missed}");
}

/// Rates differ between subtrees, so first hits come early or not at all.
#[test]
fn heavier_tails_keep_the_stated_confidence() {
    let terms = Terms::default();
    for (shape, scale) in [(1.5, 10.0), (1.5, 100.0), (0.8, 50.0), (3.0, 1_000.0)] {
        for found in [1, 3] {
            let process = Process::Lomax { shape, scale };
            let (missed, noise) = missed(process, &|_| vec![1.0; 40], found, &terms);
            assert!(missed < terms.alpha + noise, "shape {shape}, scale {scale}, {found} runs: {missed}");
        }
    }
}

#[test]
fn runs_of_very_different_lengths_keep_the_stated_confidence() {
    let terms = Terms::default();
    let lengths = |i: usize| match i % 3 {
        0 => vec![0.1; 10],
        1 => vec![0.5, 1.0, 30.0],
        _ => vec![2.0; 300],
    };
    for mean in [5.0, 500.0, 5_000.0] {
        for found in [1, 4] {
            let (missed, noise) = missed(Process::Exponential { mean }, &lengths, found, &terms);
            assert!(missed < terms.alpha + noise, "mean {mean}, {found} runs: {missed}");
        }
    }
}

/// The bounds on the mean time between hits hold with the stated probability in runs of a fixed length, also in runs
/// without a hit.
#[test]
fn bounds_of_the_mean_keep_the_stated_coverage() {
    for (mean, subtrees) in [(100.0, 40), (10.0, 40), (3.0, 200)] {
        for confidence in [0.5, 0.94] {
            let mut dice = ChaCha20Rng::seed_from_u64(subtrees as u64);
            let inside = (0..HISTORIES).filter(|_| {
                let seen = run(Process::Exponential { mean }, &vec![1.0; subtrees], &mut dice);
                let (low, high) = mean_between(seen.until_hit as f64 / UNIT, seen.hits, confidence).unwrap();
                low <= mean && mean <= high
            });
            let share = inside.count() as f64 / f64::from(HISTORIES);
            let noise = 3.0 * (confidence * (1.0 - confidence) / f64::from(HISTORIES)).sqrt();
            assert!(share > confidence - noise, "mean {mean}, {subtrees} subtrees, {confidence}: {share}");
        }
    }
}

/// Shows why runs without a hit must be included. If one run in a hundred finds a bug, the estimates from only that
/// run make the bug look a hundred times as frequent as it is.
#[test]
fn without_its_clean_runs_a_history_is_overconfident() {
    let (terms, process) = (Terms::default(), Process::Exponential { mean: 4_000.0 });
    let mut dice = ChaCha20Rng::seed_from_u64(1);
    let (mut whole, mut alone) = (0.0, 0.0);
    for _ in 0..HISTORIES / 10 {
        let runs = history(process, &|_| vec![1.0; 40], 1, &mut dice);
        let missed = |runs: &[Observation]| {
            process.ln_survival(outlook(runs, &terms).clean.unwrap().needed / UNIT).exp()
        };
        whole += missed(&runs);
        alone += missed(runs.last().map(std::slice::from_ref).unwrap());
    }
    let share = |sum: f64| sum / f64::from(HISTORIES / 10);
    assert!(share(whole) < 0.08 && share(alone) > 0.5, "{} {}", share(whole), share(alone));
}
