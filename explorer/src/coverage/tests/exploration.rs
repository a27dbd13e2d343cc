//! Tests that merge the coverage points of single branches (e.g. the states that a branch reached) into the coverage of
//! a whole exploration.

use std::collections::BTreeMap;

use super::*;

/// Returns the [`Delta`], i.e. the coverage points, of a branch that reached these phases (abstract states of one node)
/// at these vtimes.
fn branch(phases: &[(&str, u64)]) -> Delta {
    let mut delta = Delta::default();
    for (phase, at) in phases {
        delta.reach(Point::Phase { phase: (*phase).to_owned() }, *at);
    }
    delta
}

fn id(phase: &str) -> PointId {
    Point::Phase { phase: phase.to_owned() }.id()
}

#[test]
fn only_the_first_branch_has_the_reward() {
    let mut coverage = Coverage::default();
    assert_eq!(coverage.merge(3, &branch(&[("a", 5), ("b", 7)])).unwrap().new.len(), 2);
    let second = coverage.merge(4, &branch(&[("b", 1), ("c", 2)])).unwrap();
    assert_eq!((second.new, second.by_kind), (vec![id("c")], BTreeMap::from([(Kind::Phase, 1)])));
    assert_eq!(coverage.merge(9, &branch(&[("a", 0), ("b", 0)])).unwrap(), Reward::default());
    let place = |phase| coverage.get(id(phase)).map(|c| (c.first.choice, c.first.vtime_ns, c.hits));
    assert_eq!(place("a"), Some((3, 5, 2)));
    assert_eq!(place("b"), Some((3, 7, 3)));
    assert_eq!(place("c"), Some((4, 2, 1)));
    assert_eq!(place("d"), None);
    assert_eq!((coverage.len(), coverage.branches(), coverage.overflow()), (3, 3, 0));
    let incidence = coverage.incidence(Kind::Phase);
    let expected = statistics::Incidence { observed: 3, hits: 6, singletons: 1, doubletons: 1 };
    assert_eq!(incidence, expected);
    assert_eq!(coverage.incidence(Kind::State), statistics::Incidence::default());
}

#[test]
fn choices_must_rise() {
    let mut coverage = Coverage::default();
    coverage.merge(5, &branch(&[("a", 1)])).unwrap();
    let before = coverage.clone();
    for choice in [5, 4, 0] {
        assert_eq!(
            coverage.merge(choice, &branch(&[("b", 1)])),
            Err(CoverError::OutOfOrder { choice, last: 5 })
        );
        assert_eq!(coverage, before);
    }
}

#[test]
fn different_points_with_equal_texts_have_different_ids() {
    let t = |text: &str| text.to_owned();
    let points = [
        Point::State { state: t("a") },
        Point::Phase { phase: t("a") },
        Point::Fault { fault: t("ab"), phase: t("c") },
        Point::Fault { fault: t("a"), phase: t("bc") },
        Point::Value { variable: t("ab"), value: t("c") },
        Point::FaultPair { faults: [t("ab"), t("c")], phase: t("") },
        Point::Order { first: t("ab"), then: t("c"), across: true },
        Point::Order { first: t("ab"), then: t("c"), across: false },
        Point::Order { first: t("c"), then: t("ab"), across: false },
    ];
    assert_eq!(points.iter().map(Point::id).collect::<BTreeSet<_>>().len(), points.len());
    // Ids are stored in run directories, so they must not change.
    assert_eq!(points[0].id().to_string(), "b543b80d36bde004af92b6ce5d588f95");
}

