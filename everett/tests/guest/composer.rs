//! Test templates: folders of commands whose names say when Everett runs them, e.g. `first_…` before all others and
//! `finally_…` at the end. Each command runs as the prefix of its name demands, and a timeline with test commands
//! repeats exactly.

use std::collections::BTreeSet;
use std::sync::Arc;

use everett_cpu::CacheConfig;
use everett_explorer::plan::draw::Span;
use everett_explorer::search::Fork;
use everett_explorer::search::strategy::StrategyKind;
use everett_fault::FaultKind;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::world::conversation::Phase;
use everett_session::world::event::{Event, What};
use everett_session::world::moments::Stored;
use everett_snapshot::Pool;
use everett_streams::Seed;
use everett_vmm::engine::soft::FlushSchedule;
use everett_vmm::machine::Until;
use everett_world_file::FileEntry;

use crate::explore::{explore, setting_of};
use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end, run_until_done, under};

/// World with a test template, two machines, a driver (a program of the workload), and a check at the end.
const WORLD: &str = r#"
[workload]
template = "/opt/antithesis/test/v1/main"
[[node]]
name = "a"
memory = "96M"
[[node]]
name = "b"
memory = "96M"
[[workload.driver]]
name = "driver"
node = "b"
repeat = true
argv = ["sleep", "0.1"]
[[workload.check]]
name = "after"
node = "a"
argv = ["sh", "-c", "! grep -l '[v]1/main' /proc/[0-9]*/cmdline; wc -l < /tmp/antithesis/sdk.jsonl"]
"#;
const FOLDER: &str = "/opt/antithesis/test/v1/main";

const WORK: &str =
    "#!/bin/sh\necho $EVERETT_SEED $EVERETT_ROUND >> $ANTITHESIS_OUTPUT_DIR/sdk.jsonl\nsleep 0.07\n";
/// Script of the `eventually_` and `finally_` commands. It fails if a `parallel_`, `serial_`, `anytime_` or `first_`
/// command is running on its node.
const LAST: &str = "#!/bin/sh\nif grep -l '[p]arallel_\\|[s]erial_\\|[a]nytime_\\|[f]irst_' /proc/[0-9]*/cmdline; then exit 1; fi\nsleep 0.05\n";
const NAP: &str = "#!/bin/sh\nsleep 0.15\n";

/// Files of the template folder, for each node.
const FILES: [&[(&str, &str)]; 2] = [
    &[
        ("first_setup.sh", NAP),
        ("parallel_driver_work.sh", WORK),
        ("serial_driver_alone.sh", NAP),
        ("anytime_look.sh", NAP),
        ("eventually_settled.sh", LAST),
        ("finally_count.sh", LAST),
        ("helper_lib.sh", "#!/bin/sh\nexit 7\n"),
    ],
    &[
        ("parallel_driver_work.sh", WORK),
        ("singleton_driver_once.sh", NAP),
        ("anytime_look.sh", NAP),
        ("eventually_settled.sh", LAST),
        ("finally_count.sh", LAST),
        ("finally_other.sh", LAST),
    ],
];

const DURATION_NS: u64 = 2_500 * MS;

fn launcher_with(files: &[&[(&str, &str)]]) -> Launcher {
    let mut launcher = launcher_of(WORLD);
    for (node, files) in launcher.world.nodes.iter_mut().zip(files) {
        let file = |(name, content): &(&str, &str)| {
            FileEntry::of_root(format!("{FOLDER}/{name}"), content.as_bytes().into())
        };
        node.files = files.iter().map(file).collect();
    }
    launcher
}

/// Returns [`FILES`] with one more command on the second machine. It never ends by itself.
fn with_an_endless_command() -> [Vec<(&'static str, &'static str)>; 2] {
    let mut files = FILES.map(<[_]>::to_vec);
    files[1].push(("anytime_stays.sh", "#!/bin/sh\nsleep 100000\n"));
    files
}

