//! Interface through which image builds and boots report their progress to the caller.

use std::io;

/// Receiver of progress reports.
pub trait Progress {
    /// Shows a line that stays on the screen.
    ///
    /// # Errors
    /// Returns an error if the line cannot be written. The caller then stops its work.
    fn note(&self, line: &str) -> io::Result<()>;

    /// Starts the display of a long task. Dropping the display ends it.
    fn begin(&self, task: Task) -> Box<dyn Display + '_>;
}

/// Kind of a long task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Building an image, in stages.
    Image,
    /// Booting a world.
    Boot,
}

/// Display of a task in progress.
pub trait Display {
    /// Shows that `done` of `total` steps of a stage are done. A `total` of 0 means unknown. A `detail` is shown in
    /// place of the two numbers.
    fn stage(&mut self, stage: &'static str, done: u64, total: u64, detail: Option<String>);

    /// Shows a line of output from the current stage.
    fn detail(&mut self, line: &str);

    /// Shows the vtime of the machines in nanoseconds, and the number of executed instructions.
    fn vtime(&mut self, vtime_ns: u64, instructions: u64);

    /// Like [`Display::vtime`], for a boot. `state` describes the boot in a few words.
    fn boot(&mut self, vtime_ns: u64, instructions: u64, state: &dyn Fn() -> String);

    /// Shows a line that stays on the screen, apart from the command's results.
    fn warn(&mut self, line: &str);
}

/// Receiver that ignores all reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn note(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn begin(&self, _: Task) -> Box<dyn Display + '_> {
        Box::new(Quiet)
    }
}

impl Display for Quiet {
    fn stage(&mut self, _: &'static str, _: u64, _: u64, _: Option<String>) {}

    fn detail(&mut self, _: &str) {}

    fn vtime(&mut self, _: u64, _: u64) {}

    fn boot(&mut self, _: u64, _: u64, _: &dyn Fn() -> String) {}

    fn warn(&mut self, _: &str) {}
}
