//! Branches as columns of numbers. The format is compact, and a page with 100,000 branches reads it quickly.

use everett_explorer::run::Header;
use everett_explorer::run::branches::Branch;
use serde::Serialize;

use super::Sources;
use super::limits::BRANCHES_MAX;
use crate::scene::Bar;

/// Maximum number of faults that are listed for one branch.
const FAULTS_MAX: usize = 32;

/// Flag: other branches can continue from the end of this branch.
const OPEN: u8 = 1;
/// Flag: checks followed the branch.
const CHECKED: u8 = 2;
/// Flag: the branch did not run to its end.
const BROKEN: u8 = 4;

/// Branches as columns: entry n of a column belongs to branch n. `fault_kinds`, `findings` and `plans` are not
/// columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// Length of a segment, i.e. the usual length of a branch, in nanoseconds.
    pub segment_ns: u64,
    /// Maximum length of a timeline after the root moment, in nanoseconds.
    pub horizon_ns: u64,
    /// Number of the branch from whose end this branch continues. -1 for the root moment.
    pub from: Vec<i64>,
    /// Number that distinguishes the branch from other branches of the same fork. The path of a branch consists of
    /// `begin_ns` and `child` of its ancestors and itself.
    pub child: Vec<u64>,
    /// Vtime at which the branch begins, counted from the root moment, in nanoseconds.
    pub begin_ns: Vec<u64>,
    /// Length of the branch, in nanoseconds.
    pub length_ns: Vec<u64>,
    /// CPU time of the branch, in milliseconds.
    pub cpu_ms: Vec<u64>,
    /// Cost of the branch, in millions of instructions.
    pub instructions_m: Vec<u64>,
    /// Part of `instructions_m` that the branch's final phase took, i.e. waiting until the world is at rest, and the
    /// checks. 0 without checks.
    pub final_m: Vec<u64>,
    /// Number of faults that were applied on the branch.
    pub faults: Vec<u64>,
    /// Kinds of the applied faults, as bits: bit i stands for entry i of `fault_kinds`.
    pub kinds: Vec<u32>,
    /// Names of kinds of faults.
    pub fault_kinds: Vec<String>,
    /// Number of coverage points that no earlier branch reached.
    pub new_points: Vec<u64>,
    /// Sum of flags: 1 if other branches can continue from the branch's end, 2 if checks followed the branch, 4 if it
    /// did not run to its end.
    pub flags: Vec<u8>,
    /// Pairs of the number of a branch and the number of a finding that it shows.
    pub findings: Vec<(u64, u32)>,
    /// Pairs of the number of a branch and the faults that begin on it, in words. Branches without faults are
    /// missing. In a long run, branches without a finding are also missing.
    pub plans: Vec<(u64, Vec<String>)>,
}

/// Describes faults of a plan in words.
fn told(header: &Header, lines: &[serde_json::Value]) -> Vec<String> {
    let bars =
        lines.iter().take(FAULTS_MAX).filter_map(|line| Bar::of_entry(&header.nodes, header.root_ns, line));
    bars.map(|bar| bar.told()).collect()
}

impl Tree {
    pub(super) fn of(sources: &Sources<'_>) -> Tree {
        let (branches, header) = (sources.branches, sources.run.header);
        let all = branches.all.get(..BRANCHES_MAX).unwrap_or(&branches.all);
        fn column<T>(all: &[Branch], value: impl Fn(&Branch) -> T) -> Vec<T> {
            all.iter().map(value).collect()
        }
        let flags = |branch: &Branch| {
            let flag = |is: bool, flag: u8| if is { flag } else { 0 };
            flag(branch.open, OPEN) | flag(branch.checked, CHECKED) | flag(branch.broken, BROKEN)
        };
        let hits = (0..).zip(all).flat_map(|(n, branch)| branch.findings.iter().map(move |id| (n, *id)));
        Tree {
            root_ns: header.root_ns,
            segment_ns: header.segment_ns,
            horizon_ns: header.horizon_ns,
            from: column(all, |branch| branch.from.and_then(|from| i64::try_from(from).ok()).unwrap_or(-1)),
            child: column(all, |branch| branch.child),
            begin_ns: column(all, |branch| branch.begin_ns.saturating_sub(header.root_ns)),
            length_ns: column(all, |branch| branch.end_ns.saturating_sub(branch.begin_ns)),
            cpu_ms: column(all, |branch| branch.cpu_ns / 1_000_000),
            instructions_m: column(all, |branch| branch.instructions / 1_000_000),
            final_m: column(all, |branch| {
                branch.final_phase.map_or(0, |last| last.instructions() / 1_000_000)
            }),
            faults: column(all, |branch| branch.faults),
            kinds: column(all, |branch| branch.kinds),
            fault_kinds: branches.kinds.names().to_vec(),
            new_points: column(all, |branch| branch.new_points),
            flags: column(all, flags),
            findings: hits.collect(),
            plans: sources.plans.iter().map(|(branch, lines)| (*branch, told(header, lines))).collect(),
        }
    }
}
