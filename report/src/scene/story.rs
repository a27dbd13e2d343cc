//! The story of a finding in words, and its most important lines.

use std::collections::BTreeMap;

use everett_explorer::property::builtin;
use everett_log_template::template;

use super::fault::{Bar, brief};
use super::{Operation, Outcome, Scene};

/// Maximum number of faults in a sentence.
const FAULTS_TOLD: usize = 3;

/// Line of a short account of what happened before a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryLine {
    /// Vtime, in nanoseconds.
    pub at_ns: u64,
    /// Name of the node. Empty for the whole world.
    pub node: String,
    /// Unit that the line is from: a service, driver or check, or e.g. `kernel`.
    pub unit: String,
    /// Text of the line.
    pub text: String,
    /// True if the line belongs to the violation itself.
    pub marked: bool,
}

/// Returns one sentence with the last faults and the violation. `violated` states in general that the property is
/// violated, e.g. `the tick thread died`. `text` describes this violation.
#[must_use]
pub fn story(property: &str, violated: &str, text: &str, faults: &[Bar]) -> String {
    let fact = violation(property, violated, text);
    // Texts from programs often end with their own punctuation.
    let fact = fact.trim_end_matches(['.', ':', ';', ',', ' ']);
    let end = if fact.ends_with(['!', '?']) { "" } else { "." };
    match after(faults) {
        Some(after) => format!("After {after}, {fact}{end}"),
        None => format!("Without any fault, {fact}{end}"),
    }
}

/// Returns a short sentence for each operation that the finding names, for at most four operations. `scene` has the
/// data that the report shows about the finding.
#[must_use]
pub fn facts(scene: &Scene) -> Vec<String> {
    let mut facts = Vec::new();
    let marked: Vec<&Operation> = scene.operations.iter().filter(|op| op.marked).collect();
    for operation in marked.iter().take(4) {
        let who = match operation.lane.and_then(|lane| scene.lanes.get(usize::from(lane))) {
            Some(node) => format!("process {} of {node}", operation.process),
            None => format!("process {}", operation.process),
        };
        let what = match &operation.key {
            Some(key) => format!("{} {} of {key}", operation.f, operation.value),
            None => format!("{} {}", operation.f, operation.value),
        };
        let how = match operation.outcome {
            Outcome::Ok => "was acknowledged",
            Outcome::Fail => "failed",
            Outcome::Unknown => "had no certain outcome",
        };
        facts.push(format!("{who}: {} at {} {how}.", what.trim(), brief(operation.begin_ns)));
    }
    facts
}

/// Returns a clause with the last faults, and the number of earlier ones. `None` without faults.
fn after(faults: &[Bar]) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    // The last faults are nearest to the violation.
    let shown = faults.get(faults.len().saturating_sub(FAULTS_TOLD)..).unwrap_or_default();
    let mut before: Option<&Bar> = None;
    for bar in shown {
        told.push(match before {
            Some(before) if before.words == bar.words => {
                let lasts =
                    bar.end_ns.map_or(String::new(), |end| format!(" for {}", brief(end - bar.begin_ns)));
                format!("again at {}{lasts}", brief(bar.begin_ns))
            }
            _ => bar.told(),
        });
        before = Some(bar);
    }
    let more = faults.len() - shown.len();
    if more > 0 {
        told.insert(0, format!("{more} other {}", if more == 1 { "fault" } else { "faults" }));
    }
    match told.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] => Some(format!("{}, and {last}", first.join(", "))),
    }
}

/// Returns the violation as a clause.
fn violation(property: &str, violated: &str, text: &str) -> String {
    let (text, more) = shortened(text);
    match property {
        builtin::LOST_WRITE => lost(&text, more),
        builtin::LINEARIZABILITY => match text.split_once(" cannot be: ") {
            Some((operation, why)) => {
                format!("clients saw what no correct server shows: {operation}, although {why}")
            }
            None => format!("clients saw what no correct server shows: {text}"),
        },
        // The text of a violated SDK assertion is already a sentence that contains the assertion's name.
        _ if violated != property && violated.contains(property) && text.contains(property) => text,
        _ => format!("{violated}: {text}"),
    }
}

