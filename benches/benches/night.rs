//! Measures an exploration without the execution of branches: the search, the journal (the results on the disk), and
//! the commands that read the journal. The world is scripted, i.e. the result of a branch is computed from its path.
//!
//! `cargo bench -p benches --bench night [-- --branches 1000000] [-- --strategy NAME] [-- --whole] [-- --json]`
//!
//! The exploring process is killed (`kill -9`) shortly before its end, and the exploration is resumed. Then `everett
//! findings`, `everett report` and `everett show --digest` read the results.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::Context;
use benches::everett::{AsEverett, everett, this};
use benches::night::{self, Sample, Scripted};
use benches::{Report, Samples};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use clap::Parser;
use everett_explorer::search::ForkPoint;
use everett_explorer::search::strategy::StrategyKind;
use everett_host::time::Stopwatch;

/// Number of branches of a small tree. The bench measures how long it takes to choose the next branch in this tree, and
/// in the tree of the whole exploration.
const FEW: u64 = 1_000;
/// Number of times that one measurement chooses a branch. The measurement gives the mean duration of a choice.
const CHOICES: u32 = 100_000;
/// Number of samples per exploration. A sample is the CPU time of the search so far, and the memory of the process.
const SAMPLES: u64 = 20;

#[derive(Debug, Parser)]
struct Args {
    /// Number of branches
    #[arg(long, default_value_t = 20_000)]
    branches: u64,
    /// Strategy that chooses branches
    #[arg(long, default_value = "novelty")]
    strategy: StrategyKind,
    /// Also explore without a kill, and compare the digests
    #[arg(long)]
    whole: bool,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Cargo passes this
    #[arg(long, hide = true)]
    bench: bool,
    /// Explore in this folder (the bench starts its exploring process with this option)
    #[arg(long, hide = true)]
    explore: Option<PathBuf>,
    #[command(flatten)]
    everett: AsEverett,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(end) = args.everett.run() {
        return end;
    }
    match &args.explore {
        Some(folder) => benches::end("night", explore(&args, folder)),
        None => benches::end("night", run(&args)),
    }
}

/// Explores, and prints its progress: `begun` after the first result, `at` after each thousand results, a line for each
/// sample, and the final figures.
fn explore(args: &Args, folder: &Path) -> anyhow::Result<()> {
    let clock = Stopwatch::start();
    let mut journal = night::journal(folder, args.strategy)?;
    let mut scripted = Scripted::new(args.branches / SAMPLES);
    scripted.on_result = Box::new(move |results| {
        if results == 1 {
            println!("begun {}", clock.seconds());
        }
        if results.is_multiple_of(1_000) {
            println!("at {results}");
        }
        let _ = std::io::stdout().flush();
    });
    scripted.on_sample = Box::new(|Sample { branches, cpu_ns, resident_bytes }| {
        println!("sample {branches} {cpu_ns} {resident_bytes}");
    });
    let outcome = scripted.explore(Some(&mut journal), args.strategy, args.branches)?;
    println!("memory {}", benches::host::resident_bytes().map_err(anyhow::Error::msg)?);
    println!("choice {}", choice_ns(&outcome.tree, args.strategy));
    journal.finish(&outcome.merged.end(outcome.why, 0))?;
    println!("digest {}", outcome.merged.digest());
    Ok(())
}

/// Returns the mean time that choosing the next branch of a tree takes, in nanoseconds.
fn choice_ns(tree: &everett_explorer::search::Tree, strategy: StrategyKind) -> f64 {
    let strategy = strategy.strategy();
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let clock = Stopwatch::start();
    let root = (0..CHOICES).filter(|_| strategy.choose(tree, 1_000_000, &mut rng) == ForkPoint::Root).count();
    std::hint::black_box(root);
    clock.seconds() * 1e9 / f64::from(CHOICES)
}

/// Figures that the exploring process prints.
struct Told {
    /// Seconds until the first result.
    begun: f64,
    samples: Vec<(f64, f64, f64)>,
    memory: f64,
    choice: f64,
    digest: String,
}

