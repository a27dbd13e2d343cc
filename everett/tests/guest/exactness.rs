//! Runs of one timeline are equal to the bit, different seeds give different timelines, and planted nondeterminism is
//! found.

use std::sync::{Arc, Mutex};

use everett_cpu::CacheConfig;
use everett_explorer::plan::Plan;
use everett_host::interrupt::Interrupt;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::run::restarts::Nodes;
use everett_session::world::timeline::restart_point::RestartPoint;
use everett_session::world::timeline::{Faults, Restarts, SessionState};
use everett_streams::{BootSeed, Seed};
use everett_vmm::divergence::bisect::{Cause, Side, first_difference};
use everett_vmm::engine::soft::FlushSchedule;
use everett_vmm::leak::Leak;
use everett_vmm::machine::{Machine, Until};

use crate::support::{
    MS, booted, cold_launcher, everett, image, job, launcher, lines, run_to_end, shown, under, world_file,
};

/// Duration of each run. The long form of this test is `everett verify --for 20s --runs 20`.
const DURATION_NS: u64 = 1_300 * MS;
const RUNS: u32 = 4;

#[test]
fn a_server_under_load_repeats_and_depends_on_the_seed() {
    let run = |seed, runs| {
        let report = job(EngineOptions::default(), seed, DURATION_NS, runs);
        let report = report.run(&Interrupt::default(), &|_, _| {}).unwrap();
        assert_eq!(report.mismatch, None, "seed {seed}");
        assert_eq!(report.runs.len(), runs as usize);
        assert!(report.runs.iter().all(|result| result.findings == 0), "{:?}", report.events);
        report
    };
    // In half of these runs, the CPU drops its caches at random times.
    let one = run(1, RUNS);
    let printed = lines(&one.events, "load");
    assert!(printed.len() > 3, "{printed:?}");
    let other = run(2, 1);
    assert_ne!(one.runs[0].trail, other.runs[0].trail);
    let others = lines(&other.events, "load");
    assert_eq!(
        printed[0], others[0],
        "the server draws its run ID during the boot, which is the same for all seeds"
    );
    assert_ne!(printed[1], others[1], "the data that the driver stores depends on the seed");
}

#[test]
fn small_caches_change_nothing() {
    let CacheConfig { tlb_entries, block_entries, .. } = CacheConfig::default();
    let small = EngineOptions {
        caches: CacheConfig {
            tlb_entries: tlb_entries / 16,
            block_entries: block_entries / 16,
            ..CacheConfig::default()
        },
        ..EngineOptions::default()
    };
    let flushed = EngineOptions {
        flushes: Some(FlushSchedule { interval: 20_000, seed: 5 }),
        ..EngineOptions::default()
    };
    let trail = |options| {
        let report = job(options, 1, 50 * MS, 1).run(&Interrupt::default(), &|_, _| {}).unwrap();
        (report.runs[0].trail, report.runs[0].instructions)
    };
    let normal = trail(EngineOptions::default());
    assert_eq!(trail(small), normal);
    assert_eq!(trail(flushed), normal);
}

/// Interpreted and translated code give the same trail. In lockstep, a machine executes both and compares them. It
/// finds a difference only if a defect is planted.
#[test]
fn translated_code_does_what_interpreted_code_does() {
    let trail = |options| {
        let report = job(options, 1, 150 * MS, 1).run(&Interrupt::default(), &|_, _| {}).unwrap();
        (report.runs[0].trail, report.runs[0].instructions)
    };
    let interpreted = EngineOptions {
        caches: CacheConfig { translate_after: None, ..CacheConfig::default() },
        ..EngineOptions::default()
    };
    let eagerly = EngineOptions {
        caches: CacheConfig { translate_after: Some(0), ..CacheConfig::default() },
        ..EngineOptions::default()
    };
    let lockstep = EngineOptions { lockstep: true, ..eagerly };
    let normal = trail(EngineOptions::default());
    assert_eq!(trail(interpreted), normal);
    assert_eq!(trail(eagerly), normal);
    assert_eq!(trail(lockstep), normal);
    // Only the translating side has the planted defect.
    let leaky = EngineOptions { stale_translations: true, ..lockstep };
    assert_ne!(trail(leaky), normal);
}