/// Returns lost writes as a clause, such as `8 acknowledged writes were gone: add of 6 by process 1 of client, and 7
/// more`.
fn lost(text: &str, more: u64) -> String {
    let write = text.strip_prefix("acknowledged ").and_then(|text| text.split_once(" is gone"));
    match write {
        Some((write, _)) if more > 0 => {
            format!("{} acknowledged writes were gone: {write}, and {more} more", more + 1)
        }
        Some((write, _)) => format!("an acknowledged write was gone: {write}"),
        None => format!("an acknowledged write was gone: {text}"),
    }
}

/// Removes from a text the positions of operations, `(1.2s to 1.3s, lines 4 and 5)`, and the number of further cases,
/// `(and 7 more)`. Returns the shortened text and that number.
fn shortened(text: &str) -> (String, u64) {
    let text = text.trim().trim_end_matches('.');
    let (mut rest, mut short, mut more) = (text, String::new(), 0);
    while let Some((before, after)) = rest.split_once(" (") {
        let Some((inside, after)) = after.split_once(')') else { break };
        let further = inside.strip_prefix("and ").and_then(|words| words.strip_suffix(" more"));
        if let Some(number) = further.and_then(|number| number.parse::<u64>().ok()) {
            more = number;
            short.push_str(before);
        } else if inside.contains(", line") {
            short.push_str(before);
        } else {
            short.push_str(&format!("{before} ({inside})"));
        }
        rest = after;
    }
    short.push_str(rest);
    (short, more)
}

/// Returns the `most` most important lines about a finding, in the order of time: beginnings of faults, operations
/// that the finding names, and lines that few others resemble.
#[must_use]
pub fn lines_told(scene: &Scene, most: usize) -> Vec<StoryLine> {
    let node = |lane: Option<u16>| {
        lane.and_then(|lane| scene.lanes.get(usize::from(lane))).cloned().unwrap_or_default()
    };
    // The number in each pair is the rank of the line. Lines with lower ranks are chosen first. Among lines with equal
    // ranks, the lines nearer to the finding come first.
    let mut ranked: Vec<(usize, StoryLine)> = Vec::new();
    for bar in &scene.faults {
        let told = bar.told();
        ranked.push((
            0,
            StoryLine {
                at_ns: bar.begin_ns,
                node: String::new(),
                unit: "fault".to_owned(),
                text: told,
                marked: false,
            },
        ));
    }
    for operation in scene.operations.iter().filter(|op| op.marked) {
        let outcome = match operation.outcome {
            Outcome::Ok => "ok",
            Outcome::Fail => "fail",
            Outcome::Unknown => "unknown",
        };
        let key = operation.key.as_ref().map_or(String::new(), |key| format!(" {key}"));
        let parts = [&operation.f, key.trim(), &operation.value, outcome, &operation.answer];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = format!("process {}: {}", operation.process, parts.join(" "));
        let told = StoryLine {
            at_ns: operation.begin_ns,
            node: node(operation.lane),
            unit: "client".to_owned(),
            text,
            marked: true,
        };
        ranked.push((0, told));
    }
    let templates: Vec<String> = scene.events.iter().map(|event| template(&event.text)).collect();
    let mut alike: BTreeMap<&str, usize> = BTreeMap::new();
    for template in &templates {
        *alike.entry(template).or_default() += 1;
    }
    let is_own = |unit: &str| matches!(unit, "fault" | "world");
    for (event, template) in scene.events.iter().zip(&templates) {
        if is_own(&event.unit) {
            continue;
        }
        let rank = alike.get(template.as_str()).copied().unwrap_or(1);
        let kernel = usize::from(event.unit == "kernel") * 2;
        let (unit, text) = (event.unit.clone(), event.text.clone());
        ranked.push((
            rank + kernel,
            StoryLine { at_ns: event.at_ns, node: node(event.lane), unit, text, marked: false },
        ));
    }
    ranked.sort_by(|(a, x), (b, y)| a.cmp(b).then(y.at_ns.cmp(&x.at_ns)));
    ranked.truncate(most);
    let mut told: Vec<StoryLine> = ranked.into_iter().map(|(_, told)| told).collect();
    told.sort_by_key(|told| told.at_ns);
    told
}
