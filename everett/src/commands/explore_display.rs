//! Display of a running exploration: findings as they come, and a progress bar or the live view.

use everett_explorer::coverage::Dictionary;
use everett_explorer::property::violation_text::declared;
use everett_explorer::run::{Hit, MergeInput, Record};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::Vtime;
use everett_session::explore::expedition::{ExplorationProgress, Onlooker, Sight};
use serde::Serialize;
use serde_json::Value;

use crate::ui::exploration_facts::ExplorationFacts;
use crate::ui::live::Live;
use crate::ui::progress::ExploreBar;
use crate::ui::{Ui, printable, style};

/// Line of `--json` for a finding.
#[derive(Serialize)]
struct FindingLine<'a> {
    kind: &'static str,
    branch: u64,
    path: String,
    #[serde(flatten)]
    hit: &'a Hit,
}

/// Display of a running exploration.
enum Display {
    /// Progress bar, with a line for each finding.
    Plain(ExploreBar),
    /// Live view, and the lines of findings that are printed when the view ends.
    Live(Box<Live>, Vec<String>),
}

/// Returns the live view if `live` is set and the terminal allows it, else a progress bar.
fn display(
    ui: &Ui,
    subject: &ExplorationFacts<'_>,
    interrupt: &Interrupt,
    clock: Stopwatch,
    live: bool,
) -> anyhow::Result<Display> {
    if live {
        match Live::begin(subject, interrupt, clock) {
            Ok(live) => return Ok(Display::Live(Box::new(live), Vec::new())),
            Err(error) => {
                ui.say(style::paint(style::NOTE, format!("the live view cannot start: {error}")))?
            }
        }
    }
    let most = Some(subject.limits.branches).filter(|branches| *branches < u64::MAX);
    Ok(Display::Plain(ExploreBar::new(ui, subject.limits.host_ns, most)))
}

/// Reporter of the progress of an exploration.
pub(super) struct Reporter<'u> {
    ui: &'u Ui,
    /// World as the header of the run directory records it.
    world: &'u Value,
    display: Display,
    clock: Stopwatch,
    /// First error of writing to the terminal. It also ends the exploration.
    failed: Option<std::io::Error>,
    interrupt: &'u Interrupt,
}

impl<'u> Reporter<'u> {
    /// Begins the display: the live view if `live` is set and the terminal allows it, else a progress bar.
    pub(super) fn begin(
        ui: &'u Ui,
        subject: &ExplorationFacts<'u>,
        interrupt: &'u Interrupt,
        clock: Stopwatch,
        live: bool,
    ) -> anyhow::Result<Reporter<'u>> {
        let display = display(ui, subject, interrupt, clock, live)?;
        Ok(Reporter { ui, world: &subject.header.world, display, clock, failed: None, interrupt })
    }

    /// Ends the display, and prints the lines that the live view held back. Returns the first error of writing to the
    /// terminal.
    pub(super) fn finish(self) -> std::io::Result<()> {
        let told = match self.display {
            Display::Plain(bar) => {
                bar.clear();
                Ok(())
            }
            Display::Live(live, lines) => {
                let ended = live.finish();
                lines.iter().try_for_each(|line| self.ui.say(line)).and(ended)
            }
        };
        self.failed.map_or(told, Err)
    }
}

/// Returns the line that announces a new finding.
fn found_line(world: &Value, record: &Record, hit: &Hit) -> String {
    let place = match &hit.node {
        Some(node) => format!("{} {node}", Vtime(hit.vtime_ns)),
        None => Vtime(hit.vtime_ns).to_string(),
    };
    format!(
        "{} branch {} at {place}: {}: {}",
        style::paint(style::BAD, "FOUND"),
        record.choice,
        style::paint(style::HEAD, printable(declared(world, &hit.property).unwrap_or(&hit.property))),
        printable(&hit.text)
    )
}

impl Onlooker for Reporter<'_> {
    fn found(&mut self, record: &Record, hit: &Hit) {
        let line = found_line(self.world, record, hit);
        let told = match &mut self.display {
            Display::Live(live, lines) => {
                live.found(record, hit);
                lines.push(line);
                Ok(())
            }
            Display::Plain(bar) => bar.suspend(|| {
                let path = record.path.to_string();
                self.ui.record(&FindingLine { kind: "found", branch: record.choice, path, hit })?;
                self.ui.say(line)
            }),
        };
        if let Err(error) = told {
            self.failed.get_or_insert(error);
            // The output is gone, for example because a pipe was closed, so the exploration ends.
            self.interrupt.raise();
        }
    }

    fn branch(&mut self, input: &MergeInput, dictionary: &Dictionary) {
        if let Display::Live(live, _) = &mut self.display {
            live.branch(input, dictionary);
        }
    }

    fn look(&mut self, sight: &Sight<'_>) {
        if let Display::Live(live, _) = &mut self.display {
            live.look(sight);
        }
    }

    fn at(&mut self, progress: &ExplorationProgress) {
        match &mut self.display {
            Display::Plain(bar) => bar.at(progress, self.clock.seconds()),
            Display::Live(live, _) => live.at(progress),
        }
    }
}
