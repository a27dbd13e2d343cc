//! `everett explore`: explores many timelines of a world.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_explorer::config::ExploreConfig;
use everett_explorer::coverage::Kind;
use everett_explorer::length_defaults::{Length, LengthDefaults};
use everett_explorer::probe::Tally;
use everett_explorer::run::{Budget, EndReason, ExplorationEnd, FinalPhases, Header, Journal};
use everett_explorer::search::strategy::StrategyKind;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::causes::with_causes;
use everett_input::units::{self, show_bytes, show_duration_ns};
use everett_report::data::{Different, Recordings};
use everett_report::exploration::{PctGuarantee, TestCommand, Thoroughness, final_phases};
use everett_session::explore::cpu_time::CpuTime;
use everett_session::explore::expedition::{self, Limits};
use everett_session::explore::resource_use::Quarter;
use everett_session::explore::worker_pool::Before;
use everett_session::machines::engines::Engine;
use everett_session::world::identity::check_version;
use everett_streams::Seed;
use everett_world_file::{Clock, World};
use serde::Serialize;

use super::Outcome;
use super::engine_choice::EngineArgs;
use super::engine_options::{Hidden, engine_options};
use super::exploration::{self, Explored};
use super::explore_display::Reporter;
use super::history::{self, Entry};
use super::{common, findings, record, report, resources};
use crate::ui::exploration_facts::ExplorationFacts;
use crate::ui::{Ui, live, printable, style};

/// `everett explore`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --budget and --branches the exploration runs until Ctrl-C. If the run directory exists, with the same \
                        world and seed, the exploration resumes. If the world file does not set in_flight and checks, both follow \
                        from --branches or --budget; see docs/exploring.md."
)]
pub struct Args {
    /// The world file, with its `[explore]`, `[faults]`, `[[property]]` and `[[probe]]` tables [default: world.toml, else a
    /// compose file, in the current folder]
    pub world: Option<PathBuf>,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,
    /// The run directory [default: ./run]
    #[arg(short, long, value_name = "RUN", default_value = "run", hide_default_value = true)]
    pub output: PathBuf,
    /// Stop after this much host time
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// Stop after this number of branches
    #[arg(long, value_name = "N")]
    pub branches: Option<u64>,
    /// Stop after the first branch with a finding
    #[arg(long)]
    pub until_found: bool,
    /// Number of branches that run in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Memory for moments [default: a quarter of the host's memory]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
    pub memory: Option<u64>,
    /// Print lines instead of the live view
    ///
    /// Everett also prints lines if standard input or output is not a terminal, and with --json.
    #[arg(long)]
    pub plain: bool,
    /// Host time at the end for replaying findings, so that the report has their timelines; 0s replays none
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::parse_duration_ns)]
    pub record: u64,
    /// Strategy that chooses where branches continue: uniform, novelty or pct [default: the world file's]
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<StrategyKind>,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Options that set how the engine executes
    #[command(flatten)]
    pub hidden: Hidden,
    /// Run only the branches with numbers below N, then wait for Ctrl-C
    #[arg(long, hide = true, value_name = "N")]
    pub hold_from: Option<u64>,
}

/// Number of branches in flight per worker. With fewer branches, workers wait for each other.
const WORKERS_PART: u32 = 4;

/// Maximum number of reasons why code was not probed that are printed.
const PROBLEMS_SHOWN_MAX: usize = 20;

/// Last line of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    kind: &'static str,
    path: String,
    why: EndReason,
    engine: &'a str,
    exact: bool,
    branches: u64,
    run: u64,
    subtrees: usize,
    vtime_ns: u64,
    instructions: u64,
    /// Part of `instructions` that final phases took. If a branch is checked, it ends with a final phase: faults and
    /// drivers stop, and the checks run.
    final_phases: FinalPhases,
    /// CPU time of all branches whose results are in the summary, in nanoseconds. Includes branches that earlier
    /// processes ran.
    merged_cpu_ns: u64,
    /// CPU time of the branches that this process ran, in nanoseconds. `spent` splits it by activity.
    cpu_ns: u64,
    spent: CpuTime,
    spent_ns: u64,
    executed: u64,
    states: u64,
    findings: usize,
    /// Recorded timelines of findings.
    recordings: &'a Recordings,
    /// Measures of thoroughness. They show how much an exploration without findings proves.
    worth: Thoroughness,
    /// Guaranteed probability of finding a bug, under strategy `pct`.
    promise: Option<PctGuarantee>,
    /// Commands of a test template that never succeeded.
    unsuccessful: &'a [TestCommand],
    /// Cost of branches, for each quarter of the branches that this process ran.
    quarters: &'a [Quarter],
    /// Numbers about each probe in the branches that this process ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    probes: Vec<ProbeFigures<'a>>,
    digest: String,
    host_seconds: f64,
    branches_per_min: f64,
    run_directory: &'a str,
}

