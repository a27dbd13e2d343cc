//! Summary of the exploration: its size, and the verdict in one sentence.

use crate::exploration::figures::{count, counted, percent};
use crate::exploration::final_phases;
use everett_explorer::coverage::statistics::probability_below_at;
use everett_explorer::run::{Budget, FinalPhases};
use everett_streams::Seed;
use serde::Serialize;

use super::history::Status;
use super::limits::{NAME_CHARS_MAX, PATH_CHARS_MAX};
use super::world_name::world_name;
use super::{Finding, Gone, Property, Recordings, Sources, State};
use crate::clip::clip;

/// Maximum number of properties that the verdict names.
const NAMED: usize = 3;

/// Exploration as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Run directory, as the operator named it.
    pub run: String,
    /// Name of the world: the name of the world file, or of its folder if the file is called `world.toml`.
    pub world: String,
    /// Path of the world file.
    pub world_file: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Seed.
    pub seed: Seed,
    /// Name of the engine.
    pub engine: String,
    /// True if the engine is exact.
    pub exact: bool,
    /// Name of the strategy.
    pub strategy: String,
    /// True if the strategy is not `uniform`. Rates then hold for this search only.
    pub adaptive: bool,
    /// Version of Everett.
    pub everett: String,
    /// Machine version.
    pub machine: String,
    /// Digest of the world's image.
    pub image: String,
    /// Identity of the exploration: a digest of everything that determines its timelines, except seed and paths.
    pub identity: String,
    /// Reason for the end, in words. Without a recorded end, it says that the exploration is running or was killed.
    pub end: String,
    /// Verdict, in one sentence.
    pub verdict: String,
    /// How much the verdict proves, in one or two sentences.
    pub sure: String,
    /// Confidence of the report's bounds, from 0 to 1.
    pub confidence: f64,
    /// Number of branches.
    pub branches: u64,
    /// Number of subtrees: a subtree has one branch that starts at the root moment, and all branches that continue from
    /// it.
    pub subtrees: u64,
    /// Number of branches with checks.
    pub checked: u64,
    /// Number of branches that the host could not run to their end.
    pub broken: u64,
    /// Number of applied faults.
    pub faults: u64,
    /// Explored vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Number of explored instructions.
    pub instructions: u64,
    /// Part of `instructions` that final phases took. A final phase is what follows a branch with checks: waiting until
    /// the world is at rest, and the checks.
    pub final_phases: FinalPhases,
    /// Sentence about `final_phases`. `None` if no branch had checks.
    pub final_phases_told: Option<String>,
    /// Host time from the last start of the exploration to its end, in nanoseconds. `None` if it has not ended.
    pub host_ns: Option<u64>,
    /// Limits at the last start of the exploration. `None` if they are unknown.
    pub budget: Option<Budget>,
    /// Outcome of recording timelines of branches at the end of the exploration. `None` if no recording was requested.
    pub recordings: Option<Recordings>,
    /// Speed: seconds of vtime per second of CPU time.
    pub speed: f64,
    /// Branches per minute of CPU time.
    pub branches_per_cpu_min: f64,
    /// Number of properties that failed.
    pub failed: u64,
    /// Number of properties that were never reached.
    pub never_reached: u64,
    /// Number of properties that passed.
    pub passed: u64,
    /// Digest of the merged results.
    pub digest: String,
    /// Digest of the records (the stored results) of all branches.
    pub chain: String,
}

