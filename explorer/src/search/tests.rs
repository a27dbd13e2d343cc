//! Tests of the search, which chooses where the next branch starts. The tests use a simulated world, in which the path
//! of a branch decides its result.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use everett_streams::Seed;
use proptest::prelude::*;

use super::strategy::{Novelty, Pct, Strategy as Chooses, StrategyKind, Uniform};
use super::weights::looked;
use super::*;
use crate::plan::draw::numbers::below;

/// Result of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    standing: Standing,
    points: Vec<u8>,
}

/// Choices in the order in which the search merged their results, and all reached points.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    taken: Vec<u64>,
    points: BTreeSet<u8>,
}

impl Ledger for Seen {
    type Outcome = Outcome;

    fn take(&mut self, choice: u64, outcome: Outcome) -> Standing {
        assert_eq!(
            self.taken.last().map_or(0, |last| last + 1),
            choice,
            "results come in the order of choices"
        );
        self.taken.push(choice);
        let before = self.points.len();
        self.points.extend(outcome.points);
        Standing { reward: (self.points.len() - before) as u64, ..outcome.standing }
    }

    fn unseen_ppm(&self) -> u32 {
        1_000_000 / (1 + self.taken.len() as u32)
    }
}

const ROOT_NS: u64 = 1_000;

fn run(choice: &Choice) -> Outcome {
    let hash = blake3::hash(choice.path.to_string().as_bytes());
    let byte = |i: usize| hash.as_bytes()[i];
    let begin = choice.path.forks().last().map_or(ROOT_NS, |fork| fork.vtime_ns);
    let open = byte(0) % 4 > 0;
    let open_ns = open.then(|| begin + 1 + u64::from(byte(1)));
    let standing = Standing { open_ns, reward: 0, instructions: u64::from(byte(2)) };
    let points = (3..3 + usize::from(byte(3)) % 4).map(|i| byte(i) % 64).collect();
    Outcome { standing, points }
}

/// Runs a search with `workers` workers. A generator seeded with `dice` decides which running branch ends next.
fn explore<S: Chooses>(
    strategy: S,
    seed: u64,
    in_flight: u32,
    branches: u64,
    workers: usize,
    dice: u64,
) -> (Tree, Seen) {
    let mut dice = ChaCha20Rng::seed_from_u64(dice);
    let in_flight = NonZero::new(in_flight).unwrap();
    let mut search = Search::new(Seed::new(seed), ROOT_NS, in_flight, branches, strategy, Seen::default());
    let mut running: Vec<Choice> = Vec::new();
    loop {
        let next = if running.len() < workers { Some(search.choose()) } else { None };
        match next {
            Some(Next::Run(choice)) => {
                let known = search.ledger().taken.len() as u64;
                assert_eq!(
                    known,
                    (choice.number + 1).saturating_sub(u64::from(in_flight.get())),
                    "exactly the results that the choice may use are known"
                );
                running.push(choice);
                continue;
            }
            Some(Next::Over) if running.is_empty() => break,
            Some(Next::Wait(missing)) => assert!(running.iter().any(|choice| choice.number == missing)),
            Some(Next::Over) | None => {}
        }
        let done = running.swap_remove(dice.next_u64() as usize % running.len());
        search.deliver(done.number, run(&done));
        // The search ignores a second result of the same choice.
        search.deliver(done.number, Outcome { points: vec![77], ..run(&done) });
    }
    search.finish(u64::MAX)
}

proptest! {
    #[test]
    fn a_tree_does_not_depend_on_workers(
        seed: u64, in_flight in 1..20u32, branches in 0..300u64, workers in 1..30usize, dice: u64,
        kind in prop::sample::select(StrategyKind::ALL.to_vec()),
    ) {
        let one = explore(kind.strategy(), seed, in_flight, branches, 1, 0);
        let many = explore(kind.strategy(), seed, in_flight, branches, workers, dice);
        prop_assert_eq!(&one, &many);
        prop_assert_eq!(one.0.branches().len() as u64, branches);
        prop_assert_eq!(one.1.taken.len() as u64, branches);
    }

    #[test]
    fn a_shorter_search_is_a_prefix(
        seed: u64, in_flight in 1..20u32, branches in 1..200u64, cut: prop::sample::Index,
    ) {
        let shorter = cut.index(branches as usize) as u64;
        let strategy = Novelty::default();
        let (long, _) = explore(strategy, seed, in_flight, branches, 3, 5);
        let (short, _) = explore(strategy, seed, in_flight, shorter, 2, 6);
        for (a, b) in short.branches().iter().zip(long.branches()) {
            // The number of children is not compared, because the longer search adds children later.
            prop_assert_eq!((a.from, a.fork, a.subtree, a.standing), (b.from, b.fork, b.subtree, b.standing));
        }
    }

    #[test]
    fn branches_agree_with_their_parents_and_paths(seed: u64, branches in 1..300u64) {
        let (tree, _) = explore(Novelty { fresh_ppm: 100_000 }, seed, 4, branches, 4, seed);
        let mut paths = BTreeSet::new();
        let mut subtrees = 0;
        for (number, branch) in tree.branches().iter().enumerate() {
            let path = tree.path(ForkPoint::After(number as u64)).unwrap();
            prop_assert_eq!(path.forks().len(), branch.depth as usize);
            prop_assert_eq!(path.forks().last(), Some(&branch.fork));
            match branch.from {
                ForkPoint::Root => {
                    subtrees += 1;
                    prop_assert_eq!((branch.subtree, branch.fork.vtime_ns), (number as u64, ROOT_NS));
                }
                ForkPoint::After(parent) => {
                    let parent = tree.branch(parent).unwrap();
                    prop_assert_eq!(parent.subtree, branch.subtree);
                    prop_assert_eq!(parent.standing.unwrap().open_ns, Some(branch.fork.vtime_ns));
                }
            }
            prop_assert!(paths.insert(path), "each branch has a path of its own");
        }
        prop_assert_eq!(tree.subtrees(), subtrees);
    }
}

