//! Findings of the run.

use everett_explorer::property::violation_text::violation;
use everett_explorer::run::{self, Cost};
use serde::Serialize;

use super::history::{Status, observed, tally};
use super::limits::{ENTRIES_MAX, NAME_CHARS_MAX, SCENES_MAX};
use super::{Causality, Run, Sources};
use crate::clip::clip;
use crate::findability::{Outlook, outlook};
use crate::scene::{self, Bar, Scene};

/// A finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Number, from 1.
    pub id: u32,
    /// Name of the violated property.
    pub property: String,
    /// Signature, which all of its hits share.
    pub signature: String,
    /// Description of the first hit.
    pub text: String,
    /// What happened, in a sentence.
    pub story: String,
    /// Further facts, a sentence each.
    pub facts: Vec<String>,
    /// Status in comparison with older runs. `None` without older runs.
    pub status: Option<Status>,
    /// Node of the first hit, if it concerns one.
    pub node: Option<String>,
    /// Vtime of the first hit, in nanoseconds.
    pub vtime_ns: u64,
    /// First branch that shows it.
    pub branch: u64,
    /// Path of that branch.
    pub path: String,
    /// Number of branches that show it.
    pub branches: u64,
    /// Number of subtrees that show it.
    pub subtrees: u64,
    /// Cost of the exploration until its first hit: CPU time in nanoseconds.
    pub first_cpu_ns: u64,
    /// Cost of the exploration until its first hit, in instructions.
    pub first_instructions: u64,
    /// Plan to which it was shrunk, if it was.
    pub plan: Option<ShrunkPlan>,
    /// Step at which it was decided, if that was searched for.
    pub causality: Option<Causality>,
    /// What happened before the first hit. `None` after the first [`SCENES_MAX`] findings.
    pub scene: Option<Scene>,
    /// How often it is found, in CPU nanoseconds.
    pub cpu: Outlook,
    /// How often it is found, in instructions.
    pub instructions: Outlook,
    /// Commands to continue with.
    pub commands: Vec<String>,
}

/// Faults to which a finding was shrunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShrunkPlan {
    /// Name of the regression file in the run directory.
    pub file: String,
    /// True if the finding needs each of the faults.
    pub minimal: bool,
    /// The faults.
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

/// Returns a line if there was no room for the whole timelines of some findings.
pub(super) fn shortened(sources: &Sources<'_>, findings: &[Finding]) -> Option<String> {
    let is_short = |finding: &&Finding| {
        let recorded = sources.scenes.contains_key(&finding.id);
        recorded && finding.scene.as_ref().is_some_and(|scene| !scene.is_recorded)
    };
    let short = findings.iter().filter(is_short).count();
    (short > 0).then(|| {
        format!("the whole timelines of {short} findings: those of the others fill the {ENTRIES_MAX} lines and messages of a report")
    })
}

/// Returns a finding. `left` is the number of entries of recorded timelines for which there is room.
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

/// Reads the plan of a regression file.
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
