//! `everett verify`: runs one timeline several times, and finds the first instruction at which two runs differ.

use std::num::NonZero;

use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::{self, Vtime, show_duration_ns};
use everett_session::guest::symbols;
use everett_session::machines::engines::Engine;
use everett_session::run::bound;
use everett_session::run::verify::{Job, Mismatch, RunResult, VerifyReport};
use everett_session::world::identity::Identity;
use everett_vmm::divergence::trail::TRAIL_INTERVAL_NS;
use everett_vmm::divergence::{Cause, Divergence, Side, first_difference};
use everett_world_file::Clock;
use serde::Serialize;

use super::Outcome;
use super::common::{self, Prepared};
use super::engine_choice::EngineArgs;
use super::engine_options::engine_options;
use super::timeline::TimelineArgs;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, style};

/// `everett verify`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The timeline
    #[command(flatten)]
    pub timeline: TimelineArgs,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Vtime that the workload runs after all nodes are ready
    #[arg(
        long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "20s",
        display_order = 3
    )]
    pub duration_ns: u64,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub runs: u32,
    /// Number of runs in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Record<'a> {
    /// First line, printed before the first run.
    Begin {
        runs: u32,
        jobs: u16,
        from: &'a str,
    },
    /// Result of a run. `instructions` counts from power-on, `executed` from the moment at which the run started.
    Run {
        run: u32,
        trail: String,
        trail_points: usize,
        instructions: u64,
        executed: u64,
        cpu_ns: u64,
        vtime_ns: u64,
        findings: u64,
    },
    Mismatch {
        run: u32,
        reference: u32,
        vtime_ns: u64,
    },
    Divergence(DivergenceRecord<'a>),
    End(End<'a>),
}

#[derive(Serialize)]
struct DivergenceRecord<'a> {
    node: &'a str,
    instruction: u64,
    vtime_ns: u64,
    rip: [String; 2],
    cause: String,
    differences: Vec<[&'a str; 3]>,
}

#[derive(Serialize)]
struct End<'a> {
    path: &'a str,
    clean_runs: u32,
    /// Upper bound on the probability that a run shows nondeterminism. The bound holds with the confidence in the field
    /// `confidence`.
    leak_probability_below: f64,
    confidence: f64,
    /// Total number of instructions that the runs executed, each counted from the moment at which it started.
    executed: u64,
    cpu_ns: u64,
    host_seconds: f64,
    mips: f64,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let world = common::world(&args.timeline)?;
    let engine = Engine::choose(args.engine.asked(), world.clock, world.cpu)?;
    let plan = common::plan(args.timeline.faults.as_deref(), &world)?;
    let options = engine.options(engine_options(&args.timeline.hidden)?);
    let interrupt = Interrupt::install()?;
    let mut prepared = common::prepare(ui, world, options, &interrupt)?;
    common::announce_engine(ui, &engine)?;
    let failed = prepared.start_as_asked(ui, &args.timeline, Some(args.duration_ns), &interrupt)?;
    if let Some(failed) = failed {
        // The failed boot is an error here. To compare failing boots, the operator starts the runs at power-on with
        // `--cold`.
        return Err(failed.error.into());
    }
    prepared.apply_faults(ui, plan, &interrupt)?;
    let seed = prepared.seed(args.timeline.seed);
    let Prepared { launcher, identity, .. } = prepared;
    let jobs = args.jobs.and_then(NonZero::new).unwrap_or_else(|| default_jobs(args.runs));
    let job = Job { launcher, seed, duration_ns: args.duration_ns, runs: args.runs, jobs };
    let outcome = verify(ui, &job, &identity, &interrupt)?.0;
    common::warn_of_engine(ui, &engine)?;
    Ok(outcome)
}

/// Returns the default number of parallel runs: one per core, but at most `runs`.
pub(super) fn default_jobs(runs: u32) -> NonZero<u16> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = cores.min(usize::try_from(runs).unwrap_or(usize::MAX));
    u16::try_from(jobs).ok().and_then(NonZero::new).unwrap_or(NonZero::<u16>::MIN)
}

