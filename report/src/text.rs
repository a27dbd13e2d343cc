//! The report as text that fits a screen: the verdict, the findings, and what was never reached.

use crate::exploration::figures::{count, counted, duration, percent};
use everett_input::text::printable;

use crate::clip::clip;
use crate::data::{Causality, Data, FailingCode, Finding, State};
use crate::reached_code::place;
use crate::scene::{Scene, lines_told};

/// Maximum number of findings in the text.
const FINDINGS_SHOWN_MAX: usize = 8;
/// Maximum number of names in a list.
const NAMES_SHOWN_MAX: usize = 6;
/// Maximum number of places of code in a finding's line about code that only failing branches reached.
const PLACES_SHOWN_MAX: usize = 2;
/// Maximum length of a finding's story, in characters.
const STORY_CHARS_MAX: usize = 420;

/// Returns the short report as lines.
#[must_use]
pub fn brief(data: &Data) -> Vec<String> {
    let s = &data.summary;
    let mut lines = vec![
        format!("{}: {}", printable(&s.world), printable(&s.verdict)),
        format!(
            "{} of {}, {} with checks; {} of vtime, {} of CPU, {}",
            counted(s.branches, "branch", "branches"),
            counted(s.subtrees, "subtree", "subtrees"),
            count(s.checked),
            duration(s.vtime_ns),
            duration(s.cpu_ns),
            counted(s.faults, "fault", "faults"),
        ),
    ];
    lines.extend(s.final_phases_told.clone());
    if !s.exact {
        lines.push(format!("INEXACT: the engine {} was not proved exact on its host", printable(&s.engine)));
    }
    for finding in data.findings.iter().take(FINDINGS_SHOWN_MAX) {
        lines.push(String::new());
        lines.extend(of_finding(finding));
    }
    if data.findings.len() > FINDINGS_SHOWN_MAX {
        lines.push(format!("and {} more findings", data.findings.len() - FINDINGS_SHOWN_MAX));
    }
    for gone in data.gone.iter().take(NAMES_SHOWN_MAX) {
        lines.push(format!(
            "{}, of an older run: {}: {}",
            gone.status.word(),
            printable(&gone.property),
            cut(&gone.text)
        ));
    }
    lines.push(String::new());
    let never: Vec<String> = data
        .properties
        .iter()
        .filter(|property| property.state == State::NeverReached)
        .map(|property| format!("{} ({})", printable(&property.name), printable(&property.why)))
        .collect();
    if !never.is_empty() {
        lines.push(format!("never reached: {}", named(&never)));
    }
    lines.extend(unseen(data));
    lines.push(s.sure.clone());
    for line in &data.missing {
        lines.push(format!("not in this report: {}", printable(line)));
    }
    lines
}

/// Returns a finding in three lines. If Everett has searched for the event that made the finding likely, a fourth line
/// has the result.
#[must_use]
pub fn of_finding(finding: &Finding) -> Vec<String> {
    let status = finding.status.map_or(String::new(), |status| format!(" ({})", status.word()));
    let times = match (finding.cpu.mean, finding.cpu.clean) {
        (Some(mean), Some(clean)) if clean.needed > 0.0 => {
            let (mean, needed) = (duration(mean as u64), duration(clean.needed as u64));
            format!("; a hit takes {mean} of CPU time on average; gone after {needed} without a hit")
        }
        _ => String::new(),
    };
    let decided =
        finding.causality.as_ref().map(|causality| format!("    {}", printable(&decided(causality))));
    let mut lines = vec![
        format!("{:>3} {}{status}", finding.id, printable(&finding.property)),
        format!("    {}", cut(&finding.story)),
        format!(
            "    in {} of {}, first in b{}{times}",
            counted(finding.branches, "branch", "branches"),
            counted(finding.subtrees, "subtree", "subtrees"),
            finding.branch,
        ),
    ];
    lines.extend(decided);
    lines.extend(finding.code.as_ref().and_then(only_failing));
    lines
}

/// Returns a line that names the first code that only failing branches reached. `None` if there is no such code.
fn only_failing(code: &FailingCode) -> Option<String> {
    let shown: Vec<String> =
        code.places.iter().take(PLACES_SHOWN_MAX).map(|one| place(one, code.branches)).collect();
    let more = code.places_count.saturating_sub(shown.len() as u64);
    let more = if more > 0 { format!("; and {} more", count(more)) } else { String::new() };
    (!shown.is_empty())
        .then(|| format!("    only failing branches reached: {}{more}", cut(&shown.join("; "))))
}

/// Describes the result of the search for the event that made a finding likely, with the event if it is known exactly.
fn decided(causality: &Causality) -> String {
    let step =
        causality.step.as_deref().filter(|_| causality.jump.as_ref().is_some_and(|jump| jump.is_narrowest));
    cut(&[Some(causality.sentence.as_str()), step].into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Returns the most important lines of a scene (the events before a finding). Each line has the vtime in seconds, the
/// node and its program, and the text.
#[must_use]
pub fn of_scene(scene: &Scene, most: usize) -> Vec<String> {
    let told = lines_told(scene, most);
    let place = |node: &str, unit: &str| match node {
        "" => printable(unit),
        node => format!("{}/{}", printable(node), printable(unit)),
    };
    let wide = told.iter().map(|told| place(&told.node, &told.unit).chars().count()).max().unwrap_or(0);
    let line = |told: &crate::scene::StoryLine| {
        let (at, mark) = (told.at_ns, if told.marked { ">" } else { " " });
        let place = place(&told.node, &told.unit);
        format!(
            "  {mark} {:>3}.{:03} {place:wide$}  {}",
            at / 1_000_000_000,
            at / 1_000_000 % 1_000,
            printable(&told.text)
        )
    };
    told.iter().map(line).collect()
}

fn unseen(data: &Data) -> Vec<String> {
    let coverage = &data.coverage;
    let mut parts = Vec::new();
    let states = coverage.kinds.first().map(|states| states.figures);
    if let Some(states) = states.filter(|states| states.points > 0) {
        let new = states.unseen_ppm.map_or("?".to_owned(), percent);
        parts.push(format!(
            "{}, at least {} more; the next is new with a probability of {new}",
            counted(states.points, "state", "states"),
            count(states.more)
        ));
    }
    if coverage.empty_cells > 0 && !coverage.phases.is_empty() {
        parts.push(format!(
            "{} of a fault and a phase never seen together",
            counted(coverage.empty_cells, "pair", "pairs")
        ));
    }
    if coverage.one_way_count > 0 {
        parts.push(format!(
            "{} of events seen in only one order",
            counted(coverage.one_way_count, "pair", "pairs")
        ));
    }
    if parts.is_empty() { Vec::new() } else { vec![format!("coverage: {}", parts.join("; "))] }
}

fn named(names: &[String]) -> String {
    let shown = names.get(..NAMES_SHOWN_MAX).unwrap_or(names);
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// Returns a story on one line, shortened to [`STORY_CHARS_MAX`].
fn cut(text: &str) -> String {
    printable(&clip(text, STORY_CHARS_MAX))
}
