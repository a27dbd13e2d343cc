//! Handwritten tests of the composer, which chooses the test commands that a workload starts, and their start times.

use std::collections::BTreeSet;

use super::*;

#[test]
fn one_first_command_runs_alone_and_without_faults() {
    let template = template(&[(0, "first_a"), (1, "first_b"), (2, "first_b"), (0, "anytime_x")]);
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let mut rng = rng(seed);
        let mut composer = Composer::begin(&template, 7, &mut rng);
        assert!(!composer.faults_allowed());
        let (now_ns, start) = next_start(&mut composer, &mut rng);
        assert_eq!((now_ns, start.run), (7, 0), "it starts at once");
        seen.insert((template.commands()[start.command].name(), start.node));
        assert_eq!(
            (composer.due(), composer.faults_allowed()),
            (None, false),
            "nothing else starts while it runs"
        );
        // The next command starts even if this command failed, was killed or was lost with its node.
        match seed % 3 {
            0 => composer.ended(0, 9, false, false),
            1 => composer.ended(0, 9, true, true),
            _ => composer.lost(start.node, 9),
        }
        assert!(composer.faults_allowed());
        assert_eq!(composer.tally().get("first_a").unwrap().failed > 0, seed % 3 == 0 && start.command == 1);
        composer.up(start.node);
        let (_, start) = next_start(&mut composer, &mut rng);
        assert_eq!(template.commands()[start.command].name(), "anytime_x");
    }
    assert_eq!(seen, BTreeSet::from([("first_a", 0), ("first_b", 1), ("first_b", 2)]));
}

#[test]
fn first_waits_for_a_node() {
    let template = template(&[(0, "first_a"), (1, "anytime_x")]);
    let (mut rng, mut composer) = begun(&template, 1);
    composer.down(0);
    assert_eq!(composer.due(), None);
    assert_eq!(composer.act(5 * S, &mut rng), []);
    composer.up(0);
    let acts = composer.act(6 * S, &mut rng);
    assert_eq!(acts, [Act::Start(Start { run: 0, command: 1, node: 0 })]);
}

#[test]
fn parallel_drivers_run_up_to_a_bound_that_each_timeline_draws() {
    let template = template(&[(0, "parallel_driver_a"), (1, "parallel_driver_a")]);
    let mut bounds = [0; PARALLEL_MAX as usize + 1];
    let mut pauses = Vec::new();
    for seed in 0..400 {
        let (mut rng, mut composer) = begun(&template, seed);
        let (mut count, mut last_ns) = (0, 0);
        while composer.due().is_some() {
            let (now_ns, acts) = step(&mut composer, &mut rng);
            if !acts.is_empty() {
                pauses.push(now_ns - last_ns);
                (count, last_ns) = (count + acts.len(), now_ns);
            }
        }
        bounds[count] += 1;
        // One command ends a second after the last start. The next command starts after a pause of its own.
        composer.ended(0, last_ns + S, true, false);
        let (now_ns, _) = next_start(&mut composer, &mut rng);
        pauses.push(now_ns - last_ns - S);
    }
    assert!(bounds[0] == 0 && bounds[1..].iter().all(|count| (60..140).contains(count)), "{bounds:?}");
    assert!(pauses.iter().all(|pause| *pause <= PAUSE_NS_MAX));
    let mean = pauses.iter().sum::<u64>() / pauses.len() as u64;
    assert!(mean.abs_diff(PAUSE_NS_MAX / 2) < PAUSE_NS_MAX / 20, "{mean}");
    assert!(*pauses.iter().max().unwrap() > PAUSE_NS_MAX * 9 / 10);
}

/// Returns the starts of commands on a timeline in which no started command ends.
fn all_starts(composer: &mut Composer<'_>, rng: &mut ChaCha20Rng) -> Vec<(u64, Start)> {
    let mut all = Vec::new();
    while composer.due().is_some() {
        let (now_ns, acts) = step(composer, rng);
        all.extend(starts(&acts).into_iter().map(|start| (now_ns, start)));
    }
    all
}

#[test]
fn only_anytime_commands_run_beside_serial_drivers() {
    let template = template(&[
        (0, "anytime_x"),
        (0, "parallel_driver_a"),
        (0, "serial_driver_b"),
        (0, "singleton_driver_c"),
    ]);
    let mut firsts = [0; 3];
    for seed in 0..300 {
        let (mut rng, mut composer) = begun(&template, seed);
        let all = all_starts(&mut composer, &mut rng);
        let drivers: Vec<usize> =
            all.iter().map(|(_, start)| start.command).filter(|command| *command > 0).collect();
        assert_eq!(all.len() - drivers.len(), ANYTIME_MAX as usize);
        firsts[drivers[0] - 1] += 1;
        assert!(drivers[0] == 1 || drivers.len() == 1, "{drivers:?}");
        assert!(drivers.iter().all(|driver| *driver == drivers[0]), "{drivers:?}");
    }
    assert!(firsts.iter().all(|count| (70..130).contains(count)), "each driver can be the first: {firsts:?}");
}