#[test]
fn a_timeline_in_a_thousand_pieces_is_the_same() {
    let launcher = launcher(EngineOptions::default());
    let mut whole = launcher.start(Seed::new(4)).unwrap();
    let (trail, expected) = run_to_end(&mut whole, 350 * MS);
    let end_ns = whole.machine(0).vtime();

    // This timeline stops at random vtimes and instruction counts. At each stop the test takes a digest, and replaces
    // the session (all state outside the machines) by its stored form.
    let mut pieces = launcher.start(Seed::new(4)).unwrap();
    pieces.end_after(350 * MS);
    let mut random = 12_345u64;
    let mut events = Vec::new();
    for piece in 0.. {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let step = (random >> 33) % (MS / 2);
        let (vtime, icount) = (pieces.machine(0).vtime(), pieces.machine(0).icount());
        if piece % 2 == 0 {
            pieces.run(&Until::vtime((vtime + step).min(end_ns)));
        } else {
            pieces.run(&Until { vtime: end_ns, ..Until::icount(icount + step) });
        }
        pieces.digest();
        events.append(&mut pieces.take_events());
        let stored = pieces.save().to_bytes().unwrap();
        pieces.restore(SessionState::from_bytes(&stored).unwrap()).unwrap();
        if pieces.machine(0).vtime() >= end_ns {
            assert!(piece > 500, "the run had only {piece} pieces");
            break;
        }
    }
    assert_eq!(pieces.trail().digest(), trail.digest());
    assert_eq!(events, expected);
}

#[test]
fn an_idle_minute_costs_next_to_nothing() {
    let mut launcher = cold_launcher(EngineOptions::default());
    launcher.world.nodes[0].services.clear();
    launcher.world.workload = Default::default();
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.run(&Until::vtime(10_000 * MS));
    let before = timeline.icount();
    timeline.run(&Until::vtime(70_000 * MS));
    let instructions = timeline.icount() - before;
    // A busy minute has 60 billion instructions. The limit for an idle minute, 20 million, is a fifth of a second of
    // host time at 100 million instructions per second.
    assert!(instructions < 20_000_000, "{instructions} instructions in an idle minute");
    assert_eq!(timeline.findings(), 0);
}

/// Runs `everett verify` with a planted leak, i.e. a deliberate defect that makes runs differ. The command must find
/// it. The leaks `host-time` and `lapic` depend on the host's clock. `host-time` falsifies MMIO reads hundreds
/// of times per run. `lapic` rarely loses an interrupt, so its test has more runs. For each leak, the probability that
/// all runs agree is below one in a million.
fn planted(leak: &str, runs: &str, more: &[&str]) {
    image();
    let world = world_file();
    let world = world.to_str().unwrap();
    let arguments =
        ["verify", world, "--seed=1", "--for=800ms", "--runs", runs, "--jobs=2", "--json", "--plant", leak];
    let output = everett(&[&arguments, more].concat());
    assert_eq!(output.status.code(), Some(1), "{leak} is not caught: {}", shown(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\"kind\":\"mismatch\""), "{}", shown(&output));
    let located = text.lines().find(|line| line.contains("\"kind\":\"divergence\""));
    let line = located.unwrap_or_else(|| panic!("{leak} is not located: {}", shown(&output)));
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    assert!(record["instruction"].as_u64().unwrap() > 0);
    assert!(!record["differences"].as_array().unwrap().is_empty(), "{line}");
    let cause = record["cause"].as_str().unwrap();
    assert_eq!(leak == "tlb", cause.starts_with("the CPUs computed differently"), "{cause}");
}

#[test]
fn host_time_in_an_mmio_read_is_found() {
    planted("host-time", "2", &[]);
}

#[test]
fn a_lost_lapic_bit_is_found() {
    // The guest's timer expires about 35 times in a run, and more than half of the runs lose no interrupt. Verification
    // stops at the first run that loses one.
    planted("lapic", "32", &[]);
}

#[test]
fn a_stale_translation_is_found() {
    // With `--cold` the runs start at power-on. If they started from *ready* (all services are up), the leak would
    // crash the guest at once, in the same way in every run.
    planted("tlb", "2", &["--cold"]);
}

/// Implementation of [`Restarts`], the trait that makes the machines of restarted nodes. `Leaky` plants a leak in
/// machines that restart cold, i.e. boot from power-on. A restarted machine counts instructions from zero, but the
/// search for the leak must report the instruction count of the node's whole life.
struct Leaky(Nodes);

impl Restarts for Leaky {
    fn warm(&self, node: usize) -> Result<&RestartPoint, String> {
        self.0.warm(node)
    }
    fn cold(
        &self,
        node: usize,
        boot_seed: BootSeed,
        world_ns: u64,
        options: &EngineOptions,
    ) -> Result<Machine, String> {
        let leak = Leak { mmio: Some(|| u32::MAX), ..Leak::default() };
        self.0.cold(node, boot_seed, world_ns, &EngineOptions { leak, ..*options })
    }
}

