//! Measures how fast Everett explores a cluster (Redis with Sentinel, under load and with faults), and counts how many
//! replays have the recorded trail.
//!
//! `cargo bench -p benches --bench explore [-- --json] [-- --runs N] [-- --branches N] [-- --replays N] [--
//! --strategies SEEDS] [-- --beside PROGRAM] [-- --edges]`
//!
//! `--beside PROGRAM` compares this build with another build of `everett`. In each round both make the same exploration,
//! one after the other, and the order changes from round to round. The figures are branches a minute and CPU time of
//! both, and the ratio in each round.
//!
//! `--edges` also replays the branches of each round on machines that record executed jumps (`everett coverage`), and
//! compares the CPU time with that of the exploration, both on one worker.
//!
//! `--replays N` replays N branches, each in a separate process that knows only the seed and the path. `--strategies
//! SEEDS` measures how long every strategy (way to choose the next branch) searches for its first finding, on one
//! worker, under each of SEEDS seeds.

use anyhow::Context as _;
use benches::everett::{AsEverett, everett};
use benches::host::children_cpu_s;
use benches::{Pairs, Report, Samples};
use clap::Parser;
use everett_explorer::search::strategy::StrategyKind;
use everett_host::time::Stopwatch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// World file, relative to the project's top folder.
const WORLD: &str = "examples/redis-sentinel/world.toml";
/// Second world for the comparison of strategies.
const OTHER_WORLD: &str = "examples/redis-lock/world.toml";

#[derive(Debug, Parser)]
struct Args {
    /// Number of rounds, i.e. of explorations to measure
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Number of branches of a round, and maximum number of branches until a strategy's first finding
    #[arg(long, default_value_t = 60)]
    branches: u64,
    /// Number of branches that are replayed, each in a separate process
    #[arg(long, default_value_t = 0)]
    replays: usize,
    /// Number of seeds for the comparison of strategies
    #[arg(long, default_value_t = 0)]
    strategies: u64,
    /// Compare with this program, another build of `everett`. Measures nothing else. A relative path starts at the
    /// project's top folder
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["replays", "strategies"])]
    beside: Option<PathBuf>,
    /// Measure what records of executed jumps cost
    #[arg(long, conflicts_with = "beside")]
    edges: bool,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Cargo passes this
    #[arg(long, hide = true)]
    bench: bool,
    #[command(flatten)]
    everett: AsEverett,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(end) = args.everett.run() {
        return end;
    }
    benches::end("explore", run(&args))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let mut report = Report::new("explore", args.json);
    let folder = tempfile::tempdir()?;
    let world = top().join(WORLD);
    report.note(
        "three machines with a Redis and a Sentinel each, and a client; no peer explores it on a stock host",
    );
    if let Some(other) = &args.beside {
        beside(args, &top().join(other), folder.path(), &mut report)?;
        report.print();
        return Ok(());
    }
    if args.edges {
        // Stores the boot, so that no measured exploration has to make it.
        explore(&world, &folder.path().join("boot"), 1, &["--branches", "1"])?;
    }
    let mut figures: BTreeMap<String, (&'static str, Samples)> = BTreeMap::new();
    for round in 0..args.runs {
        let run = folder.path().join(format!("round{round}"));
        let seed = round as u64 + 1;
        let branches = args.branches.to_string();
        let mut more = vec!["--branches", &branches];
        if args.edges {
            more.extend(["--jobs", "1", "--record", "0s"]);
        }
        let before = children_cpu_s().map_err(anyhow::Error::msg)?;
        let end = explore(&world, &run, seed, &more)?;
        let plain = children_cpu_s().map_err(anyhow::Error::msg)? - before;
        let mut push = |metric: &str, unit, value: f64| {
            figures.entry(metric.to_owned()).or_insert_with(|| (unit, Samples::default())).1.push(value);
        };
        let number = |key: &str| end[key].as_f64().unwrap_or(f64::NAN);
        push("branches_per_min", "1", number("branches_per_min"));
        push("vtime_s_per_cpu_s", "1", number("vtime_ns") / number("cpu_ns"));
        push("mips", "MIPS", number("executed") * 1e3 / number("cpu_ns"));
        push("cpu_s_per_branch", "s", number("cpu_ns") / 1e9 / number("run"));
        for (part, ns) in end["spent"].as_object().into_iter().flatten() {
            let name = part.trim_end_matches("_ns");
            push(&format!("{name}_share"), "%", 100.0 * ns.as_f64().unwrap_or(f64::NAN) / number("spent_ns"));
        }
        if args.edges {
            let with_edges = coverage(&run)?;
            push("explore_cpu_s", "s", plain);
            push("coverage_cpu_s", "s", with_edges);
            push("edges_ratio", "x", with_edges / plain);
        }
        if round == 0 && args.replays > 0 {
            let branches = end["branches"].as_u64().unwrap_or(0);
            let equal = replays(&run, args.replays, branches, &report)?;
            push("replays", "1", args.replays as f64);
            push("replays_equal", "1", equal as f64);
        }
    }
    for (metric, (unit, samples)) in &figures {
        report.figure(metric, unit, samples, None);
    }
    report.print();
    if args.strategies > 0 {
        strategies(args, folder.path())?;
    }
    Ok(())
}

