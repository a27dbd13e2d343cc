//! Handwritten tests of the composer's phases from the end of the workload to the end of the timeline. The composer
//! decides when test commands start.

use super::*;

const FINALLY: &[(u16, &str)] = &[(0, "parallel_driver_a"), (1, "finally_b"), (0, "finally_c")];
const BOTH: &[(u16, &str)] =
    &[(0, "parallel_driver_a"), (0, "finally_b"), (0, "eventually_c"), (0, "eventually_d")];

/// Tries seeds. Returns the first composer that runs one command and whose `stop` would now return `ending`. Also returns
/// the composer's random stream, the current vtime and the start of the command.
fn driven(template: &Template, ending: Stopping) -> (Composer<'_>, ChaCha20Rng, u64, Start) {
    for seed in 0.. {
        let (mut rng, mut composer) = begun(template, seed);
        let (now_ns, start) = next_start(&mut composer, &mut rng);
        let probe = Composer::go_on(template, composer.state().clone()).map(|mut probe| probe.stop(now_ns));
        if probe == Ok(ending) {
            return (composer, rng, now_ns, start);
        }
    }
    unreachable!()
}

fn name<'t>(template: &'t Template, acts: &[Act]) -> &'t str {
    let [start] = starts(acts)[..] else { panic!("{acts:?}") };
    template.commands()[start.command].name()
}

#[test]
fn finally_commands_run_in_turn_when_all_others_have_ended() {
    let template = template(FINALLY);
    let (mut composer, mut rng, now_ns, start) = driven(&template, Stopping::Finally);
    assert_eq!(composer.stop(now_ns), Stopping::Finally);
    assert!(!composer.faults_allowed());
    assert_eq!(composer.act(now_ns + 59 * S, &mut rng), []);
    composer.ended(start.run, now_ns + 59 * S, false, false);
    let (at_ns, acts) = step(&mut composer, &mut rng);
    assert_eq!((at_ns, name(&template, &acts)), (now_ns + 59 * S, "finally_b"));
    assert_eq!(composer.stop(at_ns), Stopping::Finally, "a second stop changes nothing");
    let run = starts(&acts)[0].run;
    composer.ended(run, at_ns + S, false, false);
    let (at_ns, acts) = step(&mut composer, &mut rng);
    assert_eq!(name(&template, &acts), "finally_c");
    composer.ended(starts(&acts)[0].run, at_ns + S, true, false);
    assert_eq!(step(&mut composer, &mut rng), (at_ns + S, vec![Act::Over]));
    assert!(composer.is_over() && composer.due().is_none());
    let never: Vec<&str> = composer.tally().never_succeeded().map(|(name, _)| name).collect();
    assert_eq!(never, ["finally_b", "parallel_driver_a"]);
}

#[test]
fn without_an_eventually_command_a_killed_run_ends_the_timeline() {
    let template = template(FINALLY);
    for how in 0..4 {
        let (mut composer, mut rng, now_ns, start) = driven(&template, Stopping::Finally);
        let over_ns = match how {
            0 => {
                composer.ended(start.run, now_ns, true, true);
                assert_eq!(composer.stop(now_ns), Stopping::Nothing, "a run was killed before the stop");
                now_ns
            }
            1 => {
                composer.lost(0, now_ns + S);
                composer.up(0);
                assert_eq!(
                    composer.stop(now_ns + 2 * S),
                    Stopping::Nothing,
                    "a run was lost before the stop"
                );
                now_ns + 2 * S
            }
            2 => {
                composer.stop(now_ns);
                composer.lost(0, now_ns + S);
                now_ns + S
            }
            _ => {
                composer.stop(now_ns);
                now_ns + FINISH_NS_MAX
            }
        };
        assert_eq!(step(&mut composer, &mut rng), (over_ns, vec![Act::Over]), "{how}");
    }
}

#[test]
fn runs_that_do_not_end_are_killed_before_an_eventually_command() {
    let template = template(BOTH);
    let (mut composer, mut rng, now_ns, start) = driven(&template, Stopping::Finally);
    composer.stop(now_ns);
    let (late_ns, acts) = step(&mut composer, &mut rng);
    assert_eq!((late_ns, acts), (now_ns + FINISH_NS_MAX, vec![Act::KillAll]));
    composer.ended(start.run, late_ns + MS, false, true);
    let (at_ns, acts) = step(&mut composer, &mut rng);
    assert_eq!(at_ns, late_ns + MS);
    assert!(name(&template, &acts).starts_with("eventually_"));
    composer.ended(starts(&acts)[0].run, at_ns + S, true, false);
    assert_eq!(step(&mut composer, &mut rng), (at_ns + S, vec![Act::Over]));
}

/// Once one run was killed, the composer does not wait for other runs to end by themselves.
#[test]
fn after_one_kill_all_others_are_killed_at_once() {
    let template =
        template(&[(0, "serial_driver_a"), (0, "finally_b"), (0, "eventually_c"), (0, "anytime_d")]);
    let (mut composer, mut rng, _, one) = driven(&template, Stopping::Finally);
    let (now_ns, other) = next_start(&mut composer, &mut rng);
    composer.stop(now_ns);
    assert_eq!(composer.due(), Some(now_ns + FINISH_NS_MAX));
    composer.ended(one.run, now_ns + S, true, true);
    assert_eq!(composer.state().runs(), [other]);
    assert_eq!(step(&mut composer, &mut rng), (now_ns + S, vec![Act::KillAll]));
}

