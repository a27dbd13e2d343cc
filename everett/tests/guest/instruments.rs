//! Tests of watchpoints, and of the recording of executed edges (jumps and branches with their targets). Neither
//! changes a timeline.

use everett_cpu::CacheConfig;
use everett_session::machines::EngineOptions;
use everett_session::run::edges::Collected;
use everett_session::run::edges::table::{Function, Names};
use everett_session::run::launch::Launcher;
use everett_session::world::event::{Event, What};
use everett_streams::Seed;
use everett_vmm::digest::Digest;
use everett_vmm::machine::Until;

use crate::support::{MS, everett, launcher, shown, world_file};

/// Size of an IDT descriptor, in bytes.
const GATE_BYTES: u64 = 16;
/// Vector of Linux's local APIC timer interrupt.
const TIMER_VECTOR: u64 = 0xec;

/// Runs for `duration_ns` of vtime from *ready* (all services are up). Returns the trail's digest, the events and the
/// edges.
fn run(launcher: &Launcher, duration_ns: u64) -> (Digest, Vec<Event>, Collected) {
    let mut timeline = launcher.start(Seed::new(3)).unwrap();
    timeline.end_after(duration_ns);
    let end_ns = timeline.vtime() + duration_ns;
    let (mut events, mut edges) = (Vec::new(), Collected::default());
    for piece in 1..=7 {
        timeline.run(&Until::vtime(end_ns - duration_ns + piece * duration_ns / 7));
        events.append(&mut timeline.take_events());
        edges.add(0, &timeline.machine_mut(0).take_edges());
    }
    timeline.run(&Until::vtime(end_ns));
    assert_eq!(timeline.vtime(), end_ns);
    events.append(&mut timeline.take_events());
    edges.add(0, &timeline.machine_mut(0).take_edges());
    (timeline.digest(), events, edges)
}

fn with(caches: CacheConfig, lockstep: bool) -> Launcher {
    launcher(EngineOptions { caches, lockstep, ..EngineOptions::default() })
}

