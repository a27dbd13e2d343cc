//! Code that a finding's timeline executes in an interval but not shortly before it.

use std::sync::Arc;

use everett_cpu::Edge;
use everett_explorer::causality::Code;
use everett_explorer::causality::result::{CODE_MAX, LINES_MAX, TEXT_BYTES_MAX};
use everett_explorer::search::Path;

use super::super::branch_moment::BranchMoment;
use super::super::path_runner::{PathRunner, Watch};
use super::super::setting::Setting;
use super::super::witness::Inherited;
use crate::run::edges::Collected;
use crate::run::edges::table::Names;
use crate::run::launch::Launcher;

/// Longest interval for which code is collected, in nanoseconds of vtime.
pub(super) const INTERVAL_NS_MAX: u64 = 100_000_000;
/// Length of the time before the interval, in nanoseconds of vtime. Code that also runs in this time is left out.
pub(super) const BEFORE_NS: u64 = 50_000_000;

/// Returns the functions that a path's timeline executes between `from_ns` and `to_ns`, but not between the moment
/// `from` and `from_ns`. `names` opens the sources of their names. Empty if the engine cannot record edges, i.e. executed jumps.
pub(super) fn between(
    setting: &Setting,
    path: &Path,
    from: Option<Arc<BranchMoment>>,
    root: &Inherited,
    (from_ns, to_ns): (u64, u64),
    names: &dyn Fn(&Launcher) -> anyhow::Result<Names>,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<Code>> {
    let setting = setting.with_edges()?;
    let mut runner = PathRunner::new(&setting)?;
    let mut watch = Collector { collected: Collected::default(), stop };
    let here = match from_ns <= setting.root_ns {
        true => None,
        false => Some(runner.rewind(path, from.as_deref(), from_ns, root, &mut watch)?),
    };
    // Each machine reports an edge only once. Edges from before the interval are dropped here and do not appear again.
    watch.collected = Collected::default();
    runner.rewind(path, here.as_ref(), to_ns, root, &mut watch)?;
    if watch.collected.is_empty() {
        return Ok(Vec::new());
    }
    let names = names(&setting.launcher)?;
    let nodes: Vec<&str> = setting.launcher.nodes().map(|node| node.name.as_str()).collect();
    let clip = |text: String| text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
    let functions = names.functions(&watch.collected, CODE_MAX).into_iter();
    Ok(functions
        .map(|function| Code {
            node: nodes.get(function.node).copied().unwrap_or("?").to_owned(),
            program: clip(function.program),
            place: clip(function.place),
            edges: function.edges,
            lines: function.lines.into_iter().take(LINES_MAX).map(clip).collect(),
        })
        .collect())
}

/// Observer that collects edges.
struct Collector<'c> {
    collected: Collected,
    stop: &'c dyn Fn() -> bool,
}

impl Watch for Collector<'_> {
    fn edges(&mut self, node: usize, edges: &[Edge]) {
        self.collected.add(node, edges);
    }

    fn at(&mut self, _: u64) -> bool {
        !(self.stop)()
    }
}
