//! Draws the title, the progress bar and the numbers (speed, cost, coverage, memory) of the live view.

use everett_input::units::show_bytes;
use everett_report::exploration::figures::{count, counted, duration, percent};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::model::{Model, Tone};
use super::Look;
use super::format::{bar, clock, curve};

/// Length of the window for current rates, in seconds.
const RECENT_S: f64 = 60.0;

pub(super) fn title(model: &Model, width: u16, look: Look) -> Line<'static> {
    let about = &model.about;
    let left = format!(" everett explore  {}  ", about.world);
    let more = format!("seed {}, {}", about.seed, about.strategy);
    let right = format!("{} ", about.run);
    let used = left.chars().count() + more.chars().count() + right.chars().count();
    let gap = usize::from(width).saturating_sub(used).max(2);
    let mut spans = vec![Span::styled(left, look.head()), Span::raw(more)];
    if about.inexact {
        spans.push(Span::styled(" INEXACT", look.tone(Tone::Bad)));
    }
    spans.push(Span::styled(format!("{}{right}", " ".repeat(gap)), look.faint()));
    Line::from(spans)
}

pub(super) fn gauge(model: &Model, width: u16, look: Look) -> Line<'static> {
    let (about, search) = (&model.about, &model.progress.search);
    let time = match about.budget_s {
        Some(budget_s) => format!("{} of {}", clock(model.seconds), clock(budget_s)),
        None => clock(model.seconds),
    };
    let branches = match about.branches {
        Some(branches) => format!("{} of {} branches", count(search.branches), count(branches)),
        None => counted(search.branches, "branch", "branches"),
    };
    let left = model.left_s().map_or(String::new(), |s| format!(", {} left", clock(s)));
    let text = format!(" {time}, {branches}{left}");
    let Some(share) = model.share() else {
        return Line::from(vec![Span::raw(text), Span::styled("  until Ctrl-C", look.faint())]);
    };
    let room = usize::from(width).saturating_sub(text.chars().count() + 8);
    Line::from(vec![
        Span::raw(text + "  "),
        Span::styled(bar(share, room), look.curve()),
        Span::raw(format!(" {:>3.0} %", share * 100.0)),
    ])
}

pub(super) fn footer(model: &Model, width: u16, look: Look) -> Line<'static> {
    if model.ending {
        let text = " Ending: writing results. Press Ctrl-C again to end at once.";
        let style = look.tone(Tone::Note).add_modifier(Modifier::BOLD);
        return Line::from(Span::styled(format!("{text:<0$}", usize::from(width)), style));
    }
    let keys = [("q", "end"), ("Tab", "next list"), ("↑↓", "scroll"), ("?", "keys")];
    let mut spans = vec![Span::raw(" ")];
    for (key, text) in keys {
        spans.push(Span::styled(key, look.head()));
        spans.push(Span::styled(format!(" {text}   "), look.faint()));
    }
    Line::from(spans)
}

/// Returns the figures of branches: speed, cost, and the split of the cost by activity.
pub(super) fn branches(model: &Model, width: usize, look: Look) -> Vec<Line<'static>> {
    let (search, spent) = (&model.progress.search, model.progress.spent);
    let per_minute = |(grown, seconds): (u64, f64)| grown as f64 * 60.0 / seconds.max(1e-9);
    let now = per_minute(model.run.recent(RECENT_S));
    let mean = per_minute((search.run, model.seconds));
    let rate = format!("{now:.0} a minute, {mean:.0} on average ");
    let room = width.saturating_sub(rate.chars().count());
    let cpu_s = search.cpu_ns as f64 / 1e9 / (search.run as f64).max(1.0);
    let total = (spent.total_ns() as f64).max(1.0);
    let mut parts: Vec<(&str, f64)> =
        spent.parts().into_iter().map(|(name, ns)| (name, 100.0 * ns as f64 / total)).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let mut split = String::new();
    for (name, part) in parts.into_iter().filter(|(_, part)| *part >= 0.5) {
        let more = format!("{}{name} {part:.0} %", if split.is_empty() { "" } else { ", " });
        if split.chars().count() + more.chars().count() > width {
            break;
        }
        split += &more;
    }
    let broken = if model.broken > 0 { format!(", {} broken", count(model.broken)) } else { String::new() };
    vec![
        Line::from(vec![Span::raw(rate), Span::styled(curve(&model.run.growth(room), true), look.curve())]),
        Line::from(format!("{cpu_s:.2} s of CPU each, {} of vtime", duration(search.vtime_ns))),
        Line::from(Span::styled(split, look.faint())),
        Line::from(format!("{} with checks{broken}", count(model.checked))),
        depths(model, width, look),
    ]
}

/// Returns the numbers of branches by depth, as a curve.
fn depths(model: &Model, width: usize, look: Look) -> Line<'static> {
    let deepest = model.by_depth.len();
    let text = format!("depth {deepest} of {} ", model.about.depth_max);
    let room = width.saturating_sub(text.chars().count());
    let shown = model.by_depth.get(..room.min(deepest)).unwrap_or_default();
    Line::from(vec![Span::raw(text), Span::styled(curve(shown, false), look.curve())])
}

/// Returns the figures of coverage, memory and disk.
pub(super) fn coverage(model: &Model, width: usize, look: Look) -> Vec<Line<'static>> {
    let states = model.progress.search.states;
    let (new, seconds) = model.states.recent(RECENT_S);
    let text = format!("{} states, {} new in {} ", count(states), count(new), clock(seconds));
    let room = width.saturating_sub(text.chars().count());
    let unseen = match model.unseen_ppm {
        Some(ppm) => {
            format!("{} of the next are new, at least {} more", percent(ppm), count(model.more_states))
        }
        None => String::new(),
    };
    let (bytes, moments) = model.progress.moments.map_or((0, 0), |stats| (stats.bytes, stats.present));
    let share = bytes as f64 / (model.about.memory_bytes as f64).max(1.0);
    let memory = format!(
        "{} of {} in {} moments",
        show_bytes(bytes),
        show_bytes(model.about.memory_bytes),
        count(moments as u64)
    );
    let memory_room = width.saturating_sub(memory.chars().count() + 1).min(10);
    let low = model.disk.free_bytes < 10 * model.disk.run_bytes.max(64 << 20);
    let style = if low { look.tone(Tone::Note) } else { Style::new() };
    let findings = model.progress.search.findings;
    let found = if findings == 0 { look.of(Color::Green) } else { look.tone(Tone::Bad) };
    vec![
        Line::from(vec![
            Span::raw(text),
            Span::styled(curve(&model.states.totals(room), true), look.curve()),
        ]),
        Line::from(Span::styled(unseen, look.faint())),
        Line::from(vec![
            Span::styled(bar(share, memory_room), look.curve()),
            Span::raw(format!(" {memory}")),
        ]),
        Line::from(Span::styled(
            format!(
                "{} on the disk, {} free",
                show_bytes(model.disk.run_bytes),
                show_bytes(model.disk.free_bytes)
            ),
            style,
        )),
        Line::from(Span::styled(counted(findings, "finding", "findings"), found)),
    ]
}