/// True if `unit`, a process that an event names, runs a command whose name starts with `prefix`.
fn is(unit: &str, prefix: &str) -> bool {
    unit.starts_with(prefix)
}

/// Checks that a timeline's events obey the rules of the prefixes. Returns the names of the processes that ran
/// commands.
fn follow(events: &[Event]) -> BTreeSet<String> {
    let (mut running, mut seen): (BTreeSet<(&str, &str)>, BTreeSet<String>) = Default::default();
    let (mut is_over, mut first_over) = (false, false);
    for event in events {
        let node = event.node.as_str();
        match &event.what {
            What::Start { unit, .. } if unit.contains('_') => {
                seen.insert(unit.clone());
                let others = |prefixes: &[&str]| {
                    running.iter().any(|(_, other)| prefixes.iter().any(|prefix| is(other, prefix)))
                };
                match unit.split('_').next() {
                    Some("first") => assert!(running.is_empty() && !first_over, "{event:?}"),
                    Some("serial" | "singleton") => {
                        assert!(!others(&["parallel_", "serial_", "singleton_"]), "{event:?}: {running:?}");
                    }
                    Some("parallel") => {
                        assert!(!others(&["serial_", "singleton_"]), "{event:?}: {running:?}")
                    }
                    Some("anytime") => {}
                    // By now all other commands have been killed or have ended by themselves.
                    Some("eventually") => running.clear(),
                    Some("finally") => assert!(running.is_empty(), "{event:?}: {running:?}"),
                    _ => panic!("{event:?}"),
                }
                let is_last = is(unit, "eventually_") || is(unit, "finally_");
                assert_eq!(is_last, is_over, "{event:?}");
                assert!(
                    first_over || is(unit, "first_"),
                    "{event:?} comes before the first_ command has ended"
                );
                assert!(running.insert((node, unit)), "{event:?} runs already");
            }
            What::Exit { unit, .. } if unit.contains('_') => {
                assert!(running.remove(&(node, unit.as_str())), "{event:?}");
                first_over |= is(unit, "first_");
            }
            What::Fault { line, .. } if line.contains("power_loss") || line.contains("reset") => {
                running.retain(|(node, _)| !line.contains(&format!("\"node\":\"{node}\"")));
            }
            What::End => is_over = true,
            _ => {}
        }
    }
    assert!(is_over && running.is_empty(), "{running:?} still run at the end");
    seen
}

fn has(seen: &BTreeSet<String>, unit: &str) -> bool {
    seen.contains(unit)
}

#[test]
fn commands_run_as_their_names_say() {
    let (launcher, _) = ready(launcher_with(&FILES));
    let (mut all, mut endings, mut works) = (BTreeSet::new(), BTreeSet::new(), 0);
    // Under these seeds each command runs, some command runs twice at the same time, and timelines end in both ways:
    // with the `eventually_` commands or with the `finally_` commands.
    for seed in 14..=17 {
        let mut timeline = launcher.start(Seed::new(seed)).unwrap();
        let (_, events) = run_to_end(&mut timeline, DURATION_NS);
        assert_eq!((timeline.phase(), findings(&events)), (Phase::Done, vec![]), "seed {seed}");
        let seen = follow(&events);
        // At its end, a timeline runs either all `eventually_` commands or all `finally_` commands.
        let ending = (
            has(&seen, "eventually_settled.sh"),
            has(&seen, "finally_count.sh"),
            has(&seen, "finally_other.sh"),
        );
        assert!(matches!(ending, (true, false, false) | (false, true, true)), "{seen:?}");
        endings.insert(ending);
        let written: u32 = lines(&events, "after")[0].parse().unwrap();
        assert!(written > 0, "no command wrote to ANTITHESIS_OUTPUT_DIR");
        let worked = timeline.tally().unwrap().get("parallel_driver_work.sh").unwrap();
        assert_eq!(worked.failed, 0);
        works += worked.succeeded;
        let once = timeline.tally().unwrap().get("singleton_driver_once.sh").unwrap();
        assert!(once.started <= 1, "{once:?}");
        all.extend(seen);
    }
    assert_eq!(endings.len(), 2, "only one kind of ending occurs");
    assert!(works > 10, "{works}");
    for unit in ["first_setup.sh", "serial_driver_alone.sh", "singleton_driver_once.sh", "anytime_look.sh"] {
        assert!(has(&all, unit), "{unit} is not among {all:?}");
    }
    assert!(has(&all, "parallel_driver_work.sh#2"), "no parallel driver ran twice at the same time: {all:?}");
}

