//! `everett run`: one timeline.

use std::collections::VecDeque;

use everett_vmm::digest::Digest;
use serde::Serialize;

use super::{Outcome, common};
use crate::cli;
use crate::host_time::Stopwatch;
use crate::identity::MACHINE_VERSION;
use crate::images;
use crate::interrupt::Interrupt;
use crate::run_folder::RunFolder;
use crate::session::drive::{Ended, Watch, drive};
use crate::session::event::{Event, What};
use crate::session::launch::{EngineOptions, Launcher};
use crate::session::show;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};
use crate::units::show_duration_ns;

/// How a timeline went; a line of `--json`, and `run.json`.
#[derive(Debug, Serialize)]
struct Summary {
    kind: &'static str,
    machine_version: &'static str,
    path: String,
    identity: String,
    image: String,
    seed: u64,
    vtime_ns: u64,
    instructions: u64,
    trail: String,
    trail_points: usize,
    findings: u64,
    whole: bool,
    host_seconds: f64,
    mips: f64,
}

pub(super) fn run(ui: &Ui, args: &cli::Run) -> anyhow::Result<Outcome> {
    let world = common::load(&args.timeline.world)?;
    let node = common::only_node(&world)?.clone();
    let seed = common::seed(&args.timeline, &world);
    let folder = args.output.as_deref().map(RunFolder::create).transpose()?;
    let image = images::get(ui, &world, &node)?;
    let identity = image.identity(&world)?;
    let options = EngineOptions::new(&args.timeline.hidden)?;
    let launcher = Launcher { world, node, files: image.files.clone(), cmdline: String::new(), options };

    let interrupt = Interrupt::install()?;
    let clock = Stopwatch::start();
    let mut timeline = launcher.start(seed)?;
    let mut teller = Teller::new(ui, folder, interrupt, args.timeline.duration_ns);
    let ended = drive(&mut timeline, args.timeline.duration_ns, &mut teller)?;
    teller.bar.clear();
    if timeline.machine().end().is_some() && timeline.findings() > 0 {
        teller.show_console()?;
    }

    let host_seconds = clock.seconds();
    let machine = timeline.machine();
    let summary = Summary {
        kind: "end",
        machine_version: MACHINE_VERSION,
        path: identity.path(seed),
        identity: identity.hex(),
        image: image.digest,
        seed,
        vtime_ns: machine.vtime(),
        instructions: machine.icount(),
        trail: format!("{:#}", timeline.trail().digest()),
        trail_points: timeline.trail().points().len(),
        findings: timeline.findings(),
        whole: ended == Ended::Whole,
        host_seconds,
        mips: machine.icount() as f64 / 1e6 / host_seconds.max(1e-9),
    };
    ui.record(&summary)?;
    tell_end(ui, &summary)?;
    if let Some(folder) = teller.folder {
        folder.finish(&summary)?;
    }
    if ended == Ended::Cut {
        anyhow::bail!("interrupted at {} of vtime", show_duration_ns(summary.vtime_ns));
    }
    Ok(if summary.findings > 0 { Outcome::Found } else { Outcome::Fine })
}

fn tell_end(ui: &Ui, summary: &Summary) -> anyhow::Result<()> {
    ui.say(format!(
        "{}  {} of vtime, {:.2} billion instructions in {:.1} s ({:.0} MIPS)",
        style::paint(style::HEAD, &summary.path),
        show_duration_ns(summary.vtime_ns),
        summary.instructions as f64 / 1e9,
        summary.host_seconds,
        summary.mips,
    ))?;
    ui.say(format!("trail {} of {} points", style::paint(style::HEAD, &summary.trail), summary.trail_points))?;
    match summary.findings {
        0 => ui.say(style::paint(style::GOOD, "nothing found"))?,
        1 => ui.say(style::paint(style::BAD, "1 finding"))?,
        n => ui.say(style::paint(style::BAD, format!("{n} findings")))?,
    }
    Ok(())
}

/// The last lines of the console that are shown when a machine stops by itself.
const CONSOLE_LINES: usize = 25;

/// Tells what happens as it happens.
struct Teller<'a> {
    ui: &'a Ui,
    folder: Option<RunFolder>,
    bar: RunBar,
    interrupt: Interrupt,
    console: VecDeque<Vec<u8>>,
    duration_ns: u64,
}

impl<'a> Teller<'a> {
    fn new(ui: &'a Ui, folder: Option<RunFolder>, interrupt: Interrupt, duration_ns: u64) -> Teller<'a> {
        let bar = RunBar::new(ui, duration_ns);
        Teller { ui, folder, bar, interrupt, console: VecDeque::from([Vec::new()]), duration_ns }
    }

    fn show_console(&self) -> anyhow::Result<()> {
        self.ui.say(style::paint(style::HEAD, "the end of the console:"))?;
        for line in self.console.iter().filter(|line| !line.is_empty()) {
            self.ui.say(format!("    {}", printable(String::from_utf8_lossy(line).trim_end())))?;
        }
        Ok(())
    }
}

impl Watch for Teller<'_> {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.event(event)?;
        }
        self.bar.suspend(|| {
            self.ui.record(event)?;
            // A driver's rounds are told by what it prints.
            if !matches!(event.what, What::Start { round: 1.., .. }) {
                self.ui.say(show::line(event, false))?;
            }
            Ok(())
        })
    }

    fn console(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.console(bytes)?;
        }
        for &byte in bytes {
            if let Some(line) = self.console.back_mut().filter(|line| line.last() != Some(&b'\n')) {
                line.push(byte);
            } else {
                self.console.push_back(vec![byte]);
            }
            if self.console.len() > CONSOLE_LINES {
                self.console.pop_front();
            }
        }
        Ok(())
    }

    fn point(&mut self, vtime_ns: u64, digest: Digest) -> anyhow::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.trail_point(vtime_ns, &format!("{digest:#}"))?;
        }
        Ok(())
    }

    fn at(&mut self, vtime_ns: u64, instructions: u64) -> bool {
        self.bar.at(vtime_ns.min(self.duration_ns), instructions);
        !self.interrupt.wanted()
    }
}
