//! State of the composer, which decides when the commands of a test template start. A template is a folder of test
//! programs. A moment stores the running commands, the next commands and the phase of the timeline.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::prefix::Prefix;
use super::template::Template;

/// One run of a command on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Number of the run. Later runs of a timeline have higher numbers.
    pub run: u64,
    /// Number of the command in the template.
    pub command: usize,
    /// Number of the node that runs the command.
    pub node: u16,
}

/// Commands that run between the end of the workload and the end of the timeline, as drawn beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stopping {
    /// All `finally_` commands run, after the running commands have ended.
    Finally,
    /// An `eventually_` command runs, after the running commands were killed.
    Eventually,
    /// The timeline ends with its workload. No further command runs.
    Nothing,
}

/// Phase of a timeline; the [module](super) lists the phases. `until_ns` is the latest vtime at which the phase ends,
/// in nanoseconds. `told` is true if the caller has already been told to kill all commands (`Killing`), or that the
/// timeline is over (`Over`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    First { started: bool },
    Driving,
    Finishing { until_ns: u64 },
    Killing { until_ns: u64, told: bool },
    Eventually { until_ns: u64, started: bool },
    Finally { until_ns: u64, started: usize },
    Over { told: bool },
}

/// Group of commands: either the drivers (commands with a prefix such as `parallel_driver_`) or the `anytime_`
/// commands. The starts of one group are drawn independently of the other group's starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Track {
    Drivers,
    Anytime,
}

impl Track {
    pub(super) const ALL: [Track; 2] = [Track::Drivers, Track::Anytime];

    /// Returns true if commands with this prefix belong to the track.
    pub(super) fn has(self, prefix: Prefix) -> bool {
        match self {
            Track::Drivers => prefix.is_driver(),
            Track::Anytime => prefix == Prefix::Anytime,
        }
    }
}

/// Command that was drawn to start next on a track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Next {
    pub(super) command: usize,
    /// Earliest vtime of the start, in nanoseconds.
    pub(super) at_ns: u64,
    /// Pause before the start, in nanoseconds. A command that had to wait for other commands or for a node pauses for
    /// the same time once it can start.
    pub(super) pause_ns: u64,
}

/// State of the composer on a timeline. A stored state is valid only for its template: see [`ComposerState::is_sound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComposerState {
    /// Latest vtime that the caller reported, in nanoseconds.
    pub(super) now_ns: u64,
    pub(super) phase: Phase,
    /// Maximum number of parallel drivers that run at a time, drawn for this timeline.
    pub(super) parallel: u8,
    /// Commands to run after the workload, as drawn for this timeline.
    pub(super) ending: Stopping,
    pub(super) drivers: Option<Next>,
    pub(super) anytime: Option<Next>,
    /// Running commands, sorted by the number of the run.
    pub(super) runs: Vec<Start>,
    pub(super) next_run: u64,
    /// Numbers of the singleton drivers that were started.
    pub(super) spent: BTreeSet<usize>,
    /// Numbers of the nodes on which commands cannot be started.
    pub(super) down: BTreeSet<u16>,
    /// True if a driver was started. In a template without drivers, true if an `anytime_` command was started.
    pub(super) worked: bool,
    /// True if a command was killed or lost with its node.
    pub(super) killed: bool,
}

impl ComposerState {
    /// Returns the running commands, sorted by the number of the run.
    #[must_use]
    pub fn runs(&self) -> &[Start] {
        &self.runs
    }

    pub(super) fn next(&self, track: Track) -> Option<&Next> {
        match track {
            Track::Drivers => self.drivers.as_ref(),
            Track::Anytime => self.anytime.as_ref(),
        }
    }

    pub(super) fn next_mut(&mut self, track: Track) -> &mut Option<Next> {
        match track {
            Track::Drivers => &mut self.drivers,
            Track::Anytime => &mut self.anytime,
        }
    }

    /// Returns the number of running commands whose prefix satisfies `is`.
    pub(super) fn count(&self, template: &Template, is: impl Fn(Prefix) -> bool) -> usize {
        self.runs.iter().filter(|run| template.prefix(run.command).is_some_and(&is)).count()
    }
}
