//! Coverage: growth, estimates of unreached points, the matrix of faults and phases, and orders of events.

use std::collections::BTreeMap;

use crate::exploration::{KindCoverage, KindFigures};
use everett_explorer::coverage::Point;
use serde::Serialize;

use super::Sources;
use super::limits::{KINDS_MAX, ORDERS_MAX, PHASES_MAX, SAMPLES_MAX};

/// Coverage of the run: the points that branches reached, such as states, phases (states of one node) and orders of
/// events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoverageData {
    /// Growth and estimates for each kind of points.
    pub kinds: Vec<Growth>,
    /// Kinds of faults. They are the columns of the matrix.
    pub faults: Vec<String>,
    /// Phases, ordered by their number of branches, largest first. They are the rows of the matrix.
    pub phases: Vec<Row>,
    /// Number of phases that were reached, including phases that `phases` omits.
    pub phases_count: u64,
    /// Number of cells of the matrix that are 0, i.e. no fault of the cell's kind ever began in the cell's phase.
    pub empty_cells: u64,
    /// Pairs of events that occurred in only one order, ordered by their number of branches, largest first.
    pub one_way: Vec<OneWay>,
    /// Number of these pairs, including pairs that `one_way` omits.
    pub one_way_count: u64,
    /// Values that the world file declares for a variable of the abstract state (a summary of logs and faults), and
    /// that the variable had on no branch. Each has the form `variable = value`.
    pub values: Vec<String>,
    /// True if `one_way` and `values` could be computed. This needs the world file: false if it is unreadable or has
    /// changed since the exploration. Both lists are then empty.
    pub gaps_known: bool,
}

/// Growth of one kind of points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Number of points of this kind, and estimates.
    #[serde(flatten)]
    pub figures: KindFigures,
    /// Samples of the growth curve. Each is a pair: a number n, and the number of points that the first n branches
    /// reached.
    pub samples: Vec<(u64, u64)>,
}

/// Row of the matrix: a phase with the faults that began in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name of the phase.
    pub phase: String,
    /// Number of branches in which a node entered this phase.
    pub branches: u64,
    /// For each column: number of branches in which a fault of that kind began in this phase.
    pub cells: Vec<Cell>,
}

/// Number of branches in which a fault began in a phase.
pub type Cell = u64;

/// Two types of events that occurred in only one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OneWay {
    /// Event that always came first.
    pub first: String,
    /// Event that always came second.
    pub then: String,
    /// True if the events are on different nodes.
    pub across: bool,
    /// Number of branches with the events in this order.
    pub branches: u64,
}

impl CoverageData {
    pub(super) fn of(sources: &Sources<'_>) -> CoverageData {
        let points = sources.run.merged.coverage().points();
        let mut phases: Vec<(&str, u64)> = Vec::new();
        let mut cells: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut kinds: BTreeMap<&str, u64> = sources.enabled.iter().map(|kind| (kind.as_str(), 0)).collect();
        for (_, covered) in &points {
            match &*covered.point {
                Point::Phase { phase } => phases.push((phase, covered.hits)),
                Point::Fault { fault, phase } => {
                    cells.insert((phase, fault), covered.hits);
                    *kinds.entry(fault).or_default() += covered.hits;
                }
                _ => {}
            }
        }
        phases.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let mut columns: Vec<(&str, u64)> = kinds.into_iter().collect();
        columns.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        columns.truncate(KINDS_MAX);
        let phases_count = phases.len() as u64;
        let row = |(phase, branches): &(&str, u64)| Row {
            phase: (*phase).to_owned(),
            branches: *branches,
            cells: columns
                .iter()
                .map(|(kind, _)| cells.get(&(*phase, *kind)).copied().unwrap_or(0))
                .collect(),
        };
        let phases: Vec<Row> = phases.iter().take(PHASES_MAX).map(row).collect();
        let empty = phases.iter().flat_map(|row| &row.cells).filter(|cell| **cell == 0).count();
        let gaps = sources.report.gaps.as_ref();
        let one_way = gaps.map(|gaps| {
            gaps.orders.first.iter().take(ORDERS_MAX).map(|gap| OneWay {
                // A gap names the order that did not occur; the report shows the order that did.
                first: gap.then.clone(),
                then: gap.first.clone(),
                across: gap.across,
                branches: gap.reversed,
            })
        });
        let values = gaps.into_iter().flat_map(|gaps| &gaps.values.first);
        CoverageData {
            kinds: sources.report.coverage.iter().map(Growth::of).collect(),
            faults: columns.iter().map(|(kind, _)| (*kind).to_owned()).collect(),
            phases,
            phases_count,
            empty_cells: empty as u64,
            one_way: one_way.into_iter().flatten().collect(),
            one_way_count: gaps.map_or(0, |gaps| gaps.orders.count),
            values: values.map(|gap| format!("{} = {}", gap.variable, gap.value)).collect(),
            gaps_known: gaps.is_some(),
        }
    }
}

impl Growth {
    fn of(covered: &KindCoverage) -> Growth {
        let samples = &covered.growth;
        let stride = samples.len().div_ceil(SAMPLES_MAX).max(1);
        let last = samples.last();
        let mut samples: Vec<(u64, u64)> =
            samples.iter().step_by(stride).map(|sample| (sample.branches, sample.points)).collect();
        let last = last.map(|sample| (sample.branches, sample.points));
        samples.extend(last.filter(|last| samples.last() != Some(last)));
        Growth { figures: covered.figures, samples }
    }
}
