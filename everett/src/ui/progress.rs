//! Progress bars for runs, explorations, shrinking, causality and images.

use std::time::Duration;

use everett_host::time::Stopwatch;
use everett_input::units::{Vtime, show_bytes, show_duration_ns};
use everett_session::explore::causality::CausalityProgress;
use everett_session::explore::expedition::ExplorationProgress;
use everett_session::explore::shrink::ShrinkProgress;
use everett_session::output::progress::Display;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Ui, printable, style};

/// Interval between two lines about a boot if standard error is not a terminal, in nanoseconds of host time.
const BOOT_LINE_NS: u128 = 10_000_000_000;

/// Progress of one or several runs.
pub(crate) struct RunBar {
    bar: ProgressBar,
    clock: Stopwatch,
    /// Host time since the last line about a boot.
    since_line: Stopwatch,
}

impl RunBar {
    /// Creates a bar for a total of `total_ns` nanoseconds of vtime.
    #[must_use]
    pub(crate) fn new(ui: &Ui, total_ns: u64) -> RunBar {
        let bar = bar(ui, total_ns / 1_000_000, "{prefix} {bar:30} {msg}");
        bar.set_prefix("running");
        RunBar { bar, clock: Stopwatch::start(), since_line: Stopwatch::start() }
    }

    /// Creates a display without a bar, for a task of unknown length.
    #[must_use]
    pub(crate) fn endless(ui: &Ui, name: &'static str) -> RunBar {
        let bar = bar(ui, 0, "{prefix} {msg}");
        bar.set_prefix(name);
        RunBar { bar, clock: Stopwatch::start(), since_line: Stopwatch::start() }
    }

    /// Shows the vtime and the number of instructions that are done.
    pub(crate) fn at(&self, vtime_ns: u64, instructions: u64) {
        self.bar.set_position(vtime_ns / 1_000_000);
        let mips = instructions as f64 / 1e6 / self.clock.seconds().max(1e-9);
        self.bar.set_message(format!("{} s vtime, {mips:.0} MIPS", Vtime(vtime_ns)));
    }

    /// Shows the state of a boot: in the bar on a terminal, else as a line on standard error every ten seconds.
    pub(crate) fn boot(&mut self, instructions: u64, state: &dyn Fn() -> String) {
        if !self.bar.is_hidden() {
            let mips = instructions as f64 / 1e6 / self.clock.seconds().max(1e-9);
            self.bar.set_message(format!("{}, {mips:.0} MIPS", printable(&state())));
            self.bar.tick();
        } else if self.since_line.elapsed().as_nanos() >= BOOT_LINE_NS {
            self.since_line = Stopwatch::start();
            let seconds = self.clock.seconds();
            anstream::eprintln!("booting for {seconds:.0} s: {}", printable(&state()));
        }
    }

    /// Prints a line on standard error that stays when the bar moves on.
    pub(crate) fn warn(&self, line: &str) {
        self.bar.suspend(|| anstream::eprintln!("{}", style::paint(style::NOTE, printable(line))));
    }

    /// Shows the current activity in the bar.
    pub(crate) fn say(&self, text: &str) {
        self.bar.set_message(printable(text));
        self.bar.tick();
    }

    /// Changes the name before the bar.
    pub(crate) fn name(&self, name: &str) {
        self.bar.set_prefix(name.to_owned());
    }

