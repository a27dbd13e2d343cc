//! Measures the cost of a world of four machines, idle and under load, in CPU seconds of the host per second of
//! vtime.
//!
//! `cargo bench -p benches --bench world [-- --json] [-- --runs N]`

use benches::{Options, Report, Samples, host};
use clap::Parser;
use everett_host::interrupt::Interrupt;
use everett_remote_client::Online;
use everett_session::images;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::launch::Launcher;
use everett_session::world::conversation::Phase;
use everett_session::world::timeline::Timeline;
use everett_session::world::watching::Watched;
use everett_streams::Seed;
use everett_vmm::machine::Until;
use everett_world_file as world_file;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Number of machines.
const NODES: usize = 4;
/// Vtime for which an idle world is measured, in nanoseconds.
const IDLE_NS: u64 = 60_000_000_000;
/// Vtime for which a loaded world is measured, in nanoseconds.
const LOAD_NS: u64 = 2_000_000_000;
/// Vtime before the measurement, in which programs start, in nanoseconds.
const WARM_UP_NS: u64 = 500_000_000;
const NS_PER_S: f64 = 1e9;
/// Linear address that no program accesses.
const UNUSED_ADDRESS: u64 = 0x1000;

fn main() -> ExitCode {
    benches::end("world", run(&Options::parse()))
}

fn run(options: &Options) -> anyhow::Result<()> {
    let mut report = Report::new("world", options.json);
    report.note(&format!(
        "{NODES} machines: idle; each with an idle Redis; each with a Redis, the first one under load from the other machines"
    ));
    let [mut idle, mut served, mut load, mut mips, mut edges, mut watched] =
        [const { Vec::new() }; 6].map(Samples::from);
    for round in 1..=options.runs {
        report.note(&format!("round {round} of {}", options.runs));
        idle.push(cost(&world(Work::Nothing), IDLE_NS, Instrument::None)?.0);
        served.push(cost(&world(Work::IdleServers), IDLE_NS, Instrument::None)?.0);
        let (seconds, instructions_per_s) = cost(&world(Work::Load), LOAD_NS, Instrument::None)?;
        load.push(seconds);
        mips.push(instructions_per_s / 1e6);
        edges.push(cost(&world(Work::Load), LOAD_NS, Instrument::Edges)?.0);
        watched.push(cost(&world(Work::Load), LOAD_NS, Instrument::Watch)?.0);
    }
    report.figure("idle_cpu_s_per_vtime_s", "s", &idle, None);
    report.figure("idle_servers_cpu_s_per_vtime_s", "s", &served, None);
    report.figure("load_cpu_s_per_vtime_s", "s", &load, None);
    report.figure("load_mips", "MIPS", &mips, None);
    let without = Some(("without", &load));
    report.figure("load_edges_cpu_s_per_vtime_s", "s", &edges, without);
    report.figure("load_watch_cpu_s_per_vtime_s", "s", &watched, without);
    report.print();
    Ok(())
}

/// Work of the machines during a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    IdleServers,
    Load,
}

/// Instrument that observes the machines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instrument {
    None,
    /// Records executed edges of code: branch instructions, and the addresses to which they went.
    Edges,
    /// Watches a word that no program accesses, on each machine.
    Watch,
}

/// Returns the text of the world file.
fn world(work: Work) -> String {
    let mut text = String::new();
    for node in 0..NODES {
        let _ = write!(
            text,
            "[[node]]\nname = \"n{node}\"\nmemory = \"96M\"\npackages = [\"redis-server\", \"redis-tools\"]\n"
        );
        if work != Work::Nothing {
            text += "service = [\"redis-server\", \"--bind\", \"0.0.0.0\", \"--protected-mode\", \"no\", \"--save\", \"\"]\n";
        }
    }
    for node in (1..NODES).filter(|_| work == Work::Load) {
        let _ = write!(
            text,
            "[[workload.driver]]\nname = \"load{node}\"\nnode = \"n{node}\"\n\
             argv = [\"redis-benchmark\", \"-h\", \"n0\", \"-c\", \"4\", \"-n\", \"100000000\", \"-t\", \"set\", \"-q\"]\n"
        );
    }
    text
}

/// Runs a world from *ready* on, i.e. from the time when all of its services are up. Returns CPU seconds of the host
/// per second of vtime, and instructions per CPU second.
fn cost(text: &str, for_ns: u64, instrument: Instrument) -> anyhow::Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let world = world_file::parse(text, &folder.path().join("world.toml"))?;
    let image = images::get(&Quiet, &world, &Online, &Interrupt::default())?;
    let mut options = EngineOptions::default();
    options.caches.edges = instrument == Instrument::Edges;
    let mut launcher = Launcher::new(world, image.files, options);
    if instrument == Instrument::Watch {
        let watched = |node| format!("n{node}:{UNUSED_ADDRESS:#x}:rw").parse().map_err(anyhow::Error::msg);
        let watched: Vec<Watched> = (0..NODES).map(watched).collect::<anyhow::Result<_>>()?;
        launcher.watch(&watched)?;
    }
    let mut timeline: Timeline = launcher.start(Seed::new(1))?;
    timeline.end_after(u64::MAX);
    timeline.run_to(Phase::Running, &mut |_, _| true)?;
    timeline.run(&Until::vtime(timeline.vtime() + WARM_UP_NS));
    let (start_s, start) = (host::cpu_s(), timeline.icount());
    timeline.run(&Until::vtime(timeline.vtime() + for_ns));
    let seconds = host::cpu_s() - start_s;
    let instructions = (timeline.icount() - start) as f64;
    Ok((seconds / (for_ns as f64 / NS_PER_S), instructions / seconds))
}