#[test]
fn a_branch_has_a_bounded_number_of_points() {
    let mut delta = Delta::default();
    for i in 0..limits::DELTA_POINTS_MAX + 2 {
        delta.reach(Point::Phase { phase: i.to_string() }, i as u64);
    }
    delta.reach(Point::Phase { phase: "0".to_owned() }, 0);
    assert_eq!((delta.points().count(), delta.overflow()), (limits::DELTA_POINTS_MAX, 2));
    // The number of points of an exploration is also bounded. Visits of known points are still counted.
    let mut coverage = Coverage::default();
    for choice in 0..5 {
        let mut delta = Delta::default();
        let from = choice * limits::DELTA_POINTS_MAX;
        (from..from + limits::DELTA_POINTS_MAX)
            .for_each(|i| delta.reach(Point::Phase { phase: i.to_string() }, 1));
        coverage.merge(choice as u64, &delta).unwrap();
    }
    assert_eq!((coverage.len(), coverage.overflow()), (limits::POINTS_MAX, limits::DELTA_POINTS_MAX as u64));
    coverage.merge(9, &branch(&[("0", 1), ("new", 1)])).unwrap();
    assert_eq!(
        (coverage.len(), coverage.overflow()),
        (limits::POINTS_MAX, limits::DELTA_POINTS_MAX as u64 + 1)
    );
    assert_eq!(coverage.get(id("0")).map(|covered| covered.hits), Some(2));
}

fn branches() -> impl Strategy<Value = Vec<Vec<(u8, u64)>>> {
    prop::collection::vec(prop::collection::vec((0u8..20, 0u64..9), 0..8), 0..30)
}

fn deltas(branches: &[Vec<(u8, u64)>]) -> Vec<Delta> {
    let delta = |points: &Vec<(u8, u64)>| {
        let mut delta = Delta::default();
        for (point, at) in points {
            let phase = (point / 2).to_string();
            let point = if point % 2 == 0 { Point::Phase { phase } } else { Point::State { state: phase } };
            delta.reach(point, *at);
        }
        delta
    };
    branches.iter().map(delta).collect()
}

fn merged(deltas: &[Delta]) -> Coverage {
    let mut coverage = Coverage::default();
    for (choice, delta) in (0..).zip(deltas) {
        coverage.merge(choice, delta).unwrap();
    }
    coverage
}

proptest! {
    /// Compares the coverage with counts that are computed directly from the deltas.
    #[test]
    fn all_points_are_counted(branches in branches()) {
        let deltas = deltas(&branches);
        let coverage = merged(&deltas);
        let mut hits: BTreeMap<PointId, Vec<ReachedAt>> = BTreeMap::new();
        for (choice, delta) in (0..).zip(&deltas) {
            for (id, reached) in delta.points() {
                hits.entry(id).or_default().push(ReachedAt { choice, vtime_ns: reached.vtime_ns });
            }
        }
        prop_assert_eq!(coverage.len(), hits.len());
        for (id, covered) in coverage.points() {
            prop_assert_eq!((covered.first, covered.hits), (hits[&id][0], hits[&id].len() as u64));
        }
        for kind in Kind::ALL {
            let of_kind: Vec<u64> =
                coverage.points().iter().filter(|(_, c)| c.point.kind() == kind).map(|(_, c)| c.hits).collect();
            let with_hits = |n| of_kind.iter().filter(|hits| **hits == n).count() as u64;
            let expected = statistics::Incidence {
                observed: of_kind.len() as u64, hits: of_kind.iter().sum(), singletons: with_hits(1),
                doubletons: with_hits(2),
            };
            prop_assert_eq!(coverage.incidence(kind), expected);
        }
    }

    /// Results arrive and points are numbered in any order. The coverage does not depend on that order.
    #[test]
    fn numbers_do_not_affect_the_coverage(branches in branches(), dice: u64) {
        let deltas = deltas(&branches);
        let whole = merged(&deltas);
        let mut order: Vec<usize> = (0..deltas.len()).collect();
        order.sort_by_key(|i| (*i as u64 + 1).wrapping_mul(dice | 1));
        let dictionary = Dictionary::default();
        let mut numbers: Vec<(usize, Numbers)> =
            order.into_iter().map(|i| (i, dictionary.number(&deltas[i]).unwrap())).collect();
        numbers.sort_by_key(|(i, _)| *i);
        let mut coverage = Coverage::new(dictionary.clone());
        for (i, numbers) in &numbers {
            prop_assert_eq!(dictionary.delta(numbers), Some(deltas[*i].clone()));
            let packed = numbers.pack();
            let unpack = |known| Numbers::unpack(&packed, known, Vec::new(), numbers.overflow(), numbers.strange());
            prop_assert_eq!(&unpack(dictionary.len()), &Ok(numbers.clone()));
            if numbers.end() > 0 {
                prop_assert_eq!(unpack(numbers.end() as usize - 1), Err(BadNumbers));
            }
            coverage.merge_numbers(*i as u64, numbers).unwrap();
        }
        prop_assert_eq!(coverage.digest(), whole.digest());
        prop_assert_eq!(coverage, whole);
    }

    /// Two coverages have the same digest if and only if they are equal.
    #[test]
    fn different_coverages_have_different_digests(one in branches(), other in branches()) {
        let (one, other) = (merged(&deltas(&one)), merged(&deltas(&other)));
        prop_assert_eq!(one.digest() == other.digest(), one == other);
    }
}