/// Numbers about a probe.
#[derive(Serialize)]
struct ProbeFigures<'a> {
    probe: &'a str,
    #[serde(flatten)]
    tally: Tally,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let mut world = common::load(&common::world_file(args.world.as_deref())?)?;
    let length = Length { branches: args.branches, host_ns: args.budget };
    set_defaults(ui, &mut world, length, &args.output)?;
    let asked = exploration::for_probes(&world, args.engine.asked())?;
    let engine = Engine::choose(asked, world.clock, world.cpu)?;
    world.explore.strategy = args.strategy.unwrap_or(world.explore.strategy);
    let options = engine.options(engine_options(&args.hidden)?);
    let interrupt = Interrupt::install()?;
    let mut explored = exploration::prepare(ui, world, args.seed, options, &interrupt)?;
    explored.header.engine = engine.kind.name().to_owned();
    explored.header.exact = engine.exact;
    common::announce_engine(ui, &engine)?;
    let limits = Limits {
        branches: args.branches.unwrap_or(u64::MAX),
        host_ns: args.budget,
        until_found: args.until_found,
        workers: args.jobs.map_or_else(resources::cores, usize::from),
        memory_bytes: args.memory.unwrap_or_else(resources::default_memory),
    };
    let before = |choice: u64| {
        if args.hold_from.is_some_and(|from| choice >= from) {
            Stopwatch::start().wait_for_ns(u64::MAX, || interrupt.wanted());
        }
    };
    let form =
        Form { history: true, record_ns: args.record, live: !ui.json && !args.plain && live::is_possible() };
    let (outcome, recordings) = go(ui, &explored, &args.output, &limits, &interrupt, &before, form)?;
    // The results are in the run directory already. So if the report cannot be written, Everett only prints a note.
    if let Err(error) = report::page_of(ui, &args.output, None) {
        let line = format!("the report was not written: {}", printable(&with_causes(error.as_ref())));
        ui.say(style::paint(style::NOTE, line))?;
    }
    common::warn_of_engine(ui, &engine)?;
    if let Some(Different { branch, .. }) = recordings.different.first().filter(|_| engine.exact) {
        bail!("the exploration was not exact: the replay of branch {branch} differs from it");
    }
    Ok(if outcome.merged.findings().is_empty() { Outcome::Fine } else { Outcome::Found })
}

/// Sets the options that the world file leaves open. They take the values recorded in the run directory, or values
/// that fit the requested length if there is no run yet.
fn set_defaults(ui: &Ui, world: &mut World, length: Length, folder: &Path) -> anyhow::Result<()> {
    let mut defaults = LengthDefaults::of(length);
    let is_run = findings::is_run(folder).with_context(|| {
        let folder = folder.display();
        format!("-o {folder}: this folder holds no exploration that can continue; name another folder with -o, or remove this one")
    })?;
    if is_run {
        let header = Header::read(folder)?;
        check_version(folder, &header.machine_version)?;
        let recorded = exploration::recorded_defaults(&header);
        if let Some(note) = note_on_defaults(&world.explore, recorded, defaults) {
            ui.say(style::paint(style::NOTE, note))?;
        }
        defaults = recorded;
    }
    world.explore.set_absent(defaults);
    Ok(())
}

/// Returns a note if a new exploration of the requested length would use other values than the recorded ones.
fn note_on_defaults(
    explore: &ExploreConfig,
    recorded: LengthDefaults,
    new: LengthDefaults,
) -> Option<String> {
    // Options that the world file sets do not depend on the length.
    let fitted = |defaults| {
        let mut explore = explore.clone();
        explore.set_absent(defaults);
        (explore.in_flight(), explore.checks())
    };
    let ((in_flight, checks), (new_in_flight, new_checks)) = (fitted(recorded), fitted(new));
    if (in_flight, checks) == (new_in_flight, new_checks) {
        return None;
    }
    Some(format!(
        "this run began with {in_flight} branches in flight and checks after {}, and keeps these values; a new run of this length would have \
         {new_in_flight} and {}",
        share(checks),
        share(new_checks)
    ))
}

/// Returns a share in parts per million as a percentage.
fn share(ppm: u32) -> String {
    let percent = f64::from(ppm) / 10_000.0;
    format!("{percent} % of them")
}

