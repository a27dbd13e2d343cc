//! Scrollable lists in the live view of an exploration.

use everett_input::units::Vtime;
use everett_report::exploration::figures::count;
use everett_session::explore::working::Activity;
use ratatui::text::{Line, Span};

use super::super::keys::Pane;
use super::super::model::{Finding, Model, Tone};
use super::Look;
use super::format::{bar, clock, curve, wrapped};

/// Maximum number of lines for a finding's text.
const TEXT_LINES: usize = 4;
/// Text of an empty list that fills when results of branches are merged into the results of the exploration.
const WAITING: &str = "This list fills when the first results are merged.";
/// Width of a subtree's curve, in characters.
const TREE_WIDTH: usize = 12;

/// Returns the number of entries of a list. 0 for lists whose length is not shown.
fn entries(pane: Pane, model: &Model) -> u64 {
    match pane {
        Pane::Findings => model.progress.search.findings,
        Pane::Tree => model.subtrees_all,
        Pane::Faults => model.faults,
        Pane::Workers => model.workers.len() as u64,
        Pane::Unchecked => model.unchecked.len() as u64,
        Pane::Log => 0,
    }
}

/// Returns the number of entries of a list, as text after its title.
pub(super) fn counted(pane: Pane, model: &Model) -> String {
    match entries(pane, model) {
        0 => String::new(),
        number => format!(" {}", count(number)),
    }
}

/// Returns the visible lines of a list. `steps` is the number of lines by which the list is scrolled. For the list of
/// findings, `steps` is the index of the selected finding. A value that is too large is lowered to the maximum.
pub(super) fn lines(
    pane: Pane,
    model: &Model,
    steps: &mut usize,
    width: usize,
    height: usize,
    look: Look,
) -> Vec<Line<'static>> {
    match pane {
        Pane::Findings => findings(model, steps, width, height, look),
        Pane::Tree => from(tree(model, width, look), steps, height),
        Pane::Faults => from(faults(model, width, look), steps, height),
        Pane::Workers => from(workers(model, look), steps, height),
        Pane::Unchecked => from(unchecked(model, look), steps, height),
        Pane::Log => log(model, steps, height, look),
    }
}

/// Returns at most `height` lines, after the first `steps` lines. First lowers `steps` if fewer than `height` lines
/// would be left.
fn from(lines: Vec<Line<'static>>, steps: &mut usize, height: usize) -> Vec<Line<'static>> {
    *steps = (*steps).min(lines.len().saturating_sub(height));
    lines.into_iter().skip(*steps).take(height).collect()
}

/// Returns the list of findings. The selected finding is shown with its text and its evidence.
fn findings(model: &Model, steps: &mut usize, width: usize, height: usize, look: Look) -> Vec<Line<'static>> {
    if model.findings.is_empty() {
        return vec![Line::from(Span::styled("Nothing was found so far.", look.faint()))];
    }
    *steps = (*steps).min(model.findings.len() - 1);
    // Formats only findings that can be visible.
    let first = steps.saturating_sub(height);
    let mut lines = Vec::new();
    let (mut head, mut end) = (0, 0);
    for (place, finding) in model.findings.iter().enumerate().skip(first).take(2 * height + 1) {
        let selected = place == *steps;
        if selected {
            head = lines.len();
        }
        lines.push(finding_line(finding, selected, width, look));
        if selected {
            lines.extend(finding_details(model, finding, width, look));
            end = lines.len();
        }
    }
    let skip = end.saturating_sub(height).min(head);
    lines.into_iter().skip(skip).take(height).collect()
}

fn finding_line(finding: &Finding, selected: bool, width: usize, look: Look) -> Line<'static> {
    let node = finding.node.as_deref().map_or(String::new(), |node| format!(" {node}"));
    let mark = if selected { "▸ " } else { "  " };
    let place =
        format!("{} b{}{node} {}x ", clock(finding.seconds), finding.branch, count(finding.count.max(1)));
    let property = format!("{}: ", finding.property);
    let room = width.saturating_sub(mark.len() + place.chars().count() + property.chars().count());
    let text: String = if selected { String::new() } else { finding.text.chars().take(room).collect() };
    Line::from(vec![
        Span::raw(mark),
        Span::styled(place, look.faint()),
        Span::styled(property, look.tone(Tone::Bad)),
        Span::raw(text),
    ])
}

fn finding_details(model: &Model, finding: &Finding, width: usize, look: Look) -> Vec<Line<'static>> {
    let room = width.saturating_sub(4);
    let mut lines: Vec<Line<'static>> = wrapped(&finding.text, room)
        .into_iter()
        .take(TEXT_LINES)
        .map(|line| Line::from(format!("    {line}")))
        .collect();
    let faint = |text: String| Line::from(Span::styled(format!("    {text}"), look.faint()));
    lines.extend(finding.evidence.iter().cloned().map(faint));
    let run = everett_report::exploration::word(&model.about.run);
    lines.push(faint(format!(
        "at {} s of vtime; everett show {run} b{}",
        Vtime(finding.vtime_ns).to_string().trim(),
        finding.branch
    )));
    lines
}

