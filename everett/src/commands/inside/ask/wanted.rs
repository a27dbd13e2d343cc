//! The processes that are asked about.

use std::cell::Cell;

use anyhow::bail;
use everett_inspect::current::Current;

/// Processes that are wanted, by the value of `--process`.
pub(super) struct Wanted<'w> {
    process: Option<&'w str>,
    seen: Cell<bool>,
}

impl<'w> Wanted<'w> {
    pub(super) fn new(process: Option<&'w str>) -> Wanted<'w> {
        Wanted { process, seen: Cell::new(false) }
    }

    /// Returns true if a thread's process is wanted.
    pub(super) fn is(&self, thread: &Current) -> bool {
        let is_wanted =
            self.process.is_none_or(|wanted| wanted == thread.pid.to_string() || wanted == thread.process);
        self.seen.set(self.seen.get() || is_wanted);
        is_wanted
    }

    /// Returns an error if a process is wanted that did nothing in the span.
    pub(super) fn unless_seen(&self) -> anyhow::Result<()> {
        match self.process {
            Some(process) if !self.seen.get() => {
                bail!("--process: no process {process} did this in the span of time")
            }
            _ => Ok(()),
        }
    }
}
