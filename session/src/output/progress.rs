//! Progress reports of long work (images, boots) to its caller.

use std::io;

/// Receives reports of long work.
pub trait Progress {
    /// Shows a line permanently.
    ///
    /// # Errors
    /// Returns an error if the line cannot be written; the caller's work ends with that error.
    fn note(&self, line: &str) -> io::Result<()>;

    /// Begins to show a task that takes a while. Dropping the display ends it.
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
    /// Shows that `done` of `total` steps of a stage are done; `total` is 0 if it is unknown. `detail` replaces the two
    /// numbers.
    fn stage(&mut self, stage: &'static str, done: u64, total: u64, detail: Option<String>);

    /// Shows a line of output of the current stage.
    fn detail(&mut self, line: &str);

    /// Shows the progress of machines: their vtime in nanoseconds and the number of instructions they executed.
    fn vtime(&mut self, vtime_ns: u64, instructions: u64);

    /// Shows the progress of a boot, as [`Display::vtime`] does; `state` returns its state in a few words.
    fn boot(&mut self, vtime_ns: u64, instructions: u64, state: &dyn Fn() -> String);

    /// Shows a line permanently, beside the results of the command.
    fn warn(&mut self, line: &str);
}

/// Discards all reports.
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
