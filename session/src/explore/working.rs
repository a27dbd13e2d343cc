//! What each worker does at the moment, for displays.

use std::sync::{Mutex, MutexGuard, PoisonError};

use everett_host::time::Stopwatch;

/// Activity of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It waits for a branch.
    Waits,
    /// It creates its machines.
    Starts,
    /// It runs an ancestor again, because no moment of it was kept.
    Derives,
    /// It runs its branch.
    Runs,
    /// It has stopped, because the host could not provide its machines.
    Stopped,
}

impl Activity {
    /// Returns the activity as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Activity::Waits => "waits",
            Activity::Starts => "starts",
            Activity::Derives => "derives",
            Activity::Runs => "runs",
            Activity::Stopped => "stopped",
        }
    }
}

/// A worker at one instant.
#[derive(Debug, Clone, Copy)]
pub struct Working {
    /// Activity.
    pub activity: Activity,
    /// Branch that it works on; `None` if it waits.
    pub branch: Option<u64>,
    /// Vtime that its world has reached, in nanoseconds; 0 if it has not run yet.
    pub vtime_ns: u64,
    /// Host time since it began with the branch, or since it waits.
    pub since: Stopwatch,
}

/// The current activity of one worker, which the worker writes and displays read.
#[derive(Debug)]
pub(super) struct Desk(Mutex<Working>);

impl Default for Desk {
    fn default() -> Desk {
        let since = Stopwatch::start();
        Desk(Mutex::new(Working { activity: Activity::Waits, branch: None, vtime_ns: 0, since }))
    }
}

impl Desk {
    /// Returns the activity.
    pub(super) fn look(&self) -> Working {
        *self.lock()
    }

    /// Begins with a branch.
    pub(super) fn begin(&self, branch: u64, activity: Activity) {
        *self.lock() = Working { activity, branch: Some(branch), vtime_ns: 0, since: Stopwatch::start() };
    }

    /// Changes the activity within the branch.
    pub(super) fn turn(&self, activity: Activity) {
        self.lock().activity = activity;
    }

    /// Notes the vtime that the world has reached.
    pub(super) fn at(&self, vtime_ns: u64) {
        self.lock().vtime_ns = vtime_ns;
    }

    /// Ends the branch.
    pub(super) fn rest(&self, activity: Activity) {
        *self.lock() = Working { activity, branch: None, vtime_ns: 0, since: Stopwatch::start() };
    }

    fn lock(&self) -> MutexGuard<'_, Working> {
        // Every write replaces whole values, so a panic of another thread does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