/// Says how to display an exploration, and what to record besides its results.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Form {
    /// True to record the exploration in the history of runs.
    pub(super) history: bool,
    /// Host time for recording the timelines of findings, in nanoseconds; 0 records none.
    pub(super) record_ns: u64,
    /// True to show the live view during the exploration.
    pub(super) live: bool,
}

/// Explores in a run directory, or resumes the exploration there. Then records the timelines of its findings.
pub(super) fn go(
    ui: &Ui,
    Explored { setting, header }: &Explored,
    folder: &Path,
    limits: &Limits,
    interrupt: &Interrupt,
    before: Before<'_>,
    form: Form,
) -> anyhow::Result<(expedition::ExplorationOutcome, Recordings)> {
    let resumed = findings::is_run(folder)?;
    let mut journal = match resumed {
        true => Journal::resume(folder, header)?,
        false => Journal::create(folder, header)?,
    };
    let entry = if form.history { Entry::begin(ui, header, folder, limits, resumed)? } else { None };
    tell_beginning(ui, setting, &journal, limits)?;
    let clock = Stopwatch::start();
    let sometimes: Vec<String> = setting.abstractions.properties.sometimes().map(str::to_owned).collect();
    let subject = ExplorationFacts { header, run: folder, sometimes: &sometimes, limits };
    let mut reporter = Reporter::begin(ui, &subject, interrupt, clock, form.live)?;
    let outcome = expedition::explore(setting, Some(&mut journal), limits, interrupt, before, &mut reporter);
    let failed = reporter.finish();
    let outcome = outcome?;
    let host_seconds = clock.seconds();
    let host_ns = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let most = Some(limits.branches).filter(|branches| *branches < u64::MAX);
    let budget = Budget { branches: most, host_ns: limits.host_ns, until_found: limits.until_found };
    let end = ExplorationEnd { budget: Some(budget), ..outcome.merged.end(outcome.why, host_ns) };
    keep_evidence(&mut journal, &outcome)?;
    journal.finish(&end)?;
    let compared = entry.map(|entry| entry.finish(ui, &outcome.merged, &end)).transpose()?.flatten();
    // An error of the terminal is returned only now, when the run directory is complete.
    failed?;
    let recordings = record::findings(ui, setting, folder, &outcome.merged, form.record_ns, limits.workers)?;
    let folder = folder.display().to_string();
    let progress = &outcome.progress;
    let promise = PctGuarantee::of(header, &outcome.merged);
    let worth = Thoroughness::of(header, &outcome.merged);
    let mut unsuccessful = TestCommand::all(&outcome.merged);
    unsuccessful.retain(|command| command.counts.succeeded == 0);
    let quarters = outcome.quarters.quarters();
    let (probes, problems) = setting.probes.as_ref().map(|probes| probes.found()).unwrap_or_default();
    ui.record(&Summary {
        kind: "end",
        path: setting.name(&everett_explorer::search::Path::default()),
        why: outcome.why,
        engine: &header.engine,
        exact: header.exact,
        branches: end.branches,
        run: progress.search.run,
        subtrees: outcome.merged.subtrees().len(),
        vtime_ns: outcome.merged.totals().vtime_ns,
        instructions: outcome.merged.totals().cost.instructions,
        final_phases: outcome.merged.totals().final_phases,
        merged_cpu_ns: outcome.merged.totals().cost.cpu_ns,
        cpu_ns: progress.search.cpu_ns,
        spent: progress.spent,
        spent_ns: progress.spent.total_ns(),
        executed: progress.search.instructions,
        states: outcome.merged.coverage().incidence(Kind::State).observed,
        findings: outcome.merged.findings().len(),
        recordings: &recordings,
        worth,
        promise,
        unsuccessful: &unsuccessful,
        quarters: &quarters,
        probes: probes.iter().map(|(probe, tally)| ProbeFigures { probe, tally: *tally }).collect(),
        digest: end.digest.clone(),
        host_seconds,
        branches_per_min: per_minute(progress.search.run, host_seconds),
        run_directory: &folder,
    })?;
    tell_end(ui, setting.launcher.world.clock, &outcome, &end.digest, host_seconds)?;
    ui.say(worth.to_string())?;
    let totals = outcome.merged.totals();
    if let Some(told) = final_phases::told(&totals.cost, &totals.final_phases) {
        ui.say(told)?;
    }
    for why in &outcome.absent {
        let line = format!("a worker stopped: {}", printable(why));
        ui.say(style::paint(style::NOTE, line))?;
    }
    if let Some(promise) = promise {
        ui.say(format!("the guarantee of random priorities is {promise}"))?;
    }
    tell_unsuccessful(ui, &unsuccessful)?;
    tell_probes(ui, &probes, &problems)?;
    tell_findings(ui, &outcome, &folder)?;
    record::tell(ui, &recordings, &folder, header.exact)?;
    if let Some(compared) = compared {
        history::tell(ui, &compared)?;
    }
    Ok((outcome, recordings))
}