/// Fault plan. Its first fault comes while the `first_` command runs. Everett must not apply this fault, because
/// Everett applies faults only after the `first_` command has ended. Later node b loses power, and node a is paused and
/// reset.
const PLAN: &str = r#"
{"at": "20ms", "for": "30ms", "fault": "power_loss", "node": "b"}
{"at": "700ms", "for": "60ms", "fault": "power_loss", "node": "b"}
{"at": "1100ms", "for": "20ms", "fault": "pause", "node": "a"}
{"at": "1600ms", "fault": "reset", "node": "a"}
"#;

#[test]
fn a_template_under_faults_gives_one_trail() {
    // Under this seed both machines run commands again after their restarts, before the timeline ends.
    let seed = 12;
    let files = with_an_endless_command();
    let (launcher, points) = ready(launcher_with(&[&files[0], &files[1]]));
    let faulty = under(&launcher, &points, PLAN);
    let mut worker = faulty.start(Seed::new(seed)).unwrap();
    let (trail, events) = run_to_end(&mut worker, DURATION_NS);
    assert_eq!((worker.phase(), findings(&events)), (Phase::Done, vec![]));
    let seen = follow(&events);
    assert!(
        has(&seen, "eventually_settled.sh"),
        "the command that does not end by itself was not killed: {seen:?}"
    );
    let not_done: Vec<&str> = events
        .iter()
        .filter_map(|event| if let What::Effect { text } = &event.what { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(not_done, ["not done: the first command still runs"]);
    let healed = events.iter().filter(|event| matches!(event.what, What::Healed { .. })).count();
    assert_eq!(healed, 2, "a fault that was not applied must not end");
    // Machines run commands again after their restarts.
    let back = |node: &str, after: &str| {
        let at = events
            .iter()
            .position(|event| matches!(&event.what, What::Fault { line, .. } if line.contains(after)));
        let later = events[at.unwrap()..].iter().filter(|event| event.node == node);
        later.filter(|event| matches!(&event.what, What::Start { unit, .. } if is(unit, "parallel_"))).count()
    };
    assert!(back("b", "700ms") > 0 && back("a", "reset") > 0);

    // With small caches and random flushes, the trail and the events must be the same. Under another seed, the trail
    // must differ.
    let options = EngineOptions {
        caches: CacheConfig { tlb_entries: 64, block_entries: 4096, ..CacheConfig::default() },
        flushes: Some(FlushSchedule { interval: 500_000, seed: 3 }),
        ..EngineOptions::default()
    };
    let small = Launcher { options, ..launcher.clone() };
    assert_eq!(
        run_to_end(&mut under(&small, &points, PLAN).start(Seed::new(seed)).unwrap(), DURATION_NS),
        (trail.clone(), events.clone())
    );
    assert_ne!(run_to_end(&mut faulty.start(Seed::new(seed + 1)).unwrap(), DURATION_NS).0, trail);

    // A timeline that runs in pieces must have the same trail. The test stores moments of it at many places (during the
    // `first_` command, while a node is off, after commands were killed, and during the `eventually_` commands), and
    // continues from each of them.
    let pool = Pool::default();
    let mut timeline = faulty.start(Seed::new(seed)).unwrap();
    timeline.end_after(DURATION_NS);
    let end_ns = trail.points().last().unwrap().0;
    let (mut stored, mut so_far) = (Vec::new(), Vec::new());
    for piece in 0.. {
        if timeline.vtime() >= end_ns {
            break;
        }
        timeline.run(&Until::vtime((timeline.vtime() + 7_777_777).min(end_ns)));
        so_far.append(&mut timeline.take_events());
        if piece % 13 == 3 {
            stored.push(Stored::of(&mut timeline, &pool, so_far.clone(), vec![Vec::new(); 2]));
        }
    }
    assert_eq!((timeline.trail(), &so_far), (&trail, &events));
    for (number, chosen) in stored.into_iter().enumerate() {
        let from = Launcher { from: Some(Arc::new(chosen)), ..faulty.clone() };
        if number % 8 == 7 {
            // Runs a new timeline from the moment to the end, and compares all events.
            worker = from.start(Seed::new(seed)).unwrap();
            assert_eq!(
                run_to_end(&mut worker, DURATION_NS),
                (trail.clone(), events.clone()),
                "moment {number}"
            );
        } else {
            assert!(from.start_again(&mut worker, Seed::new(seed)).unwrap());
            worker.run(&Until::vtime(end_ns.min(worker.vtime() + 150 * MS)));
            let points = worker.trail().points();
            assert_eq!(points, &trail.points()[..points.len()], "moment {number}");
        }
    }
}

/// Returns the commands that started after the vtime `from_ns`: vtime, node, and name of the process.
fn starts(events: &[Event], from_ns: u64) -> Vec<(u64, String, String)> {
    let started =
        events.iter().filter(|event| event.vtime_ns > from_ns).filter_map(|event| match &event.what {
            What::Start { unit, .. } if unit.contains('_') => {
                Some((event.vtime_ns, event.node.clone(), unit.clone()))
            }
            _ => None,
        });
    started.collect()
}

#[test]
fn children_of_a_moment_start_other_commands() {
    let (launcher, _) = ready(launcher_with(&FILES));
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.end_after(DURATION_NS);
    let at_ns = timeline.ready_ns().unwrap() + 600 * MS;
    timeline.run(&Until::vtime(at_ns));
    let events = timeline.take_events();
    let stored = Stored::of(&mut timeline, &Pool::default(), events, vec![Vec::new(); 2]);
    let from = Launcher { from: Some(Arc::new(stored)), ..launcher };
    let of = |child: Option<u64>| {
        let mut timeline = from.start(Seed::new(1)).unwrap();
        if let Some(child) = child {
            timeline.fork(Fork { vtime_ns: at_ns, child }, None).unwrap();
        }
        let (_, events) = run_to_end(&mut timeline, DURATION_NS);
        assert_eq!(findings(&events), Vec::<&str>::new());
        follow(&events);
        starts(&events, at_ns)
    };
    let one = of(Some(1));
    assert!(one.len() > 5, "{one:?}");
    assert_eq!(of(Some(1)), one);
    assert_ne!(of(Some(2)), one);
    assert_ne!(of(None), one);
}

#[test]
fn a_file_that_is_no_command_ends_the_timeline_before_it_begins() {
    let files: [&[(&str, &str)]; 2] = [&[("anytime_look.sh", NAP)], &[("run.sh", NAP)]];
    let mut timeline = launcher_with(&files).start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, DURATION_NS);
    assert_eq!(timeline.phase(), Phase::Done);
    let found = findings(&events);
    assert!(
        found.len() == 1
            && found[0].starts_with(&format!("test template {FOLDER}: \"run.sh\" is not a test command")),
        "{found:?}"
    );
    assert!(!events.iter().any(|event| matches!(event.what, What::Start { .. })));
    // A template without commands is invalid too: it needs a driver command (such as `parallel_driver_…`) or an
    // `anytime_` command.
    let mut timeline = launcher_with(&[]).start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, DURATION_NS);
    assert!(findings(&events)[0].contains("there is no driver"), "{:?}", findings(&events));
}