/// Explores in a separate process, and kills the process after `kill_at` results.
fn explored(args: &Args, folder: &Path, kill_at: u64) -> anyhow::Result<Told> {
    let branches = args.branches.to_string();
    let folder = folder.display().to_string();
    let strategy = args.strategy.name();
    let mut child = this(&["--explore", &folder, "--branches", &branches, "--strategy", strategy])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut told = Told { begun: 0.0, samples: Vec::new(), memory: 0.0, choice: 0.0, digest: String::new() };
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line?;
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let numbers: Vec<f64> = words.clone().filter_map(|word| word.parse().ok()).collect();
        match (what, numbers.as_slice()) {
            ("begun", [seconds]) => told.begun = *seconds,
            ("at", [results]) if *results >= kill_at as f64 => child.kill()?,
            ("sample", [branches, cpu_ns, bytes]) => told.samples.push((*branches, *cpu_ns, *bytes)),
            ("memory", [bytes]) => told.memory = *bytes,
            ("choice", [ns]) => told.choice = *ns,
            ("digest", _) => told.digest = words.next().unwrap_or_default().to_owned(),
            _ => {}
        }
    }
    let status = child.wait()?;
    anyhow::ensure!(status.success() || kill_at < u64::MAX, "the exploration ended with {status}");
    Ok(told)
}

fn run(args: &Args) -> anyhow::Result<()> {
    let mut report = Report::new("night", args.json);
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let branches = args.branches as f64;
    report.note(&format!("{} branches of a scripted world, strategy {}", args.branches, args.strategy));
    let few = Scripted::new(FEW).explore(None, args.strategy, FEW.min(args.branches))?;
    let mut figure = |metric: &str, unit, value: f64| {
        report.figure(metric, unit, &Samples::from(vec![value]), None);
    };
    figure("choice_at_the_beginning", "ns", choice_ns(&few.tree, args.strategy));
    let clock = Stopwatch::start();
    let killed = explored(args, &run, args.branches - (args.branches / 100).max(1_000).min(args.branches))?;
    figure("until_killed", "s", clock.seconds());
    let told = explored(args, &run, u64::MAX)?;
    figure("resumed", "s", told.begun);
    figure("choice_at_the_end", "ns", told.choice);
    figure("resident_at_the_end", "MiB", told.memory / f64::from(1 << 20));
    figure("resident_per_branch", "B", told.memory / branches);
    let disk = std::fs::metadata(run.join("branches.bin"))?.len();
    figure("disk_per_branch", "B", disk as f64 / branches);
    let name = run.display().to_string();
    for command in [["findings", name.as_str()].as_slice(), &["report", &name], &["show", &name, "--digest"]]
    {
        let clock = Stopwatch::start();
        let output = everett(command).output()?;
        anyhow::ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command:?} ended with {}",
            output.status
        );
        figure(command.first().copied().unwrap_or_default(), "s", clock.seconds());
        if command.first() == Some(&"show") {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            anyhow::ensure!(text.starts_with(&told.digest), "{text} is not the digest {}", told.digest);
        }
    }
    let cpu = |from: usize, to: usize| -> Option<f64> {
        let ((a, a_ns, _), (b, b_ns, _)) = (killed.samples.get(from)?, killed.samples.get(to)?);
        Some((b_ns - a_ns) / (b - a) / 1e3)
    };
    let last = killed.samples.len().saturating_sub(1);
    if let (Some(first), Some(end)) = (cpu(0, 1), cpu(last.saturating_sub(1), last)) {
        figure("search_per_branch_at_the_beginning", "us", first);
        figure("search_per_branch_at_the_end", "us", end);
    }
    for (branches, _, bytes) in killed.samples.iter().step_by((SAMPLES / 4) as usize) {
        report.note(&format!("{branches} branches: {:.0} MiB resident", bytes / f64::from(1 << 20)));
    }
    if args.whole {
        let whole = explored(args, &folder.path().join("whole"), u64::MAX)?;
        anyhow::ensure!(whole.digest == told.digest, "the killed exploration has another digest");
        report.note("an exploration that was not killed has the same digest");
    }
    report.print();
    Ok(())
}