impl Summary {
    pub(super) fn of(
        sources: &Sources<'_>,
        properties: &[Property],
        findings: &[Finding],
        gone: &[Gone],
    ) -> Summary {
        let (header, report) = (sources.run.header, sources.report);
        let explored = &report.explored;
        let states = |state| properties.iter().filter(|property| property.state == state).count() as u64;
        let cpu_s = explored.cost.cpu_ns as f64 / 1e9;
        let per = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        Summary {
            run: sources.run.name.to_owned(),
            world: clip(&world_name(&header.world_file), NAME_CHARS_MAX),
            world_file: clip(&header.world_file, PATH_CHARS_MAX),
            nodes: header.nodes.iter().map(|node| clip(node, NAME_CHARS_MAX)).collect(),
            seed: header.seed,
            engine: clip(&header.engine, NAME_CHARS_MAX),
            exact: header.exact,
            strategy: clip(&header.strategy.0, NAME_CHARS_MAX),
            adaptive: !header.strategy.is_uniform(),
            everett: clip(&header.everett, NAME_CHARS_MAX),
            machine: clip(&header.machine_version, NAME_CHARS_MAX),
            image: clip(&header.image, NAME_CHARS_MAX),
            identity: clip(&header.identity, NAME_CHARS_MAX),
            end: report.end.as_ref().map_or("it is running, or was killed", |end| end.why.words()).to_owned(),
            verdict: verdict(findings, gone, states(State::NeverReached)),
            sure: sure(sources, findings),
            confidence: 1.0 - sources.terms.alpha,
            branches: explored.branches,
            subtrees: explored.subtrees,
            checked: explored.checked,
            broken: explored.broken,
            faults: explored.faults,
            vtime_ns: explored.vtime_ns,
            cpu_ns: explored.cost.cpu_ns,
            instructions: explored.cost.instructions,
            final_phases: explored.final_phases,
            final_phases_told: final_phases::told(&explored.cost, &explored.final_phases),
            host_ns: report.end.as_ref().map(|end| end.host_ns).filter(|ns| *ns > 0),
            budget: report.end.as_ref().and_then(|end| end.budget),
            recordings: sources.recordings.as_ref().map(|recordings| recordings.now(&sources.scenes)),
            speed: per(explored.vtime_ns as f64 / 1e9, cpu_s),
            branches_per_cpu_min: per(explored.branches as f64 * 60.0, cpu_s),
            failed: states(State::Failed),
            never_reached: states(State::NeverReached),
            passed: states(State::Passed),
            digest: report.digest.clone(),
            chain: report.chain.clone(),
        }
    }
}

/// Formats a confidence as a percentage.
pub(crate) fn confidence(p: f64) -> String {
    let percent = p * 100.0;
    if (percent - percent.round()).abs() < 1e-6 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.2} %")
    }
}

/// Returns the verdict, in one sentence.
fn verdict(findings: &[Finding], gone: &[Gone], never: u64) -> String {
    let with = |status| findings.iter().filter(|finding| finding.status == Some(status)).count() as u64;
    let mut parts = Vec::new();
    match findings.len() as u64 {
        0 => parts.push("Nothing was found".to_owned()),
        n => {
            let (new, rare) = (with(Status::New), with(Status::Rare));
            let mut kinds = Vec::new();
            kinds.extend((new > 0).then(|| format!("{} new", count(new))));
            kinds.extend((rare > 0).then(|| format!("{} rare", count(rare))));
            let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
            let names: std::collections::BTreeSet<&str> =
                findings.iter().map(|finding| &*finding.property).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let names = match names.as_slice() {
                few if few.len() <= NAMED => format!(": {}", few.join(", ")),
                many => format!(" against {}", counted(many.len() as u64, "property", "properties")),
            };
            parts.push(format!("{}{names}{kinds}", counted(n, "problem was found", "problems were found")));
        }
    }
    let resolved = gone.iter().filter(|gone| gone.status == Status::Resolved).count() as u64;
    parts.extend((resolved > 0).then(|| format!("{} resolved", count(resolved))));
    let unsure = gone.len() as u64 - resolved;
    parts.extend((unsure > 0).then(|| format!("{} not seen again, but perhaps still there", count(unsure))));
    let properties = counted(never, "property was never reached", "properties were never reached");
    parts.extend((never > 0).then_some(properties));
    parts.join("; ") + "."
}

/// Returns how much the verdict proves, in one or two sentences.
fn sure(sources: &Sources<'_>, findings: &[Finding]) -> String {
    let worth = &sources.report.worth;
    let states = sources.report.coverage.first();
    let unseen = match states.and_then(|states| states.figures.unseen_ppm) {
        Some(ppm) => format!("Of the states that come next, {} are new (Good and Turing).", percent(ppm)),
        None => "No state was observed.".to_owned(),
    };
    match worth.finding_below {
        Some(_) => format!(
            "With {} confidence, less than {:.1} % of subtrees like these {} have a problem{}. {unseen}",
            confidence(1.0 - sources.terms.alpha),
            probability_below_at(worth.subtrees_checked, 1.0 - sources.terms.alpha) * 100.0,
            count(worth.subtrees_checked),
            if worth.adaptive { " (a guide, because the search was adaptive)" } else { "" },
        ),
        None if findings.is_empty() => {
            format!("No branch had checks, so problems that only checks show are not ruled out. {unseen}")
        }
        None => unseen,
    }
}