/// Replays all branches of an exploration on one worker, on machines that record executed jumps. Returns the CPU time in
/// seconds.
fn coverage(run: &Path) -> anyhow::Result<f64> {
    let before = children_cpu_s().map_err(anyhow::Error::msg)?;
    let output = everett(&["coverage", &run.display().to_string(), "--jobs", "1"]).output()?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    anyhow::ensure!(output.status.success(), "everett coverage: {error}");
    Ok(children_cpu_s().map_err(anyhow::Error::msg)? - before)
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Explores in a separate process. Returns the last line of its output, parsed as JSON.
fn explore(world: &Path, run: &Path, seed: u64, more: &[&str]) -> anyhow::Result<serde_json::Value> {
    explore_with(everett(&[]), world, run, seed, more)
}

/// Explores with `program`, a command that starts a build of `everett`. Returns the last line of its output, parsed as
/// JSON.
fn explore_with(
    mut program: Command,
    world: &Path,
    run: &Path,
    seed: u64,
    more: &[&str],
) -> anyhow::Result<serde_json::Value> {
    program
        .args(["--json", "explore"])
        .arg(world)
        .args(["--seed", &seed.to_string(), "-o"])
        .arg(run)
        .args(more);
    let name = program.get_program().display().to_string();
    let output = program.stderr(Stdio::inherit()).output().with_context(|| name.clone())?;
    anyhow::ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "{name}: explore ended with {}",
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(serde_json::from_str(text.lines().last().unwrap_or_default())?)
}

/// Lets this build and the program `other` make the same explorations in turn.
fn beside(args: &Args, other: &Path, folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    let world = top().join(WORLD);
    let build = |ours: bool| if ours { everett(&[]) } else { Command::new(other) };
    for ours in [false, true] {
        // Stores the boot, so that no measured exploration has to make it.
        explore_with(build(ours), &world, &folder.join(format!("boot-{ours}")), 1, &["--branches", "1"])?;
    }
    let (mut speed, mut cpu, mut different) = (Pairs::default(), Pairs::default(), Vec::new());
    for round in 0..args.runs {
        let seed = round as u64 + 1;
        let measure = |ours: bool| {
            let run = folder.join(format!("round{round}-{ours}"));
            explore_with(build(ours), &world, &run, seed, &["--branches", &args.branches.to_string()])
        };
        let (ours, theirs) = if round % 2 == 0 {
            let ours = measure(true)?;
            (ours, measure(false)?)
        } else {
            let theirs = measure(false)?;
            (measure(true)?, theirs)
        };
        let number = |end: &serde_json::Value, key: &str| end[key].as_f64().unwrap_or(f64::NAN);
        let cpu_s = |end| number(end, "cpu_ns") / 1e9 / number(end, "run");
        speed.push(number(&ours, "branches_per_min"), number(&theirs, "branches_per_min"));
        cpu.push(cpu_s(&ours), cpu_s(&theirs));
        if ours["digest"] != theirs["digest"] {
            different.push(seed.to_string());
        }
    }
    report.note(&if different.is_empty() {
        format!("beside {}: all explorations have the same digest", other.display())
    } else {
        let seeds = different.join(", ");
        format!(
            "beside {}: the builds did different work, the digests differ under seed {seeds}",
            other.display()
        )
    });
    for (metric, unit, pairs) in [("branches_per_min", "1", &speed), ("cpu_s_per_branch", "s", &cpu)] {
        report.figure(metric, unit, &pairs.first, None);
        report.figure(&format!("{metric}_beside"), unit, &pairs.second, None);
        report.figure(&format!("{metric}_ratio"), "x", &pairs.ratio, None);
    }
    Ok(())
}

/// Replays branches, each in a separate process. Returns how many had the recorded trail.
fn replays(run: &Path, count: usize, branches: u64, report: &Report) -> anyhow::Result<usize> {
    let clock = Stopwatch::start();
    let folder = run.display().to_string();
    let (mut equal, mut left) = (0, Vec::new());
    for choice in (0..branches).cycle().take(count) {
        let output = everett(&["replay", &folder, &format!("b{choice}"), "-q"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if matches!(output.status.code(), Some(0 | 1)) && text.contains("on its recorded trail") {
            equal += 1;
        } else {
            left.push(format!("b{choice}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    report.note(&format!(
        "{equal} of {count} replays, in a process each and from seed and path alone, had the recorded trail; {:.0} s",
        clock.seconds()
    ));
    left.iter().for_each(|line| report.note(line));
    Ok(equal)
}

/// Measures the cost up to the first finding, and the number of states reached by then, for each strategy and seed.
///
/// Instruction counts are the same on every host, CPU times are not. Searches without a finding also add to the cost.
/// If findings come at a constant rate, the mean cost of a finding is the cost of all seeds divided by the number of
/// findings.
fn strategies(args: &Args, folder: &Path) -> anyhow::Result<()> {
    println!(
        "\n| world | strategy | found | branches to the finding, by seed | billion instructions to the finding | CPU s to the finding | states per billion instructions | states per CPU minute |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for world in [WORLD, OTHER_WORLD] {
        for strategy in StrategyKind::ALL {
            let (mut found, mut branches) = (0, Vec::new());
            let (mut billions, mut cpu_s, mut states) = (0.0, 0.0, 0.0);
            for seed in 1..=args.strategies {
                let run = folder.join(format!("{}-{strategy}-{seed}", world.replace('/', "-")));
                let most = args.branches.to_string();
                let more =
                    ["--strategy", strategy.name(), "--until-found", "--branches", &most, "--jobs", "1"];
                let end = explore(&top().join(world), &run, seed, &more)?;
                let number = |key: &str| end[key].as_f64().unwrap_or(f64::NAN);
                let hit = number("findings") > 0.0;
                found += u64::from(hit);
                let mark = if hit { "" } else { "+" };
                branches.push(format!("{}{mark}", number("branches")));
                billions += number("instructions") / 1e9;
                cpu_s += number("merged_cpu_ns") / 1e9;
                states += number("states");
            }
            let each = (found as f64).max(1.0);
            println!(
                "| {} | {strategy} | {found} of {} | {} | {:.1} | {:.0} | {:.1} | {:.0} |",
                world.split('/').nth(1).unwrap_or(world),
                args.strategies,
                branches.join(", "),
                billions / each,
                cpu_s / each,
                states / billions,
                states * 60.0 / cpu_s
            );
        }
    }
    Ok(())
}