/// Implementation of [`Restarts`] that records the cache sizes of restarted engines.
struct Watched(Nodes, Mutex<Vec<CacheConfig>>);

impl Restarts for Watched {
    fn warm(&self, node: usize) -> Result<&RestartPoint, String> {
        self.0.warm(node)
    }
    fn cold(
        &self,
        node: usize,
        boot_seed: BootSeed,
        world_ns: u64,
        options: &EngineOptions,
    ) -> Result<Machine, String> {
        self.1.lock().unwrap().push(options.caches);
        self.0.cold(node, boot_seed, world_ns, options)
    }
}

/// The cache sizes of a run also apply to machines that cold restarts make.
#[test]
fn a_cold_restart_has_the_engine_of_its_run() {
    const PLAN: &str =
        r#"{"at": "1ms", "for": "1ms", "fault": "power_loss", "node": "a", "restart": "cold"}"#;
    let usual = launcher(EngineOptions::default());
    let plan = Plan::parse(PLAN, &usual.world.names()).unwrap();
    let watched = Arc::new(Watched(Nodes::new(usual.clone(), Arc::default()), Mutex::default()));
    let faults = Some(Faults::new(plan, Arc::clone(&watched) as Arc<dyn Restarts>));
    let small = CacheConfig { tlb_entries: 64, block_entries: 4096, ..CacheConfig::default() };
    for caches in [small, CacheConfig::default()] {
        let options = EngineOptions { caches, ..EngineOptions::default() };
        let mut timeline =
            Launcher { options, faults: faults.clone(), ..usual.clone() }.start(Seed::new(1)).unwrap();
        timeline.run(&Until::vtime(timeline.vtime() + 3 * MS));
        assert_eq!(watched.1.lock().unwrap().pop(), Some(caches));
    }
}

#[test]
fn a_leak_after_a_restart_is_located_to_the_instruction() {
    const PLAN: &str =
        r#"{"at": "10ms", "for": "5ms", "fault": "power_loss", "node": "a", "restart": "cold"}"#;
    let points = booted().restart.clone().unwrap();
    let sound = under(&launcher(EngineOptions::default()), &points, PLAN);
    let (plan, nodes) = (sound.faults.as_ref().unwrap().plan(), Nodes::new(sound.clone(), points));
    let leaky = Faults::new(plan.clone(), Arc::new(Leaky(nodes)));
    let leaky = Launcher { faults: Some(leaky), ..sound.clone() };
    let start = |side| if side == Side::A { sound.start(Seed::new(1)) } else { leaky.start(Seed::new(1)) };
    let before = {
        let mut timeline = sound.start(Seed::new(1)).unwrap();
        timeline.run(&Until::vtime(timeline.vtime() + 12 * MS));
        timeline.icount()
    };

    let found = first_difference(&mut |side| start(side), 3_000 * MS, 100 * MS).unwrap();
    let found = found.expect("the two timelines differ");
    assert!(matches!(found.cause, Cause::Input { .. }), "{found}");
    assert!(found.icount > before, "{found}");
    let digests = |more| {
        [Side::A, Side::B].map(|side| {
            let mut timeline = start(side).unwrap();
            timeline.run(&Until { vtime: 3_000 * MS, ..Until::icount(found.icount + more) });
            timeline.digest()
        })
    };
    let ([a, b], [a_after, b_after]) = (digests(0), digests(1));
    assert_eq!(a, b, "{found}");
    assert_ne!(a_after, b_after, "{found}");
}

/// `everett verify` prints the instructions of each run and of all runs. All are counted from the moment at which the
/// runs start, and the output names this moment.
#[test]
fn verify_counts_from_where_its_runs_start() {
    image();
    let arguments =
        ["verify", world_file().to_str().unwrap(), "--for", "300ms", "--runs", "2", "--jobs", "2"]
            .map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = everett(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_runs: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with("run "))
        .filter_map(|line| line.strip_suffix(" instructions")?.rsplit(' ').next()?.parse().ok())
        .collect();
    assert_eq!(of_runs.len(), 2, "{text}");
    let total = text.split("all trails are equal; ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let total: f64 = total.parse().unwrap();
    assert!((of_runs.iter().sum::<f64>() / 1e9 - total).abs() < 0.011, "{text}");
    assert!(text.contains("2 runs, 2 at a time, each from the stored boot to 300 ms after ready"), "{text}");
    assert!(text.contains("counted from the stored boot"), "{text}");
}
