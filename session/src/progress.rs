//! How long work (images, boots) reports to its caller.

use std::io;

/// Receives reports of long work.
pub trait Progress {
    /// Shows a line that stays.
    ///
    /// # Errors
    /// The line cannot be written; the work ends with that.
    fn note(&self, line: &str) -> io::Result<()>;

    /// Begins to show a task that takes a while. Dropping the display ends it.
    fn begin(&self, task: Task) -> Box<dyn Display + '_>;
}

/// A task that takes a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// An image is built, in stages.
    Image,
    /// A world is booted.
    Boot,
}

/// What shows a task while it lasts.
pub trait Display {
    /// Shows that `done` of `total` steps of a stage are done; `total` is 0 if it is unknown. `detail` replaces the two numbers.
    fn stage(&mut self, stage: &'static str, done: u64, total: u64, detail: Option<String>);

    /// Shows a line of output of the current stage.
    fn detail(&mut self, line: &str);

    /// Shows how far machines have come: nanoseconds of vtime, and how many instructions they executed.
    fn vtime(&mut self, vtime_ns: u64, instructions: u64);
}

/// Shows nothing.
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
}
