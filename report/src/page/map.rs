//! Map of the multiverse: controls and canvas for the script, and a static drawing for print and for browsers without
//! script.

use maud::{Markup, html};

use super::svg::{Scale, tick};
use super::text::{count, counted, foreign, plain};
use crate::data::{Data, Tree};

/// Sizes and margins of the static drawing, in pixels.
const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 8.0;
const BOTTOM: f64 = 22.0;
/// Maximum number of rows of the static drawing.
const ROWS_MAX: usize = 140;
/// Maximum number of columns of the static drawing.
const COLUMNS_MAX: usize = 64;

pub(super) fn section(data: &Data) -> Markup {
    let tree = &data.tree;
    html! {
        section #map aria-labelledby="map-title" {
            h2 #map-title { "Map of the multiverse" }
            p.dim {
                "All " (counted(data.summary.branches, "branch", "branches")) ". Time runs to the right, from the root moment; each row is a \
                 timeline, and a branch that forks off gets a row of its own below."
            }
            form.controls id="map-controls" {
                label { "Show " select name="show" {
                    option value="all" { "all branches" }
                    option value="found" { "with a finding" }
                    @for finding in data.findings.iter().take(50) { option value={ "f" (finding.id) } { "finding " (finding.id) ": " (plain(&finding.property)) } }
                    option value="checked" { "followed by checks" }
                    option value="broken" { "broken" }
                } }
                label { "Fault " select name="fault" {
                    option value="" { "any" }
                    @for (bit, kind) in tree.fault_kinds.iter().enumerate() { option value=(bit) { (plain(kind)) } }
                } }
                label { "New points at least " input type="number" name="new" min="0" value="0" inputmode="numeric"; }
                label { "Go to branch " input type="search" name="go" placeholder="17 or a path" autocomplete="off"; }
                span.buttons {
                    button type="button" name="in" aria-label="Zoom in" { "+" }
                    button type="button" name="out" aria-label="Zoom out" { "−" }
                    button type="button" name="fit" { "Whole" }
                }
                output id="map-count" aria-live="polite" {}
            }
            div #map-view hidden {
                canvas id="map-canvas" tabindex="0" role="application" aria-label="Map of branches. Arrow keys go from branch to branch, plus and minus zoom, page up and page down scroll, 0 shows the whole." aria-describedby="map-branch" {}
                div id="map-branch" aria-live="polite" { p.dim { "Pick a branch to see its faults, its findings, its log, and the command that goes there." } }
            }
            (drawing(tree))
            p.legend {
                span { span.swatch.fail {} "finding" }
                span { span.swatch.fresh {} "many new points" }
                span { span.swatch.stale {} "few or none" }
                span { span.swatch.faulted {} "fault on the branch" }
            }
        }
    }
}

