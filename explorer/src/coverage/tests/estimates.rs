//! Tests of the statistical estimates, e.g. of the number of coverage points that no branch has reached: they are
//! compared with textbook examples and with their definitions.

use super::super::statistics::{Findability, Fraction, Incidence, Pct, Prior, Subtree};

/// Returns how many coverage points were reached, and how many of them exactly once or exactly twice. Here each point
/// stands for a species of a textbook example, and `counts` says how often each species was seen.
fn counted(counts: &[u64]) -> Incidence {
    let mut incidence = Incidence::default();
    counts
        .iter()
        .filter(|count| **count > 0)
        .for_each(|count| (1..=*count).for_each(|now| incidence.hit(now)));
    incidence
}

fn fraction(numerator: u64, denominator: u64) -> Fraction {
    Fraction { numerator, denominator }
}

/// Examples of Good's coverage and Chao1 from the documentation of a well-known ecology library.
#[test]
fn estimates_match_the_textbook() {
    let mut counts = vec![1; 75];
    counts.extend([2, 2, 2, 2, 2, 2, 3, 4, 4]);
    // Good's coverage, i.e. the seen mass, is 0.2347 here. The unseen mass is 1 minus that.
    assert_eq!(counted(&counts).unseen(), fraction(75, 98));
    assert!((1.0 - counted(&counts).unseen().as_f64() - 0.234_693_877_55).abs() < 1e-9);
    assert_eq!(counted(&[0, 1, 1, 4, 2, 5, 2, 4, 1, 2]).richness(), fraction(39, 4));
    // The first sample has no species that was seen twice. The second sample has no species that was seen once.
    assert_eq!(counted(&[1, 1, 1, 5]).richness(), fraction(7, 1));
    assert_eq!(counted(&[0, 2, 2, 4, 5, 0, 0]).richness(), fraction(4, 1));
    assert_eq!(counted(&[0, 2, 2, 4, 5, 0, 0]).unseen(), fraction(0, 1));
    // No observations.
    assert_eq!((counted(&[]).unseen(), counted(&[]).richness()), (fraction(1, 1), fraction(0, 1)));
}

#[test]
fn fractions_are_compared_by_value() {
    assert_eq!(fraction(1, 2), fraction(2, 4));
    assert!(fraction(u64::MAX - 1, u64::MAX) < fraction(1, 1));
    assert!(fraction(1, 3) < fraction(1, 2) && fraction(3, 2) > fraction(4, 3));
}

fn subtrees(times: &[(u64, bool)]) -> Findability {
    Findability::of(times.iter().map(|(time, hit)| Subtree { time: *time, hit: *hit }))
}

#[test]
fn censored_subtrees_count_with_their_time() {
    let found = subtrees(&[(10, true), (50, false), (20, true), (40, false)]);
    assert_eq!(found, Findability { time: 120, hits: 2 });
    assert_eq!(found.rate(), Some(fraction(1, 60)));
    assert_eq!(found.mean_time(), Some(fraction(60, 1)));
    let never = subtrees(&[(10, false)]);
    assert_eq!((never.rate(), never.mean_time()), (None, None));
    assert_eq!(never.survival(Prior::default(), 1), None);
    assert_eq!(never.clean_time_needed(Prior::default(), 0.05), None);
    // A subtree is a branch from the beginning of all timelines, with the branches that extend it. If the only subtree
    // finds the bug at time 0, there is a mean time, but no rate.
    let at_once = subtrees(&[(0, true)]);
    assert_eq!((at_once.rate(), at_once.mean_time()), (None, Some(fraction(0, 1))));
    assert_eq!(at_once.survival(Prior::default(), 1), None);
    assert_eq!(subtrees(&[(u64::MAX, true), (1, true)]).time, u64::MAX);
}

#[test]
fn the_clean_time_that_is_needed() {
    for (hits, times) in [(1, 19.0), (2, 3.47), (3, 1.71), (5, 0.82), (10, 0.35)] {
        let found = Findability { time: 1_000_000, hits };
        let needed = found.clean_time_needed(Prior::default(), 0.05).unwrap();
        assert!((needed / 1e6 - times).abs() < 0.005, "{hits}: {needed}");
        // After this clean time (time in which the bug was not found again), `survival` equals the requested
        // probability.
        let left = found.survival(Prior::default(), needed as u64).unwrap();
        assert!((left - 0.05).abs() < 1e-5, "{left}");
    }
    let found = Findability { time: 100, hits: 1 };
    assert_eq!(found.survival(Prior::default(), 0), Some(1.0));
    assert_eq!(found.survival(Prior::default(), 300), Some(0.25));
    assert_eq!(found.survival(Prior { a0: 1.0, b0: 100.0 }, 200), Some(0.25));
    // The probability `survival` decreases more slowly than an exponential function with the same rate.
    assert!(found.survival(Prior::default(), 300).unwrap() > (-3.0f64).exp());
    for alpha in [0.0, 1.0, -1.0, f64::NAN] {
        assert_eq!(found.clean_time_needed(Prior::default(), alpha), None);
    }
}

#[test]
fn the_guarantee_of_random_priorities() {
    let pct = Pct { chains: 3, events: 100, depth: 2 };
    assert_eq!(pct.runs_expected(), Some(300));
    let direct = |runs: i32| 1.0 - (1.0 - 1.0 / 300.0f64).powi(runs);
    for runs in [1, 10, 300, 3000] {
        assert!((pct.accumulated(runs) - direct(runs as i32)).abs() < 1e-12);
    }
    assert_eq!(pct.accumulated(0), 0.0);
    assert_eq!(Pct { chains: 1, events: 9, depth: 1 }.accumulated(1), 1.0);
    assert_eq!(Pct { depth: 3, ..pct }.runs_expected(), Some(30_000));
    // The result is accurate even if 1 - p rounds to 1 in floating point, where p is the probability that one run finds
    // the bug.
    let rare = Pct { chains: 10, events: 1_000_000, depth: 4 };
    assert!((rare.accumulated(1_000_000) / 1e-13 - 1.0).abs() < 1e-6);
    for nothing in [Pct { depth: 0, ..pct }, Pct { chains: 0, ..pct }, Pct { events: 0, ..pct }] {
        assert_eq!((nothing.runs_expected(), nothing.accumulated(9)), (None, 0.0));
    }
    assert_eq!(Pct { chains: 1, events: u64::MAX, depth: 4 }.runs_expected(), None);
}