/// Returns the subtrees that reached the most new coverage points. Each subtree is shown with numbers, and with a curve
/// of the number of its branches at each depth.
fn tree(model: &Model, width: usize, look: Look) -> Vec<Line<'static>> {
    if model.subtrees.is_empty() {
        return vec![Line::from(Span::styled(WAITING, look.faint()))];
    }
    let deepest = model.subtrees.iter().map(|row| row.figures.by_depth.len()).max().unwrap_or(0);
    let shown = deepest.min(TREE_WIDTH).min(width / 4);
    let head = format!("{:<8}{:<shown$} branches depth new points  next", "from", "depth");
    let mut lines = vec![Line::from(Span::styled(head, look.faint()))];
    for row in &model.subtrees {
        let depths = row.figures.by_depth.get(..shown.min(row.figures.by_depth.len())).unwrap_or_default();
        let next = row.share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let mut spans = vec![
            Span::raw(format!("{:<8}", format!("b{}", row.first))),
            Span::styled(format!("{:<shown$}", curve(depths, false)), look.curve()),
            Span::raw(format!(
                "{:>9}{:>6}{:>11}{next:>7}",
                count(row.figures.branches()),
                row.figures.by_depth.len(),
                count(row.figures.new_points)
            )),
        ];
        if row.findings > 0 {
            spans.push(Span::styled(format!("  ● {}", row.findings), look.tone(Tone::Bad)));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// Returns the kinds of faults, ordered by the number of branches on which they began.
fn faults(model: &Model, width: usize, look: Look) -> Vec<Line<'static>> {
    if model.fault_kinds.is_empty() {
        return vec![Line::from(Span::styled("No fault was seen on a branch so far.", look.faint()))];
    }
    let mut kinds: Vec<(&String, u64)> = model.fault_kinds.iter().map(|(kind, n)| (kind, *n)).collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let most = kinds.first().map_or(1, |(_, n)| (*n).max(1));
    let name_width = kinds.iter().map(|(kind, _)| kind.chars().count()).max().unwrap_or(0).min(width / 2);
    let number_width = count(most).len();
    let room = width.saturating_sub(name_width + number_width + 2).min(24);
    let line = |(kind, n): (&String, u64)| {
        let kind: String = kind.chars().take(name_width).collect();
        Line::from(vec![
            Span::raw(format!("{kind:<name_width$} {:>number_width$} ", count(n))),
            Span::styled(bar(n as f64 / most as f64, room).replace('░', " "), look.curve()),
        ])
    };
    let head = Line::from(Span::styled("branches with this fault", look.faint()));
    std::iter::once(head).chain(kinds.into_iter().map(line)).collect()
}

fn workers(model: &Model, look: Look) -> Vec<Line<'static>> {
    let line = |(number, worker): (usize, &super::super::model::Worker)| {
        let branch = worker.branch.map_or(String::new(), |branch| format!(" b{branch}"));
        let since_root = worker.vtime_ns.saturating_sub(model.about.root_ns);
        let vtime = match worker.vtime_ns {
            0 => String::new(),
            _ => format!(" at +{:.1} s", since_root as f64 / 1e9),
        };
        let style = match worker.activity {
            Activity::Waits | Activity::Starts => look.faint(),
            Activity::Derives => look.tone(Tone::Note),
            Activity::Runs => look.tone(Tone::Good),
            Activity::Stopped => look.tone(Tone::Bad),
        };
        Line::from(vec![
            Span::raw(format!("{:<3}", number + 1)),
            Span::styled(format!("{:<8}", worker.activity.word()), style),
            Span::raw(format!("{branch}{vtime}")),
            Span::styled(format!("  {:.1} s", worker.seconds), look.faint()),
        ])
    };
    model.workers.iter().enumerate().map(line).collect()
}

fn unchecked(model: &Model, look: Look) -> Vec<Line<'static>> {
    if model.merged == 0 {
        return vec![Line::from(Span::styled(WAITING, look.faint()))];
    }
    if model.unchecked.is_empty() {
        return vec![Line::from(Span::styled("Every property was checked.", look.faint()))];
    }
    let line = |(name, why): &(String, String)| {
        Line::from(vec![
            Span::styled(format!("{name}  "), look.tone(Tone::Note)),
            Span::styled(why.clone(), look.faint()),
        ])
    };
    model.unchecked.iter().map(line).collect()
}

/// Returns the last lines of the log, scrolled back by `steps` lines.
fn log(model: &Model, steps: &mut usize, height: usize, look: Look) -> Vec<Line<'static>> {
    *steps = (*steps).min(model.log.len().saturating_sub(height));
    let end = model.log.len() - *steps;
    let line = |line: &super::super::model::Line| {
        Line::from(vec![
            Span::styled(format!("{:>7} ", clock(line.seconds)), look.faint()),
            Span::styled(line.text.clone(), look.tone(line.tone)),
        ])
    };
    model.log.iter().skip(end.saturating_sub(height)).take(height).map(line).collect()
}