/// Returns the static drawing: rows of timelines and columns of time. Each cell summarizes its branches.
fn drawing(tree: &Tree) -> Markup {
    let (slots, rows) = slots(&tree.from);
    let group = rows.div_ceil(ROWS_MAX).max(1);
    let shown = rows.div_ceil(group);
    let columns = usize::try_from(tree.horizon_ns.div_ceil(tree.segment_ns.max(1)).saturating_mul(4))
        .unwrap_or(COLUMNS_MAX)
        .clamp(1, COLUMNS_MAX);
    let mut cells = vec![Cell::default(); shown * columns];
    let column =
        |ns: u64| ((ns as f64 / tree.horizon_ns.max(1) as f64 * columns as f64) as usize).min(columns - 1);
    for (branch, slot) in slots.iter().enumerate() {
        let get = |list: &[u64]| list.get(branch).copied().unwrap_or(0);
        // `length_ns` may include the checks, which run after the branch's segment. No branch continues from the state
        // after the checks, so the drawing shows only the segment.
        let (begin, length) = (get(&tree.begin_ns), get(&tree.length_ns).min(tree.segment_ns));
        for at in column(begin)..=column(begin.saturating_add(length.saturating_sub(1))) {
            if let Some(cell) = cells.get_mut(slot / group * columns + at) {
                cell.branches += 1;
                cell.new_points = cell.new_points.max(get(&tree.new_points));
            }
        }
    }
    let mut found: Vec<(usize, u64)> = Vec::new();
    for (branch, _) in &tree.findings {
        let place = usize::try_from(*branch).unwrap_or(usize::MAX);
        if let (Some(slot), Some(begin), Some(length)) =
            (slots.get(place), tree.begin_ns.get(place), tree.length_ns.get(place))
        {
            found.push((slot / group, begin.saturating_add((*length).min(tree.segment_ns))));
        }
    }
    found.sort_unstable();
    found.dedup_by_key(|(row, at)| (*row, column(*at)));
    let x = Scale::new((0.0, tree.horizon_ns as f64 / 1e9), (LEFT, WIDTH - RIGHT));
    let row_height = (HEIGHT - BOTTOM) / shown.max(1) as f64;
    let (width, bar) = ((WIDTH - LEFT - RIGHT) / columns as f64, (row_height * 0.8).min(10.0));
    let label = format!(
        "Static map: {} in {} rows, {} with a finding.",
        counted(tree.from.len() as u64, "branch", "branches"),
        count(rows as u64),
        count(tree.findings.len() as u64)
    );
    html! {
        figure.static-map {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
                @for row in 0..shown {
                    @for (from, to, level) in runs(cells.get(row * columns..(row + 1) * columns).unwrap_or_default()) {
                        rect class={ "n" (level) } x=(LEFT + from as f64 * width) y=(format!("{:.1}", row as f64 * row_height)) width=((to - from) as f64 * width) height=(format!("{bar:.1}")) {}
                    }
                }
                @for (row, at) in &found {
                    circle.found cx=(x.at(*at as f64 / 1e9)) cy=(format!("{:.1}", *row as f64 * row_height + bar / 2.0)) r="3" {}
                }
                @for second in x.ticks(8) { text.tick x=(x.at(second)) y=(HEIGHT - 6.0) text-anchor="middle" { "+" (tick(second)) " s" } }
            }
            @if group > 1 { figcaption.dim { "Each row stands for " (group) " timelines." } }
            @if tree.fault_kinds.is_empty() { figcaption.dim { "No fault was seen on a branch." } }
            @else { figcaption.dim { "Kinds of faults: " @for (i, kind) in tree.fault_kinds.iter().enumerate() { @if i > 0 { ", " } (foreign(kind)) } "." } }
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    branches: u64,
    new_points: u64,
}

impl Cell {
    /// Returns 0 for an empty cell. Otherwise returns 1 to 4: the more `new_points`, the higher the level.
    fn level(self) -> u8 {
        match (self.branches, self.new_points) {
            (0, _) => 0,
            (_, 0) => 1,
            (_, 1..10) => 2,
            (_, 10..100) => 3,
            _ => 4,
        }
    }
}

/// Joins adjacent cells with the same level. Returns for each group its first cell, the cell after its last, and its
/// level. Empty cells are left out.
fn runs(cells: &[Cell]) -> Vec<(usize, usize, u8)> {
    let mut runs: Vec<(usize, usize, u8)> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        match runs.last_mut() {
            Some((_, to, level)) if *to == at && *level == cell.level() => *to += 1,
            _ if cell.level() > 0 => runs.push((at, at + 1, cell.level())),
            _ => {}
        }
    }
    runs
}

/// Returns the row of each branch, and the number of rows. A first child continues its parent's row, and every other
/// child gets the next free row. Rows of a subtree are adjacent.
fn slots(from: &[i64]) -> (Vec<usize>, usize) {
    let parent = |branch: usize| from.get(branch).and_then(|from| usize::try_from(*from).ok());
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); from.len()];
    let mut stack = Vec::new();
    for branch in 0..from.len() {
        match parent(branch).and_then(|parent| children.get_mut(parent)) {
            Some(children) => children.push(branch),
            None => stack.push(branch),
        }
    }
    let mut slots = vec![0; from.len()];
    let mut rows = 0;
    stack.reverse();
    while let Some(branch) = stack.pop() {
        let first = parent(branch)
            .filter(|parent| children.get(*parent).and_then(|all| all.first()) == Some(&branch));
        let slot = match first.and_then(|parent| slots.get(parent)) {
            Some(slot) => *slot,
            None => {
                rows += 1;
                rows - 1
            }
        };
        if let Some(place) = slots.get_mut(branch) {
            *place = slot;
        }
        stack.extend(children.get(branch).into_iter().flatten().rev());
    }
    (slots, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_subtrees_are_adjacent() {
        // Branch 0 has the children 2 and 3, branch 2 has the child 4, and branch 1 is alone.
        assert_eq!(slots(&[-1, -1, 0, 0, 2]), (vec![0, 2, 0, 1, 0], 3));
        assert_eq!(slots(&[]), (vec![], 0));
    }

    #[test]
    fn cells_of_one_level_are_drawn_together() {
        let cell = |branches, new_points| Cell { branches, new_points };
        let cells = [cell(1, 0), cell(2, 0), cell(0, 0), cell(1, 5), cell(1, 500)];
        assert_eq!(runs(&cells), [(0, 2, 1), (3, 4, 2), (4, 5, 4)]);
    }
}