fn per_minute(count: u64, seconds: f64) -> f64 {
    count as f64 * 60.0 / seconds.max(1e-9)
}

fn tell_beginning(
    ui: &Ui,
    setting: &everett_session::explore::setting::Setting,
    journal: &Journal,
    limits: &Limits,
) -> anyhow::Result<()> {
    let explore = &setting.launcher.world.explore;
    let name = setting.name(&everett_explorer::search::Path::default());
    ui.say(format!(
        "{}  branches of {} up to {} after ready, strategy {}, {} in flight, checks after {}, {} {}, {} for moments",
        style::paint(style::HEAD, name),
        show_duration_ns(explore.segment.0),
        show_duration_ns(explore.horizon.0),
        explore.strategy,
        explore.in_flight(),
        share(explore.checks()),
        limits.workers,
        if limits.workers == 1 { "worker" } else { "workers" },
        show_bytes(limits.memory_bytes),
    ))?;
    if limits.workers > (explore.in_flight() / WORKERS_PART).max(1) as usize {
        ui.say(style::paint(
            style::NOTE,
            format!(
                "some workers will wait, because each needs {WORKERS_PART} branches in flight; set explore.in_flight to {} or more",
                limits.workers * WORKERS_PART as usize
            ),
        ))?;
    }
    if limits.branches == u64::MAX && limits.host_ns.is_none() && !limits.until_found {
        ui.say("the exploration runs until Ctrl-C, and the same command resumes it; --budget 10m would end it by itself")?;
    }
    if !journal.is_empty() {
        ui.say(format!("continuing after {} recorded branches", journal.len()))?;
    }
    if let Some(cut) = journal.cut() {
        ui.say(style::paint(style::NOTE, cut))?;
    }
    Ok(())
}

/// Writes the faults, log lines and packets of each finding to files in the run directory.
fn keep_evidence(journal: &mut Journal, outcome: &expedition::ExplorationOutcome) -> anyhow::Result<()> {
    for finding in outcome.merged.findings() {
        let hit = &finding.hit;
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let about = serde_json::to_string_pretty(&serde_json::json!({
            "id": finding.id, "property": hit.property, "signature": hit.signature, "text": hit.text,
            "vtime_ns": hit.vtime_ns, "node": hit.node, "path": finding.path, "branch": finding.first,
        }))? + "\n";
        let (log, packets, faults) =
            (text(&hit.evidence.lines), text(&hit.evidence.packets), text(&hit.evidence.faults));
        journal.keep_evidence(
            finding.id,
            &[
                ("finding.json", about.as_bytes()),
                ("log.txt", log.as_bytes()),
                ("packets.txt", packets.as_bytes()),
                ("faults.txt", faults.as_bytes()),
            ],
        )?;
    }
    Ok(())
}

fn tell_end(
    ui: &Ui,
    clock: Clock,
    outcome: &expedition::ExplorationOutcome,
    digest: &str,
    host_seconds: f64,
) -> anyhow::Result<()> {
    let (totals, progress) = (outcome.merged.totals(), &outcome.progress);
    let search = &progress.search;
    let cpu_ns = (search.cpu_ns as f64).max(1.0);
    let (counted, speed) = match clock {
        Clock::Insn => (
            format!("{:.1} billion instructions", totals.cost.instructions as f64 / 1e9),
            format!(" ({:.0} MIPS)", search.instructions as f64 * 1e3 / cpu_ns),
        ),
        Clock::Branch => (
            format!("{:.2} billion conditional branches of code", totals.cost.instructions as f64 / 1e9),
            String::new(),
        ),
        Clock::Exit => (format!("{} exits", totals.cost.instructions), String::new()),
    };
    ui.say(format!(
        "{}: {} branches in {} subtrees, {} of vtime, {counted}; {} abstract states",
        outcome.why.words(),
        style::paint(style::HEAD, outcome.merged.branches()),
        outcome.merged.subtrees().len(),
        show_duration_ns(totals.vtime_ns),
        outcome.merged.coverage().incidence(Kind::State).observed,
    ))?;
    ui.say(format!(
        "{} branches ran in {:.1} s: {:.0} per minute, {:.2} s of CPU time each{speed}",
        search.run,
        host_seconds,
        per_minute(search.run, host_seconds),
        search.cpu_ns as f64 / 1e9 / (search.run as f64).max(1.0),
    ))?;
    let spent = progress.spent;
    let share = |(name, ns): (&str, u64)| {
        format!("{name} {:.1} %", 100.0 * ns as f64 / (spent.total_ns() as f64).max(1.0))
    };
    ui.say(style::paint(
        style::FAINT,
        format!("CPU time by activity: {}", spent.parts().map(share).join(", ")),
    ))?;
    if let Some(quarters) = quarters_told(&outcome.quarters.quarters()) {
        ui.say(style::paint(style::FAINT, quarters))?;
    }
    Ok(ui.say(format!("digest {}", style::paint(style::HEAD, digest)))?)
}