#[test]
fn commands_that_fail_or_hang_are_found() {
    const HANG: &str = "#!/bin/sh\nsleep 100000\n";
    let files: [&[(&str, &str)]; 2] = [
        &[
            ("first_setup.sh", NAP),
            ("anytime_fails.sh", "#!/bin/sh\nsleep 0.1\nexit 3\n"),
            ("anytime_no_program", "#!/bin/none\n"),
        ],
        &[("parallel_driver_hangs.sh", HANG), ("eventually_hangs.sh", HANG), ("finally_never.sh", NAP)],
    ];
    let launcher = launcher_with(&files);
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, DURATION_NS);
    let found: BTreeSet<&str> = findings(&events).into_iter().collect();
    assert!(found.contains("command anytime_fails.sh ended with exit status 3"), "{found:?}");
    assert!(
        found.iter().any(|text| text.starts_with("command anytime_no_program: cannot start")),
        "{found:?}"
    );
    assert!(found.contains("command eventually_hangs.sh did not end in 600 s"), "{found:?}");
    assert!(
        !found.iter().any(|text| text.contains("parallel_")),
        "killing the parallel command at the end must not be a finding: {found:?}"
    );
    // The hanging `eventually_` command was killed, and the check after it still ran.
    assert_eq!(lines(&events, "after"), ["0"]);
    never_succeeding_is_counted(launcher);
}

