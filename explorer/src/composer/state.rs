//! All that a timeline's composer knows but the template, as plain data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::prefix::Prefix;
use super::template::Template;

/// A command that is to be started, or runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The number of the run. Numbers rise along a timeline.
    pub run: u64,
    /// The number of the command in its template.
    pub command: usize,
    /// The number of the node that runs it.
    pub node: u16,
}

/// How a timeline is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stopping {
    /// With all `finally_` commands, once what runs has finished.
    Finally,
    /// With an `eventually_` command, once what runs was killed.
    Eventually,
    /// With the workload.
    Nothing,
}

/// Where on its way a timeline is. Times are the latest at which a phase ends.
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

/// Drivers and `anytime_` commands follow each other independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Track {
    Drivers,
    Anytime,
}

impl Track {
    pub(super) const ALL: [Track; 2] = [Track::Drivers, Track::Anytime];

    /// Whether commands with this prefix are on it.
    pub(super) fn has(self, prefix: Prefix) -> bool {
        match self {
            Track::Drivers => prefix.is_driver(),
            Track::Anytime => prefix == Prefix::Anytime,
        }
    }
}

/// What was drawn to start next on a track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Next {
    pub(super) command: usize,
    /// Not before this.
    pub(super) at_ns: u64,
    /// The pause before it, which is made again when something else kept it from starting.
    pub(super) pause_ns: u64,
}

/// The state of a timeline's composer. One that was stored belongs to the template that it was made for: see
/// [`ComposerState::is_sound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComposerState {
    /// The latest vtime that was told of.
    pub(super) now_ns: u64,
    pub(super) phase: Phase,
    /// What was drawn for this timeline: how many parallel drivers run at a time, and how it is to end.
    pub(super) parallel: u8,
    pub(super) ending: Stopping,
    pub(super) drivers: Option<Next>,
    pub(super) anytime: Option<Next>,
    /// What runs, by number.
    pub(super) runs: Vec<Start>,
    pub(super) next_run: u64,
    /// Singletons that were started.
    pub(super) spent: BTreeSet<usize>,
    /// Nodes that get no commands.
    pub(super) down: BTreeSet<u16>,
    /// A driver was started, or an `anytime_` command where there are no drivers.
    pub(super) worked: bool,
    /// A command did not end by itself.
    pub(super) killed: bool,
}

impl ComposerState {
    /// What runs now, by number.
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

    /// How many run whose prefix is such.
    pub(super) fn count(&self, template: &Template, is: impl Fn(Prefix) -> bool) -> usize {
        self.runs.iter().filter(|run| template.prefix(run.command).is_some_and(&is)).count()
    }
}