    /// Runs `f`, which can print lines, while the bar is hidden.
    pub(crate) fn suspend<R>(&self, f: impl FnOnce() -> R) -> R {
        self.bar.suspend(f)
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of an exploration.
pub(crate) struct ExploreBar {
    bar: ProgressBar,
    /// Budget of host time, in seconds. If there is one, the bar measures host time. Otherwise the bar measures
    /// branches, if their number is limited.
    budget_s: Option<f64>,
    branches: Option<u64>,
}

/// Number of steps of a bar that measures host time.
const BUDGET_STEPS: f64 = 1_000.0;

impl ExploreBar {
    /// Creates a bar. With `budget_ns` it measures host time up to this budget. Otherwise, with `branches`, it measures
    /// branches. Without either, the display is only text.
    #[must_use]
    pub(crate) fn new(ui: &Ui, budget_ns: Option<u64>, branches: Option<u64>) -> ExploreBar {
        let budget_s = budget_ns.map(|ns| ns as f64 / 1e9);
        let (length, template) = match (budget_s, branches) {
            (Some(_), _) => (BUDGET_STEPS as u64, "{prefix} {bar:20} {msg}"),
            (None, Some(branches)) => (branches, "{prefix} {bar:20} {msg}"),
            (None, None) => (0, "{prefix} {msg}"),
        };
        let bar = bar(ui, length, template);
        bar.set_prefix("exploring");
        ExploreBar { bar, budget_s, branches }
    }

    /// Shows the progress after `seconds` of host time.
    pub(crate) fn at(&self, progress: &ExplorationProgress, seconds: f64) {
        let search = &progress.search;
        match (self.budget_s, self.branches) {
            (Some(budget_s), _) => {
                self.bar.set_position((seconds / budget_s.max(1e-9) * BUDGET_STEPS).min(BUDGET_STEPS) as u64)
            }
            (None, Some(_)) => self.bar.set_position(search.branches),
            (None, None) => {}
        }
        let (bytes, moments) = progress.moments.map_or((0, 0), |stats| (stats.bytes, stats.present));
        self.bar.set_message(format!(
            "{} branches, {:.0} a minute, {} of vtime, {} states, {} findings, {moments} moments in {}",
            search.branches,
            search.run as f64 * 60.0 / seconds.max(1e-9),
            show_duration_ns(search.vtime_ns),
            search.states,
            search.findings,
            show_bytes(bytes),
        ));
        self.bar.tick();
    }

    /// Runs `f`, which can print lines, while the bar is hidden.
    pub(crate) fn suspend<R>(&self, f: impl FnOnce() -> R) -> R {
        self.bar.suspend(f)
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of shrinking a finding.
pub(crate) struct ShrinkBar {
    bar: ProgressBar,
    clock: Stopwatch,
    budget_ns: Option<u64>,
}

/// Interval at which the bar is redrawn, so that the remaining time counts down during a long run.
const TICK: Duration = Duration::from_millis(200);

impl ShrinkBar {
    /// Creates a bar. `budget_ns` is the budget of host time, in nanoseconds, if there is one.
    #[must_use]
    pub(crate) fn new(ui: &Ui, budget_ns: Option<u64>) -> ShrinkBar {
        let bar = bar(ui, 0, "shrinking {spinner} {elapsed} {bar:20} {msg}");
        if ui.bars {
            bar.enable_steady_tick(TICK);
        }
        ShrinkBar { bar, clock: Stopwatch::start(), budget_ns }
    }

    /// Shows the progress of the current round, i.e. of a list of plans that shrinking tries.
    pub(crate) fn at(&self, progress: &ShrinkProgress) {
        self.bar.set_length(progress.round as u64);
        self.bar.set_position(progress.tried as u64);
        let left = self
            .budget_ns
            .map_or(String::new(), |ns| format!(", {} s of the budget left", left_s(ns, &self.clock)));
        self.bar.set_message(format!(
            "{}: {} of {} faults remain after {} runs{left}",
            progress.step.words(),
            progress.faults,
            progress.faults_before,
            progress.runs,
        ));
    }

    /// Runs `f`, which can print lines, while the bar is hidden.
    pub(crate) fn suspend<R>(&self, f: impl FnOnce() -> R) -> R {
        self.bar.suspend(f)
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of a search for causality.
pub(crate) struct CausalityBar {
    bar: ProgressBar,
    clock: Stopwatch,
    budget_ns: Option<u64>,
}

impl CausalityBar {
    /// Creates a bar. `budget_ns` is the budget of host time, in nanoseconds, if there is one.
    #[must_use]
    pub(crate) fn new(ui: &Ui, budget_ns: Option<u64>) -> CausalityBar {
        let bar = bar(ui, 0, "causality {spinner} {elapsed} {msg}");
        if ui.bars {
            bar.enable_steady_tick(TICK);
        }
        CausalityBar { bar, clock: Stopwatch::start(), budget_ns }
    }

    /// Shows the progress.
    pub(crate) fn at(&self, progress: &CausalityProgress) {
        let left = self
            .budget_ns
            .map_or(String::new(), |ns| format!(", {} s of the budget left", left_s(ns, &self.clock)));
        self.bar.set_message(match *progress {
            CausalityProgress::Replaying(vtime_ns) => {
                format!("replaying the finding, {} s vtime", Vtime(vtime_ns).to_string().trim())
            }
            CausalityProgress::Futures { futures, between: None } => format!("{futures} futures{left}"),
            CausalityProgress::Futures { futures, between: Some((from_ns, to_ns)) } => format!(
                "{futures} futures, between {} s and {} s{left}",
                Vtime(from_ns).to_string().trim(),
                Vtime(to_ns).to_string().trim()
            ),
        });
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the remaining seconds of a budget of host time.
fn left_s(budget_ns: u64, clock: &Stopwatch) -> u64 {
    let elapsed = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
    budget_ns.saturating_sub(elapsed) / 1_000_000_000
}

/// Maximum length of the text beside a bar, in characters.
const NOTE_CHARS_MAX: usize = 60;

/// Progress of building an image: downloads, unpacking, packing.
pub(crate) struct StageBar(ProgressBar);

impl StageBar {
    /// Creates the display. It shows nothing until the first stage.
    #[must_use]
    pub(crate) fn new(ui: &Ui) -> StageBar {
        StageBar(bar(ui, 0, "{prefix} {bar:30} {msg}"))
    }
}

impl Display for StageBar {
    fn stage(&mut self, stage: &'static str, done: u64, total: u64, detail: Option<String>) {
        self.0.set_prefix(stage);
        self.0.set_length(total);
        self.0.set_position(done);
        let steps = if total > 1 { format!("{done}/{total}") } else { String::new() };
        self.0.set_message(detail.unwrap_or(steps));
    }

    fn detail(&mut self, line: &str) {
        if !self.0.is_hidden() {
            self.0.set_message(printable(line).chars().take(NOTE_CHARS_MAX).collect::<String>());
        }
    }

    fn vtime(&mut self, _: u64, _: u64) {}

    fn boot(&mut self, _: u64, _: u64, _: &dyn Fn() -> String) {}

    fn warn(&mut self, _: &str) {}
}

impl Drop for StageBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Display for RunBar {
    fn stage(&mut self, stage: &'static str, _: u64, _: u64, _: Option<String>) {
        self.name(stage);
    }

    fn detail(&mut self, line: &str) {
        self.say(line);
    }

    fn vtime(&mut self, vtime_ns: u64, instructions: u64) {
        self.at(vtime_ns, instructions);
    }

    fn boot(&mut self, _: u64, instructions: u64, state: &dyn Fn() -> String) {
        RunBar::boot(self, instructions, state);
    }

    fn warn(&mut self, line: &str) {
        RunBar::warn(self, line);
    }
}

impl Drop for RunBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar(ui: &Ui, length: u64, template: &str) -> ProgressBar {
    let target = if ui.bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
