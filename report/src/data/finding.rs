//! Findings of the run.

use everett_explorer::property::violation_text::violation;
use everett_explorer::run::{self, Cost};
use serde::Serialize;

use super::history::{Status, observed, tally};
use super::limits::{ENTRIES_MAX, NAME_CHARS_MAX, SCENES_MAX};
use super::{Causality, FailingCode, Run, Sources};
use crate::clip::clip;
use crate::findability::{Outlook, outlook};
use crate::scene::{self, Bar, Scene};

/// Finding with all that the report says about it. A hit is one occurrence of the failure on a branch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Number of the finding, from 1.
    pub id: u32,
    /// Name of the violated property.
    pub property: String,
    /// Signature: a hash that is the same for all hits of the finding, as 16 hexadecimal digits.
    pub signature: String,
    /// Description of the first hit.
    pub text: String,
    /// Sentence that tells what happened.
    pub story: String,
    /// Further facts, one sentence each.
    pub facts: Vec<String>,
    /// Status compared with older runs. `None` without older runs.
    pub status: Option<Status>,
    /// Node of the first hit. `None` if the hit concerns no single node.
    pub node: Option<String>,
    /// Vtime of the first hit, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of the first branch that shows the finding.
    pub branch: u64,
    /// Path of the first branch that shows the finding.
    pub path: String,
    /// Number of branches that show the finding.
    pub branches: u64,
    /// Number of subtrees that show the finding. A subtree has one branch that starts at the root moment, and all
    /// branches that continue from it.
    pub subtrees: u64,
    /// CPU time of the exploration up to the first hit, in nanoseconds.
    pub first_cpu_ns: u64,
    /// Number of instructions of the exploration up to the first hit.
    pub first_instructions: u64,
    /// Shrunk fault plan. `None` if the finding was not shrunk.
    pub plan: Option<ShrunkPlan>,
    /// Result of the search for the event that made the finding likely. `None` without a search.
    pub causality: Option<Causality>,
    /// Code that only failing branches reached. `None` if it was not recorded, or if no replayed branch is without a
    /// finding.
    pub code: Option<FailingCode>,
    /// Events before the first hit. Only the first [`SCENES_MAX`] findings have them.
    pub scene: Option<Scene>,
    /// Estimates of how often runs show the finding. Times are in CPU nanoseconds.
    pub cpu: Outlook,
    /// Estimates of how often runs show the finding. Times are measured in instructions.
    pub instructions: Outlook,
    /// Commands that examine the finding further.
    pub commands: Vec<String>,
}

/// Fault plan to which a finding was shrunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShrunkPlan {
    /// Name of the regression file in the run directory.
    pub file: String,
    /// True if the finding needs every fault of the plan.
    pub minimal: bool,
    /// Faults of the plan.
    pub faults: Vec<Bar>,
}

pub(super) fn all(sources: &Sources<'_>, runs: &[Run<'_>]) -> Vec<Finding> {
    let findings = sources.run.merged.findings().iter();
    let mut left = ENTRIES_MAX;
    (0..)
        .zip(findings)
        .map(|(place, finding)| of(sources, runs, finding, place < SCENES_MAX, &mut left))
        .collect()
}

/// Returns a line that counts the findings whose recorded timelines did not fit into the report, if there are any.
pub(super) fn shortened(sources: &Sources<'_>, findings: &[Finding]) -> Option<String> {
    let is_short = |finding: &&Finding| {
        let recorded = sources.scenes.contains_key(&finding.id);
        recorded && finding.scene.as_ref().is_some_and(|scene| !scene.is_recorded)
    };
    let short = findings.iter().filter(is_short).count();
    (short > 0).then(|| {
        format!("the whole timelines of {short} findings, because other timelines fill the {ENTRIES_MAX} lines and messages of a report")
    })
}

/// Returns a finding. `left` is the number of lines and messages of recorded timelines that still fit into the
/// report.
fn of(
    sources: &Sources<'_>,
    runs: &[Run<'_>],
    finding: &run::Finding,
    with_scene: bool,
    left: &mut usize,
) -> Finding {
    let run::Finding { id, first, path, hit, cost, tally: hits } = finding;
    let Run { name, header, .. } = sources.run;
    let key = (hit.property.clone(), hit.signature.clone());
    let seen = |unit| observed(runs, |merged| tally(merged, &key), unit);
    let cpu_seen = seen(Cost::cpu_ns);
    let cpu = outlook(&cpu_seen, &sources.terms);
    let scene = match sources.scenes.get(id).filter(|scene| scene.entries() <= *left) {
        Some(scene) => {
            *left -= scene.entries();
            scene.clone()
        }
        None => Scene::of_hit(&nodes(header), hit),
    };
    let plan = sources.regressions.get(id).map(|(file, value)| plan(file, value, sources));
    let faults = plan.as_ref().map_or(&scene.faults, |plan| &plan.faults);
    let quoted = crate::exploration::word(name);
    let mut commands = vec![format!("everett replay {quoted} {id}")];
    match &plan {
        Some(ShrunkPlan { file, .. }) => {
            let file = crate::exploration::word(&format!("{name}/{file}"));
            commands.push(format!("everett replay {file}"));
        }
        None => commands.push(format!("everett shrink {quoted} {id}")),
    }
    let causality = sources.causalities.get(id).map(Causality::of);
    if causality.is_none() {
        commands.push(format!("everett causality {quoted} {id}"));
    }
    if !sources.scenes.contains_key(id) {
        commands.push(format!("everett replay {quoted} {id} --record"));
    }
    commands.push(format!("everett show {quoted} {id}"));
    Finding {
        id: *id,
        property: hit.property.clone(),
        signature: hit.signature.clone(),
        text: hit.text.clone(),
        story: scene::story(&hit.property, &violation(&header.world, &hit.property), &hit.text, faults),
        facts: scene::facts(&scene),
        status: Status::of(&cpu_seen, &cpu),
        node: hit.node.clone(),
        vtime_ns: hit.vtime_ns,
        branch: *first,
        path: path.to_string(),
        branches: hits.branches,
        subtrees: hits.subtrees.len() as u64,
        first_cpu_ns: cost.cpu_ns,
        first_instructions: cost.instructions,
        plan,
        causality,
        code: FailingCode::of(sources, hit),
        scene: with_scene.then_some(scene),
        instructions: outlook(&seen(Cost::instructions), &sources.terms),
        cpu,
        commands,
    }
}

/// Returns the names of the nodes, each cut to the maximum length.
fn nodes(header: &run::Header) -> Vec<String> {
    header.nodes.iter().map(|node| clip(node, NAME_CHARS_MAX)).collect()
}

/// Returns the plan in a regression file.
fn plan(file: &str, value: &serde_json::Value, sources: &Sources<'_>) -> ShrunkPlan {
    let entries = value.get("plan").and_then(serde_json::Value::as_array);
    let header = sources.run.header;
    let bars = entries.into_iter().flatten();
    ShrunkPlan {
        file: file.to_owned(),
        minimal: value.get("minimal").and_then(serde_json::Value::as_bool).unwrap_or(true),
        faults: bars.filter_map(|entry| Bar::of_entry(&nodes(header), header.root_ns, entry)).collect(),
    }
}