/// Slow reference implementation of a strategy, which scans the whole tree for each choice.
struct Naive(StrategyKind);

impl Chooses for Naive {
    fn choose(&self, tree: &Tree, unseen_ppm: u32, rng: &mut ChaCha20Rng) -> ForkPoint {
        let open: Vec<(u64, &Branch, Standing)> = tree.open().collect();
        match self.0 {
            StrategyKind::Uniform => {
                let mut by_depth: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
                open.iter()
                    .for_each(|(number, branch, _)| by_depth.entry(branch.depth).or_default().push(*number));
                let Some(depth) = (below(rng, 1 + by_depth.len() as u64) as usize).checked_sub(1) else {
                    return ForkPoint::Root;
                };
                let moments = by_depth.values().nth(depth).unwrap();
                ForkPoint::After(moments[below(rng, moments.len() as u64) as usize])
            }
            StrategyKind::Pct => {
                if below(rng, 2) == 0 {
                    return ForkPoint::Root;
                }
                let drawn = below(rng, open.len() as u64) as usize;
                open.get(drawn).map_or(ForkPoint::Root, |(number, ..)| ForkPoint::After(*number))
            }
            StrategyKind::Novelty => {
                let seen = 50_000u64.saturating_sub(unseen_ppm.into());
                if below(rng, 1_000_000) < 250_000 + 750_000 * seen / 50_000 {
                    return ForkPoint::Root;
                }
                let weight = |branch: &Branch, standing: Standing| {
                    standing.reward.min(1 << 17) * (1 << 16) / (branch.children + 1).pow(2)
                };
                let mut drawn = below(rng, open.iter().map(|(_, b, s)| weight(b, *s)).sum());
                for (number, branch, standing) in open {
                    match drawn.checked_sub(weight(branch, standing)) {
                        Some(left) => drawn = left,
                        None => return ForkPoint::After(number),
                    }
                }
                ForkPoint::Root
            }
        }
    }
}

proptest! {
    /// Running sums lead to the same choices as sums over the whole tree.
    #[test]
    fn running_sums_change_no_choice(
        seed: u64, in_flight in 1..20u32, branches in 0..400u64,
        kind in prop::sample::select(StrategyKind::ALL.to_vec()),
    ) {
        let kept = explore(kind.strategy(), seed, in_flight, branches, 3, seed);
        let naive = explore(Naive(kind), seed, in_flight, branches, 1, 0);
        prop_assert_eq!(kept, naive);
    }
}

/// A choice among n branches looks at no more than log2(n) + 1 branches on average.
#[test]
fn a_choice_looks_at_few_branches() {
    const BRANCHES: u64 = 200_000;
    const CHOICES: u64 = 10_000;
    let mut tree = Tree::new(ROOT_NS);
    for number in 0..BRANCHES {
        tree.add(ForkPoint::Root);
        tree.settle(number, Standing { open_ns: Some(2_000), reward: number % 3, instructions: 1 });
    }
    let mut rng = ChaCha20Rng::from_seed([9; 32]);
    for kind in StrategyKind::ALL {
        let strategy = kind.strategy();
        looked::take();
        let drawn =
            (0..CHOICES).filter(|_| strategy.choose(&tree, 1_000_000, &mut rng) != ForkPoint::Root).count();
        let looked = looked::take();
        assert!(drawn as u64 > CHOICES * 2 / 5, "{kind}: {drawn}");
        assert!(looked <= CHOICES * u64::from(BRANCHES.ilog2() + 1), "{kind}: {looked}");
    }
}

