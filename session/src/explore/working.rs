//! Current activity of each worker (a thread that runs branches), for displays.

use std::sync::{Mutex, MutexGuard, PoisonError};

use everett_host::time::Stopwatch;

/// Current work of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Waits for a branch.
    Waits,
    /// Creates its machines.
    Starts,
    /// Runs an ancestor of its branch again, because no moment of the ancestor is stored.
    Derives,
    /// Runs its branch.
    Runs,
    /// Has stopped, because the host could not provide its machines.
    Stopped,
}

impl Activity {
    /// Returns a word for displays.
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

/// State of a worker at one instant.
#[derive(Debug, Clone, Copy)]
pub struct Working {
    /// Current work of the worker.
    pub activity: Activity,
    /// Number of the worker's branch, or `None` while it waits.
    pub branch: Option<u64>,
    /// Vtime that the worker's world has reached, in nanoseconds; 0 before it runs.
    pub vtime_ns: u64,
    /// Host time since the worker began its branch or began to wait.
    pub since: Stopwatch,
}

/// State of a worker, which the worker writes and displays read.
#[derive(Debug)]
pub(super) struct Desk(Mutex<Working>);

impl Default for Desk {
    fn default() -> Desk {
        let since = Stopwatch::start();
        Desk(Mutex::new(Working { activity: Activity::Waits, branch: None, vtime_ns: 0, since }))
    }
}

impl Desk {
    /// Returns the current state.
    pub(super) fn look(&self) -> Working {
        *self.lock()
    }

    /// Begins a branch.
    pub(super) fn begin(&self, branch: u64, activity: Activity) {
        *self.lock() = Working { activity, branch: Some(branch), vtime_ns: 0, since: Stopwatch::start() };
    }

    /// Changes the activity within the branch.
    pub(super) fn turn(&self, activity: Activity) {
        self.lock().activity = activity;
    }

    /// Sets the vtime that the world has reached.
    pub(super) fn at(&self, vtime_ns: u64) {
        self.lock().vtime_ns = vtime_ns;
    }

    /// Ends the branch.
    pub(super) fn rest(&self, activity: Activity) {
        *self.lock() = Working { activity, branch: None, vtime_ns: 0, since: Stopwatch::start() };
    }

    fn lock(&self) -> MutexGuard<'_, Working> {
        // A panic of a thread that holds the lock does no harm, because no write leaves a half-written state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
