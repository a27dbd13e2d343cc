//! Older runs of the world, and the status of each finding compared with them.

use everett_explorer::run::{Cost, Merged, Tally};
use everett_streams::Seed;
use serde::Serialize;

use super::limits::{GONE_MAX, NAME_CHARS_MAX};
use super::world_name::world_name;
use super::{Run, Sources};
use crate::clip::clip;
use crate::findability::{Observation, Outlook, outlook};

/// Older run with which the report compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OlderRun {
    /// Run directory, as the operator named it.
    pub run: String,
    /// Seed.
    pub seed: Seed,
    /// Number of branches.
    pub branches: u64,
    /// Number of findings.
    pub findings: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// True if the run explored the same world (with its fault settings) and image, with the same machine version.
    pub same: bool,
}

impl OlderRun {
    pub(super) fn of(run: &Run<'_>, now: &Run<'_>) -> OlderRun {
        OlderRun {
            run: run.name.to_owned(),
            seed: run.header.seed,
            branches: run.merged.branches(),
            findings: run.merged.findings().len() as u64,
            cpu_ns: run.merged.totals().cost.cpu_ns,
            same: run.header.identity == now.header.identity,
        }
    }
}

/// Returns a line for each older run whose world has another name. Its findings say little about this world.
pub(super) fn other_worlds(sources: &Sources<'_>) -> Vec<String> {
    let of = |run: &Run<'_>| clip(&world_name(&run.header.world_file), NAME_CHARS_MAX);
    let now = of(&sources.run);
    let others = sources.older.iter().filter(|run| of(run) != now);
    others
        .map(|run| format!("a comparison within one world: the older run {} explored {}", run.name, of(run)))
        .collect()
}

/// Status of a finding compared with older runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No older run shows the finding.
    New,
    /// This run and the one before it show the finding.
    Ongoing,
    /// This run shows the finding again after a run without it. Or this run does not show it, but the time without it
    /// is too short to be confident that it is gone.
    Rare,
    /// Older runs show the finding, but this run does not. The time without it is long enough to be confident that it
    /// is gone.
    Resolved,
}

impl Status {
    /// Returns the status of a finding that at least one run shows. `None` without older runs.
    pub(super) fn of(seen: &[Observation], outlook: &Outlook) -> Option<Status> {
        let (now, older) = seen.split_last()?;
        let before = older.last()?;
        let ever = older.iter().any(|run| run.hits > 0);
        Some(match (now.hits > 0, before.hits > 0) {
            (true, _) if !ever => Status::New,
            (true, true) => Status::Ongoing,
            (true, false) => Status::Rare,
            (false, _) => match outlook.clean.and_then(|clean| clean.runs_left) {
                Some(0) => Status::Resolved,
                _ => Status::Rare,
            },
        })
    }

    /// Returns the status in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::New => "new",
            Status::Ongoing => "ongoing",
            Status::Rare => "rare",
            Status::Resolved => "resolved",
        }
    }
}

/// Finding of older runs that this run does not show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gone {
    /// Name of the violated property.
    pub property: String,
    /// Signature: a hash that is the same for all hits (violations of the property on branches) of the finding.
    pub signature: String,
    /// Description of the first hit in the last run that shows the finding.
    pub text: String,
    /// Last run that shows the finding.
    pub run: String,
    /// Number of the finding in `run`.
    pub id: u32,
    /// Status: `resolved` or `rare`.
    pub status: Status,
    /// Estimates of how often runs show the finding. Their unit of time is nanoseconds of CPU time.
    pub cpu: Outlook,
    /// Estimates of how often runs show the finding. Their unit of time is instructions.
    pub instructions: Outlook,
}

/// Returns the findings of older runs that this run does not show, sorted by the last run that shows them, latest run
/// first. Returns at most [`GONE_MAX`] findings.
pub(super) fn gone(sources: &Sources<'_>, runs: &[Run<'_>]) -> Vec<Gone> {
    let mut gone: Vec<Gone> = Vec::new();
    for run in sources.older.iter().rev() {
        for finding in run.merged.findings() {
            let key = (finding.hit.property.clone(), finding.hit.signature.clone());
            let told = gone.iter().any(|gone| (&gone.property, &gone.signature) == (&key.0, &key.1));
            if told || sources.run.merged.finding_of(&key).is_some() || gone.len() >= GONE_MAX {
                continue;
            }
            let of = |unit| observed(runs, |merged| tally(merged, &key), unit);
            let cpu_seen = of(Cost::cpu_ns);
            let cpu = outlook(&cpu_seen, &sources.terms);
            gone.push(Gone {
                text: finding.hit.text.clone(),
                run: run.name.to_owned(),
                id: finding.id,
                status: Status::of(&cpu_seen, &cpu).unwrap_or(Status::Rare),
                instructions: outlook(&of(Cost::instructions), &sources.terms),
                cpu,
                property: key.0,
                signature: key.1,
            });
        }
    }
    gone
}

/// Returns the branches and subtrees of a run that show a finding. A subtree is a branch at the root moment with all
/// branches that extend it. `None` if the run does not have the finding.
pub(super) fn tally<'m>(merged: &'m Merged, key: &(String, String)) -> Option<&'m Tally> {
    let id = merged.finding_of(key)?;
    merged.findings().iter().find(|finding| finding.id == id).map(|finding| &finding.tally)
}

/// Returns an observation of each run, for one finding or property: costs of the run, and the number of its subtrees
/// with a hit. `tally` looks up the hits of this finding or property in a run. `unit` selects the unit of the costs:
/// CPU nanoseconds or instructions.
pub(super) fn observed<'m>(
    runs: &[Run<'m>],
    tally: impl Fn(&'m Merged) -> Option<&'m Tally>,
    unit: fn(&Cost) -> u64,
) -> Vec<Observation> {
    let of = |run: &Run<'m>| {
        let spent = unit(&run.merged.totals().cost);
        match tally(run.merged) {
            Some(tally) => {
                let found = run.merged.findability(tally, unit);
                Observation { until_hit: found.time, hits: found.hits, spent }
            }
            None => Observation { until_hit: spent, hits: 0, spent },
        }
    };
    runs.iter().map(of).collect()
}