/// An exploration of the same world reports commands that never succeeded and commands that never started.
fn never_succeeding_is_counted(mut launcher: Launcher) {
    launcher.world.explore.segment = Span::s(1);
    launcher.world.explore.horizon = Span::s(2);
    launcher.world.explore.in_flight = Some(2);
    launcher.world.explore.strategy = StrategyKind::Uniform;
    launcher.world.faults.only = Some(vec![FaultKind::Reseed]);
    let setting = setting_of(launcher, EngineOptions::default());
    let outcome = explore(&setting, 8, 2, 1 << 30, false);
    let subtrees = outcome.tree.subtrees();
    assert!(subtrees < 8, "no branch continues another");
    let all: Vec<_> = outcome.merged.commands().all().collect();
    let told = all.iter().map(|&(name, counts, seen)| {
        (name, counts.started > 0, counts.failed > 0, counts.succeeded, seen.map_or(0, |seen| seen.branches))
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("anytime_fails.sh", true, true, 0, 0),
            ("anytime_no_program", true, true, 0, 0),
            ("eventually_hangs.sh", true, false, 0, 0),
            ("finally_never.sh", false, false, 0, 0),
            // Each timeline counts once. Branches that continue a timeline do not count it again.
            ("first_setup.sh", true, false, subtrees, subtrees),
            ("parallel_driver_hangs.sh", true, false, 0, 0),
        ]
    );
}

#[test]
fn a_template_is_done_when_each_of_its_commands_has_ended() {
    let mut launcher = launcher_with(&FILES);
    launcher.world.workload.drivers.clear();
    let (_, events) = run_until_done(&mut launcher.start(Seed::new(1)).unwrap());
    assert_eq!(findings(&events), Vec::<&str>::new());
    let end = events.iter().position(|event| matches!(event.what, What::End)).unwrap();
    let (before, end_ns) = (&events[..end], events[end].vtime_ns);
    let exits = |wanted: &str| {
        let of =
            move |event: &&Event| matches!(&event.what, What::Exit { unit, .. } if unit.starts_with(wanted));
        before.iter().filter(of).map(|event| event.vtime_ns).collect::<Vec<_>>()
    };
    let commands = [
        "first_setup",
        "parallel_driver_work",
        "serial_driver_alone",
        "singleton_driver_once",
        "anytime_look",
    ];
    let firsts = commands.map(|command| *exits(command).first().expect(command));
    let last = firsts.into_iter().max().unwrap();
    assert!(
        (last..last + MS).contains(&end_ns),
        "each command had ended once at {last}, and the workload ended at {end_ns}"
    );
}
