//! Tells what happens on a timeline as it happens: to people, to programs, and into a folder.

use std::collections::VecDeque;

use everett_vmm::digest::Digest;

use crate::interrupt::Interrupt;
use crate::run_folder::RunFolder;
use crate::session::drive::Watch;
use crate::session::event::{Event, What};
use crate::session::show;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};
use crate::world_file::World;

/// The last lines of the console that are shown when a machine stops by itself.
const CONSOLE_LINES: usize = 25;

/// Tells what happens as it happens.
pub(super) struct Teller<'a> {
    ui: &'a Ui,
    pub(super) folder: Option<RunFolder>,
    bar: RunBar,
    interrupt: Interrupt,
    console: VecDeque<Vec<u8>>,
    duration_ns: u64,
    /// Drivers that are started again and again: what they print tells of their rounds.
    repeated: Vec<String>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        ui: &'a Ui,
        folder: Option<RunFolder>,
        interrupt: Interrupt,
        world: &World,
        duration_ns: u64,
    ) -> Teller<'a> {
        let drivers = world.workload.drivers.iter();
        let repeated = drivers.filter(|driver| driver.repeat).map(|driver| driver.name.clone()).collect();
        let bar = RunBar::new(ui, duration_ns);
        Teller { ui, folder, bar, interrupt, console: VecDeque::from([Vec::new()]), duration_ns, repeated }
    }

    /// Nothing more will be told.
    pub(super) fn finish(&self) {
        self.bar.clear();
    }

    /// The end of the console, which says why a machine stopped by itself.
    pub(super) fn show_console(&self) -> anyhow::Result<()> {
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
            let of_a_round = match &event.what {
                What::Start { unit, .. } | What::Exit { unit, success: true, .. } => {
                    self.repeated.contains(unit)
                }
                _ => false,
            };
            if !of_a_round {
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

    fn at(&mut self, since_ready_ns: u64, instructions: u64) -> bool {
        self.bar.at(since_ready_ns.min(self.duration_ns), instructions);
        !self.interrupt.wanted()
    }
}