/// Runs the job and prints its results. If runs differ, finds the first instruction at which they do.
pub(super) fn verify(
    ui: &Ui,
    job: &Job,
    identity: &Identity,
    interrupt: &Interrupt,
) -> anyhow::Result<(Outcome, VerifyReport)> {
    let clock = Stopwatch::start();
    tell_beginning(ui, job)?;
    let report = run_with_bar(ui, job, interrupt)?;
    let clock_mode = job.launcher.world.clock;
    for result in &report.runs {
        tell_run(ui, clock_mode, result)?;
    }
    if let Some(mismatch) = report.mismatch {
        tell_mismatch(ui, &mismatch)?;
        locate(ui, job, &mismatch)?;
        return Ok((Outcome::Found, report));
    }
    let clean_runs = u32::try_from(report.runs.len()).unwrap_or(u32::MAX);
    if clean_runs > 0 {
        tell_end(ui, job, &report, clean_runs, &identity.path(job.seed), clock.seconds())?;
    }
    if report.interrupted {
        anyhow::bail!("interrupted after {clean_runs} of {} runs", job.runs);
    }
    let found = report.runs.iter().any(|result| result.findings > 0);
    Ok((if found { Outcome::Found } else { Outcome::Fine }, report))
}

/// Returns words for the moment at which the runs start.
fn start_of(job: &Job) -> &'static str {
    match job.launcher.from.as_deref() {
        None => "power-on",
        Some(stored) if stored.session.seed().is_some() => "a saved moment",
        Some(_) => "the stored boot",
    }
}

fn tell_beginning(ui: &Ui, job: &Job) -> anyhow::Result<()> {
    let (from, runs, jobs) = (start_of(job), job.runs, job.jobs.get());
    ui.say(format!(
        "{runs} runs, {jobs} at a time, each from {from} to {} after ready; half of the runs often drop their caches, and the \
        others have small ones, so each costs two to three times as much as with `everett run`",
        show_duration_ns(job.duration_ns)
    ))?;
    Ok(ui.record(&Record::Begin { runs, jobs, from })?)
}

/// Runs the job with a progress bar.
pub(super) fn run_with_bar(ui: &Ui, job: &Job, interrupt: &Interrupt) -> anyhow::Result<VerifyReport> {
    let total_ns = job.duration_ns.saturating_mul(u64::from(job.runs));
    let bar = RunBar::new(ui, total_ns);
    bar.name(&format!("{} runs, {} at a time", job.runs, job.jobs));
    let report = job.run(interrupt, &|vtime_ns, instructions| bar.at(vtime_ns.min(total_ns), instructions));
    bar.clear();
    report
}

fn tell_run(ui: &Ui, clock: Clock, result: &RunResult) -> anyhow::Result<()> {
    let findings = match result.findings {
        0 => String::new(),
        1 => style::paint(style::BAD, "  1 finding"),
        n => style::paint(style::BAD, format!("  {n} findings")),
    };
    ui.say(format!(
        "run {:>4}  trail {:#}  {} points, {} {}{findings}",
        result.run,
        result.trail,
        result.points,
        result.executed,
        clock.mode().units()
    ))?;
    ui.record(&Record::Run {
        run: result.run,
        trail: format!("{:#}", result.trail),
        trail_points: result.points,
        instructions: result.instructions,
        executed: result.executed,
        cpu_ns: result.cpu_ns,
        vtime_ns: result.vtime_ns,
        findings: result.findings,
    })?;
    Ok(())
}

fn tell_end(
    ui: &Ui,
    job: &Job,
    report: &VerifyReport,
    clean_runs: u32,
    path: &str,
    seconds: f64,
) -> anyhow::Result<()> {
    let executed: u64 = report.runs.iter().map(|result| result.executed).sum();
    let cpu_ns: u64 = report.runs.iter().map(|result| result.cpu_ns).sum();
    let mips = executed as f64 / 1e6 / seconds.max(1e-9);
    ui.say(format!(
        "{}  all trails are equal; {}, counted from {}; {:.1} s of CPU time per run",
        style::paint(style::HEAD, path),
        common::executed(job.launcher.world.clock, executed, seconds),
        start_of(job),
        cpu_ns as f64 / 1e9 / f64::from(clean_runs.max(1)),
    ))?;
    ui.say(style::paint(style::GOOD, bound::sentence(clean_runs)))?;
    ui.record(&Record::End(End {
        path,
        clean_runs,
        leak_probability_below: bound::leak_probability(clean_runs),
        confidence: bound::CONFIDENCE,
        executed,
        cpu_ns,
        host_seconds: seconds,
        mips,
    }))?;
    Ok(())
}

fn tell_mismatch(ui: &Ui, mismatch: &Mismatch) -> anyhow::Result<()> {
    let Mismatch { run, reference, vtime_ns } = *mismatch;
    let line = format!(
        "run {run} left the trail of run {reference} at or before {} of vtime; looking for the instruction …",
        show_duration_ns(vtime_ns)
    );
    ui.say(style::paint(style::BAD, line))?;
    ui.record(&Record::Mismatch { run, reference, vtime_ns })?;
    Ok(())
}