#[test]
fn the_order_of_choices_decides_what_was_first() {
    let (a, b) = (branch(&[("x", 1)]), branch(&[("x", 2)]));
    let digest = |deltas: &[Delta]| merged(deltas).digest();
    assert_eq!(digest(&[a.clone(), b.clone()]), digest(&[a.clone(), b.clone()]));
    assert_ne!(digest(&[a.clone(), b.clone()]), digest(&[b, a]));
}

#[test]
fn the_growth_curve_is_bounded_and_ends_with_the_last_branch() {
    let mut coverage = Coverage::default();
    for choice in 0..1500u64 {
        coverage.merge(choice, &branch(&[(&(choice / 2).to_string(), 1)])).unwrap();
        let samples: Vec<&statistics::Sample> = coverage.growth().samples().collect();
        assert!(samples.len() <= limits::GROWTH_MAX + 1);
        assert!(samples.is_sorted_by(|a, b| a.branches < b.branches));
        assert_eq!(samples.last().map(|last| last.branches), Some(choice + 1));
        for sample in samples {
            assert_eq!((sample.of(Kind::Phase), sample.of(Kind::State)), (sample.branches.div_ceil(2), 0));
        }
    }
    // After 1,026 branches, every fourth branch has a sample.
    assert_eq!(coverage.growth().samples().map(|sample| sample.branches).nth(1), Some(8));
}

/// The dictionary gives each point a number until the dictionary is full. Each branch that reaches a point without a
/// number records the point itself. Points without a number are counted like all other points.
#[test]
fn points_without_a_number_count() {
    let many = |from: usize, count: usize| {
        let mut delta = Delta::default();
        (from..from + count).for_each(|i| delta.reach(Point::Phase { phase: i.to_string() }, 1));
        delta
    };
    let each = limits::DELTA_POINTS_MAX;
    let dictionary = Dictionary::default();
    let fillers = limits::DICTIONARY_MAX / each;
    (1..=fillers).for_each(|i| drop(dictionary.number(&many(i * each, each)).unwrap()));
    assert_eq!(dictionary.len(), limits::DICTIONARY_MAX);
    let mut delta = many(0, 5);
    delta.reach(Point::Phase { phase: each.to_string() }, 7);
    let numbers = dictionary.number(&delta).unwrap();
    assert_eq!((numbers.len(), numbers.unnumbered().len(), dictionary.len()), (6, 5, limits::DICTIONARY_MAX));
    assert_eq!(dictionary.delta(&numbers), Some(delta.clone()));
    let (mut one, mut other) = (Coverage::new(dictionary), Coverage::default());
    for choice in 0..4 {
        let numbers = one.dictionary().number(&delta).unwrap();
        let reward = one.merge_numbers(choice, &numbers).unwrap();
        assert_eq!(reward, other.merge(choice, &delta).unwrap());
        assert_eq!(one.digest(), other.digest());
    }
    assert_eq!(one.get(id("3")).map(|covered| covered.hits), Some(4));
}
