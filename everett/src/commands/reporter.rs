//! Reports the events of a timeline as they happen: as text, as JSON lines and in the files of a folder.

use std::collections::VecDeque;

use everett_cpu::Edge;
use everett_explorer::property::trouble;
use everett_host::interrupt::Interrupt;
use everett_session::output::run_folder::RunFolder;
use everett_session::output::show;
use everett_session::run::drive::Watch;
use everett_session::world::event::{Event, What};
use everett_session::world::timeline::Timeline;
use everett_vmm::digest::Digest;
use everett_vmm::wire::log::FrameStep;
use everett_vmm::world::Captured;
use everett_world_file::World;
use serde::Serialize;

use super::instruments::EdgeFile;
use super::judge::Judge;
use super::profile::Profiler;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// Maximum number of console lines that are printed when a machine stops unexpectedly.
const CONSOLE_LINES_SHOWN_MAX: usize = 25;
/// Maximum length of a console line, in bytes. The rest is dropped.
const CONSOLE_LINE_BYTES_MAX: usize = 4096;

/// Reporter of a timeline in progress.
pub(super) struct Reporter<'a> {
    ui: &'a Ui,
    pub(super) folder: Option<RunFolder>,
    bar: RunBar,
    interrupt: Interrupt,
    nodes: Vec<String>,
    /// Last lines of each node's console.
    consoles: Vec<VecDeque<Vec<u8>>>,
    /// Duration of the workload, in nanoseconds of vtime. `None` if the workload runs until it is done.
    duration_ns: Option<u64>,
    /// Names of the drivers with `repeat = true`. The reporter does not print their starts and successful ends, because
    /// the output of each repetition is enough.
    repeated: Vec<String>,
    pub(super) faults: FaultCounts,
    pub(super) judge: Judge<'a>,
    /// File for executed edges, if `--edges` is given.
    pub(super) edges: Option<EdgeFile>,
    /// Profile, if `--profile` is given.
    pub(super) profiler: Option<Profiler>,
}

/// Counts of the faults that a timeline applied.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct FaultCounts {
    /// Number of faults that began.
    pub faults: u64,
    /// Number of times that a data disk lost power.
    pub disk_losses: u64,
    /// Number of times that a data disk lost power and thereby lost written sectors that were not flushed.
    pub disk_losses_of_data: u64,
}

impl FaultCounts {
    fn count(&mut self, what: &What) {
        match what {
            What::Fault { .. } => self.faults += 1,
            What::Loss(loss) => {
                self.disk_losses += 1;
                self.disk_losses_of_data += u64::from(loss.lost_anything());
            }
            _ => {}
        }
    }
}

impl<'a> Reporter<'a> {
    pub(super) fn new(
        ui: &'a Ui,
        folder: Option<RunFolder>,
        interrupt: Interrupt,
        world: &World,
        duration_ns: Option<u64>,
        judge: Judge<'a>,
    ) -> Reporter<'a> {
        let drivers = world.workload.drivers.iter();
        let repeated = drivers.filter(|driver| driver.repeat).map(|driver| driver.name.clone()).collect();
        let bar = match duration_ns {
            Some(duration_ns) => RunBar::new(ui, duration_ns),
            None => RunBar::endless(ui, "running"),
        };
        let nodes: Vec<String> = world.nodes.iter().map(|node| node.name.clone()).collect();
        let consoles = vec![VecDeque::from([Vec::new()]); nodes.len()];
        let faults = FaultCounts::default();
        Reporter {
            ui,
            folder,
            bar,
            interrupt,
            nodes,
            consoles,
            duration_ns,
            repeated,
            faults,
            judge,
            edges: None,
            profiler: None,
        }
    }

    pub(super) fn finish(&self) {
        self.bar.clear();
    }

    /// Prints the end of a node's console, which shows why its machine stopped.
    pub(super) fn show_console(&self, node: usize) -> anyhow::Result<()> {
        let of_node = match self.nodes.get(node).filter(|_| self.nodes.len() > 1) {
            Some(name) => format!("the end of {name}'s console:"),
            None => "the end of the console:".to_owned(),
        };
        self.ui.say(style::paint(style::HEAD, of_node))?;
        for line in self.consoles.iter().skip(node).take(1).flatten().filter(|line| !line.is_empty()) {
            self.ui.say(format!("    {}", printable(String::from_utf8_lossy(line).trim_end())))?;
        }
        Ok(())
    }
}

