//! Trial boot: one machine of a draft, i.e. of the world file that `everett init` is about to write, runs a script. The
//! script's output tells `everett init` what a package installs, or at which port a server listens.

use std::path::Path;

use anyhow::{anyhow, bail};
use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_protocol::Exec;
use everett_session::images;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::{Progress as _, Task};
use everett_session::run::launch::Launcher;
use everett_session::world::conversation::Phase;
use everett_session::world::event::What;
use everett_session::world::timeline::{COMMAND, Timeline};
use everett_streams::Seed;
use everett_vmm::machine::{Stop, Until};
use everett_world_file::{Restart, Workload, World};

use super::common::WORLD_FILE;
use crate::features;
use crate::ui::Ui;

/// Interval at which events are read, in nanoseconds of vtime.
const STEP_NS: u64 = 100_000_000;
/// Time limit of a trial, in nanoseconds of vtime.
const TRIAL_NS_MAX: u64 = 180_000_000_000;
/// Maximum number of output lines of the script that are kept.
const LINES_MAX: usize = 10_000;
/// Number of the service's last lines that are kept.
const LAST_LINES: usize = 3;

/// Observations from a trial boot.
#[derive(Debug, Default)]
pub(super) struct TrialBoot {
    /// Output lines of the script.
    pub(super) lines: Vec<String>,
    /// Exit status of the service in words, if it ended.
    pub(super) ended: Option<String>,
    /// Last output lines of the service.
    pub(super) last: Vec<String>,
}

/// Boots the first machine of `world`, and runs `argv` when the machine is ready.
///
/// # Errors
/// Returns a one-line error if the image cannot be built, if the guest refuses to create a file that the world file
/// lists for the node, or if `interrupt` is raised.
pub(super) fn run(ui: &Ui, world: &World, argv: &[&str], interrupt: &Interrupt) -> anyhow::Result<TrialBoot> {
    // Everett writes an image's lock file, which lists the exact package versions, beside the world file. The world
    // file does not exist yet, so the trial uses a temporary folder.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(WORLD_FILE);
    let mut world = World { workload: Workload::default(), file, ..world.clone() };
    for service in world.nodes.iter_mut().flat_map(|node| &mut node.services) {
        (service.restart, service.ready) = (Restart::Never, None);
    }
    let image = images::get(ui, &world, features::access(), interrupt);
    let files = image.map_err(|error| without(&world.file, error))?.files;
    let launcher = Launcher { only: Some(0), ..Launcher::new(world, files, EngineOptions::default()) };
    let mut timeline = launcher.start(Seed::new(0))?;
    timeline.command_when_ready(Exec::new(argv.iter().map(|word| (*word).to_owned()).collect()));
    let mut display = ui.begin(Task::Boot);
    display.stage("trial boot", 0, 0, None);
    let mut trial = TrialBoot::default();
    loop {
        let next_ns = timeline.vtime().saturating_add(STEP_NS);
        let stop = timeline.run(&Until::vtime(next_ns));
        trial.take(&mut timeline);
        if let Some(refused) = timeline.refused_file() {
            return Err(refused.into());
        }
        display.boot(timeline.vtime(), timeline.icount(), &|| timeline.boot_state());
        if interrupt.wanted() {
            bail!("interrupted in a trial boot, {}", timeline.boot_state());
        }
        let is_over = matches!(stop, Stop::End(_)) || timeline.phase() == Phase::Broken;
        if is_over || timeline.vtime() >= TRIAL_NS_MAX {
            return Ok(trial);
        }
    }
}

/// Removes the name of the trial's world file from an error, because the operator does not know that file.
fn without(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let is_named = error.to_string() == file.display().to_string();
    match error.chain().nth(1).filter(|_| is_named) {
        Some(cause) => anyhow!("{}", with_causes(cause)),
        None => error,
    }
}

impl TrialBoot {
    fn take(&mut self, timeline: &mut Timeline) {
        for event in timeline.take_events() {
            match event.what {
                What::Line { unit, text, .. } if unit == COMMAND => {
                    self.lines.extend((self.lines.len() < LINES_MAX).then_some(text));
                }
                What::Line { text, .. } => {
                    if self.last.len() == LAST_LINES {
                        self.last.remove(0);
                    }
                    self.last.push(text);
                }
                What::Exit { unit, status, .. } if unit != COMMAND => self.ended = Some(status),
                _ => {}
            }
        }
    }
}
