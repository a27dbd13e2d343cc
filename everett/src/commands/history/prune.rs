//! `everett runs prune`: removes old run directories and their records.

use std::collections::BTreeMap;

use everett_history::{History, Run};
use everett_host::time;
use everett_input::causes::with_causes;
use serde::Serialize;

use super::{list, removal};
use crate::commands::prune_args::PruneArgs;
use crate::ui::{Ui, printable, style};

const SECOND_NS: u64 = 1_000_000_000;

/// JSON record that `--json` prints for a run that was removed, or whose removal failed.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    folder: &'a str,
    world: &'a str,
    dry_run: bool,
    /// Error that prevented the removal. `None` if the run was removed.
    why: Option<String>,
}

/// Removes runs with their run directories. Each option keeps some runs: `--keep` the newest of each world,
/// `--older-than` those that are not older, and `--gone` those whose directory still exists. All other runs are
/// removed.
pub(in crate::commands) fn prune(ui: &Ui, args: &PruneArgs) -> anyhow::Result<()> {
    let recorded = match super::read()? {
        Some(history) => super::recorded(&history, args.world.as_deref())?,
        None => Vec::new(),
    };
    let now_s = time::unix_s();
    let mut removed = 0;
    for run in chosen(&recorded, args, now_s, super::is_there) {
        let result = match args.dry_run {
            true => Ok(removal::Left::Nothing),
            false => remove(run),
        };
        let line =
            |kind, why| Line { kind, folder: &run.folder, world: &run.world, dry_run: args.dry_run, why };
        let told =
            format!("{:<9} {}", list::age(now_s.saturating_sub(run.begun_unix_s)), printable(&run.folder));
        match result {
            Ok(left) => {
                removed += 1;
                let rest = left.note().map_or(String::new(), |note| format!("  ({note})"));
                ui.record(&line("run_removed", None))?;
                ui.say(format!("{told}{rest}"))?;
            }
            Err(error) => {
                let why = with_causes(error.as_ref());
                ui.say(style::paint(style::NOTE, format!("{told}  kept: {}", printable(&why))))?;
                ui.record(&line("run_kept", Some(why)))?;
            }
        }
    }
    let done = if args.dry_run { "would be removed" } else { "removed" };
    let runs = if removed == 1 { "run" } else { "runs" };
    Ok(ui.say(format!("{removed} {runs} {done}, {} left", recorded.len() - removed))?)
}

/// Returns the runs in `recorded` that no option in `args` keeps. `recorded` must list the newest run first.
fn chosen<'r>(
    recorded: &'r [Run],
    args: &PruneArgs,
    now_s: u64,
    is_there: impl Fn(&Run) -> bool,
) -> Vec<&'r Run> {
    let mut newer: BTreeMap<&str, usize> = BTreeMap::new();
    let outside = recorded.iter().filter(|run| {
        let newer = newer.entry(&run.world).or_default();
        *newer += 1;
        let among_newest = args.keep.is_some_and(|keep| *newer <= keep);
        let age_s = now_s.saturating_sub(run.begun_unix_s);
        let young = args.older_than_ns.is_some_and(|age_ns| age_s < age_ns / SECOND_NS);
        let kept = among_newest || young || args.gone && is_there(run);
        !kept
    });
    outside.collect()
}

/// Removes Everett's files in a run's folder, the folder if it is then empty, and the run's record. Returns what stays:
/// nothing, files that Everett did not write, or a folder that no longer holds this run.
fn remove(run: &Run) -> anyhow::Result<removal::Left> {
    let left = removal::remove(run)?;
    History::open(&super::file()?)?.forget(&run.folder)?;
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_any_bound_keeps_stays() {
        let run = |world: &str, begun_unix_s| Run {
            folder: format!("{world}{begun_unix_s}"),
            world: world.to_owned(),
            begun_unix_s,
            ..Run::default()
        };
        let recorded = [run("a", 90), run("b", 80), run("a", 70), run("a", 60), run("b", 50)];
        let names = |args: PruneArgs| -> Vec<&str> {
            let chosen = chosen(&recorded, &args, 100, |run| run.folder != "a60");
            chosen.iter().map(|run| &*run.folder).collect()
        };
        let keep = PruneArgs { keep: Some(1), ..PruneArgs::default() };
        assert_eq!(names(keep), ["a70", "a60", "b50"]);
        let older_than_ns = Some(40 * SECOND_NS);
        assert_eq!(names(PruneArgs { older_than_ns, ..PruneArgs::default() }), ["a60", "b50"]);
        assert_eq!(names(PruneArgs { keep: Some(2), older_than_ns, ..PruneArgs::default() }), ["a60"]);
        assert_eq!(names(PruneArgs { gone: true, ..PruneArgs::default() }), ["a60"]);
        assert_eq!(names(PruneArgs { keep: Some(0), ..PruneArgs::default() }).len(), 5);
    }
}