/// The parallel driver hangs. A serial driver that is drawn next cannot start. After [`PATIENCE_NS`], another run of
/// the parallel driver starts instead.
#[test]
fn a_command_that_hangs_does_not_block_the_workload() {
    let template = template(&[(0, "parallel_driver_a"), (0, "serial_driver_b")]);
    let mut waited = 0;
    for seed in 0..200 {
        let (mut rng, mut composer) = begun(&template, seed);
        let (first_ns, first) = next_start(&mut composer, &mut rng);
        if first.command == 1 || composer.due().is_none() {
            continue;
        }
        let (second_ns, second) = next_start(&mut composer, &mut rng);
        assert_eq!(second.command, 0);
        let after_ns = second_ns - first_ns;
        if after_ns > PAUSE_NS_MAX {
            assert!((PATIENCE_NS..=PATIENCE_NS + PAUSE_NS_MAX).contains(&after_ns), "{after_ns}");
            waited += 1;
        }
    }
    assert!(waited > 20, "{waited}");
}

#[test]
fn a_singleton_starts_once_even_if_its_node_loses_power() {
    let template = template(&[(0, "singleton_driver_a"), (0, "parallel_driver_b")]);
    let mut lost = 0;
    for seed in 0..20 {
        let (mut rng, mut composer) = begun(&template, seed);
        let mut singletons = 0;
        for _ in 0..40 {
            let (now_ns, start) = next_start(&mut composer, &mut rng);
            singletons += usize::from(start.command == 1);
            lost += usize::from(start.command == 1);
            composer.lost(0, now_ns + 1);
            assert_eq!(composer.due(), None, "its only node is down");
            assert_eq!(composer.state().runs(), []);
            composer.up(0);
        }
        assert_eq!(singletons, 1);
        let counts = composer.tally().get("singleton_driver_a").unwrap();
        assert_eq!(counts, Counts { started: 1, succeeded: 0, failed: 0 });
        assert_eq!(composer.tally().ever_failed().count(), 0);
    }
    assert_eq!(lost, 20);
}

#[test]
fn a_template_of_singletons_runs_each_once() {
    let template = template(&[(0, "singleton_driver_a"), (1, "singleton_driver_b")]);
    let (mut rng, mut composer) = begun(&template, 3);
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let (now_ns, start) = next_start(&mut composer, &mut rng);
        assert_eq!(composer.due(), None, "a singleton runs alone");
        seen.insert(start.command);
        composer.ended(start.run, now_ns + S, false, false);
    }
    assert_eq!((seen.len(), composer.due()), (2, None));
    assert_eq!(composer.tally().ever_failed().count(), 2);
}

#[test]
fn commands_run_on_nodes_that_are_up() {
    let template = template(&[(0, "parallel_driver_a"), (1, "parallel_driver_a"), (2, "parallel_driver_a")]);
    let (mut rng, mut composer) = begun(&template, 5);
    let mut on = |composer: &mut Composer<'_>| {
        let mut counts = [0; 3];
        for _ in 0..300 {
            let (now_ns, start) = next_start(composer, &mut rng);
            composer.ended(start.run, now_ns, true, false);
            counts[usize::from(start.node)] += 1;
        }
        counts
    };
    assert!(on(&mut composer).iter().all(|count| (70..130).contains(count)));
    composer.down(1);
    composer.down(7);
    let counts = on(&mut composer);
    assert!(counts[1] == 0 && (110..190).contains(&counts[0]), "{counts:?}");
    composer.up(1);
    assert!(on(&mut composer)[1] > 0);
}

/// If the drawn command's only node goes down and stays down, another command starts after [`PATIENCE_NS`].
#[test]
fn another_command_starts_if_a_node_stays_down() {
    let template = template(&[(0, "serial_driver_a"), (1, "serial_driver_b")]);
    for seed in 0..20 {
        let (mut rng, mut composer) = begun(&template, seed);
        assert_eq!(composer.act(0, &mut rng), [], "a command is drawn, and starts later");
        composer.lost(0, 0);
        let (now_ns, start) = next_start(&mut composer, &mut rng);
        assert!(start.command == 1 && now_ns <= PAUSE_NS_MAX + PATIENCE_NS);
    }
}

/// Each timeline that continues from a moment draws again how many parallel drivers may run at a time, and whether
/// `finally_` or `eventually_` commands run after the workload.
#[test]
fn a_fork_draws_again() {
    let template = template(&[(0, "parallel_driver_a"), (0, "finally_b"), (0, "eventually_c")]);
    let mut rng = rng(11);
    let mut parent = Composer::begin(&template, 0, &mut rng);
    next_start(&mut parent, &mut rng);
    let (state, _) = parent.finish();
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        let mut child = Composer::go_on(&template, state.clone()).unwrap();
        child.fork(&mut rng);
        let started = all_starts(&mut child, &mut rng).len();
        seen.insert((started, child.stop(S)));
    }
    assert_eq!(seen.len(), 2 * usize::from(PARALLEL_MAX), "{seen:?}");
}
