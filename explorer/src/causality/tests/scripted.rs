//! Tests of the search for the decisive step, i.e. the observed event that made a finding likely. A cut is a vtime at
//! which the timeline can be forked, and a future is a rerun from a cut. The likelihood at a cut is the probability
//! that a future from there shows the finding. The test defines the likelihood, and draws the results of futures.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::causality::{Ask, CausalityEnd, Count, Cuts, JumpInterval, Limits, Search};

const LIMITS: Limits = Limits { futures: 2_000, error_ppm: 50_000 };

/// Runs a search on a timeline with `cuts`, where the likelihood at a cut is `likelihood`.
fn run(
    seed: u64,
    cuts: &Cuts,
    limits: Limits,
    likelihood: &dyn Fn(usize) -> f64,
) -> (Search, Option<JumpInterval>, CausalityEnd) {
    let mut search = Search::new(cuts, limits);
    loop {
        let batch = search.batch();
        if batch.is_empty() {
            let (found, why) = (search.found(), search.over().unwrap());
            return (search, found, why);
        }
        let shown: Vec<bool> = batch.iter().map(|ask| shows(seed, ask, likelihood(ask.cut))).collect();
        search.tell(&shown);
    }
}

/// Draws a future's result as a function of the seed and the future, so that a repeated future has the same result.
fn shows(seed: u64, ask: &Ask, likelihood: f64) -> bool {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(ask.cut as u64).to_le_bytes());
    key[16..24].copy_from_slice(&ask.number.to_le_bytes());
    let draw = ChaCha20Rng::from_seed(key).next_u64() >> 11;
    (draw as f64) < likelihood * (1u64 << 53) as f64
}

/// Returns the cuts of a timeline with one step every 100 µs.
fn timeline(steps: u64) -> Cuts {
    Cuts::new(0, steps * 100_000, (0..steps).map(|i| 50_000 + i * 100_000).collect())
}

/// Returns a likelihood that is `low` up to the cut `decided` and `high` at later cuts, so the step after this cut is
/// decisive.
fn step(decided: usize, low: f64, high: f64) -> impl Fn(usize) -> f64 {
    move |cut| if cut <= decided { low } else { high }
}

#[test]
fn the_named_step_is_the_planted_one_over_20_seeds() {
    for (low, high) in [(0.0, 1.0), (0.02, 0.98), (0.05, 0.9)] {
        let cuts = timeline(5_000);
        for seed in 0..20u64 {
            let decided = (seed * 237 + 11) as usize;
            let (search, found, why) = run(seed, &cuts, LIMITS, &step(decided, low, high));
            let found = found.unwrap();
            assert_eq!(why, CausalityEnd::Named, "{low} to {high}, seed {seed}");
            assert_eq!((found.from, found.to), (decided, Some(decided + 1)), "{low} to {high}, seed {seed}");
            assert!(found.is_narrowest && found.probability_ppm >= 950_000);
            assert!(search.futures() < 700, "{} futures", search.futures());
            // The search has run at least the minimum number of futures at the cuts before and after the step that it
            // names as decisive.
            let ends = [decided, decided + 1].map(|cut| search.count(cut).futures);
            assert!(ends.iter().all(|futures| *futures >= 16), "{low} to {high}, seed {seed}: {ends:?}");
        }
    }
}

#[test]
fn a_named_step_is_wrong_at_most_as_often_as_stated() {
    let cuts = timeline(300);
    for (low, high) in [(0.0, 1.0), (0.1, 0.9), (0.3, 0.8), (0.5, 0.9)] {
        let (mut named, mut wrong) = (0, 0);
        for seed in 0..400u64 {
            let decided = (seed * 7919 % 299) as usize;
            let (_, found, why) = run(seed + 1_000, &cuts, LIMITS, &step(decided, low, high));
            if why == CausalityEnd::Named {
                named += 1;
                wrong += u32::from(found.unwrap().from != decided);
            }
        }
        // The allowed error is 5 %, so at most 20 of 400 are expected to be wrong. The test allows three standard
        // deviations more.
        assert!(wrong <= 20 + 13, "{low} to {high}: {wrong} of {named} are wrong");
        assert!(named > 300, "{low} to {high}: only {named} are named");
    }
}

