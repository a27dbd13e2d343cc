//! `everett demo`: a real server, driven, and the proof that its run repeats.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::teller::Teller;
use super::{Outcome, common, verify};
use crate::cli;
use crate::host_time::Stopwatch;
use crate::interrupt::Interrupt;
use crate::session::drive::{Ended, drive};
use crate::session::event::{Event, What};
use crate::session::launch::EngineOptions;
use crate::ui::{Ui, printable, style};
use crate::units::show_duration_ns;
use crate::verify::{Job, Report};

/// The world of the demo, from the project's top folder.
const WORLD: &str = "examples/redis/world.toml";
/// The two seeds that are compared.
const SEEDS: [u64; 2] = [1, 2];
/// The driver whose lines are compared.
const DRIVER: &str = "load";

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    repeats: bool,
    seed_matters: bool,
    findings: u64,
    trails: [&'a str; 2],
    host_seconds: f64,
}

pub(super) fn run(ui: &Ui, args: &cli::Demo) -> anyhow::Result<Outcome> {
    let clock = Stopwatch::start();
    let file = find_world()?;
    let world = common::load(&file)?;
    heading(ui, 1, "The image: Debian's stock kernel, redis-server and what it depends on")?;
    let interrupt = Interrupt::install()?;
    let mut prepared = common::prepare(ui, world, EngineOptions::default(), &interrupt)?;
    ui.say(format!("image {}\n", prepared.image))?;
    let what = format!(
        "One timeline: boot, redis-server, then {} of virtual time under seed {}: load, checks",
        show_duration_ns(args.duration_ns),
        SEEDS[0]
    );
    heading(ui, 2, &what)?;
    let first_clock = Stopwatch::start();
    let mut timeline = prepared.launcher.start(SEEDS[0])?;
    let mut teller = Teller::new(ui, None, interrupt.clone(), &prepared.launcher.world, args.duration_ns);
    let ended = drive(&mut timeline, args.duration_ns, &mut teller)?;
    teller.finish();
    if ended == Ended::Cut {
        anyhow::bail!("interrupted");
    }
    let seconds = first_clock.seconds();
    let instructions = timeline.icount();
    ui.say(format!(
        "{:.2} billion instructions in {seconds:.1} s ({:.0} MIPS)\ntrail {:#}\n",
        instructions as f64 / 1e9,
        instructions as f64 / 1e6 / seconds.max(1e-9),
        timeline.trail().digest(),
    ))?;

    let what = format!("The same seed, {} more times: does every run repeat to the bit?", args.runs);
    heading(ui, 3, &what)?;
    // The first run booted; these start where that is ready, and must not differ for it.
    prepared.start_stored(ui, None, &interrupt)?;
    let common::Prepared { launcher, identity, .. } = prepared;
    let jobs = verify::default_jobs(args.runs);
    let job = Job { launcher, seed: SEEDS[0], duration_ns: args.duration_ns, runs: args.runs, jobs };
    let (mut outcome, report) = verify::verify(ui, &job, &identity, &interrupt)?;
    let first = timeline.trail().digest();
    let repeats = outcome == Outcome::Fine && report.runs.iter().all(|result| result.trail == first);
    if !repeats {
        ui.say(style::paint(style::BAD, "the runs of one seed differ"))?;
        outcome = Outcome::Found;
    }

    ui.say("")?;
    heading(
        ui,
        4,
        &format!("Another seed, {}: the boot is the same, what comes after it is another story", SEEDS[1]),
    )?;
    let other_job = Job { seed: SEEDS[1], runs: 1, jobs: verify::default_jobs(1), ..job };
    let other = verify::run_with_bar(ui, &other_job, &interrupt)?;
    if other.interrupted {
        anyhow::bail!("interrupted");
    }
    let second = other.runs.first().context("the run with the other seed did not end")?.trail;
    compare(ui, &report, &other)?;
    let seed_matters = first != second && lines(&report.events) != lines(&other.events);
    ui.say(format!("trail {second:#}\n"))?;
    if !seed_matters {
        ui.say(style::paint(style::BAD, "the other seed changed nothing"))?;
        outcome = Outcome::Found;
    }

    let findings = timeline.findings() + other.runs.iter().map(|result| result.findings).sum::<u64>();
    if findings > 0 {
        outcome = Outcome::Found;
    }
    let seconds = clock.seconds();
    ui.record(&Record {
        kind: "end",
        repeats,
        seed_matters,
        findings,
        trails: [&format!("{first:#}"), &format!("{second:#}")],
        host_seconds: seconds,
    })?;
    if outcome == Outcome::Fine {
        let line = format!("The run repeats to the bit, and the seed decides it. ({seconds:.0} s in all)");
        ui.say(style::paint(style::GOOD, line))?;
    }
    Ok(outcome)
}

fn heading(ui: &Ui, number: u32, text: &str) -> anyhow::Result<()> {
    ui.say(style::paint(style::HEAD, format!("{number}. {text}")))?;
    Ok(())
}

/// The world file: in the folder the command was started from or the program lies in, or one above.
fn find_world() -> anyhow::Result<PathBuf> {
    let from = |start: Option<PathBuf>| {
        let start = start?;
        start.ancestors().map(|folder| folder.join(WORLD)).find(|file| file.is_file())
    };
    from(std::env::current_dir().ok())
        .or_else(|| from(std::env::current_exe().ok()))
        .map(|file| short(&file))
        .with_context(|| format!("{WORLD}: not found; start the demo in the project's folder"))
}

/// Relative to where the command was started, if it lies there.
fn short(file: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| file.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or_else(|| file.to_owned())
}

/// What the driver printed.
fn lines(events: &[Event]) -> Vec<&str> {
    let of_driver = |event: &'_ Event| matches!(&event.what, What::Line { unit, .. } if unit == DRIVER);
    events
        .iter()
        .filter(|event| of_driver(event))
        .filter_map(
            |event| if let What::Line { text, .. } = &event.what { Some(text.as_str()) } else { None },
        )
        .collect()
}

/// How many lines of each run are shown.
const LINES_SHOWN: usize = 4;

fn compare(ui: &Ui, one: &Report, other: &Report) -> anyhow::Result<()> {
    for (seed, report) in SEEDS.iter().zip([one, other]) {
        for line in lines(&report.events).into_iter().take(LINES_SHOWN) {
            ui.say(format!(
                "    {}  {}",
                style::paint(style::FAINT, format!("seed {seed}")),
                printable(line)
            ))?;
        }
    }
    Ok(())
}