#[test]
fn edges_are_the_same_however_code_is_executed() {
    const DURATION_NS: u64 = 150 * MS;
    let usual = CacheConfig::default();
    let (plain, _, none) = run(&with(usual, false), DURATION_NS);
    assert!(none.is_empty());
    let noted = CacheConfig { edges: true, ..usual };
    let launcher = with(noted, false);
    let (digest, _, edges) = run(&launcher, DURATION_NS);
    assert_eq!(digest, plain);

    let names = Names::of(&launcher).unwrap();
    let written = |edges: &Collected| {
        let mut out = Vec::new();
        names.write(edges, &["a"], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = written(&edges);
    assert!(text.lines().count() > 5_000, "{}", text.lines().count());
    let counts = names.counts(&edges);
    for program in ["kernel", "/usr/lib/x86_64-linux-gnu/libc.so.6"] {
        let count = counts.iter().find(|count| count.program == program).expect(program);
        assert!(count.edges > 500 && count.places <= count.edges, "{count:?}");
    }
    assert_eq!(counts.iter().map(|count| count.edges).sum::<u64>(), edges.len() as u64);
    if cfg!(feature = "inside") {
        // The C library exports this function, and Redis calls it.
        assert!(text.contains("\"to_function\":\"epoll_wait+0x"), "no edge has the name of this function");
        let functions = names.functions(&edges, usize::MAX);
        let server = |function: &&Function| function.program.starts_with("/usr/bin/redis-");
        let named = functions.iter().filter(server).find(|function| function.place == "processCommand");
        assert!(named.is_some_and(|function| function.edges > 10), "{functions:?}");
    }
    // In every kernel, returns from system calls pass through this function.
    assert!(text.contains("\"kernel:syscall_exit_to_user_mode+0x"), "no edge has the name of this function");

    let interpreted = CacheConfig { translate_after: None, ..noted };
    let eagerly = CacheConfig { translate_after: Some(0), tlb_entries: 64, block_entries: 4096, ..noted };
    for (caches, lockstep) in [(interpreted, false), (eagerly, false), (eagerly, true)] {
        let (digest, _, others) = run(&with(caches, lockstep), DURATION_NS);
        assert_eq!(digest, plain, "{caches:?}");
        assert_eq!(written(&others), text, "{caches:?}");
    }
}

#[test]
fn reads_of_a_descriptor_are_reported_and_change_nothing() {
    const DURATION_NS: u64 = 60 * MS;
    let plain = with(CacheConfig::default(), false);
    let (digest, events, _) = run(&plain, DURATION_NS);
    assert!(events.iter().all(|event| !matches!(event.what, What::Access { .. })));
    let table = plain.start(Seed::new(3)).unwrap().machine(0).cpu().idtr.base;
    let gate = table + TIMER_VECTOR * GATE_BYTES;
    let watched = |text: &str, launcher: &mut Launcher| {
        launcher.watch(&[text.parse().unwrap()]).unwrap();
        run(launcher, DURATION_NS)
    };
    let accesses = |events: &[Event]| -> Vec<(u64, What)> {
        let told = events.iter().filter(|event| matches!(event.what, What::Access { .. }));
        told.map(|event| (event.vtime_ns, event.what.clone())).collect()
    };
    let mut all = Vec::new();
    for (caches, lockstep) in [
        (CacheConfig::default(), false),
        (CacheConfig { translate_after: None, ..CacheConfig::default() }, false),
        (CacheConfig { translate_after: Some(0), ..CacheConfig::default() }, true),
    ] {
        let (same, events, _) = watched(&format!("{gate:#x}+16:rw"), &mut with(caches, lockstep));
        assert_eq!(same, digest, "{caches:?}");
        all.push(accesses(&events));
    }
    assert!(all[0].len() >= 10, "{:?}", all[0]);
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    for (_, what) in &all[0] {
        let What::Access { store, address, .. } = what else { unreachable!("filtered") };
        assert!(!store && (gate..gate + GATE_BYTES).contains(address), "{what:?}");
    }
    // The guest never stores to this address.
    let (_, events, _) = watched(&format!("{gate:#x}+16:w"), &mut with(CacheConfig::default(), false));
    assert_eq!(accesses(&events), []);
    let mut launcher = with(CacheConfig::default(), false);
    let error = launcher.watch(&["nobody:0x1000".parse().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("nobody"), "{error}");
    launcher.watch(&[]).unwrap();
    assert!(launcher.watching.is_none());
}

#[test]
fn the_command_line_writes_edges_and_reports_accesses() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("edges.jsonl");
    let (world, file) = (world_file(), file.to_str().unwrap().to_owned());
    let table = launcher(EngineOptions::default()).start(Seed::new(3)).unwrap().machine(0).cpu().idtr.base;
    let watch = format!("{:#x}+{GATE_BYTES}:r", table + TIMER_VECTOR * GATE_BYTES);
    let arguments =
        ["run", world.to_str().unwrap(), "--json", "--for", "100ms", "--edges", &file, "--watch", &watch];
    let output = everett(&arguments);
    assert!(output.status.success(), "{}", shown(&output));
    let told = String::from_utf8(output.stdout).unwrap();
    let records: Vec<serde_json::Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| records.iter().filter(|record| record["kind"] == kind).collect::<Vec<_>>();
    assert!(of("access").len() > 5 && of("access").iter().all(|access| access["store"] == false));
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(of("edges")[0]["edges"].as_u64(), Some(lines.lines().count() as u64));
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    // An existing file is not overwritten.
    let again = everett(&arguments);
    assert_eq!(again.status.code(), Some(2), "{}", shown(&again));
    assert!(String::from_utf8(again.stderr).unwrap().contains("edges.jsonl: the file exists"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), lines);
}
