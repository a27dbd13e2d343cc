//! Draws the live view from the model and the operator's scrolling.
//!
//! - `figures`: title, progress bar, and *figures*, i.e. numbers such as speed, coverage and memory
//! - `format`: numbers, bars and curves as text
//! - `lists`: lists that can be scrolled
//!
//! A window of at least [`WIDE`] shows all lists at once. A smaller one shows tabs, and below them the list that has
//! the keyboard focus.

mod figures;
mod format;
mod lists;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::keys::{Pane, Stance};
use super::model::{Model, Tone};

/// Smallest window in which the view is drawn, in columns and rows.
const LEAST: (u16, u16) = (60, 16);
/// Smallest window in which all lists are drawn at once, in columns and rows.
const WIDE: (u16, u16) = (110, 32);
/// Height of the figures with their title, in rows.
const FIGURES_ROWS: u16 = 6;

/// Colours of the view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// False to draw without colours.
    pub(super) colour: bool,
}

impl Look {
    fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => self.of(Color::Green),
            Tone::Note => self.of(Color::Yellow),
            Tone::Bad => self.of(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn curve(self) -> Style {
        self.of(Color::Cyan)
    }

    fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

/// Draws the whole view.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, stance: &mut Stance, look: Look) {
    let area = frame.area();
    let (columns, rows) = LEAST;
    if area.width < columns || area.height < rows {
        let text = format!(
            "The window has {} columns and {} rows; the view needs {columns} and {rows}. The exploration goes on: {} branches, {} findings.",
            area.width, area.height, model.progress.search.branches, model.progress.search.findings
        );
        return text_in(frame, area, format::wrapped(&text, area.width as usize).into_iter().map(Line::from));
    }
    let [title, gauge, body, footer] = split(area, [1, 1, area.height - 3, 1]);
    text_in(frame, title, [figures::title(model, title.width, look)]);
    text_in(frame, gauge, [figures::gauge(model, gauge.width, look)]);
    text_in(frame, footer, [figures::footer(model, footer.width, look)]);
    if area.width >= WIDE.0 && area.height >= WIDE.1 {
        wide(frame, body, model, stance, look);
    } else {
        narrow(frame, body, model, stance, look);
    }
    if stance.help {
        help(frame, body, look);
    }
}

/// Draws the figures in two columns, and the focused list below its tab.
fn narrow(frame: &mut Frame<'_>, body: Rect, model: &Model, stance: &mut Stance, look: Look) {
    let [top, tabs, list] = split(body, [FIGURES_ROWS, 1, body.height - FIGURES_ROWS - 1]);
    let [left, right] = columns(top, [1, 1]);
    figure(frame, left, "Branches", figures::branches(model, inner(left), look), look);
    figure(frame, right, "Coverage and room", figures::coverage(model, inner(right), look), look);
    let mut spans = Vec::new();
    for pane in Pane::ALL {
        let style =
            if pane == stance.pane { Style::new().add_modifier(Modifier::REVERSED) } else { look.faint() };
        let name = match (list.width < 76, pane) {
            (true, Pane::Unchecked) => "Unchecked",
            _ => pane.title(),
        };
        spans.push(Span::styled(format!(" {name}{} ", lists::counted(pane, model)), style));
        spans.push(Span::raw(" "));
    }
    text_in(frame, tabs, [Line::from(spans)]);
    fill(frame, list, stance.pane, model, stance, look);
}

/// Draws the figures and all lists.
fn wide(frame: &mut Frame<'_>, body: Rect, model: &Model, stance: &mut Stance, look: Look) {
    let rest = body.height - FIGURES_ROWS;
    let middle = rest * 2 / 5;
    let [top, middle, bottom] = split(body, [FIGURES_ROWS, middle, rest - middle]);
    let [branches, coverage] = columns(top, [1, 1]);
    figure(frame, branches, "Branches", figures::branches(model, inner(branches), look), look);
    figure(frame, coverage, "Coverage and room", figures::coverage(model, inner(coverage), look), look);
    let [tree, faults, workers] = columns(middle, [5, 3, 4]);
    let [findings, right] = columns(bottom, [3, 2]);
    let unchecked = (right.height / 3).max(3);
    let [unchecked, log] = split(right, [unchecked, right.height - unchecked]);
    let areas = [findings, tree, faults, workers, unchecked, log];
    for (pane, area) in Pane::ALL.into_iter().zip(areas) {
        let style =
            if pane == stance.pane { Style::new().add_modifier(Modifier::REVERSED) } else { look.head() };
        let [title, list] = split(area, [1, area.height - 1]);
        let name = format!(" {}{} ", pane.title(), lists::counted(pane, model));
        text_in(frame, title, [Line::from(Span::styled(name, style))]);
        fill(frame, list, pane, model, stance, look);
    }
}

/// Draws a list.
fn fill(frame: &mut Frame<'_>, area: Rect, pane: Pane, model: &Model, stance: &mut Stance, look: Look) {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let Some(steps) = stance.steps.get_mut(pane.place()) else { return };
    let lines = lists::lines(pane, model, steps, area.width as usize, area.height as usize, look);
    text_in(frame, area, lines);
}

/// Draws figures below their title.
fn figure(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, look: Look) {
    let [head, rest] = split(area, [1, area.height - 1]);
    text_in(frame, head, [Line::from(Span::styled(format!(" {title}"), look.head()))]);
    text_in(frame, Rect { x: rest.x + 1, width: rest.width.saturating_sub(2), ..rest }, lines);
}

fn help(frame: &mut Frame<'_>, body: Rect, look: Look) {
    let keys = [
        ("q, Ctrl-C", "end and write the results; twice: end at once"),
        ("Tab, ← →, 1 to 6", "another list"),
        ("↑ ↓, Page Up, Page Down", "scroll; in Findings: the finding whose lines are shown"),
        ("Home, End", "the first and the last line"),
        ("Ctrl-Z", "suspend; fg comes back"),
        ("Ctrl-L", "draw everything again"),
        ("?, Esc", "show and hide these keys"),
    ];
    let width = 78.min(body.width);
    let height = (keys.len() as u16 + 2).min(body.height);
    let area =
        Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    let lines = keys.map(|(key, text)| {
        Line::from(vec![Span::styled(format!(" {key:<25}"), look.head()), Span::raw(text)])
    });
    frame.render_widget(Paragraph::new(lines.to_vec()).block(Block::bordered().title(" Keys ")), area);
}

/// Draws lines from the top of an area. Longer lines are cut.
fn text_in<'l>(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'l>>) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        frame.render_widget(line, row);
    }
}

/// Returns the number of text columns in an area of figures.
fn inner(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2))
}

/// Splits an area into rows of these heights.
fn split<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let mut y = area.y;
    heights.map(|height| {
        let height = height.min(area.bottom().saturating_sub(y));
        let part = Rect { y, height, ..area };
        y += height;
        part
    })
}

/// Splits an area into columns whose widths have these proportions.
fn columns<const N: usize>(area: Rect, parts: [u16; N]) -> [Rect; N] {
    let all: u16 = parts.iter().sum();
    let (mut x, mut before) = (area.x, 0);
    parts.map(|part| {
        before += part;
        let end = area.x + (u32::from(area.width) * u32::from(before) / u32::from(all.max(1))) as u16;
        let column = Rect { x, width: end - x, ..area };
        x = end;
        column
    })
}