impl Reporter<'_> {
    /// Reports the findings that the judge (the evaluator of properties) makes only at the end of the run. `whole` is
    /// true if the checks ran to their end.
    pub(super) fn over(&mut self, vtime_ns: u64, whole: bool) -> anyhow::Result<()> {
        let found = self.judge.over(vtime_ns, whole);
        found.iter().try_for_each(|event| self.tell(event))
    }

    fn tell(&mut self, event: &Event) -> anyhow::Result<()> {
        self.faults.count(&event.what);
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
            // The kernel's console goes to the folder. The terminal shows only lines that report trouble.
            let of_console = matches!(&event.what, What::Kernel { text } if trouble(text).is_none());
            // Lines of operation histories are for the checker, and an instrumented program reports thousands of edges.
            let of_console = of_console || matches!(event.what, What::History { .. } | What::Edge { .. });
            if !of_a_round && !of_console {
                self.ui.say(show::line(event, self.nodes.len() > 1))?;
            }
            Ok(())
        })
    }
}

impl Watch for Reporter<'_> {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        let worded = self.judge.worded(event);
        self.tell(&worded)?;
        let found = self.judge.hear(event);
        found.iter().try_for_each(|event| self.tell(event))
    }

    fn console(&mut self, node: usize, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.console(node, bytes)?;
        }
        let Some(console) = self.consoles.get_mut(node) else { return Ok(()) };
        for &byte in bytes {
            match console.back_mut().filter(|line| line.last() != Some(&b'\n')) {
                Some(line) if line.len() < CONSOLE_LINE_BYTES_MAX || byte == b'\n' => line.push(byte),
                Some(_) => {}
                None => console.push_back(vec![byte]),
            }
            if console.len() > CONSOLE_LINES_SHOWN_MAX {
                console.pop_front();
            }
        }
        Ok(())
    }

    fn wire(&mut self, steps: &[FrameStep], frames: &[Captured]) -> anyhow::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.wire(&self.nodes, steps, frames)?;
        }
        Ok(())
    }

    fn missing_instruction(&mut self, line: &str) -> anyhow::Result<()> {
        self.bar.warn(line);
        Ok(())
    }

    fn point(&mut self, vtime_ns: u64, digest: Digest) -> anyhow::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.trail_point(vtime_ns, &format!("{digest:#}"))?;
        }
        Ok(())
    }

    fn edges(&mut self, node: usize, edges: &[Edge]) {
        if let Some(file) = &mut self.edges {
            file.add(node, edges);
        }
    }

    fn counted(&mut self, node: usize, timeline: &mut Timeline) -> anyhow::Result<()> {
        if let Some(profiler) = &mut self.profiler {
            profiler.counted(node, timeline);
        }
        Ok(())
    }

    fn booting(&mut self, timeline: &mut Timeline) {
        // Drops the notes of the boot about services that end again and again. They are not needed, because the
        // reporter prints every line of a service and every end of a service.
        timeline.take_boot_notes();
        self.bar.boot(timeline.icount(), &|| timeline.boot_state());
    }

    fn at(&mut self, since_ready_ns: u64, instructions: u64) -> bool {
        if since_ready_ns > 0 {
            self.bar.at(since_ready_ns.min(self.duration_ns.unwrap_or(u64::MAX)), instructions);
        }
        !self.interrupt.wanted()
    }
}