/// Returns a line with the cost of branches in each quarter of the exploration. `None` if no branch ran.
fn quarters_told(quarters: &[Quarter]) -> Option<String> {
    let list = |of: fn(&Quarter) -> String| quarters.iter().map(of).collect::<Vec<_>>().join(", ");
    let told = || {
        format!(
            "by quarter of the branches: {} s of CPU time per branch; {} of memory",
            list(|quarter| format!("{:.2}", quarter.cpu_ns as f64 / 1e9)),
            list(|quarter| show_bytes(quarter.resident_bytes)),
        )
    };
    (!quarters.is_empty()).then(told)
}

/// Prints the test commands that never succeeded. They are no findings, because they may succeed in a longer
/// exploration.
fn tell_unsuccessful(ui: &Ui, commands: &[TestCommand]) -> anyhow::Result<()> {
    for command in commands {
        let what = match command.is_unused() {
            true => "was never started".to_owned(),
            false => format!("never succeeded: {}", command.counts_told()),
        };
        let line = format!("test command {} {what}", printable(&command.name));
        ui.say(style::paint(style::NOTE, line))?;
    }
    Ok(())
}

/// Prints the numbers about each probe, and why code was not probed.
fn tell_probes(ui: &Ui, probes: &[(String, Tally)], problems: &[String]) -> anyhow::Result<()> {
    for (name, tally) in probes {
        let is_lost = !tally.is_placed || tally.unknown > 0 && tally.unknown == tally.hits;
        let line = format!("probe {}: {tally}", printable(name));
        ui.say(if is_lost { style::paint(style::BAD, line) } else { line })?;
    }
    for problem in problems.iter().take(PROBLEMS_SHOWN_MAX) {
        ui.say(style::paint(style::BAD, printable(problem)))?;
    }
    Ok(())
}

fn tell_findings(ui: &Ui, outcome: &expedition::ExplorationOutcome, folder: &str) -> anyhow::Result<()> {
    match outcome.merged.findings().len() {
        0 => ui.say(style::paint(style::GOOD, "nothing found"))?,
        n => {
            let findings = if n == 1 { "finding" } else { "findings" };
            ui.say(style::paint(style::BAD, format!("{n} {findings}: everett findings {folder}")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_made_where_a_default_differs_and_the_world_leaves_it_open() {
        let (recorded, new) = (
            LengthDefaults { in_flight: 16, checks: 250_000 },
            LengthDefaults { in_flight: 8, checks: 500_000 },
        );
        let note = |text: &str, new| {
            let explore: ExploreConfig = toml::from_str(text).unwrap();
            note_on_defaults(&explore, recorded, new).unwrap_or_default()
        };
        assert!(note("", new).contains("began with 16 branches in flight and checks after 25 % of them"));
        assert!(note("", new).ends_with("would have 8 and 50 % of them"));
        assert_eq!(note("", recorded), "");
        assert_eq!(note("in_flight = 16\nchecks = 250000", new), "");
        // Options that the world file sets do not depend on the length, so there is no note.
        let same = LengthDefaults { checks: 250_000, ..new };
        assert_eq!(note("in_flight = 16", same), "");
        assert_eq!(note("checks = 250000", LengthDefaults { in_flight: 16, ..new }), "");
        assert!(note("in_flight = 16", new).ends_with("would have 16 and 50 % of them"));
    }

    #[test]
    fn no_quarters_give_no_line() {
        assert_eq!(quarters_told(&[]), None);
        let quarter = Quarter { branches: 4, cpu_ns: 250_000_000, resident_bytes: 0 };
        let told = quarters_told(&[quarter, quarter]).unwrap();
        assert!(
            told.starts_with("by quarter of the branches: 0.25, 0.25 s of CPU time per branch; "),
            "{told}"
        );
    }
}