#[test]
fn one_eventually_command_runs_when_all_others_were_killed() {
    let template = template(BOTH);
    let mut seen = [0; 2];
    for seed in 0..200 {
        let (mut composer, _, now_ns, start) = driven(&template, Stopping::Eventually);
        let mut rng = rng(seed);
        composer.stop(now_ns);
        assert_eq!(step(&mut composer, &mut rng), (now_ns, vec![Act::KillAll]));
        // A failure after the kill does not count.
        composer.ended(start.run, now_ns + MS, false, false);
        assert_eq!(composer.tally().ever_failed().count(), 0);
        let (_, acts) = step(&mut composer, &mut rng);
        seen[usize::from(name(&template, &acts) == "eventually_d")] += 1;
        let run = starts(&acts)[0].run;
        assert_eq!(composer.due(), Some(now_ns + MS + LAST_NS_MAX));
        composer.ended(run, now_ns + S, false, false);
        assert_eq!(composer.tally().ever_failed().count(), 1);
        assert_eq!(step(&mut composer, &mut rng), (now_ns + S, vec![Act::Over]));
    }
    assert!(seen.iter().all(|count| (70..130).contains(count)), "{seen:?}");
}

#[test]
fn both_endings_are_equally_likely() {
    let template = template(BOTH);
    let finally = |seed: &u64| Composer::begin(&template, 0, &mut rng(*seed)).stop(0) == Stopping::Finally;
    let count = (0..1000).filter(finally).count();
    assert!((430..570).contains(&count), "{count}");
}

#[test]
fn commands_that_cannot_be_killed_or_hang_end_the_timeline() {
    let template = template(BOTH);
    let (mut composer, mut rng, now_ns, start) = driven(&template, Stopping::Eventually);
    composer.stop(now_ns);
    step(&mut composer, &mut rng);
    assert_eq!(step(&mut composer, &mut rng), (now_ns + KILL_NS_MAX, vec![Act::Over]));
    assert_eq!(composer.state().runs(), [start]);

    let (mut composer, mut rng, now_ns, start) = driven(&template, Stopping::Finally);
    composer.stop(now_ns);
    composer.ended(start.run, now_ns, true, false);
    let (_, acts) = step(&mut composer, &mut rng);
    assert_eq!(name(&template, &acts), "finally_b");
    assert_eq!(step(&mut composer, &mut rng), (now_ns + LAST_NS_MAX, vec![Act::Over]));
}

#[test]
fn the_last_commands_wait_for_a_node() {
    let template = template(BOTH);
    for ending in [Stopping::Finally, Stopping::Eventually] {
        let (mut composer, mut rng, now_ns, start) = driven(&template, ending);
        composer.ended(start.run, now_ns, true, false);
        composer.down(0);
        composer.stop(now_ns);
        assert_eq!(composer.act(now_ns, &mut rng), []);
        assert_eq!(composer.due(), Some(now_ns + LAST_NS_MAX));
        let (state, _) = composer.finish();
        let mut late = Composer::go_on(&template, state.clone()).unwrap();
        assert_eq!(step(&mut late, &mut rng), (now_ns + LAST_NS_MAX, vec![Act::Over]));
        let mut back = Composer::go_on(&template, state).unwrap();
        back.up(0);
        assert_eq!(starts(&back.act(now_ns + S, &mut rng)).len(), 1);
    }
}

#[test]
fn without_a_workload_no_eventually_command_runs() {
    // Only a `first_` command ran, so there is no workload for `eventually_` to check.
    let files = template(&[(0, "first_a"), (0, "serial_driver_b"), (0, "eventually_c"), (1, "anytime_d")]);
    let (mut rng, mut composer) = begun(&files, 0);
    next_start(&mut composer, &mut rng);
    assert_eq!(composer.stop(S), Stopping::Nothing);
    assert_eq!(step(&mut composer, &mut rng), (S, vec![Act::Over]));

    // In a template without drivers, `anytime_` commands are the workload.
    let files = template(&[(0, "anytime_a"), (0, "eventually_b")]);
    let mut composer = Composer::begin(&files, 0, &mut rng);
    next_start(&mut composer, &mut rng);
    assert_eq!(composer.stop(S), Stopping::Eventually);

    // At the end of the workload, a `first_` command still runs. The `finally_` command waits until it has ended.
    let files = template(&[(0, "first_a"), (0, "serial_driver_b"), (0, "finally_c")]);
    let mut composer = Composer::begin(&files, 0, &mut rng);
    let (_, first) = next_start(&mut composer, &mut rng);
    assert_eq!(composer.stop(S), Stopping::Finally);
    composer.ended(first.run, 2 * S, true, false);
    let (at_ns, acts) = step(&mut composer, &mut rng);
    assert_eq!((at_ns, name(&files, &acts)), (2 * S, "finally_c"));
}

#[test]
fn without_last_commands_a_timeline_ends_with_its_workload() {
    let template = template(&[(0, "parallel_driver_a")]);
    let (mut composer, mut rng, now_ns, start) = driven(&template, Stopping::Nothing);
    assert_eq!(composer.stop(now_ns + S), Stopping::Nothing);
    assert_eq!(step(&mut composer, &mut rng), (now_ns + S, vec![Act::Over]));
    assert_eq!(composer.state().runs(), [start], "the run is left to the caller");
}

#[test]
fn a_timeline_at_the_highest_vtime() {
    let template = template(BOTH);
    let mut rng = rng(0);
    let mut composer = Composer::begin(&template, u64::MAX, &mut rng);
    assert!(!composer.act(u64::MAX, &mut rng).is_empty());
    composer.stop(0);
    let acts = composer.act(0, &mut rng);
    assert_eq!(acts.last(), Some(&Act::Over));
}
