//! Tests that a short exploration also extends branches, instead of starting every branch at the root moment.

use std::num::NonZero;

use everett_explorer::length_defaults::{Length, LengthDefaults};
use everett_explorer::search::strategy::StrategyKind;
use everett_explorer::search::{Ledger, Next, Search, Standing};
use everett_streams::Seed;

/// World in which each branch can be extended, and every third branch reaches something new.
struct World;

impl Ledger for World {
    type Outcome = u64;

    fn take(&mut self, choice: u64, end_ns: u64) -> Standing {
        Standing { open_ns: Some(end_ns), reward: u64::from(choice.is_multiple_of(3)), instructions: 1 }
    }

    fn unseen_ppm(&self) -> u32 {
        300_000
    }
}

/// Runs a search. Returns the number of branches that start at the end of another branch, and the largest depth of a
/// branch, i.e. the number of branches from the root moment to its end.
fn depths(branches: u64, in_flight: u32) -> (usize, u32) {
    let in_flight = NonZero::new(in_flight).unwrap();
    let mut search =
        Search::new(Seed::new(7), 1, in_flight, branches, StrategyKind::Novelty.strategy(), World);
    let mut waiting = Vec::new();
    loop {
        match search.choose() {
            Next::Run(choice) => {
                let end_ns = choice.path.forks().last().map_or(1, |fork| fork.vtime_ns) + 1;
                waiting.push((choice.number, end_ns));
            }
            Next::Wait(_) => waiting.drain(..).for_each(|(number, end_ns)| search.deliver(number, end_ns)),
            Next::Over => break,
        }
    }
    let depths = || search.tree().branches().iter().map(|branch| branch.depth);
    (depths().filter(|depth| *depth > 1).count(), depths().max().unwrap_or(0))
}

#[test]
fn the_defaults_for_150_branches_lead_deep() {
    let LengthDefaults { in_flight, .. } = LengthDefaults::of(Length { branches: Some(150), host_ns: None });
    let (fitted, unlimited) = (depths(150, in_flight), depths(150, LengthDefaults::default().in_flight));
    assert!(fitted.0 > 75 && fitted.1 >= 5, "{fitted:?}");
    assert!(unlimited.1 <= 3 && unlimited.0 < fitted.0, "with 64 of 150 branches in flight: {unlimited:?}");
}
