//! Measures how often `everett causality` names the right step. The world is a cluster of Redis with Sentinel and a
//! planted defect: the client sends one number in 256 to a replica, which accepts the number and later loses it. The
//! finding names the lost number. The right step is the sending of this number.
//!
//! `cargo bench -p benches --bench causality [-- --seeds N] [-- --keep DIR] [-- --json]`
//!
//! For each seed the bench explores until a write is lost, runs `everett causality`, and checks whether it names the
//! right step. `--keep` keeps run directories in a folder, and reuses complete ones.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, ensure};
use benches::everett::{AsEverett, everett};
use clap::Parser;
use everett_explorer::causality::{Causality, CausalityEnd, Jump};
use serde::Serialize;
use serde_json::Value;

/// World file, relative to the project's top folder.
const WORLD: &str = "examples/redis-sentinel/careless.toml";
/// Maximum number of branches of an exploration. One branch in twelve shows the loss.
const BRANCHES: &str = "600";
/// Maximum distance between two neighbouring vtimes at which `everett causality` forks the finding's timeline, in
/// nanoseconds. The command names an interval between two of these vtimes. The bench also accepts an interval that
/// begins up to this much before the client reports that it sends the number. The reason: the client draws the receiver
/// at random right after this report, and a fork shortly before the draw can no longer change the draw.
const GRID_NS: u64 = 1_000_000;

#[derive(Debug, Parser)]
struct Args {
    /// Number of seeds, from 1
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Folder for run directories [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Number of branches that run in parallel, in `everett explore` and in `everett causality`
    #[arg(long, default_value_t = 2)]
    jobs: u16,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Cargo passes this
    #[arg(long, hide = true)]
    bench: bool,
    #[command(flatten)]
    everett: AsEverett,
}

/// Result for a seed.
#[derive(Debug, Serialize)]
struct Row {
    bench: &'static str,
    seed: u64,
    /// Number of branches until the write was lost.
    branches: u64,
    /// Number that was lost.
    lost: u64,
    futures: u64,
    why: CausalityEnd,
    from_ns: u64,
    to_ns: u64,
    /// Posterior probability that the interval contains the step at which the finding became likely (the jump), in
    /// parts per million.
    probability_ppm: u32,
    step: String,
    /// True if the interval from `from_ns` to `to_ns` lies between the sending of the lost number and its
    /// acknowledgement, and contains no further vtime at which `everett causality` could fork. The interval may begin
    /// up to [`GRID_NS`] before the sending.
    right: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(end) = args.everett.run() {
        return end;
    }
    benches::end("causality", run(&args))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = args.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    if !args.json {
        println!("host: {}\n", benches::host::processor());
        println!(
            "| seed | branches | lost number | futures | step | probability | right |\n|---|---|---|---|---|---|---|"
        );
    }
    let (mut named, mut right) = (0u64, 0u64);
    for seed in 1..=args.seeds {
        let row = of_seed(args, &folder, seed).with_context(|| format!("seed {seed}"))?;
        named += u64::from(row.why == CausalityEnd::Named);
        right += u64::from(row.why == CausalityEnd::Named && row.right);
        if args.json {
            println!("{}", serde_json::to_string(&row)?);
            continue;
        }
        println!(
            "| {seed} | {} | {} | {} | {} | {:.1} % | {} |",
            row.branches,
            row.lost,
            row.futures,
            row.step,
            f64::from(row.probability_ppm) / 1e4,
            if row.right { "yes" } else { "no" }
        );
    }
    if !args.json {
        println!("\nnamed in {named} of {} searches, the right one in {right}; stated error 5 %", args.seeds);
    }
    Ok(())
}

fn of_seed(args: &Args, folder: &Path, seed: u64) -> anyhow::Result<Row> {
    let run = folder.join(format!("seed-{seed}"));
    let file = run.join("causality-1.json");
    let (name, jobs) = (run.display().to_string(), args.jobs.to_string());
    if !file.exists() {
        let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(WORLD).display().to_string();
        let seed = seed.to_string();
        let arguments = [
            "explore",
            &world,
            "--seed",
            &seed,
            "--until-found",
            "--branches",
            BRANCHES,
            "--jobs",
            &jobs,
            "--record",
            "0s",
            "-o",
            &name,
        ];
        started(&arguments)?;
        started(&["causality", &name, "1", "--jobs", &jobs])?;
    }
    let causality = Causality::parse(&std::fs::read_to_string(&file)?)?;
    let end: Value = serde_json::from_str(&std::fs::read_to_string(run.join("end.json"))?)?;
    let about: Value = serde_json::from_str(&std::fs::read_to_string(run.join("findings/1/finding.json"))?)?;
    let text = about["text"].as_str().context("the finding has no text")?;
    let (lost, begin_ns, end_ns) = lost(text).with_context(|| format!("another finding: {text}"))?;
    let jump = causality.jump.as_ref();
    let within =
        |jump: &Jump| jump.from_ns + GRID_NS >= begin_ns && jump.to_ns <= end_ns && jump.is_narrowest;
    Ok(Row {
        bench: "causality",
        seed,
        branches: end["branches"].as_u64().context("no number of branches")?,
        lost,
        futures: causality.futures,
        why: causality.why,
        from_ns: jump.map_or(0, |jump| jump.from_ns),
        to_ns: jump.map_or(0, |jump| jump.to_ns),
        probability_ppm: jump.map_or(0, |jump| jump.probability_ppm),
        step: jump.map_or_else(|| "none".to_owned(), step),
        right: jump.is_some_and(within),
    })
}

/// Returns the first step in the interval that `everett causality` names. If the interval has no step, returns the next
/// step after the interval, with the prefix "before", because the interval lies before that step.
fn step(jump: &Jump) -> String {
    let step = jump.steps.first().or(jump.steps_after.first());
    let text = step.map_or("", |step| step.text.trim());
    let next = if jump.steps.is_empty() { "before " } else { "" };
    format!("{next}`{}`", text.split_once(' ').map_or(text, |(_, text)| text.trim()))
}

/// Returns the lost number that a finding names, and the vtimes at which it was sent and acknowledged, in
/// nanoseconds.
fn lost(text: &str) -> Option<(u64, u64, u64)> {
    let rest = text.strip_prefix("acknowledged add of ")?;
    let (number, rest) = rest.split_once(' ')?;
    let (_, times) = rest.split_once('(')?;
    let (begin, rest) = times.split_once("s to ")?;
    let (end, _) = rest.split_once("s,")?;
    let ns = |seconds: &str| Some((seconds.parse::<f64>().ok()? * 1e9).round() as u64);
    Some((number.parse().ok()?, ns(begin)?, ns(end)?))
}

fn started(arguments: &[&str]) -> anyhow::Result<()> {
    let status = everett(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.code() == Some(1), "everett {} ended with {status}", arguments.join(" "));
    Ok(())
}