/// Returns how often each moment is chosen in 10,000 draws.
fn shares<S: Chooses>(tree: &Tree, strategy: &S, unseen_ppm: u32) -> impl Fn(ForkPoint) -> u32 + use<S> {
    let mut rng = ChaCha20Rng::from_seed([9; 32]);
    let drawn: Vec<ForkPoint> = (0..10_000).map(|_| strategy.choose(tree, unseen_ppm, &mut rng)).collect();
    move |place| drawn.iter().filter(|other| **other == place).count() as u32
}

/// Returns a tree with these rewards. Three branches start at the root moment, and one starts at the end of the first
/// branch. The third branch is not open, i.e. no branch can start at its end.
fn small(rewards: [u64; 4]) -> Tree {
    let mut tree = Tree::new(ROOT_NS);
    for (number, reward) in (0..).zip(rewards) {
        let from = if number == 3 { ForkPoint::After(0) } else { ForkPoint::Root };
        tree.add(from);
        let open_ns = Some(2_000 + number * 1_000).filter(|_| number != 2);
        tree.settle(number, Standing { open_ns, reward, instructions: 1 });
    }
    tree
}

/// Checks how often each moment of a [`small`] tree is chosen: the root moment, and the ends of the first, the second
/// and the fourth branch. The end of the third branch must never be chosen.
#[track_caller]
fn assert_shares(share: impl Fn(ForkPoint) -> u32, expected: [u32; 4]) {
    let places = [ForkPoint::Root, ForkPoint::After(0), ForkPoint::After(1), ForkPoint::After(3)];
    for (place, expected) in places.into_iter().zip(expected) {
        assert!(share(place).abs_diff(expected) < 250, "{place:?}: {}", share(place));
    }
    assert_eq!(share(ForkPoint::After(2)), 0);
}

#[test]
fn uniform_prefers_no_depth_and_no_moment() {
    assert_shares(shares(&small([9, 0, 0, 5]), &Uniform, 0), [3_333, 1_667, 1_667, 3_333]);
}

#[test]
fn pct_starts_half_of_the_branches_at_the_root() {
    assert_shares(shares(&small([9, 0, 0, 5]), &Pct, 0), [5_000, 1_667, 1_667, 1_667]);
    assert_eq!(shares(&Tree::new(ROOT_NS), &Pct, 0)(ForkPoint::Root), 10_000, "the tree has no other moment");
}

#[test]
fn kinds_choose_as_their_strategies_do() {
    let tree = small([8, 1, 50, 1]);
    let chosen = |strategy: &dyn Chooses| -> Vec<ForkPoint> {
        let mut rng = ChaCha20Rng::from_seed([9; 32]);
        (0..100).map(|_| strategy.choose(&tree, 1_000_000, &mut rng)).collect()
    };
    for (kind, strategy) in [
        (StrategyKind::Uniform, &Uniform as &dyn Chooses),
        (StrategyKind::Novelty, &Novelty::default()),
        (StrategyKind::Pct, &Pct),
    ] {
        assert_eq!(chosen(&*kind.strategy()), chosen(strategy), "{kind}");
    }
}

#[test]
fn novelty_prefers_moments_with_rewards_and_few_children() {
    let strategy = Novelty { fresh_ppm: 200_000 };
    // The root moment gets 20 % of the draws (`fresh_ppm`), and the open branches share the rest by weight. The weight
    // of a branch with n children is its reward divided by (n + 1)^2: 2 for the first branch (8 / 4), 1 for the others.
    assert_shares(shares(&small([8, 1, 50, 1]), &strategy, 1_000_000), [2_000, 4_000, 2_000, 2_000]);
}

#[test]
fn if_little_is_unseen_branches_start_at_the_root() {
    let strategy = Novelty { fresh_ppm: 200_000 };
    let tree = small([8, 1, 0, 1]);
    let fresh = |unseen_ppm| shares(&tree, &strategy, unseen_ppm)(ForkPoint::Root);
    assert_eq!(fresh(0), 10_000);
    assert!(fresh(25_000).abs_diff(6_000) < 250, "{}", fresh(25_000));
    assert!(fresh(50_000).abs_diff(2_000) < 250);
    assert_eq!(
        shares(&small([0; 4]), &strategy, 1_000_000)(ForkPoint::Root),
        10_000,
        "no branch has a reward"
    );
}

#[test]
fn branches_that_cannot_be_extended_are_not() {
    let mut tree = Tree::new(ROOT_NS);
    tree.add(ForkPoint::Root);
    // The branch ends at the vtime at which it starts. The two forks in a child's path would have the same vtime, which
    // is invalid.
    tree.settle(0, Standing { open_ns: Some(ROOT_NS), reward: 1, instructions: 0 });
    assert_eq!(tree.open().count(), 0);
    for nowhere in [ForkPoint::After(0), ForkPoint::After(9)] {
        assert_eq!(tree.add(nowhere).from, ForkPoint::Root);
    }
    assert_eq!(tree.subtrees(), 3);
}
