//! Tests of the composer, which decides when test commands start. Each test draws a random template (a set of test
//! commands) and a random simulated world. The composer must break no rule, and storing and restoring it between two
//! events must change nothing.

use proptest::prelude::*;

use super::caller::{Caller, calm, templates, worlds};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_rule_is_broken(template in templates(), world in worlds()) {
        Caller::new(&template, &world).run(|_| false);
    }

    #[test]
    fn cutting_a_timeline_changes_nothing(
        template in templates(), world in worlds(), every in 1usize..8, from in 0usize..40,
    ) {
        let mut whole = Caller::new(&template, &world);
        let ended = whole.run(|_| false);
        let mut pieces = Caller::new(&template, &world);
        prop_assert_eq!(pieces.run(|event| event >= from && event % every == 0), ended);
        prop_assert_eq!(&pieces.log, &whole.log);
        prop_assert_eq!(&pieces.states, &whole.states);
    }

    /// If no command fails and no node goes down, every driver (a command that does the work of the test) runs.
    /// The timeline then ends with the template's `finally_` or `eventually_` commands.
    #[test]
    fn without_failures_every_driver_runs(template in templates(), seed: u64) {
        let world = calm(seed, 300 * S);
        let mut caller = Caller::new(&template, &world);
        let (finally, eventually) = caller.run(|_| false);
        for (number, command) in template.commands().iter().enumerate() {
            let starts = caller.log.iter().filter(|(_, act)| {
                matches!(act, Act::Start(start) if start.command == number)
            }).count();
            match command.prefix() {
                Prefix::SingletonDriver => prop_assert_eq!(starts, 1),
                prefix if prefix.is_driver() || prefix == Prefix::Anytime => {
                    prop_assert!(starts > 10, "{} {}", command.name(), starts);
                }
                _ => {}
            }
        }
        let with = |prefix| template.commands().iter().filter(|c| c.prefix() == prefix).count() as u64;
        prop_assert_eq!(caller.rules.count(|prefix| prefix == Prefix::First), with(Prefix::First).min(1));
        let all = (with(Prefix::Finally), with(Prefix::Eventually));
        let fits = match all {
            (0, 0) => (finally, eventually) == (0, 0),
            (_, 0) => (finally, eventually) == (all.0, 0),
            (0, _) => (finally, eventually) == (0, 1),
            _ => (finally, eventually) == (all.0, 0) || (finally, eventually) == (0, 1),
        };
        prop_assert!(fits, "{finally} {eventually}");
    }
}

/// The generators produce many timelines with `finally_` commands, with `eventually_` commands, with neither, with
/// kills, and with an end more than [`FINISH_NS_MAX`] after the end of the workload.
#[test]
fn all_sorts_are_drawn() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut finally, mut eventually, mut neither, mut killed, mut late) = (0, 0, 0, 0, 0);
    for _ in 0..400 {
        let (template, world) = (templates(), worlds()).new_tree(&mut runner).unwrap().current();
        let mut caller = Caller::new(&template, &world);
        let ended = caller.run(|_| false);
        finally += u32::from(ended.0 > 0);
        eventually += u32::from(ended.1 > 0);
        neither += u32::from(ended == (0, 0));
        killed += u32::from(caller.log.iter().any(|(_, act)| *act == Act::KillAll));
        late += u32::from(caller.log.last().is_some_and(|(ns, _)| *ns > world.stop_ns + FINISH_NS_MAX));
    }
    let all = [finally, eventually, neither, killed, late];
    assert!(all.iter().all(|count| *count >= 10), "{all:?}");
}