#[test]
fn a_finding_that_is_likely_everywhere_has_no_step() {
    let cuts = timeline(1_000);
    let mut named = 0;
    for seed in 0..100 {
        let (_, found, why) = run(seed, &cuts, LIMITS, &|_| 1.0);
        assert_eq!((why, found), (CausalityEnd::Flat, None), "seed {seed}");
        named += u32::from(run(seed, &cuts, LIMITS, &|_| 0.9).2 == CausalityEnd::Named);
    }
    assert!(named <= 5, "{named} of 100 flat timelines have a step");
}

#[test]
fn a_finding_that_no_future_shows_is_decided_at_its_end() {
    let cuts = timeline(1_000);
    let (_, found, why) = run(3, &cuts, LIMITS, &|_| 0.0);
    let found = found.unwrap();
    assert_eq!(
        (why, found.from, found.to, found.is_narrowest),
        (CausalityEnd::Named, cuts.last(), None, true)
    );
}

#[test]
fn a_fall_of_the_likelihood_is_no_jump() {
    let cuts = timeline(1_000);
    for seed in 0..20 {
        let (_, found, _) = run(seed, &cuts, LIMITS, &step(400, 0.7, 0.05));
        assert!(found.is_none_or(|found| found.from > 400), "seed {seed}: {found:?}");
    }
}

#[test]
fn of_two_steps_the_larger_one_is_named() {
    let cuts = timeline(1_000);
    for seed in 0..20 {
        let likelihood = |cut: usize| {
            if cut <= 300 {
                0.02
            } else if cut <= 700 {
                0.2
            } else {
                0.97
            }
        };
        let (_, found, why) = run(seed, &cuts, LIMITS, &likelihood);
        assert_eq!((why, found.unwrap().from), (CausalityEnd::Named, 700), "seed {seed}");
    }
}

#[test]
fn a_short_search_gives_an_interval_that_a_longer_one_narrows() {
    let cuts = timeline(5_000);
    let mut before = usize::MAX;
    for futures in [100, 150, 200, 300] {
        let limits = Limits { futures, ..LIMITS };
        let (search, found, why) = run(5, &cuts, limits, &step(1_234, 0.05, 0.95));
        assert!(search.futures() <= futures);
        let JumpInterval { from, to, is_narrowest, .. } = found.unwrap();
        let width = to.unwrap() - from;
        assert!(from <= 1_234 && to.unwrap() > 1_234 && width <= before, "{futures}: {from} to {to:?}");
        assert!(is_narrowest || why == CausalityEnd::Futures);
        before = width;
    }
    assert!(before < 50, "{before} steps are left");
}

/// Futures that were cancelled have no result and do not count. The futures before them in the batch count.
#[test]
fn an_interrupted_batch_counts_up_to_its_first_missing_result() {
    let cuts = timeline(1_000);
    let mut search = Search::new(&cuts, LIMITS);
    let batch = search.batch();
    assert_eq!(batch.len(), 72);
    assert!(batch.iter().take(9).all(|ask| ask.number == 0), "all places come first: {batch:?}");
    search.tell(&[true; 10]);
    assert_eq!(search.futures(), 10);
    assert_eq!(search.count(0), Count { futures: 2, shown: 2 });
    let again = search.batch();
    assert!(again.iter().filter(|ask| ask.cut == 0).all(|ask| ask.number >= 2), "numbers are not used twice");
}

#[test]
fn a_timeline_of_one_cut() {
    let cuts = Cuts::new(5, 5, Vec::new());
    assert_eq!(run(1, &cuts, LIMITS, &|_| 1.0).2, CausalityEnd::Flat);
    let (_, found, why) = run(1, &cuts, LIMITS, &|_| 0.0);
    assert_eq!((why, found.map(|found| (found.from, found.to))), (CausalityEnd::Named, Some((0, None))));
}