/// Maximum number of pairs of runs in which the search looks for the difference. If a difference shows in every second
/// pair on average, the search misses it in one of 65,536 cases.
const PAIRS_MAX: u32 = 16;

/// Runs the two runs again side by side, to find the first instruction at which they differ. Repeats this with
/// further pairs, because a random difference may not show in each pair.
fn locate(ui: &Ui, job: &Job, mismatch: &Mismatch) -> anyhow::Result<()> {
    let mut make = |side: Side| match side {
        Side::A => job.start(mismatch.reference),
        Side::B => job.start(mismatch.run),
    };
    // A difference that depends on the host may show later than before, so the search goes on for one more duration of
    // the workload.
    let horizon_ns = mismatch.vtime_ns.saturating_add(job.duration_ns).saturating_add(TRAIL_INTERVAL_NS);
    for _ in 0..PAIRS_MAX {
        if let Some(divergence) = first_difference(&mut make, horizon_ns, TRAIL_INTERVAL_NS)? {
            return tell_divergence(ui, &divergence, job);
        }
    }
    ui.say(format!(
        "side by side on new machines, {PAIRS_MAX} pairs of these runs did not differ again: the leak is rare, or it needs a \
         machine that was restored after another run; verify with more --runs, or with --cold",
    ))?;
    Ok(())
}

/// Number of differences that are listed one by one.
const DIFFERENCES_SHOWN_MAX: usize = 40;

fn tell_divergence(ui: &Ui, divergence: &Divergence, job: &Job) -> anyhow::Result<()> {
    // If the kernel file cannot be read, addresses are printed without names.
    let symbols = symbols::of_file(&job.launcher.files.kernel);
    let (first, second) = divergence.rip;
    let node = job.launcher.nodes().nth(divergence.node).map_or("", |node| &*node.name);
    let of_node = if job.launcher.nodes().count() > 1 { format!("{node}: ") } else { String::new() };
    if divergence.cause == Cause::Between {
        ui.say(style::paint(
            style::HEAD,
            format!("between the machines  at {} s of vtime", Vtime(divergence.vtime)),
        ))?;
    } else {
        ui.say(format!(
            "{}  at {}, {} s of vtime",
            style::paint(
                style::HEAD,
                format!("{of_node}{} {}", job.launcher.world.clock.mode().unit(), divergence.icount)
            ),
            symbols.show(first),
            Vtime(divergence.vtime),
        ))?;
    }
    if second != first {
        ui.say(format!("    the second run is at {}", symbols.show(second)))?;
    }
    let cause = cause_text(&divergence.cause);
    for line in cause.lines() {
        ui.say(format!("    {line}"))?;
    }
    let differences = &divergence.differences;
    ui.say(style::paint(
        style::HEAD,
        format!("{} differences after it (first | second):", differences.len()),
    ))?;
    for difference in differences.iter().take(DIFFERENCES_SHOWN_MAX) {
        ui.say(format!("    {difference}"))?;
    }
    if differences.len() > DIFFERENCES_SHOWN_MAX {
        ui.say(format!("    and {} more", differences.len() - DIFFERENCES_SHOWN_MAX))?;
    }
    ui.record(&Record::Divergence(DivergenceRecord {
        node,
        instruction: divergence.icount,
        vtime_ns: divergence.vtime,
        rip: [symbols.show(first).to_string(), symbols.show(second).to_string()],
        cause,
        differences: differences.iter().map(|d| [d.name.as_str(), d.a.as_str(), d.b.as_str()]).collect(),
    }))?;
    Ok(())
}

fn cause_text(cause: &Cause) -> String {
    match cause {
        Cause::Construction => "the machines differ before their first instruction".to_owned(),
        Cause::Input { a, b } => {
            let show =
                |entry: &Option<_>| entry.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
            format!("the machines gave different inputs to their CPUs\nfirst:  {}\nsecond: {}", show(a), show(b))
        }
        Cause::Execution => "the CPUs computed differently from equal inputs".to_owned(),
        Cause::Between => "all machines were equal, but the state between them (frames, clocks) was not".to_owned(),
        Cause::NotRepeatable => {
            "the difference did not come back in repeated runs; the vtime shown is the start of the interval that has \
             the difference"
                .to_owned()
        }
    }
}
